"""Program that prints the text of a PDF, run by its path in a process of its own.

Arguments: the file, the most characters to print, the limit of its memory in bytes. It imports nothing
of this program: a damaged or malicious file ends only this process.
"""

import sys
from itertools import count
from pathlib import Path


def main(path: str, most_chars: int, memory_bytes: int) -> int:
    """Print the text in UTF-8, pages separated by blank lines; return 1 if it cannot be read."""
    try:
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ImportError, ValueError, OSError):
        pass  # the time limit remains
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(Path(path).read_bytes())
        pages = []
        for number in count():
            if number >= len(document) or most_chars <= 0:
                break
            text = document[number].get_textpage().get_text_bounded().strip()
            pages.append(text[:most_chars])
            most_chars -= len(text)
    except (pypdfium2.PdfiumError, OSError):
        return 1
    text = "\n\n".join(page for page in pages if page).replace("\r\n", "\n")
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

"""Program that prints the text of a document, run in a process of its own.

Arguments: the kind ("pdf" or one of `READERS` and `TABLES`), the file, the most characters to print, the most seconds, the
limit of its memory in bytes, and the program that recognizes text in images, "" for none. The first line that
it prints is the number of pages, the rest their texts in UTF-8, separated by form feeds; fewer than that where
a limit ended it. Only PDF and presentations have pages; of others, headings and list items are as in Markdown.
Of tables it prints rows as pages.
Or: "page", the PDF, the number of a page from 0, its longest edge in pixels, the limit of memory, a text that is
marked where the page has it, and the program that recognizes text; it prints 1 if the text was found, else 0, then the
page as a binary PPM image.
It imports `document_formats` and `document_tables` only: a damaged or malicious file ends only this process.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import TypeVar

from app.system.document_formats import PROTECTED, READERS, UNREADABLE
from app.system.document_tables import TABLES, first_rows

_OPENING_CPU_S = 3.0  # a damaged file is searched for its parts: 28 s for 2 GB

_MOST_LANGUAGES, _DOTS_PER_INCH, _MOST_PX, _OCR_S = 4, 300, 5_000, 60.0
_MARKING_S, _TSV_CELLS = 20.0, 12  # someone waits for it
# Of the blue channel, so that white becomes yellow.
_AS_MARKED = bytes(min(each, 90) for each in range(256))

_Box = tuple[float, float, float, float]  # left, bottom, right, top, in points

_Item = TypeVar("_Item")


def main(kind: str, path: str, most_chars: int, most_s: float, memory_bytes: int, ocr: str) -> int:
    """Print the text; return UNREADABLE, PROTECTED or TOO_LARGE if that is impossible."""
    _limit(memory_bytes)
    if kind in TABLES:
        sheets = TABLES[kind](Path(path))
        rows = first_rows(sheets, most_chars)
        return _write(sum(map(len, sheets)), rows, most_chars, most_s)
    if kind != "pdf":
        texts = list(READERS[kind](Path(path)))  # an error ends with UNREADABLE
        return _write(len(texts), iter(texts), most_chars, most_s)
    import pypdfium2

    try:
        with _cpu_limit(_OPENING_CPU_S):
            document = pypdfium2.PdfDocument(path)
        languages = _languages(ocr) if ocr else ""
        pages = (_page(document, number, ocr, languages) for number in range(len(document)))
        return _write(len(document), pages, most_chars, most_s)
    except pypdfium2.PdfiumError as error:
        return PROTECTED if error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD else UNREADABLE
    except (OSError, MemoryError):
        return UNREADABLE


def print_page(
    path: str, number: int, most_px: int, memory_bytes: int, marked: str, ocr: str
) -> int:
    """Print the image of a page of a PDF, a text marked; return UNREADABLE if that is impossible."""
    _limit(memory_bytes)
    import pypdfium2

    try:
        with _cpu_limit(_OPENING_CPU_S):
            page = pypdfium2.PdfDocument(path)[number]
        scale = most_px / max(1.0, *page.get_size())
        boxes = _boxes_of(page, marked, ocr)
        sys.stdout.buffer.write(b"%d" % bool(boxes) + _image(page, scale, boxes=boxes))
    except (pypdfium2.PdfiumError, IndexError, OSError, MemoryError):
        return UNREADABLE
    return 0


def _limit(memory_bytes: int) -> None:
    try:
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        os.nice(10)
    except (ImportError, ValueError, OSError):
        pass  # the time limit remains


@contextmanager
def _cpu_limit(seconds: float) -> Iterator[None]:
    """End the process, by SIGPROF, after so much time of the processor; not on Windows."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


def _page(document: "pypdfium2.PdfDocument", number: int, ocr: str, languages: str) -> str:  # type: ignore[name-defined] # noqa: F821
    """Return the text of a page, "" of one that is damaged; without text, what is recognized in it."""
    import pypdfium2

    try:
        page = document[number]
        text: str = page.get_textpage().get_text_bounded()
        if languages and not text.strip():
            text = _recognized(page, ocr, languages)
        page.close()
    except pypdfium2.PdfiumError:
        return ""
    return text.replace("\r\n", "\n").replace("\f", "\n").strip()


def _languages(ocr: str) -> str:
    """Return the languages that Tesseract has, as it takes them; "" for none."""
    try:
        listed = subprocess.run([ocr, "--list-langs"], capture_output=True, timeout=10, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    known = listed.stdout.decode("ascii", "replace").split("\n")[1:]
    return "+".join([each for each in known if each and each != "osd"][:_MOST_LANGUAGES])


def _recognized(
    page: "pypdfium2.PdfPage",  # type: ignore[name-defined] # noqa: F821
    ocr: str,
    languages: str,
    *options: str,
    most_s: float = _OCR_S,
) -> str:
    """Return the text that Tesseract recognizes in a page, or what it prints with options; "" if it fails."""
    image = _image(page, _ocr_scale(page), grayscale=True)
    try:
        ran = subprocess.run(  # noqa: S603
            [ocr, "stdin", "stdout", "-l", languages, *options], input=image, timeout=most_s, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | {"OMP_THREAD_LIMIT": "1"},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout.decode("utf-8", "replace")


def _ocr_scale(page: "pypdfium2.PdfPage") -> float:  # type: ignore[name-defined] # noqa: F821
    return min(_DOTS_PER_INCH / 72, _MOST_PX / float(max(1.0, *page.get_size())))


def _boxes_of(page: "pypdfium2.PdfPage", text: str, ocr: str) -> "list[_Box]":  # type: ignore[name-defined] # noqa: F821
    """Return the boxes of the lines that show a text, none if the page does not have it.

    In a page without text they are those of the words that are recognized in it. Only letters and digits are
    compared: others, as line ends and hyphens, may differ from the page's.
    """
    import pypdfium2

    text_page = page.get_textpage()
    codes = (
        pypdfium2.raw.FPDFText_GetUnicode(text_page, number)
        for number in range(text_page.count_chars())
    )
    shown = [(number, chr(code)) for number, code in enumerate(codes) if chr(code).isalnum()]
    wanted = "".join(each for each in text if each.isalnum())
    if wanted and not shown and ocr:
        words = [(box, each) for box, word in _word_boxes(page, ocr) for each in word]
        return list(dict.fromkeys(_matched(words, wanted)))
    if not (found := _matched(shown, wanted)):
        return []
    lines = text_page.count_rects(found[0], found[-1] - found[0] + 1)
    return [text_page.get_rect(number) for number in range(lines)]


def _matched(shown: "Sequence[tuple[_Item, str]]", wanted: str) -> "list[_Item]":
    """Return the items, one for each character, of a text among those of a page."""
    at = "".join(char for _, char in shown).find(wanted)
    return [item for item, _ in shown[at : at + len(wanted)]] if at >= 0 else []


def _word_boxes(page: "pypdfium2.PdfPage", ocr: str) -> "Iterator[tuple[_Box, str]]":  # type: ignore[name-defined] # noqa: F821
    """Yield the words that Tesseract recognizes in a page, by their letters and digits, with their boxes."""
    import pypdfium2

    scale, size = _ocr_scale(page), page.get_size()
    place = pypdfium2.PdfPosConv(page, (0, 0, *(ceil(scale * each) for each in size), 0))
    options = ("-c", "tessedit_create_tsv=1")
    rows = _recognized(page, ocr, _languages(ocr), *options, most_s=_MARKING_S).splitlines()
    for row in rows[1:]:
        if len(cells := row.split("\t")) == _TSV_CELLS:
            left, top, width, height = map(int, cells[6:10])
            (x1, y1), (x2, y2) = place.to_page(left, top), place.to_page(left + width, top + height)
            yield (x1, y2, x2, y1), "".join(each for each in cells[-1] if each.isalnum())


def _image(
    page: "pypdfium2.PdfPage",  # type: ignore[name-defined] # noqa: F821
    scale: float,
    *,
    grayscale: bool = False,
    boxes: "Iterable[_Box]" = (),
) -> bytes:
    """Return a page as a binary PGM or PPM image, boxes of it marked in yellow."""
    bitmap = page.render(scale=scale, grayscale=grayscale, rev_byteorder=True)
    kind, width = (b"P5", bitmap.width) if grayscale else (b"P6", 3 * bitmap.width)
    data, place = bytearray(bitmap.buffer), bitmap.get_posconv(page)
    for left, bottom, right, top in boxes:
        (x1, y1), (x2, y2) = place.to_bitmap(left, bottom), place.to_bitmap(right, top)
        x, end_x = sorted((max(0, x1), max(0, x2)))  # a page may be rotated
        y, end_y = sorted((max(0, y1), max(0, y2)))
        for row in range(y, min(end_y, bitmap.height)):
            start = row * bitmap.stride
            blues = slice(start + 3 * x + 2, start + 3 * min(end_x, bitmap.width), 3)
            data[blues] = data[blues].translate(_AS_MARKED)
    rows = (data[at : at + width] for at in range(0, len(data), bitmap.stride))
    return b"%b %d %d 255\n" % (kind, bitmap.width, bitmap.height) + b"".join(rows)


def _write(pages: int, texts: Iterator[str], most_chars: int, most_s: float) -> int:
    deadline = time.monotonic() + most_s
    out = sys.stdout.buffer
    out.write(f"{pages}\n".encode())
    for number, text in enumerate(texts):
        out.write(b"\f" * (number > 0) + text[:most_chars].encode("utf-8", "replace"))
        most_chars -= len(text)
        if most_chars <= 0 or time.monotonic() > deadline:
            break
    return 0


if __name__ == "__main__":
    task, file, *given = sys.argv[1:]
    if task == "page":
        page_number, most_px, most_bytes = map(int, given[:3])
        sys.exit(print_page(file, page_number, most_px, most_bytes, *given[3:]))
    sys.exit(main(task, file, int(given[0]), float(given[1]), int(given[2]), given[3]))

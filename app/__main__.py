"""The program: `commonplace` and `python -m app`.

A desktop's key runs `quick`, which asks the open window at once: it takes Python's own start, 20 ms, and
as much again. All else, also the errors of `quick`, is in `app.cli.entry`, which imports for 200 ms.
"""

import sys


def main() -> int:
    """Run the program; return its exit code."""
    if _shows_quick_find(sys.argv[1:]):
        return 0
    from app.cli.entry import main

    return main()


def _shows_quick_find(words: list[str]) -> bool:
    """Return whether the words are `quick` and a window has shown its search."""
    *options, command = words or [""]
    has_folder = len(options) == 2 and options[0] == "--data-dir" and bool(options[1])
    if command != "quick" or (options and not has_folder):
        return False
    import socket

    from app.system.paths import DataPaths

    try:
        with socket.socket(socket.AF_UNIX) as window:
            window.settimeout(5.0)
            window.connect(str(DataPaths.choose(options[-1] if options else None).socket))
            window.sendall(b'{"quick": true}\n')
            return bool(window.recv(1))
    except (OSError, RuntimeError, AttributeError):  # no Unix sockets on Windows
        return False


if __name__ == "__main__":
    sys.exit(main())

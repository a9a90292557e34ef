"""Reading of files that others made by programs with limits of time, memory and output.

PDFium reads PDF. Qt scales images: it is installed with the window, so no other image library is needed;
its program belongs to the window's folder and is started by path, as this layer does not depend on it.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from app.system.process import LimitExceeded, ProcessLimits, run_captured

_HERE = Path(__file__).resolve()
_PDF = _HERE.with_name("pdf_program.py")
_IMAGE = _HERE.parents[2] / "ui" / "rendering" / "image_program.py"
_MEMORY_BYTES = 2 << 30
_SECONDS = 30.0
_BYTES_PER_CHAR = 4


class UnreadableFile(Exception):
    """A program could not read a file, or exceeded a limit."""


def pdf_text(path: Path, most_chars: int, is_cancelled: Callable[[], bool] = lambda: False) -> str:
    """Return the text of a PDF, "" when it has none, as scans have; blocking. Raises UnreadableFile."""
    limit_bytes = most_chars * _BYTES_PER_CHAR
    return _run(_PDF, path, limit_bytes, [most_chars], is_cancelled).decode("utf-8", "replace")


def scaled_image(
    path: Path, most_px: int, most_bytes: int, is_cancelled: Callable[[], bool] = lambda: False
) -> bytes:
    """Return an image's first frame within limits, as PNG or JPEG; blocking. Raises UnreadableFile."""
    return _run(_IMAGE, path, most_bytes, [most_px, most_bytes], is_cancelled)


def _run(
    program: Path,
    path: Path,
    output_bytes: int,
    arguments: list[int],
    is_cancelled: Callable[[], bool],
) -> bytes:
    command = [sys.executable, "-I", str(program), str(path.absolute())]
    command += map(str, [*arguments, _MEMORY_BYTES])
    limits = ProcessLimits(_SECONDS, output_bytes)
    try:
        code, output = run_captured(command, os.environ, limits, is_cancelled)
    except (LimitExceeded, OSError) as error:
        raise UnreadableFile(str(error)) from error
    if code != 0:
        raise UnreadableFile(f"the program ended with {code}")
    return output

"""Reading of files that others made by programs with limits of time, memory and output.

PDFium reads PDF. Qt scales images: it is installed with the window, so no other image library is needed;
its program belongs to the window's folder and is started by path, as this layer does not depend on it.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.system.document_formats import MOST_UNPACKED_BYTES, PROTECTED, TOO_LARGE
from app.system.process import LimitExceeded, ProcessLimits, module_command, run_captured

IsCancelled = Callable[[], bool]

_ROOT = Path(__file__).resolve().parents[2]
_DOCUMENT = module_command("app.system.document_program")
_IMAGE = [sys.executable, "-I", str(_ROOT / "ui" / "rendering" / "image_program.py")]
_MEMORY_BYTES = 2 << 30
_DOCUMENT_MEMORY_BYTES = 384 << 20
_SECONDS = 30.0
_GRACE_S = 10.0  # for a program that ends by itself
_BYTES_PER_CHAR = 4
_HEADER_BYTES = 32  # of a PPM image


class UnreadableFile(Exception):
    """A program could not read a file, or exceeded a limit; the message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The texts of a document's first pages, and how many pages it has."""

    texts: tuple[str, ...]
    total: int


def text_recognizer() -> str:
    """Return the path of the program that recognizes text in images, "" if it is not installed."""
    return shutil.which("tesseract") or ""


def document_pages(
    path: Path,
    kind: str,
    most_chars: int,
    is_cancelled: IsCancelled,
    most_s: float,
    *,
    recognizes: bool = False,
) -> Pages:
    """Return the text of a file of a kind ("pdf", or as `document_program` has it) by page; blocking.

    It ends where the limits do. Of a scan the texts are empty, unless it `recognizes` text in images and
    Tesseract is installed. Raises UnreadableFile, Cancelled.
    """
    ocr = text_recognizer() if recognizes else ""
    given = [kind, str(path.absolute()), most_chars, most_s, _DOCUMENT_MEMORY_BYTES, ocr]
    limits = ProcessLimits(most_s + _GRACE_S, most_chars * _BYTES_PER_CHAR + (1 << 20))
    first, _, rest = _run(_DOCUMENT, given, limits, is_cancelled).partition(b"\n")
    return Pages(tuple(rest.decode("utf-8", "replace").split("\f")), int(first))


def page_image(
    path: Path, number: int, most_px: int, marked: str, is_cancelled: IsCancelled
) -> tuple[bytes, bool]:
    """Return a page of a PDF, counted from 1, as a PPM image, and whether a text of it is marked; blocking.

    In a scan it is marked where Tesseract recognizes it. Raises UnreadableFile, Cancelled.
    """
    limit, ocr = _DOCUMENT_MEMORY_BYTES, text_recognizer()
    given = ["page", str(path.absolute()), number - 1, most_px, limit, marked, ocr]
    limits = ProcessLimits(_SECONDS, 3 * most_px * most_px + _HEADER_BYTES)
    output = _run(_DOCUMENT, given, limits, is_cancelled)
    return output[1:], output[:1] == b"1"


def pdf_text(path: Path, most_chars: int, is_cancelled: IsCancelled = lambda: False) -> str:
    """Return the text of a PDF, "" when it has none, as scans have; blocking. Raises UnreadableFile."""
    pages = document_pages(path, "pdf", most_chars, is_cancelled, _SECONDS)
    if len(pages.texts) < pages.total and sum(map(len, pages.texts)) < most_chars:
        raise UnreadableFile("Reading it was stopped: it took too long.")
    return "\n\n".join(filter(None, pages.texts))


def scaled_image(
    path: Path, most_px: int, most_bytes: int, is_cancelled: IsCancelled = lambda: False
) -> bytes:
    """Return an image's first frame within limits, as PNG or JPEG; blocking. Raises UnreadableFile."""
    given = [str(path.absolute()), most_px, most_bytes, _MEMORY_BYTES]
    return _run(_IMAGE, given, ProcessLimits(_SECONDS, most_bytes), is_cancelled)


def _run(
    program: Sequence[str],
    arguments: list[object],
    limits: ProcessLimits,
    is_cancelled: IsCancelled,
) -> bytes:
    command = [*program, *map(str, arguments)]
    try:
        code, output = run_captured(command, os.environ, limits, is_cancelled)
    except (LimitExceeded, OSError) as error:
        raise UnreadableFile(f"Reading it was stopped: {error}.") from error
    if code == PROTECTED:
        raise UnreadableFile("It is protected by a password.")
    if code in (-getattr(signal, "SIGPROF", 0), -signal.SIGABRT):  # too long, too much memory
        raise UnreadableFile("It is damaged, or too large to open.")
    if code == TOO_LARGE:
        raise UnreadableFile(f"It unpacks to more than {MOST_UNPACKED_BYTES >> 20} MB.")
    if code != 0:
        raise UnreadableFile("It is damaged or not what its name says.")
    return output

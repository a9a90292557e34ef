"""Program that prints the text of a document, run by its path in a process of its own.

Arguments: the kind ("pdf" or one of `_READERS` and `_TABLES`), the file, the most characters to print, the most seconds, the
limit of its memory in bytes, and the program that recognizes text in images, "" for none. The first line that
it prints is the number of pages, the rest their texts in UTF-8, separated by form feeds; fewer than that where
a limit ended it. Only PDF and presentations have pages; of others, headings and list items are as in Markdown.
Of tables it prints rows as pages.
Or: "page", the PDF, the number of a page from 0, its longest edge in pixels, the limit of memory, a text that is
marked where the page has it, and the program that recognizes text; it prints 1 if the text was found, else 0, then the
page as a binary PPM image.
It imports nothing of this program: a damaged or malicious file ends only this process.
"""

import io
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from itertools import product
from math import ceil
from pathlib import Path, PurePosixPath
from string import ascii_uppercase
from typing import IO, TypeVar
from urllib.parse import unquote
from xml.etree import ElementTree as ET

UNREADABLE, PROTECTED, TOO_LARGE = 1, 3, 4
MOST_UNPACKED_BYTES = 64 << 20

_OPENING_CPU_S = 3.0  # a damaged file is searched for its parts: 28 s for 2 GB

_MOST_LANGUAGES, _DOTS_PER_INCH, _MOST_PX, _OCR_S = 4, 300, 5_000, 60.0
_MARKING_S, _TSV_CELLS = 20.0, 12  # someone waits for it
# Of the blue channel, so that white becomes yellow.
_AS_MARKED = bytes(min(each, 90) for each in range(256))

_Box = tuple[float, float, float, float]  # left, bottom, right, top, in points

_Item = TypeVar("_Item")

_TABLE_CHARS, _SNIFFED_CHARS = 900, 10_000  # the first: less than a chunk has
# A number, but no year, which may be in a head.
_NUMBER = re.compile(r"(?!(?:19|20)\d\d$)[-+.,:%/ $€£]*\d[-+.,:%/ $€£\d]*")

_WORKBOOK_PARTS = (".xml", ".bin", ".rels", "mimetype")
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml|content\.xml")
_PLACE = re.compile(rb'(<(?:\w+:)?(?:c|row)\s(?:[^<>]*?\s)?r=")([A-Z]{0,3})(\d{1,7})(?=")')
_REPEATED = re.compile(rb'\s[\w.-]+:number-(?:rows|columns)-repeated="\d{4,}"')
_COLUMNS = [  # their letters; first those of a row as a whole
    "".join(each).encode() for count in range(4) for each in product(ascii_uppercase, repeat=count)
]
_LONG_GAP = 100  # rows or columns

_WHOLE = ("word/document.xml", "content.xml")
_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")
_DIGITS = {each: None for each in range(128) if not chr(each).isdecimal()}
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "line-break": "\n"}
_UNSEEN = frozenset(("instrText", "delText", "annotation", "tracked-changes"))
_HEADING_STYLE = re.compile(r"(?:heading ?(\d)|title$)", re.IGNORECASE)

_SKIPPED = frozenset(("script", "style", "template", "noscript", "svg", "math", "iframe", "object"))
_INLINE = frozenset(
    ("a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "img", "ins", "kbd", "label", "mark", "q",
     "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
     "thead", "tbody", "tfoot", "colgroup", "col")
)  # fmt: skip
_CELLS = frozenset(("td", "th"))
_LINES = frozenset(("br", "li", "tr", "dt", "dd", "option"))
_HEADINGS = {"title": 1} | {f"h{level}": level for level in range(1, 7)}
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)


class _HtmlText(HTMLParser):
    """Collects the text of a page; `pieces` joined are its lines."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._skipped: list[str] = []
        self._is_verbatim = False
        # The first piece of a row, its cells, the rows before it.
        self._row = self._cells = self._rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in _SKIPPED:
            self._skipped.append(tag)
        elif tag in _HEADINGS:
            self.pieces.append(f"\n\n{'#' * _HEADINGS[tag]} ")
        elif tag in _CELLS:
            self._cells += 1
            self.pieces.append(" | ")
        elif tag == "tr":
            self._row, self._cells = len(self.pieces), 0
            self.pieces.append("\n")
        elif tag not in _INLINE:
            self.pieces.append("\n- " if tag == "li" else "\n" if tag in _LINES else "\n\n")
        if tag == "pre":
            self._is_verbatim = True
        elif tag == "table":
            self._rows = 0

    def handle_endtag(self, tag: str) -> None:
        if tag == "tr":
            self._end_row()
        if tag in self._skipped:
            while self._skipped.pop() != tag:
                pass
        elif tag not in _INLINE and tag not in _LINES and tag not in _CELLS:
            self.pieces.append("\n\n")
        if tag == "pre":
            self._is_verbatim = False

    def _end_row(self) -> None:
        """Make a row of cells that are one line each a row as in Markdown, the first one the head."""
        row = "".join(self.pieces[self._row :]).strip()
        if self._cells > 1 and "\n" not in row:
            head = "" if self._rows else f"\n|{' --- |' * self._cells}"
            self.pieces[self._row :] = [f"\n{row} |{head}"]
        self._cells, self._rows = 0, self._rows + 1

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.pieces.append(data if self._is_verbatim else re.sub(r"\s+", " ", data))


def main(kind: str, path: str, most_chars: int, most_s: float, memory_bytes: int, ocr: str) -> int:
    """Print the text; return UNREADABLE, PROTECTED or TOO_LARGE if that is impossible."""
    _limit(memory_bytes)
    if kind in _TABLES:
        sheets = _TABLES[kind](Path(path))
        rows = _first_rows(sheets, most_chars)
        return _write(sum(map(len, sheets)), rows, most_chars, most_s)
    if kind != "pdf":
        texts = list(_READERS[kind](Path(path)))  # an error ends with UNREADABLE
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


def _html(data: bytes) -> str:
    """Return the text of a page in the encoding that it states, else UTF-8 or Windows-1252."""
    stated = _CHARSET.search(data[:2048])
    names = ["utf-8-sig"] + ([stated[1].decode("ascii")] if stated else [])
    parser = _HtmlText()
    parser.feed(_decoded(data, names).replace("\f", " "))
    parser.close()
    lines = (line.rstrip() for line in "".join(parser.pieces).split("\n"))
    text = "\n".join("" if set(each) == {"#"} else each for each in lines)  # without empty headings
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _decoded(data: bytes, names: "Iterable[str]") -> str:
    """Return text in the encoding of its first characters, else the first of those named that fits."""
    for name in ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else names:
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")


def _parts(archive: zipfile.ZipFile, names: "list[str]") -> "list[zipfile.ZipInfo]":
    """Return parts of an archive; exit with TOO_LARGE, raise KeyError."""
    found = [archive.getinfo(each) for each in names]
    if sum(each.file_size for each in found) > MOST_UNPACKED_BYTES:
        sys.exit(TOO_LARGE)
    return found


def _office_file(path: Path) -> Iterator[str]:
    """Yield the text of Office Open XML (ISO/IEC 29500) or OpenDocument (ISO/IEC 26300), slides one by one."""
    with zipfile.ZipFile(path) as archive:
        slides = [each for each in archive.namelist() if _SLIDE.fullmatch(each)]
        slides.sort(key=lambda each: int(each.translate(_DIGITS)))
        whole = [each for each in _WHOLE if each in archive.namelist()]
        for part in _parts(archive, slides or whole[:1] or list(_WHOLE[:1])):
            with archive.open(part) as file:
                yield "\n\n".join(_paragraphs(file))


def _paragraphs(file: IO[bytes]) -> Iterator[str]:
    """Yield the paragraphs of a part, headings as in Markdown."""
    level = 0
    for _, element in ET.iterparse(file):  # noqa: S314 - expat limits entities, the process memory
        name = element.tag.rpartition("}")[2]
        values = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        if name in _BREAKS:
            element.text = _BREAKS[name]
        elif name in _UNSEEN:
            element.clear()
        elif name == "pStyle" and (found := _HEADING_STYLE.match(values.get("val", ""))):
            level = int(found[1] or 1)
        elif name in ("p", "h"):
            text = "".join(element.itertext()).strip()
            if name == "h" and values.get("outline-level", "").isdecimal():
                level = int(values["outline-level"])
            if text:
                yield f"{'#' * min(level, 6)} {text}" if level else text
            level = 0
            element.clear()


def _epub_file(path: Path) -> Iterator[str]:
    """Yield the text of a book (EPUB 3.3, W3C), its chapters in reading order."""
    with zipfile.ZipFile(path) as archive:
        (first,) = _parts(archive, ["META-INF/container.xml"])
        root = ET.fromstring(archive.read(first)).find(".//{*}rootfile")  # noqa: S314
        package_name = "" if root is None else root.get("full-path", "")
        (package,) = _parts(archive, [package_name])
        tree = ET.fromstring(archive.read(package))  # noqa: S314
        hrefs = {each.get("id"): each.get("href", "") for each in tree.iterfind(".//{*}item")}
        folder = PurePosixPath(package_name).parent
        order = [hrefs.get(each.get("idref"), "") for each in tree.iterfind(".//{*}itemref")]
        names = [str(folder / unquote(each)) for each in order if each]
        kept = [each for each in names if each in archive.namelist()]
        yield "\n\n".join(_html(archive.read(each)) for each in _parts(archive, kept))


def _email_file(path: Path) -> Iterator[str]:
    """Yield subject, sender, date and body of a message (RFC 5322), attachments left out."""
    import email
    import email.policy

    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    head = [f"# {message.get('Subject', '')}"]
    head += [f"{key}: {message[key]}" for key in ("From", "To", "Date") if message[key]]
    body = message.get_body(("plain", "html"))
    text = "" if body is None else body.get_content()
    is_html = body is not None and body.get_content_subtype() == "html"
    yield "\n\n".join((*head, _html(text.encode()) if is_html else text))


def _csv_file(path: Path) -> "list[list[str]]":
    """Return comma-separated values (RFC 4180), also with another separator, as the rows of Markdown tables."""
    import csv

    text = _decoded(path.read_bytes(), ["utf-8-sig"])
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:_SNIFFED_CHARS], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    csv.field_size_limit(len(text) + 1)
    return [[*_lines(csv.reader(text.splitlines(keepends=True), dialect))]]


def _workbook_file(path: Path) -> "list[list[str]]":
    """Return the sheets of a workbook, Excel's of any age or OpenDocument, as the rows of Markdown tables."""
    import python_calamine

    try:
        book = python_calamine.load_workbook(_without_gaps(path))
    except python_calamine.PasswordError:
        sys.exit(PROTECTED)
    sheets = []
    for each in book.sheets_metadata:
        if each.typ == python_calamine.SheetTypeEnum.WorkSheet:
            rows = [*_lines(book.get_sheet_by_name(each.name).iter_rows())]
            if any(rows):
                rows[0] = f"\n# {each.name}\n\n{rows[0]}"
                sheets.append(rows)
    return sheets


def _without_gaps(path: Path) -> "str | IO[bytes]":
    """Return a workbook without long gaps between cells: memory is taken for the gaps too."""
    if not zipfile.is_zipfile(path):
        return str(path)
    made = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(made, "w") as nearer:
        names = [each for each in archive.namelist() if each.endswith(_WORKBOOK_PARTS)]
        parts, changed = _parts(archive, names), {}
        for each in parts:
            if _SHEET.fullmatch(each.filename):
                sheet = archive.read(each)
                if (moved := _moved(_REPEATED.sub(b"", sheet))) != sheet:
                    changed[each.filename] = moved
        if not changed:
            return str(path)
        for each in parts:
            nearer.writestr(each.filename, changed.get(each.filename) or archive.read(each))
    made.seek(0)
    return made


def _moved(sheet: bytes) -> bytes:
    """Return a sheet with its rows moved up and its columns moved left, over each long gap."""
    numbers = {letters: number for number, letters in enumerate(_COLUMNS)}
    columns, rows = {0}, {0}
    for match in _PLACE.finditer(sheet):
        columns.add(numbers[match[2]])
        rows.add(int(match[3]))
    to_column, to_row = _nearer(columns), _nearer(rows)
    if all(number == moved for places in (to_column, to_row) for number, moved in places.items()):
        return sheet

    def placed(match: re.Match[bytes]) -> bytes:
        column = _COLUMNS[to_column[numbers[match[2]]]]
        return b"%b%b%d" % (match[1], column, to_row[int(match[3])])

    return _PLACE.sub(placed, sheet)


def _nearer(numbers: "set[int]") -> "dict[int, int]":
    """Return the new numbers of rows or columns, by their old ones: of each long gap one is left."""
    near, at, last = {}, 0, 0
    for number in sorted(numbers):
        at += number - last if number - last < _LONG_GAP else 2
        near[number], last = at, number
    return near


def _first_rows(sheets: "list[list[str]]", most_chars: int) -> Iterator[str]:
    """Yield the first rows of each sheet, without those too long for its share.

    What a short one leaves of its share is for the others.
    """
    sizes = [sum(map(len, rows)) + len(rows) for rows in sheets]
    shares = [0] * len(sheets)
    for done, number in enumerate(sorted(range(len(sheets)), key=sizes.__getitem__)):
        shares[number] = min(sizes[number], most_chars // (len(sheets) - done))
        most_chars -= shares[number]
    for number, rows in enumerate(sheets):
        for row in rows:
            if len(row) < shares[number]:
                shares[number] -= len(row) + 1
                yield row


def _lines(rows: "Iterable[Sequence[object]]") -> Iterator[str]:
    """Yield the lines of tables by row; a blank row ends a table, single cells before one are lines.

    The first row without numbers is the head. It is repeated in a long table, so that each passage has it.
    """
    head, size = "", 0  # characters since the head, 0 outside tables
    for row in rows:
        cells = [_cell(each) for each in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells or (not size and sum(map(bool, cells)) == 1):
            yield cells[-1] if cells else ""
            size = 0
            continue
        line = f"| {' | '.join(cells)} |"
        if not size or size + len(line) > _TABLE_CHARS:
            is_head = not size and not any(map(_NUMBER.fullmatch, cells))
            if is_head or not head:
                first = line if is_head else f"|{' |' * len(cells)}"
                head = f"{first}\n|{' --- |' * len(cells)}"
            size = 0
            line = f"\n{head}" if is_head else f"\n{head}\n{line}"
        yield line
        size += len(line) + 1


def _cell(value: object) -> str:
    """Return the value of a cell on one line."""
    if isinstance(value, float):
        return f"{value:.15g}"
    text = str(value)
    if not isinstance(value, str):
        text = text.removesuffix(":00")  # of a time
    return " ".join(text.split()).replace("|", "\\|")


_READERS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    "html": lambda path: iter([_html(path.read_bytes())]),
    "office": _office_file,
    "epub": _epub_file,
    "email": _email_file,
}
_TABLES: Mapping[str, Callable[[Path], "list[list[str]]"]] = {
    "csv": _csv_file,
    "workbook": _workbook_file,
}


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

"""Texts of office and rich text files, web pages, books and e-mails, in the process of `document_program`."""

import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

UNREADABLE, PROTECTED, TOO_LARGE = 1, 3, 4
MOST_UNPACKED_BYTES = 64 << 20

_WHOLE = ("word/document.xml", "content.xml")
_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")
_DIGITS = {each: None for each in range(128) if not chr(each).isdecimal()}
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "line-break": "\n"}
_UNSEEN = frozenset(("instrText", "delText", "annotation", "tracked-changes"))
_TABLES = frozenset(("tbl", "table"))  # of Word and PowerPoint, and of OpenDocument
_TABLE_ROWS = frozenset(("tr", "table-row"))
_TABLE_CELLS = frozenset(("tc", "table-cell", "covered-table-cell"))
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


def html_text(data: bytes) -> str:
    """Return the text of a page in the encoding that it states, else UTF-8 or Windows-1252."""
    stated = _CHARSET.search(data[:2048])
    names = ["utf-8-sig"] + ([stated[1].decode("ascii")] if stated else [])
    parser = _HtmlText()
    parser.feed(decoded(data, names).replace("\f", " "))
    parser.close()
    lines = (line.rstrip() for line in "".join(parser.pieces).split("\n"))
    text = "\n".join("" if set(each) == {"#"} else each for each in lines)  # without empty headings
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def decoded(data: bytes, names: "Iterable[str]") -> str:
    """Return text in the encoding of its first characters, else the first of those named that fits."""
    for name in ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else names:
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")


def parts_of(archive: zipfile.ZipFile, names: "list[str]") -> "list[zipfile.ZipInfo]":
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
        for part in parts_of(archive, slides or whole[:1] or list(_WHOLE[:1])):
            with archive.open(part) as file:
                yield "\n\n".join(_paragraphs(file))


def _paragraphs(file: IO[bytes]) -> Iterator[str]:
    """Yield the paragraphs of a part, headings and tables as in Markdown; a table in a cell is text of the cell."""
    level, depth = 0, 0  # of a heading, of tables
    cell: list[str] = []
    row: list[str] = []
    rows: list[str] = []
    for event, element in ET.iterparse(file, ("start", "end")):  # noqa: S314 - expat limits entities, the process memory
        name = element.tag.rpartition("}")[2]
        if event == "start":
            depth += name in _TABLES
            continue
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
            if text and depth:
                cell.append(" ".join(text.split()).replace("|", "\\|"))
            elif text:
                yield f"{'#' * min(level, 6)} {text}" if level else text
            level = 0
            element.clear()
        elif depth == 1 and name in _TABLE_CELLS:
            row.append(" ".join(cell))
            cell.clear()
        elif depth == 1 and name in _TABLE_ROWS:
            if any(row):
                rows.append(
                    f"| {' | '.join(row)} |" + ("" if rows else f"\n|{' --- |' * len(row)}")
                )
            row.clear()
            element.clear()
        elif name in _TABLES:
            depth -= 1
            if rows and not depth:
                yield "\n".join(rows)
                rows.clear()


def _epub_file(path: Path) -> Iterator[str]:
    """Yield the text of a book (EPUB 3.3, W3C), its chapters in reading order."""
    with zipfile.ZipFile(path) as archive:
        (first,) = parts_of(archive, ["META-INF/container.xml"])
        root = ET.fromstring(archive.read(first)).find(".//{*}rootfile")  # noqa: S314
        package_name = "" if root is None else root.get("full-path", "")
        (package,) = parts_of(archive, [package_name])
        tree = ET.fromstring(archive.read(package))  # noqa: S314
        hrefs = {each.get("id"): each.get("href", "") for each in tree.iterfind(".//{*}item")}
        folder = PurePosixPath(package_name).parent
        order = [hrefs.get(each.get("idref"), "") for each in tree.iterfind(".//{*}itemref")]
        names = [str(folder / unquote(each)) for each in order if each]
        kept = [each for each in names if each in archive.namelist()]
        yield "\n\n".join(html_text(archive.read(each)) for each in parts_of(archive, kept))


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
    yield "\n\n".join((*head, html_text(text.encode()) if is_html else text))


def _rich_text_file(path: Path) -> Iterator[str]:
    """Yield the text of a file in Rich Text Format, in the code pages that it states."""
    from striprtf.striprtf import rtf_to_text

    yield rtf_to_text(path.read_bytes().decode("latin-1"), errors="replace")


def _notebook_file(path: Path) -> Iterator[str]:
    """Yield the text, code and printed results of a notebook (Jupyter, nbformat 3 and 4), images left out."""
    import json

    book = json.loads(path.read_bytes())
    sheets = [book, *book.get("worksheets", ())]
    cells = [each for sheet in sheets for each in sheet.get("cells", ())]
    yield "\n\n".join(each for cell in cells for each in _cell_texts(cell) if each)


def _cell_texts(cell: "Mapping[str, Any]") -> Iterator[str]:
    is_code = cell.get("cell_type") == "code"
    source = "".join(cell.get("source", cell.get("input", ""))).strip()
    yield f"```\n{source}\n```" if is_code and source else source
    for output in cell.get("outputs", ()):
        shown = output.get("text") or output.get("data", {}).get("text/plain", "")
        yield "".join(shown).strip()


READERS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    "html": lambda path: iter([html_text(path.read_bytes())]),
    "office": _office_file,
    "epub": _epub_file,
    "email": _email_file,
    "notebook": _notebook_file,
    "rtf": _rich_text_file,
}

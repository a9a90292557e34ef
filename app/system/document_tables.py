"""Tables of workbooks and separated values, in the process of `document_program`."""

import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from typing import IO

from app.system.document_formats import PROTECTED, decoded, parts_of

_TABLE_CHARS, _SNIFFED_CHARS = 900, 10_000  # the first: less than a chunk has
# A number, but no year, which may be in a head.
_NUMBER = re.compile(r"(?!(?:19|20)\d\d$)[-+.,:%/ $€£]*\d[-+.,:%/ $€£\d]*")

_WORKBOOK_PARTS = (".xml", ".bin", ".rels", "mimetype")
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml|content\.xml")
_PLACE = re.compile(rb'(<(?:\w+:)?(?:c|row)\s(?:[^<>]*?\s)?r=")([A-Z]{0,3})(\d{1,7})(?=")')
_REPEATED = re.compile(rb'\s[\w.-]+:number-(?:rows|columns)-repeated="\d{4,}"')
# Of OpenDocument: a row, and a cell, that is repeated 1,000 times or more.
_REPEATED_PARTS = [
    re.compile(rb'<([\w.-]+:%b)\b[^<>]*-repeated="\d{4,}"[^<>]*?(?:/>|>.*?</\1>)' % part, re.DOTALL)
    for part in (b"table-row", b"(?:covered-)?table-cell")
]
_HAS_VALUE = re.compile(rb':(?:[a-z-]*value="|p[\s/>])')
_COLUMNS = [  # their letters; first those of a row as a whole
    "".join(each).encode() for count in range(4) for each in product(ascii_uppercase, repeat=count)
]
_LONG_GAP = 100  # rows or columns


def csv_rows(path: Path) -> "list[list[str]]":
    """Return comma-separated values (RFC 4180), also with another separator, as the rows of Markdown tables."""
    import csv

    text = decoded(path.read_bytes(), ["utf-8-sig"])
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
        parts, changed = parts_of(archive, names), {}
        for each in parts:
            if _SHEET.fullmatch(each.filename):
                sheet = archive.read(each)
                if (moved := _moved(_without_blanks(sheet))) != sheet:
                    changed[each.filename] = moved
        if not changed:
            return str(path)
        for each in parts:
            nearer.writestr(each.filename, changed.get(each.filename) or archive.read(each))
    made.seek(0)
    return made


def _without_blanks(sheet: bytes) -> bytes:
    """Return a sheet of OpenDocument with one blank row or cell for each that is repeated often."""
    for pattern in _REPEATED_PARTS:
        sheet = pattern.sub(
            lambda part: part[0] if _HAS_VALUE.search(part[0]) else _REPEATED.sub(b"", part[0]),
            sheet,
        )
    return sheet


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


def first_rows(sheets: "list[list[str]]", most_chars: int) -> Iterator[str]:
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
    if isinstance(value, float):
        return f"{value:.15g}"
    text = str(value)
    if not isinstance(value, str):
        text = text.removesuffix(":00")  # of a time
    return " ".join(text.split()).replace("|", "\\|")


TABLES: Mapping[str, Callable[[Path], "list[list[str]]"]] = {
    "csv": csv_rows,
    "workbook": _workbook_file,
}

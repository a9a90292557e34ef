"""Office files, books, e-mails and scans as documents."""

import json
import zipfile
from pathlib import Path

import pytest

from app.domain.records.documents import DocumentText
from app.system.document_files import list_files, read_document
from app.system.file_programs import page_image
from tests.fakes.document_folder import make_recognizer
from tests.fakes.files import pdf

DATA = Path(__file__).parents[2] / "data"
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def archive(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in parts.items():
            made.writestr(name, text)
    return path


def read(path: Path) -> DocumentText:
    (listed,) = list_files({str(path): True}, path / "none", lambda: False)
    return read_document(listed, lambda: False)


def text_of(path: Path) -> list[tuple[str, str, int | None]]:
    """Return the stripped text, headings and page of each chunk."""
    made = read(path)
    assert made.why == ""
    return [(each.text.strip(), each.heading, each.page) for each in made.chunks]


def test_a_word_file_is_read_with_its_headings_and_without_deleted_text(tmp_path: Path) -> None:
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>The harbor</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>Boats</w:t><w:tab/><w:t>leave.</w:t><w:delText>sank</w:delText></w:r></w:p>"
        "<w:p><w:r><w:instrText>PAGEREF</w:instrText><w:t>At dawn.</w:t></w:r></w:p>"
    )
    document = f"<w:document {WORD}><w:body>{body}</w:body></w:document>"
    path = archive(tmp_path / "a.docx", {"word/document.xml": document})
    text = "# The harbor\n\nBoats\tleave.\n\nAt dawn."
    assert text_of(path) == [(text, "The harbor", None)]


def test_an_open_document_is_read(tmp_path: Path) -> None:
    content = (
        '<o:d xmlns:o="o" xmlns:t="t"><t:h t:outline-level="2">Tides</t:h>'
        "<t:p>High <t:span>water</t:span><t:line-break/>at noon</t:p></o:d>"
    )
    path = archive(tmp_path / "a.odt", {"content.xml": content})
    assert text_of(path) == [("## Tides\n\nHigh water\nat noon", "Tides", None)]


def test_rich_text_is_read_without_its_control_words(tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\froman\fcharset0 Times;}}{\*\generator Writer;}"
        rb"{\info{\title Hidden}}\pard\f0\b Der Hafen\b0\par Ebbe um \'fcber zw\u246\'3flf.\par"
        rb"{\pict\pngblip 89504e470d0a1a0a}\trowd Boot\cell Ziel\cell\row}"
    )
    assert text_of(path) == [("Der Hafen\nEbbe um über zwölf.\nBoot|Ziel|", "", None)]


def test_slides_are_pages_in_their_order(tmp_path: Path) -> None:
    slide = '<p:s xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>Slide {}</a:t></a:r></a:p></p:s>'
    parts = {f"ppt/slides/slide{number}.xml": slide.format(number) for number in (10, 2, 1)}
    path = archive(tmp_path / "a.pptx", parts)
    assert text_of(path) == [("Slide 1", "", 1), ("Slide 2", "", 2), ("Slide 10", "", 3)]


def test_a_book_is_read_in_the_order_of_its_spine(tmp_path: Path) -> None:
    container = '<c xmlns="c"><rootfiles><rootfile full-path="OEBPS/p.opf"/></rootfiles></c>'
    package = (
        '<package xmlns="x"><manifest><item id="b" href="b%20b.xhtml"/><item id="a" href="a.xhtml"/>'
        '</manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    parts = {
        "META-INF/container.xml": container,
        "OEBPS/p.opf": package,
        "OEBPS/a.xhtml": f"<html><h1>Second</h1><p>{'two ' * 150}</p></html>",
        "OEBPS/b b.xhtml": f"<html><h1>First</h1><p>{'one ' * 150}</p></html>",
    }
    found = text_of(archive(tmp_path / "a.epub", parts))
    assert [heading for _, heading, _ in found] == ["First", "Second"]


def test_a_notebook_is_read_without_its_images(tmp_path: Path) -> None:
    outputs = [
        {"output_type": "stream", "text": ["1.83\n"]},
        {"data": {"image/png": "iVBORw0KGgo=" * 900, "text/plain": "<Figure>"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "The amplitude of M2."]},
        {"cell_type": "code", "source": "print(m2)", "outputs": outputs},
        {"cell_type": "code", "source": [], "outputs": []},
    ]
    old = [{"cell_type": "code", "input": "1 + 1", "outputs": [{"text": "2"}]}]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    text = "# Tides\nThe amplitude of M2.\n\n```\nprint(m2)\n```\n\n1.83\n\n<Figure>"
    assert text_of(path) == [(text, "Tides", None)]
    path.write_text(json.dumps({"worksheets": [{"cells": old}], "nbformat": 3}))
    assert text_of(path) == [("```\n1 + 1\n```\n\n2", "", None)]
    path.write_text("[1]")
    assert read(path).why.startswith("It is damaged")


def test_an_email_is_read_with_subject_and_sender(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(
        b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nFrom: Anna <a@example.org>\r\n"
        b"Content-Type: text/html; charset=utf-8\r\n\r\n<p>See <b>you</b></p><script>x</script>"
    )
    assert text_of(path) == [("# Grüße\n\nFrom: Anna <a@example.org>\n\nSee you", "Grüße", None)]


_CELLS = (("Item", "Cost", "2026"), ("Roof", 1200.5, 7), ("Pipe | wall", 80, 8))


def workbook(path: Path, *rows: tuple[object, ...]) -> Path:
    """Write rows as the sheet "Costs", as Excel does."""
    cells = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheets = '<sheets><sheet name="Costs" sheetId="1" r:id="r1"/></sheets>'
    parts = {
        "_rels/.rels": _relation(f"{kinds}/officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": _relation(f"{kinds}/worksheet", "worksheets/sheet1.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{kinds}">{sheets}</workbook>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>',
    }
    return archive(path, parts)


def _relation(kind: str, target: str) -> str:
    namespace = "http://schemas.openxmlformats.org/package/2006/relationships"
    one = f'<Relationship Id="r1" Type="{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{namespace}">{one}</Relationships>'


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{value}</t></is></c>'


def test_the_rows_of_a_workbook_are_a_table_below_the_name_of_their_sheet(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", ("House",), (), *_CELLS)
    table = "| Item | Cost | 2026 |\n| --- | --- | --- |\n| Roof | 1200.5 | 7 |\n| Pipe \\| wall | 80 | 8 |"
    assert text_of(path) == [(f"# Costs\n\nHouse\n\n{table}", "Costs", None)]


def placed(path: Path, rows: dict[int, dict[str, int]]) -> Path:
    """Write numbers by row and column as a sheet, with the place of each cell."""
    with zipfile.ZipFile(workbook(path)) as made:
        parts = {each: made.read(each).decode() for each in made.namelist()}
    cells = "".join(
        f'<row spans="1:9" r="{row}">'
        + "".join(
            f'<c r="{column}{row}" s="1"><v>{value}</v></c>' for column, value in each.items()
        )
        + "</row>"
        for row, each in rows.items()
    )
    name = "xl/worksheets/sheet1.xml"
    parts[name] = parts[name].replace("<sheetData>", f"<sheetData>{cells}")
    return archive(path, parts)


def test_a_stray_cell_far_from_all_others_is_read_below_them(tmp_path: Path) -> None:
    rows = {7: {"A": 1, "B": 2}, 8: {"B": 4}, 1_048_576: {"A": 5, "XFD": 99}}
    ((text, _, _),) = text_of(placed(tmp_path / "a.xlsx", rows))
    assert text.splitlines()[-6:] == [
        "| 1 | 2 |", "|  | 4 |", "", "| | |", "| --- | --- |", "| 5 |  |  | 99 |",
    ]  # fmt: skip


def test_cells_in_far_columns_and_rows_stand_below_each_other(tmp_path: Path) -> None:
    far = {1: {"A": 1, "AAA": 100, "AAB": 200, "AAC": 300}, 2: {"A": 2, "AAC": 333}}
    rows = {99_999: {"A": 3, "C": 4}, 100_000: {"A": 5, "C": 6}}
    for each, last in ((far, ["| 1 |  | 100 | 200 | 300 |", "| 2 |  |  |  | 333 |"]),
                       (rows, ["| 3 |  | 4 |", "| 5 |  | 6 |"])):  # fmt: skip
        ((text, _, _),) = text_of(placed(tmp_path / "a.xlsx", each))
        assert text.splitlines()[-2:] == last


def test_a_row_that_is_too_long_leaves_room_for_those_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Day,Item\n1,{'a long text ' * 100_000}\n2,roof\n")
    made = read(path)
    assert made.why == "Only 2 of 3 rows were read."
    assert "| 2 | roof |" in made.chunks[-1].text


@pytest.mark.parametrize("name", ["costs.xls", "costs.xlsb"])
def test_workbooks_in_the_binary_formats_of_excel_are_read(name: str) -> None:
    found = text_of(DATA / name)
    assert [heading for _, heading, _ in found] == ["Costs", "Second"]
    assert found[0][0].splitlines()[2:6] == [
        "| Day | Work | Amount | Paid |",
        "| --- | --- | --- | --- |",
        "| 2026-02-14 | roof Grüße 1 | 100.5 | True |",
        "| 2026-03-14 | roof Grüße 2 | 201 | False |",
    ]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_very_long_table_is_read_in_part_and_counted(tmp_path: Path, suffix: str) -> None:
    rows = [
        ("Day", "Item"),
        *((n, f"Item {n} of the long list of the house") for n in range(40_000)),
    ]
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        path.write_text("\n".join(f"{day},{item}" for day, item in rows))
    else:
        workbook(path, *rows)
    made = read(path)
    count = sum(line.startswith("| ") for each in made.chunks for line in each.text.splitlines())
    assert made.why.startswith("Only ")
    assert made.why.endswith(" of 40,001 rows were read.")
    assert 900 < len(made.chunks) < 1_300
    assert int(made.why.split()[1].replace(",", "")) < count < 40_000


def test_each_passage_of_a_long_table_has_its_head(tmp_path: Path) -> None:
    rows = [(f"Item {n} of the long list of the house", n, n) for n in range(200)]
    made = text_of(workbook(tmp_path / "a.xlsx", _CELLS[0], *rows))
    assert len(made) > 5
    assert all("| Item | Cost | 2026 |\n| --- |" in text for text, _, _ in made)
    assert all(len(text) < 1_100 for text, _, _ in made)


@pytest.mark.parametrize(
    "whole", ["w:tbl w:tr w:tc w:p a.docx", "t:table t:table-row t:table-cell t:p a.odt"]
)
def test_rows_of_a_table_in_a_text_are_as_in_markdown(tmp_path: Path, whole: str) -> None:
    table, row, cell, line, name = whole.split()

    def tagged(tag: str, *inner: str) -> str:
        return f"<{tag}>{''.join(inner)}</{tag}>"

    lines = [
        tagged(line, f"<w:t>{each}</w:t>")
        for each in ("Room", "14 m2", "a | b", "Before", "After", "Inner")
    ]
    room, area, bars, before, after, inner = lines
    nested = tagged(table, tagged(row, tagged(cell, inner)))
    body = (
        before
        + tagged(
            table,
            tagged(row, tagged(cell, room), tagged(cell, area)),
            tagged(row, tagged(cell, bars, room), tagged(cell)),
            tagged(row, tagged(cell, nested, after), tagged(cell, area)),
        )
        + after
    )
    content = f'<w:d {WORD} xmlns:t="t">{body}</w:d>'
    path = archive(
        tmp_path / name, {"word/document.xml" if name == "a.docx" else "content.xml": content}
    )
    rows = "| Room | 14 m2 |\n| --- | --- |\n| a \\| b Room |  |\n| Inner After | 14 m2 |"
    assert text_of(path) == [(f"Before\n\n{rows}\n\nAfter", "", None)]


def test_rows_and_cells_of_open_document_and_separated_values_are_tables(tmp_path: Path) -> None:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    gap = '<table:table-cell table:number-columns-repeated="16000"/>'
    same = f'<table:table-row table:number-rows-repeated="1500">{cell.format("calm")}{gap}</table:table-row>'
    blank = f'<table:table-row table:number-rows-repeated="99999">{gap}</table:table-row>'
    last = f"<table:table-row>{cell.format('gale')}{gap}{cell.format('force 9')}</table:table-row>"
    names = "".join(f' xmlns:{each}="{each}"' for each in ("office", "table", "text"))
    content = f'<office:spreadsheet{names}><table:table table:name="Wind">{same}{blank}{last}{blank}</table:table></office:spreadsheet>'
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    parts = {"mimetype": kind, "META-INF/manifest.xml": "<m/>", "content.xml": content}
    text = "\n".join(each for each, _, _ in text_of(archive(tmp_path / "a.ods", parts)))
    assert text.count("calm") == 1500
    assert "\n| gale |  | force 9 |" in text
    rows = 2 * f"<table:table-row>{2 * cell}</table:table-row>"
    table = f'<table:table table:name="People">{rows}</table:table>'
    names = "".join(f' xmlns:{each}="{each}"' for each in ("office", "table", "text"))
    content = f"<office:spreadsheet{names}>{table}</office:spreadsheet>".format(
        "Name", "Town", "Anna", "K\u00f6ln"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    table = "| Name | Town |\n| --- | --- |\n| Anna | K\u00f6ln |"
    made = archive(
        tmp_path / "a.ods",
        {"mimetype": kind, "META-INF/manifest.xml": "<m/>", "content.xml": content},
    )
    assert text_of(made) == [(f"# People\n\n{table}", "People", None)]
    path = tmp_path / "a.csv"
    for data in (
        "Name;Town\nAnna;K\u00f6ln\n".encode("cp1252"),
        "Name\tTown\nAnna\tK\u00f6ln".encode("utf-16"),
    ):
        path.write_bytes(data)
        assert text_of(path) == [(table, "", None)]


def test_rows_of_a_web_page_are_a_table_below_its_title_and_layout_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    row = "<tr><td>{}</td><td>{}</td></tr>"
    cells = f"<thead>{row.format('Item', 'Sum')}</thead><tbody>{row.format('Hut', '<b>4</b> EUR')}</tbody>"
    layout = row.format("<p>One.</p><p>Two.</p>", "Three.")
    path.write_text(
        f"<html><title> </title><p>Costs</p><table>{cells}</table><table>{layout}</table></html>"
    )
    ((text, _, _),) = text_of(path)
    assert text.startswith("Costs\n\n| Item | Sum |\n| --- | --- |\n| Hut | 4 EUR |\n\n")
    assert text.count("---") == 2
    path.write_text("<html><title>Policy</title><h1>Insurance</h1><p>Of the hut.</p></html>")
    assert text_of(path) == [("# Policy\n\n# Insurance\n\nOf the hut.", "Insurance", None)]
    path.write_text("<html><title>Policy</title><p>Of the hut.</p></html>")
    assert text_of(path) == [("# Policy\n\nOf the hut.", "Policy", None)]


def test_an_office_file_with_a_password_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert "password" in read(path).why


@pytest.mark.parametrize("name", ["a.docx", "a.epub", "a.xlsx", "a.ods"])
def test_damaged_and_hostile_archives_are_skipped_with_a_reason(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"PK\3\4 no archive")
    assert "damaged" in read(path).why
    archive(path, {"other": "part"})
    assert "damaged" in read(path).why
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE d [<!ENTITY l0 "lol">{laughs}]><d><p>&l11;</p></d>'
    parts = ("word/document.xml", "META-INF/container.xml", "xl/workbook.xml", "content.xml")
    archive(path, dict.fromkeys(parts, bomb))
    assert "damaged" in read(path).why


def test_text_in_scans_is_recognized_where_tesseract_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(pdf("", "Typed text."))
    monkeypatch.setenv("PATH", str(tmp_path))  # without one that is installed here
    without = read(path)
    assert "Typed" in without.chunks[-1].text
    assert without.why.startswith("1 of 2 pages have no text.")
    make_recognizer(tmp_path)
    first, second = text_of(path)
    assert (first, second) == (("Recognized P5 in eng+deu.", "", 1), ("Typed text.", "", 2))


def test_a_passage_is_marked_in_a_scan_where_its_words_are_recognized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(pdf(""))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    make_recognizer(tmp_path)
    for words, is_there in (("P5 in", True), ("of another page", False), ("", False)):
        data, is_marked = page_image(path, 1, 3_300, words, lambda: False)  # 300 dpi, as recognized
        assert is_marked is is_there
        head, pixels = data.split(b" 255\n", 1)
        row = pixels[3 * 2_550 * 150 : 3 * 2_550 * 151]
        yellow = [at for at in range(2_550) if row[3 * at + 2] < row[3 * at]]
        assert head.startswith(b"P6 2550 ")
        assert yellow == ([*range(400, 650), *range(700, 950)] if is_there else [])
    (tmp_path / "tesseract").unlink()
    assert not page_image(path, 1, 100, "P5 in", lambda: False)[1]

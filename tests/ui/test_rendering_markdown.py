"""Every construct of Markdown, drawn: what words stand where, and what they carry."""

import pytest
from PySide6.QtGui import QImage, QTextBlock, QTextDocument

from tests.fakes.drawn import THEME, blocks, compose, lines, runs, tables
from ui.rendering.composer import PAGE_ROWS, Composer
from ui.rendering.document import TranscriptDocument
from ui.rendering.parser import PLAIN
from ui.rendering.plain import plain_selection
from ui.rendering.properties import Property

pytestmark = pytest.mark.usefixtures("qapp")


def block(text: str, words: str) -> QTextBlock:
    document = compose(text).document
    KEPT.append(document)
    return next(each for each in blocks(document) if words in each.text())


KEPT: list[TranscriptDocument] = []


@pytest.fixture(autouse=True)
def _forget_documents() -> None:
    KEPT.clear()


def anchors(document: QTextDocument) -> list[tuple[str, str]]:
    return [(run[0], run[5]) for each in blocks(document) for run in runs(each) if run[5]]


def of(each: QTextBlock, name: Property) -> object:
    return each.blockFormat().property(name)


def test_paragraphs_stand_apart_and_lines_flow_together() -> None:
    assert lines(compose("one\ntwo\n\nthree").document) == ["one two", "three"]


def test_a_hard_break_stays_in_its_paragraph() -> None:
    assert lines(compose("one  \ntwo\\\nthree").document) == ["one\u2028two\u2028three"]


@pytest.mark.parametrize("level", range(1, 7))
def test_headings_are_larger_the_higher_they_are(level: int) -> None:
    here = block(f"{'#' * level} Title", "Title").charFormat().font().pixelSize()
    below = block("###### Title", "Title").charFormat().font().pixelSize()
    assert here > below or level == 6 or here == THEME.reading_px


def test_emphasis_strong_and_struck_words_look_so() -> None:
    found = {run[0]: run for run in runs(block("*a* **b** ~~c~~", "a b c"))}
    assert found["a"][3]
    assert found["b"][2] > 500
    assert found["c"][4]


def test_code_in_a_line_is_marked_for_its_ground() -> None:
    found = {run[0]: run[6] for run in runs(block("see `x = 1` here", "see"))}
    assert found["x = 1"][list(Property).index(Property.INLINE_CODE)]
    assert not found["see "][list(Property).index(Property.INLINE_CODE)]


def test_a_code_block_knows_its_language_and_its_source() -> None:
    composer = compose("```python\nx = 1\n\n    y\n```\nafter")
    assert [(each.language, each.source) for each in composer.code_blocks] == [
        ("python", "x = 1\n\n    y\n")
    ]
    assert lines(composer.document) == ["python", "x = 1", "", "    y", "after"]


def test_code_is_coloured_by_its_language() -> None:
    composer = compose("```python\nreturn 'words'\n```")
    colours = {run[0]: run[1] for each in blocks(composer.document) for run in runs(each)}
    assert colours["return"] == THEME.colours.syntax_keyword
    assert colours["'words'"] == THEME.colours.syntax_string


@pytest.mark.parametrize("language", ["", "nosuchlanguage", "../../etc", "python\u202e"])
def test_code_in_no_language_stays_plain(language: str) -> None:
    composer = compose(f"```{language}\nreturn 1\n```")
    colours = {run[1] for each in blocks(composer.document)[1:] for run in runs(each)}
    assert colours == {THEME.colours.text}


def test_indented_code_is_code() -> None:
    composer = compose("words\n\n    x = 1\n    y = 2\n")
    assert composer.code_blocks[0].source == "x = 1\ny = 2\n"


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert compose("```\na\n\nb").code_blocks[0].source == "a\n\nb"


def test_lists_carry_markers_and_deeper_ones_stand_further_in() -> None:
    document = compose("3. three\n4. four\n   - inner\n     * innermost").document
    found = {each.text(): each for each in blocks(document)}
    assert of(found["three"], Property.MARKER) == "3."
    assert of(found["four"], Property.MARKER) == "4."
    assert of(found["inner"], Property.MARKER) == "•"
    assert of(found["innermost"], Property.MARKER) == "◦"
    margins = [found[name].blockFormat().leftMargin() for name in ("four", "inner", "innermost")]
    assert margins == sorted(set(margins))


def test_a_second_paragraph_of_an_item_has_no_marker() -> None:
    document = compose("- one\n\n  more").document
    assert [of(each, Property.MARKER) for each in blocks(document)] == ["•", None]


def test_tasks_are_boxes_ticked_or_not() -> None:
    document = compose("- [x] done\n- [ ] open\n- none").document
    assert [of(each, Property.TASK) for each in blocks(document)] == [True, False, None]
    assert lines(document) == ["done", "open", "none"]


def test_quotations_carry_a_bar_for_each_level() -> None:
    found = {each.text(): each for each in blocks(compose("> outer\n> > inner").document)}
    assert len(str(of(found["outer"], Property.QUOTES)).split(",")) == 1
    assert len(str(of(found["inner"], Property.QUOTES)).split(",")) == 2


def test_a_rule_is_a_rule() -> None:
    marks = [of(each, Property.RULE) for each in blocks(compose("a\n\n---\n\nb").document)]
    assert marks == [None, True, None]


def test_a_table_has_its_rows_columns_and_alignment() -> None:
    document = compose("| a | b |\n|:-:|--:|\n| 1 | **2** |\n| 3 | `4` |").document
    table = tables(document)[0]
    assert (table.rows(), table.columns()) == (3, 2)
    cells = [table.cellAt(row, 1).firstCursorPosition().block().text() for row in range(3)]
    assert cells == ["b", "2", "4"]
    assert table.cellAt(0, 0).firstCursorPosition().charFormat().fontWeight() > 500


def test_a_link_carries_its_true_target() -> None:
    document = compose("[bank](https://evil.example/a%20b?x=1#y) <https://a.example>").document
    assert anchors(document) == [
        ("bank", "https://evil.example/a%20b?x=1#y"),
        ("https://a.example", "https://a.example"),
    ]


def test_bare_addresses_are_links_without_the_sentence_around_them() -> None:
    text = "See https://a.example/x_(y). Or (https://b.example/z), or `https://c.example`."
    assert [target for _, target in anchors(compose(text).document)] == [
        "https://a.example/x_(y)",
        "https://b.example/z",
    ]


def test_references_are_found_wherever_they_are_defined() -> None:
    text = (
        "[one][a] and [two]\n\n[a]: https://a.example\n\nmore\n\n[two]: <https://b.example/x> 'T'"
    )
    assert [target for _, target in anchors(compose(text).document)] == [
        "https://a.example",
        "https://b.example/x",
    ]
    assert lines(compose(text).document) == ["one and two", "more"]


def test_footnotes_are_numbered_and_lead_to_their_note() -> None:
    document = compose("a[^x] b[^y] c[^none]\n\n[^x]: first\n[^y]: second").document
    assert anchors(document) == [("1", "#1"), ("2", "#2")]
    notes = {each.text(): of(each, Property.FOOTNOTE) for each in blocks(document)}
    assert (notes["first"], notes["second"]) == (1, 2)
    assert "[^none]" in document.toPlainText()


@pytest.mark.parametrize("text", ["$x^2$", "\\(x^2\\)", "$$\nx^2\n$$", "\\[ x^2 \\]"])
def test_mathematics_is_readable_and_keeps_its_source(text: str) -> None:
    document = compose(text).document
    assert document.toPlainText().strip() == "x²"
    source = {run[6][list(Property).index(Property.TEX)] for run in runs(document.begin())}
    assert source == {"x^2"}


def test_prices_are_no_mathematics() -> None:
    assert lines(compose("between $5 and $10 a day").document) == ["between $5 and $10 a day"]


def test_a_picture_is_a_label_with_its_target() -> None:
    document = compose("![a *nice* view](https://a.example/v.png)").document
    assert lines(document) == ["[picture: a nice view — https://a.example/v.png]"]
    assert not document.refused


def test_only_attachments_are_drawn_and_only_through_the_resolver() -> None:
    image = QImage(20_000, 10, QImage.Format.Format_RGB32)
    asked: list[str] = []

    def resolver(name: str) -> QImage | None:
        asked.append(name)
        return image if name == "abc123" else None

    composer = Composer(THEME, resolver=resolver)
    composer.feed("![a](attachment:abc123) ![b](attachment:other) ![c](attachment:../../x)")
    composer.end()
    composer.finish()
    assert set(asked) == {"abc123", "other"}
    drawn = composer.document.toPlainText()
    assert drawn.count("\ufffc") == 1
    assert "picture: b" in drawn
    assert "picture: c" in drawn


def test_html_is_text() -> None:
    text = "<b>bold</b>\n\n<script>alert(1)</script>\n\n<!-- hidden -->"
    drawn = "\n".join(lines(compose(text).document))
    assert "<b>bold</b>" in drawn
    assert "<script>alert(1)</script>" in drawn
    assert "<!-- hidden -->" in drawn


def test_entities_are_the_characters_they_name() -> None:
    assert lines(compose("a &lt;b&gt; &copy;").document) == ["a <b> ©"]


def test_a_persons_text_keeps_its_lines_and_is_no_markdown_but_for_code() -> None:
    composer = compose("# not a heading\n* **no list**\n\n`code` and\n```py\nx\n```\nend", PLAIN)
    assert lines(composer.document) == [
        "# not a heading\u2028* **no list**",
        "code and",
        "py",
        "x",
        "end",
    ]


def test_a_long_text_comes_page_by_page_until_all_of_it_is_there() -> None:
    words = "".join(
        f"paragraph {number} of many words that fill a page\n\n" for number in range(6000)
    )
    composer = compose(words)
    assert composer.has_more
    first = composer.document.blockCount()
    while composer.has_more:
        composer.pages += 1
        composer.finish()
    assert composer.document.blockCount() == 6000 > first


def test_a_large_table_comes_in_pages_of_rows_and_stays_one_table() -> None:
    composer = compose("| a |\n|---|\n" + "| x |\n" * 1200)
    assert composer.has_more
    assert tables(composer.document)[0].rows() <= PAGE_ROWS + 50
    composer.pages = 3
    composer.finish()
    assert [table.rows() for table in tables(composer.document)] == [1201]


def test_a_long_list_is_drawn_in_steps_that_do_not_show() -> None:
    text = "".join(f"{number}. item {number} with some words in it\n" for number in range(1, 900))
    document = compose(text).document
    assert [of(each, Property.MARKER) for each in blocks(document)] == [
        f"{number}." for number in range(1, 900)
    ]


def test_a_selection_is_copied_as_one_would_type_it() -> None:
    text = (
        "Say $x^2$:\n\n1. one\n2. two\n\n- [x] done\n\n|a|b|\n|-|-|\n|1|2|\n\n```py\nf()\ng()\n```"
    )
    document = compose(text).document
    assert plain_selection(document, 0, document.characterCount()).rstrip("\n") == (
        "Say $x^2$:\n\n1. one\n2. two\n- [x] done\n\na\tb\n1\t2\n\nf()\ng()"
    )


def test_line_ends_of_any_system_are_line_ends() -> None:
    composer = Composer(THEME)
    for piece in ("one\r", "\n\r", "\ntwo\r\rthree"):
        composer.feed(piece)
    composer.end()
    composer.finish()
    assert lines(composer.document) == ["one", "two", "three"]

"""The HTML that is rendered, and folding: by documents, not by pictures."""

import pytest
from PySide6.QtGui import QTextCharFormat

from tests.fakes.drawn import THEME, blocks, compose, lines, stream, tables
from ui.rendering.document import fragments_of
from ui.rendering.document_builder import DocumentBuilder
from ui.rendering.formats import Property

pytestmark = pytest.mark.usefixtures("qapp")

FOLDED = """before

<details>
<summary>The **title**</summary>

hidden *text*

- item

| a |
|---|
| b |

<details open><summary>inner</summary>deep</details>

```
</details>
```
</details>

after
"""


def shown(builder: DocumentBuilder) -> list[str]:
    """Return the text of the visible blocks that have some."""
    return [each.text() for each in blocks(builder.document) if each.isVisible() and each.text()]


def formats(text: str) -> dict[str, QTextCharFormat]:
    block = blocks(compose(text).document)[0]
    return {each.text(): each.charFormat() for each in fragments_of(block)}


def test_tags_in_a_line_are_rendered_without_their_attributes() -> None:
    found = formats('H<sub>2</sub>O<SUP class="x">a *b*</SUP><u>c</u><mark>d</mark><kbd>Esc</kbd>')
    alignment = QTextCharFormat.VerticalAlignment
    assert found["2"].verticalAlignment() is alignment.AlignSubScript
    assert found["a "].verticalAlignment() is alignment.AlignSuperScript
    assert found["b"].fontItalic()
    assert found["c"].fontUnderline()
    assert found["d"].background().color().name() == THEME.colors.mark
    assert found["Esc"].property(Property.KEY)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a<br>b<BR/>c<br />d", ["a\u2028b\u2028c\u2028d"]), ("| a<br>b |\n|-|", ["", "a\u2028b", ""]),
     ("<sub>never closed", ["<sub>never closed"]), ("closed</sub> only", ["closed</sub> only"]),
     ("`<sub>x</sub>` <b>x</b> <a href='x'>y</a>", ["<sub>x</sub> <b>x</b> <a href='x'>y</a>"]),
     ("<img src=x onerror=y>\n\n<script>z</script>", ["<img src=x onerror=y>", "<script>z</script>"]),
     ("<subx>a</subx>", ["<subx>a</subx>"]), ("    <details>\n", ["", "<details>"]),
     ("a\n</details>\nb", ["a", "b"]), ("<details>\n\nno summary", ["Details", "no summary"]),
     ("in a line <details> is text", ["in a line <details> is text"]),
     ("> <details>\n> <summary>q</summary>\n> a\n> </details>\n> b", ["q", "a", "b"]),
     ("a <details>` b", ["a <details>` b"]),
     ("<details><summary>s</summary>`</details>` and\n</details>\nb", ["s", "</details> and", "b"])],
)  # fmt: skip
def test_other_html_is_text(text: str, expected: list[str]) -> None:
    assert lines(compose(text).document) == expected


def test_details_are_folded_and_open_with_the_markdown_in_them() -> None:
    builder = compose(FOLDED)
    assert shown(builder) == ["before", "The title", "after"]
    closed_height = builder.document.size().height()
    builder.writer.toggle_fold("0")
    inside = ["hidden text", "item", "a", "b", "inner", "deep", "</details>"]
    assert shown(builder) == ["before", "The title", *inside, "after"]
    assert builder.document.size().height() > 3 * closed_height
    builder.writer.toggle_fold("1")
    assert shown(builder) == [
        "before", "The title", *(each for each in inside if each != "deep"), "after",
    ]  # fmt: skip
    builder.writer.toggle_fold("0")
    builder.writer.toggle_fold("0")
    assert "deep" not in shown(builder)
    builder.writer.toggle_fold("0")
    assert builder.document.size().height() == closed_height
    (table,) = tables(builder.document)
    assert builder.document.documentLayout().frameBoundingRect(table).height() == 0


def test_a_summary_is_a_link_that_opens_its_fold() -> None:
    builder = compose(FOLDED)
    (summary,) = [each for each in blocks(builder.document) if each.text() == "The title"]
    targets = {each.charFormat().anchorHref() for each in fragments_of(summary)}
    assert targets == {"#fold-0"}


def test_an_opened_fold_stays_open_while_its_text_arrives() -> None:
    builder = stream([FOLDED[:40]])
    builder = DocumentBuilder(THEME)
    for number, character in enumerate(FOLDED):
        builder.feed(character)
        builder.refresh()
        if number == FOLDED.index("hidden"):
            assert "The title" in shown(builder)
            builder.writer.toggle_fold("0")
        if number == FOLDED.index("item"):
            assert "hidden text" in shown(builder)
    builder.end()
    builder.finish()
    assert "deep" in shown(builder)
    assert shown(builder)[-1] == "after"


@pytest.mark.parametrize(
    "text",
    ["<details>\n" * 3000, "<details><summary>" * 2000, "<u>" * 5000, "<details>\n</details>\n" * 2000,
     "<sub>a</sub>" * 3000, "</details>\n" * 5000, "<kbd " + "x" * 100_000],
)  # fmt: skip
@pytest.mark.unmeasured
def test_hostile_tags_take_no_time(text: str) -> None:
    assert compose(text).document.blockCount() > 0

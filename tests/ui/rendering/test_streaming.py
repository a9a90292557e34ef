"""A text rendered while it streams ends up as one rendered at once."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ui.rendering.splitter as splitter
from tests.fakes.drawn import compose, snapshot, stream
from ui.rendering.parser import MARKDOWN, PLAIN, Dialect

pytestmark = pytest.mark.usefixtures("qapp")

PROSE = "plain words with **bold** and `code`"
LINES = st.lists(
    st.sampled_from(
        ["", "", PROSE, "1. one", "2. two", "7. seven", "- item", "* star", "  - nested",
         "    deeper or code", "   lazy", "> quote", "> > inner", "```python", "```", "~~~",
         "x = 1  # code", "| a | b |", "|---|--:|", "| 1 | 2 |", "# heading", "setext", "===", "---",
         "- [x] done", "$$", "a^2 + b", "\\[", "\\]", "[ref]: https://example.com/a",
         "see [ref] and [^n]", "[^n]: the note", "    of two paragraphs",
         "![alt](https://example.com/p.png)", "<div>raw</div>", "a\\", "\ttab",
         "<details>", "<details open><summary>S</summary>", "</details>", "<summary>T</summary>",
         "H<sub>2</sub>O <kbd>", "- \u05d0\u05d1 $x$", "> \u0627\u0644", "</kbd> a<br>b $x$"]
    ),
    max_size=30,
).map("\n".join)  # fmt: skip
CHARACTERS = st.text(alphabet="ab \n\r`*_[]()>-#|~$\\!<&1.^:\t", max_size=120)
SMALL = {"STEP_CHARS": 60, "ROWS_IN_STEP": 3, "MAX_BLOCK_CHARS": 240, "BLOCKS_IN_STEP": 4}


def assert_same(text: str, sizes: list[int], dialect: Dialect = MARKDOWN) -> None:
    """Compare `text` rendered at once with `text` streamed in pieces of these sizes."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        pieces.append(text[at : at + sizes[len(pieces) % len(sizes)]])
        at += len(pieces[-1])
    streamed, complete = stream(pieces, dialect), compose(text, dialect)
    assert snapshot(streamed.document) == snapshot(complete.document)
    assert streamed.writer.code_blocks == complete.writer.code_blocks


@given(LINES | CHARACTERS, st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_streaming_ends_up_as_rendering_at_once(text: str, sizes: list[int]) -> None:
    assert_same(text, sizes)


@given(LINES, st.integers(1, 40))
@settings(max_examples=30)
def test_a_users_text_does_too(text: str, size: int) -> None:
    assert_same(text, [size], PLAIN)


@example(f"1. one\n{PROSE}\n\n{PROSE}\nsee [ref] and [^n]\n1. one", 1)
@example("> quote\n" * 10 + f"\n{PROSE}\n{PROSE}\n\n# heading", 1)
@given(LINES, st.integers(1, 30))
def test_so_does_a_text_of_many_steps(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in SMALL.items():
            patch.setattr(splitter, name, limit)
        assert_same(text, [size])


@pytest.mark.parametrize("definition", ["[ref]: https://a.example", "[^n]: the note"])
def test_a_late_definition_reaches_back(definition: str) -> None:
    text = f"see [ref] and[^n]\n\nmore\n\nand more\n\n{definition}\n\nthe end"
    assert_same(text, [5])
    assert "[ref] and[^n]" not in compose(text).document.toPlainText()

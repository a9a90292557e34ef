"""A text drawn as it streams ends up as one drawn at once."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ui.rendering.segments as segments
from tests.fakes.drawn import compose, snapshot, stream
from ui.rendering.parser import PLAIN

pytestmark = pytest.mark.usefixtures("qapp")

LINES = st.sampled_from(
    [
        "",
        "",
        "plain words with **bold** and `code`",
        "1. one",
        "2. two",
        "7. seven",
        "- item",
        "* star",
        "  - nested",
        "    deeper or code",
        "   lazy",
        "> quote",
        "> > inner",
        "```python",
        "```",
        "~~~",
        "x = 1  # code",
        "| a | b |",
        "|---|--:|",
        "| 1 | 2 |",
        "# heading",
        "setext",
        "===",
        "---",
        "- [x] done",
        "$$",
        "a^2 + b",
        "\\[",
        "\\]",
        "[ref]: https://example.com/a",
        "see [ref] and [^n]",
        "[^n]: the note",
        "    of two paragraphs",
        "![alt](https://example.com/p.png)",
        "<div>raw</div>",
        "a\\",
        "\ttab",
    ]
)


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        pieces.append(text[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


@given(st.lists(LINES, max_size=25), st.lists(st.integers(1, 40), min_size=1, max_size=5))
@settings(max_examples=150)
def test_streaming_ends_up_as_drawing_at_once(drawn_lines: list[str], sizes: list[int]) -> None:
    text = "\n".join(drawn_lines)
    assert snapshot(stream(cut(text, sizes)).document) == snapshot(compose(text).document)


@example(
    [
        "1. one",
        "plain words with **bold** and `code`",
        "",
        "plain words with **bold** and `code`",
        "see [ref] and [^n]",
        "1. one",
    ],
    1,
)
@example(
    ["> quote"] * 10 + [""] + ["plain words with **bold** and `code`"] * 2 + ["", "# heading"], 1
)
@given(st.lists(LINES, max_size=40), st.integers(1, 30))
@settings(max_examples=100)
def test_it_does_so_when_every_limit_is_small(drawn_lines: list[str], size: int) -> None:
    text = "\n".join(drawn_lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "STEP_CHARS", 60)
        patch.setattr(segments, "ROWS_IN_STEP", 3)
        patch.setattr(segments, "MAX_BLOCK_CHARS", 240)
        patch.setattr(segments, "BLOCKS_IN_STEP", 4)
        assert snapshot(stream(cut(text, [size])).document) == snapshot(compose(text).document)


@pytest.mark.parametrize("definition", ["[ref]: https://a.example", "[^n]: the note"])
def test_what_is_defined_late_reaches_back(definition: str) -> None:
    text = f"see [ref] and[^n]\n\nmore\n\nand more\n\n{definition}\n\nthe end"
    streamed = stream(cut(text, [5]))
    assert snapshot(streamed.document) == snapshot(compose(text).document)
    assert "[ref] and[^n]" not in streamed.document.toPlainText()


@given(st.text(alphabet="ab \n\r`*_[]()>-#|~$\\!<&1.^:\t", max_size=120), st.integers(1, 9))
@settings(max_examples=150)
def test_it_does_so_with_any_characters(text: str, size: int) -> None:
    assert snapshot(stream(cut(text, [size])).document) == snapshot(compose(text).document)


@given(st.lists(LINES, max_size=25), st.integers(1, 40))
def test_it_does_so_with_a_persons_text(drawn_lines: list[str], size: int) -> None:
    text = "\n".join(drawn_lines)
    streamed = stream(cut(text, [size]), PLAIN)
    assert snapshot(streamed.document) == snapshot(compose(text, PLAIN).document)

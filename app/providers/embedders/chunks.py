"""Chunks: the cuts of a long text into pieces that a model can read.

Positions count Python characters.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from app.providers.embedders.unigram import UnigramTokenizer

Span = tuple[int, int]

SLICE_CHARS = 64 * 1024  # tokenised at once; a longer slice would hold up other threads
_SEARCHED_SHARE = 0.3  # of a piece, at its end, is searched for a good place to cut
_CUTS = tuple(  # best first; each pattern matches up to where the next piece begins
    re.compile(pattern) for pattern in (r"\n\s*\n", r"\n", r"[.!?][\"')\]*]*\s|[。！？]", r"\s")
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """Return `text` with each lone surrogate replaced by U+FFFD, of the same length."""
    return _SURROGATE.sub("\ufffd", text)


def token_spans(tokenizer: "Tokenizer | UnigramTokenizer", text: str) -> list[Span]:
    """Return (start, end) of each token of `text`, in order; `tokenizer` must not truncate.

    Tokens of white space alone, which some tokenizers have, are left out.
    """
    spans: list[Span] = []
    for start, end in _slices(text):
        one = tokenizer.encode_batch([encodable(text[start:end])], add_special_tokens=False)[0]
        spans += [(start + first, start + last) for first, last in one.offsets]
    return [(start, end) for start, end in spans if text[start:end].strip()]


def chunk_spans(
    text: str, tokens: Sequence[Span], max_tokens: int, overlap_tokens: int
) -> list[Span]:
    """Return (start, end) of pieces of at most `max_tokens`, overlapping by about `overlap_tokens`.

    `tokens` are the positions of the text's tokens. A piece ends with a paragraph, else a line, a
    sentence or a word, if one ends in its last part; it begins with a word where possible. Without
    tokens there are no pieces. Raises ValueError unless 0 <= overlap_tokens < max_tokens.
    """
    if not 0 <= overlap_tokens < max_tokens:
        raise ValueError(f"{overlap_tokens=} must be at least 0 and below {max_tokens=}")
    pieces: list[Span] = []
    first = 0
    while first < len(tokens):
        last = _end_of_piece(text, tokens, first, max_tokens)
        pieces.append((tokens[first][0], tokens[last - 1][1]))
        if last == len(tokens):
            break
        first = _start_of_piece(text, tokens, max(first + 1, last - overlap_tokens), last)
    return pieces


def _end_of_piece(text: str, tokens: Sequence[Span], first: int, max_tokens: int) -> int:
    """Return the index of the token after the piece that begins at `first`."""
    last = first + max_tokens
    if last >= len(tokens):
        return len(tokens)
    searched_from = tokens[last - max(1, int(max_tokens * _SEARCHED_SHARE))][0]
    searched = text[searched_from : tokens[last][0]]
    for cut in _CUTS:
        ends = [match.end() for match in cut.finditer(searched)]
        if ends:
            at = bisect_left(tokens, (searched_from + ends[-1],))
            if first < at <= last:
                return at
    return last


def _start_of_piece(text: str, tokens: Sequence[Span], wanted: int, last: int) -> int:
    """Return the first token from `wanted` on that begins a word, at most `last`."""
    for number in range(wanted, last):
        start = tokens[number][0]
        if start == 0 or text[start].isspace() or text[start - 1].isspace():
            return number
    return min(wanted, last)


def _slices(text: str) -> Iterator[Span]:
    """Yield the slices of `text`, each at most SLICE_CHARS, cut at white space where possible."""
    start = 0
    while len(text) - start > SLICE_CHARS:
        end = start + SLICE_CHARS
        while end > start + SLICE_CHARS // 2 and not text[end].isspace():
            end -= 1
        if end == start + SLICE_CHARS // 2:
            end = start + SLICE_CHARS
        yield start, end
        start = end
    yield start, len(text)

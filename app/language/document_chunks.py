"""Document chunks: text cut at headings, pages, paragraphs and sentences; unreadable text."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from os.path import commonprefix

from app.domain.records.documents import Chunk

TARGET_CHARS = 1_000  # some 250 tokens: about what the built-in embedder reads of a text
MOST_CHARS = 1_500
_SHORT_CHARS = 200  # a section below it says little by itself

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(\S.*?)\s*#*\s*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_HEADING_CHARS = 80

# PDFium prints the hyphen of a divided word as one of these.
_SOFT_HYPHEN = re.compile("[\x02\xad\ufffe]\n?")
_DIVIDED = re.compile(r"(\w*[^\W\d_])-\n([^\W\d_]\w*)")
# The end of a line inside a paragraph, not before an item of a list or the number of the page.
_LINE_END = re.compile(
    r"(?<=[^\n]{40})(?<![.!?:;。！？])\n(?=[^\n])(?![-\u2013\u2022\u00b7*\u25aa\u25cf]\s|\(?\d+[.)]\s|\d+\s*(?:\n|$))"
)
_FIRST_WIDE = "\u2e80"  # Chinese and Japanese have no spaces

_WORD = re.compile(r"[^\W\d_]+")
_LONG_CHARS = 60  # of ASCII without a space: no word of any language
_LONG_RUN = re.compile(rf"[!-~]{{{_LONG_CHARS},}}")
_MOST_BAD = 0.1  # control, private and unassigned characters, and replacements
_MOST_LONG = 0.5  # the share in runs that are too long to be words
_LEAST_LETTERS = 0.3  # letters and digits
_MOST_VOWELLESS = 0.6  # of Latin words of three letters and more
_LEAST_WORDS = 8  # fewer say nothing about vowels
_VOWELS = re.compile(r"[aeiouy]")
_BAD_CATEGORIES = frozenset(("Cc", "Co", "Cn", "Cs"))


@dataclass(frozen=True, slots=True)
class _Block:
    """A run of text that is not divided unless it is too long; `headings` are those above it."""

    start: int
    end: int
    headings: tuple[str, ...]


def rejoined(text: str) -> str:
    """Return the text of a PDF page with divided words and the lines of a paragraph joined.

    The hyphen stays where the text has the word with a hyphen elsewhere.
    """
    text = _SOFT_HYPHEN.sub("", text)
    hyphenated = set(re.findall(r"\w+-\w+", text))

    def join(match: re.Match[str]) -> str:
        first, second = match.groups()
        keeps = f"{first}-{second}" in hyphenated or not second[0].islower()
        return f"{first}-{second}" if keeps else first + second

    text = _DIVIDED.sub(join, text)
    return _LINE_END.sub(lambda match: "" if text[match.start() - 1] >= _FIRST_WIDE else " ", text)


def chunks_of(pages: Sequence[str], *, is_paged: bool, has_headings: bool) -> Iterator[Chunk]:
    """Yield the chunks of a document in order; joined, they are its text.

    Pages end with a blank line. A chunk is on one page and, where `has_headings` (as in Markdown),
    below one heading, unless sections are short, and has at most `MOST_CHARS` characters.
    """
    start = 0
    headings: tuple[str, ...] = ()
    for number, page in enumerate(pages, 1):
        text = page if number == len(pages) else f"{page}\n\n"
        blocks = list(_blocks(text, headings, has_headings=has_headings))
        headings = blocks[-1].headings if blocks else headings
        for first, end, path in _packed(text, blocks):
            piece = text[first:end]
            heading = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(path)
            yield Chunk(
                piece, heading, start + first, number if is_paged else None, is_garbage(piece)
            )
        start += len(text)


def is_garbage(text: str) -> bool:
    """Return whether text is unreadable: binary or encoded data, or a PDF without characters."""
    characters = [each for each in text if not each.isspace()]
    if not characters:
        return True
    count = len(characters)
    bad = sum(
        each == "\ufffd" or unicodedata.category(each) in _BAD_CATEGORIES for each in characters
    )
    if bad > _MOST_BAD * count:
        return True
    if sum(len(each) for each in _LONG_RUN.findall(text)) > _MOST_LONG * count:
        return True
    if count >= _LONG_CHARS and sum(map(str.isalnum, characters)) < _LEAST_LETTERS * count:
        return True
    words = [each for each in _WORD.findall(text.casefold()) if len(each) > 2 and each.isascii()]
    vowelless = sum(_VOWELS.search(each) is None for each in words)
    return len(words) >= _LEAST_WORDS and vowelless > _MOST_VOWELLESS * len(words)


def _blocks(text: str, above: tuple[str, ...], *, has_headings: bool) -> Iterator[_Block]:
    """Yield paragraphs with the blank lines after them; a heading belongs to what follows it."""
    path: list[str] = list(above)
    start = at = 0
    has_text = is_code = False
    before = ""
    lines = text.splitlines(keepends=True)
    for line in lines:
        words = line.strip()
        if has_headings and _FENCE.match(line):
            is_code = not is_code
        heading = None if not has_headings or is_code else _heading(line, before)
        if heading is not None:
            level, title, length = heading
            head = at - length
            if head > start and has_text:
                yield _Block(start, head, tuple(path))
                start = head
            del path[level - 1 :]
            path.append(title[:_HEADING_CHARS])
            has_text = False
        elif words and has_text and not is_code and not before.strip():
            yield _Block(start, at, tuple(path))
            start = at
        has_text = has_text or (bool(words) and heading is None)
        before = line
        at += len(line)
    if at > start:
        yield _Block(start, at, tuple(path))


def _heading(line: str, before: str) -> tuple[int, str, int] | None:
    """Return a heading as (level, title, characters of the line before it), else None."""
    if (match := _HEADING.match(line)) is not None:
        return len(match[1]), match[2], 0
    if (match := _UNDERLINE.match(line)) is not None and before.strip() and len(match[1]) > 2:
        return (1 if match[1][0] == "=" else 2), before.strip(), len(before)
    return None


def _packed(text: str, blocks: Sequence[_Block]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield (start, end, headings) of chunks: blocks below one heading, as many as fit.

    Short sections that follow each other are like blocks below the headings that all of them have.
    """
    start: int | None = None
    path: tuple[str, ...] = ()
    is_short = False
    for headings, section in groupby(blocks, key=attrgetter("headings")):
        own = list(section)
        joins = is_short and own[-1].end - own[0].start < _SHORT_CHARS
        is_short = own[-1].end - own[0].start < _SHORT_CHARS
        for block in own:
            others = block is own[0] and not joins
            if start is not None and (others or block.end - start > TARGET_CHARS):
                yield start, block.start, path
                start = None
            if start is None:
                start, path = block.start, headings
            path = tuple(commonprefix([path, headings]))  # noqa: RUF071 - of tuples, item by item
            for end in _divided(text, start, block.end):
                yield start, end, path
                start = end
    if start is not None and blocks and start < blocks[-1].end:
        yield start, blocks[-1].end, path


def _divided(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where a block that is too long is cut: after a line or sentence, else after a word."""
    while end - start > MOST_CHARS:
        most = start + TARGET_CHARS
        cut = text.rfind("\n", start + TARGET_CHARS // 2, most) + 1
        if cut <= start:
            ends = [each.end() for each in _SENTENCE_END.finditer(text, start, most)]
            cut = ends[-1] if ends and ends[-1] > start else text.rfind(" ", start + 1, most) + 1
        if cut <= start:
            cut = most
        yield cut
        start = cut

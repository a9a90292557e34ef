"""Quotation: sentences and lines that carry an answer, in their Markdown structure. Pure.

A text is divided into units: sentences of prose and of list items, table rows and lines of code. A
unit is worth the share of the question's weight that its words have, and a part of what its
neighbors have: the answer often stands beside the words of the question, and a list, table or code
is worth nearly what its introduction is. An excerpt keeps lines as lines; a row brings its table's
head along, a line of code its fence.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from app.domain.passages import SearchQuery
from app.domain.recall import QuoteUnit
from app.domain.text import one_line, sanitize
from app.index.snippets import best_region, word_finder
from app.language.languages import language_of
from app.language.secrets import masked
from app.language.sentences import lead_chars, sentence_ends

CUT = "…"
TITLE_CHARS = 100
_MOST_CHARS = 12_000  # of a text that are examined: those around the words of the question
_NEIGHBORS = (0.5, 0.25)  # share of the worth of a unit one and two places away
_INTRODUCED = 0.9  # share of the worth of "There are three reasons:" that the reasons have
_COLONS = (":", "：")
_MARKUP = "*_ "
_WIDE_ENDS = tuple("。！？｡」』）】")  # no space follows them
_SHORT_CHARS = 40  # a shorter unit says less: "Sure, here it is:"
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"[\s|:+=*_-]*$")


def quote_units(
    texts: Sequence[str], query: SearchQuery, weights: Mapping[str, float]
) -> list[tuple[QuoteUnit, ...]]:
    """Return the units of texts that follow each other, in reading order.

    `weights` are those of the query's words; a word without one counts nothing.
    """
    texts = [
        text if len(text) <= _MOST_CHARS else best_region(text, query, _MOST_CHARS)
        for text in texts
    ]
    divided = [_units(text) for text in texts]
    own = [
        share
        for text, units in zip(texts, divided, strict=True)
        for share in _word_shares(text, units, query, weights)
    ]
    reach = len(_NEIGHBORS)
    padded = [0.0] * reach + own + [0.0] * reach
    worth = iter(
        share
        + max(
            w * max(padded[at + reach - n], padded[at + reach + n])
            for n, w in enumerate(_NEIGHBORS, 1)
        )
        for at, share in enumerate(own)
    )
    return [
        tuple(
            replace(unit, worth=each * fullness(unit))
            for unit, each in _with_introductions([unit for unit, _, _ in units], worth)
        )
        for units in divided
    ]


def excerpt(units: Sequence[QuoteUnit], chosen: Collection[int]) -> str:
    """Return the chosen units and those they need, in reading order; "…" marks what is left out."""
    text, last = "", -1
    for place in sorted({*chosen, *(each for at in chosen for each in units[at].needs)}):
        if place > last + 1:
            text += f"{_gap(units, last) if text else ''}{CUT}"
        text += (_gap(units, place - 1) if text else "") + units[place].text
        last = place
    return f"{text}{_gap(units, last)}{CUT}" if 0 <= last < len(units) - 1 else text


def file_label(name: str) -> str:
    return f"File {quoted_title(name)}"


def quoted_title(title: str, chars: int = TITLE_CHARS) -> str:
    """Return a title or name for a prompt; a password in it is hidden."""
    return f'"{safe_title(title, chars)}"'


def safe_title(title: str, chars: int = TITLE_CHARS) -> str:
    """Return a title or name in one line; a password in it is hidden."""
    return one_line(sanitize(masked(title)), chars)


def of_file(name: str, text: str) -> str:
    """Return a quotation of a file as that of the file; without a name as it is."""
    return f"{file_label(name)}:\n{text}" if name else text


def beginning(text: str, limit_chars: int) -> str:
    """Return the first sentences and lines that fit, at least the beginning of the first."""
    if len(text) <= limit_chars:
        return text
    units = [unit for unit, _, _ in _units(text)]
    counts = range(1, len(units))
    count = bisect_right(counts, limit_chars, key=lambda n: len(excerpt(units, range(n))))
    return excerpt(units, range(count)) if count else text[: limit_chars - len(CUT)] + CUT


def _gap(units: Sequence[QuoteUnit], place: int) -> str:
    """Return the separator of a unit and the next: newline, space, or none in unspaced scripts."""
    if units[place].line != units[place + 1].line:
        return "\n"
    return "" if units[place].text.endswith(_WIDE_ENDS) else " "


_Span = tuple[QuoteUnit, int, int]  # with its start and end in the text


def _units(text: str) -> list[_Span]:
    found: list[_Span] = []
    table: tuple[int, ...] = ()
    fence, opening, start = "", 0, 0
    for number, line in enumerate(text.splitlines(keepends=True)):
        end, bare = start + len(line), line.rstrip()
        mark = _FENCE.match(bare)
        is_closing = bool(fence and mark and mark[1].startswith(fence))
        if not bare:
            pass
        elif fence or mark:
            if not fence and mark:
                fence, opening = mark[1], len(found)
            needs = (opening,) if len(found) > opening else ()
            found.append((QuoteUnit(bare, number, needs), start, end))
            if is_closing:
                fence, ends = "", (opening, len(found) - 1)
                inside = slice(opening + 1, len(found) - 1)
                found[inside] = [
                    (replace(unit, needs=ends), at, to) for unit, at, to in found[inside]
                ]
                unit, at, to = found[opening]  # alone it would be the fence of nothing
                found[opening] = (replace(unit, needs=(*ends, min(opening + 1, ends[1]))), at, to)
        elif _TABLE_ROW.match(bare):
            found.append((QuoteUnit(bare.strip(), number, table), start, end))
            if len(table) < 2:
                table = (*table, len(found) - 1)
        else:
            found += _sentences(bare, number, start)
        if not _TABLE_ROW.match(bare):
            table = ()
        start = end
    return found


def _sentences(line: str, number: int, offset: int) -> list[_Span]:
    lead = lead_chars(line)
    ends = [end for end in sentence_ends(line) if end > lead]
    spans = zip([0, *ends], ends, strict=False)
    return [
        (
            QuoteUnit(words.rstrip() if begin == 0 else words.strip(), number),
            offset + begin,
            offset + end,
        )
        for begin, end in spans
        if (words := line[begin:end]).strip()
    ]


def _word_shares(
    text: str, units: Sequence[_Span], query: SearchQuery, weights: Mapping[str, float]
) -> list[float]:
    """Return for each unit the share (0-1) of the query's weight that its words have."""
    finder = word_finder(query, language_of(text))
    total = sum(weights.values()) or 1.0
    starts = [start for _, start, _ in units]
    held: list[set[str]] = [set() for _ in units]
    for match in finder.matches(text):
        if match.word < len(finder.words) and (place := bisect_right(starts, match.start)):
            held[place - 1].add(finder.words[match.word])
    return [min(1.0, sum(weights.get(word, 0.0) for word in words) / total) for words in held]


def _with_introductions(
    units: Sequence[QuoteUnit], worth: Iterator[float]
) -> Iterator[tuple[QuoteUnit, float]]:
    """Yield units with their worth, at least a share of the worth of their introduction."""
    introduction, line, is_list = 0.0, -1, False
    for unit in units:
        own = next(worth)
        if unit.line != line:
            is_item = bool(
                unit.needs
                or lead_chars(unit.text)
                or _TABLE_ROW.match(unit.text)
                or (is_list and unit.text[0].isspace())  # a further line of an item
            )
            if is_list and not is_item:
                introduction = 0.0
            line, is_list = unit.line, is_item or bool(_FENCE.match(unit.text))
        own = max(own, introduction)
        yield unit, own
        if unit.text.rstrip(_MARKUP).endswith(_COLONS) and not is_list:
            introduction = _INTRODUCED * own
        elif not is_list:
            introduction = 0.0


def fullness(unit: QuoteUnit) -> float:
    """Return how much (0-1) a unit may say at all: nothing without a letter or digit."""
    if _RULE.match(unit.text) or _FENCE.match(unit.text):
        return 0.0
    return min(1.0, len(unit.text.encode()) / _SHORT_CHARS)

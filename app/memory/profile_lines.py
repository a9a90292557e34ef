"""Profile lines: made from facts, checked against them, matched with edited text. Pure.

Lines are in the order of their categories, the lasting ones first; one fact is one line, in its own
words.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from difflib import SequenceMatcher

from app.domain.records.facts import Fact, FactCategory
from app.domain.records.profile import (
    LINE_LIMIT_CHARS,
    FactSource,
    ProfileDiff,
    ProfileLine,
    keep_key,
    text_key,
    within_tokens,
)
from app.domain.text import clean
from app.language.sentences import content_terms, split_words
from app.memory.facts import distinguishing_words

LASTING = (
    FactCategory.IDENTITY,
    FactCategory.RELATIONSHIP,
    FactCategory.INSTRUCTION,
    FactCategory.PREFERENCE,
    FactCategory.POSSESSION,
    FactCategory.DECISION,
    FactCategory.PLAN,
)
"""What belongs in a profile; of other categories only what the user pinned."""
_LEAST_ADDED = 3
_WAITS_AT_MOST = timedelta(days=7)
_EDITED_RATIO = 0.6  # of an edited line and the one it was
_GROUNDED_SHARE = 0.6  # of the terms of a model's line that its facts have
_BULLETS = "-*•–"
_ADDRESS = re.compile(r"\S*(?::/|@|\w\.\w)\S*")


@dataclass(frozen=True, slots=True)
class ProfileBasis:
    """What a profile is made from.

    Attributes:
        facts: The current facts that may be in it, without those that the user rejected.
        lines: The profile in force.
        texts: The texts of its sources.
        rejected: The keys of what the user rejected.
        max_tokens: The most tokens of a profile.
    """

    facts: Sequence[Fact]
    lines: Sequence[ProfileLine]
    texts: Mapping[FactSource, str]
    rejected: Collection[str]
    max_tokens: int
    by_id: Mapping[int, Fact] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {fact.id: fact for fact in self.facts})

    @property
    def fixed(self) -> tuple[ProfileLine, ...]:
        """The lines that no fact changes: the user's own, and those the user wanted to keep."""
        return tuple(
            line for line in self.lines if not line.sources or keep_key(line) in self.rejected
        )

    def holds(self, line: ProfileLine) -> bool:
        """Return whether a line of the profile still says what its facts say."""
        return all(
            (fact := self.by_id.get(source.fact_id)) is not None
            and _words(self.texts.get(source, "")) == _words(fact.text)
            for source in line.sources
        )


def source_of(fact: Fact) -> FactSource:
    return FactSource(fact.id, fact.made_at)


def fact_rank(fact: Fact) -> tuple[int, bool]:
    """Return the sort key of facts: lasting categories first, pinned facts first in each."""
    place = LASTING.index(fact.category) if fact.category in LASTING else len(LASTING)
    return place, not fact.pinned


def profile_by_rules(basis: ProfileBasis) -> tuple[ProfileLine, ...]:
    """Return the profile by rules: present lines that still hold, then the other facts."""
    fixed = basis.fixed
    kept = [line for line in basis.lines if line in fixed or basis.holds(line)]
    covered = {source.fact_id for line in kept for source in line.sources}
    said = {_words(line.text) for line in kept}
    new: dict[str, ProfileLine] = {}
    for fact in basis.facts:
        line = ProfileLine(_one_line(fact.text), (source_of(fact),))
        words, is_short = _words(line.text), 0 < len(line.text) <= LINE_LIMIT_CHARS
        if fact.id in covered or words in said or not is_short or line.key in basis.rejected:
            continue
        known = new.setdefault(words, line)
        if known is not line:
            new[words] = replace(known, sources=(*known.sources, *line.sources))
    return ordered([*kept, *new.values()], basis)


def ordered(lines: Sequence[ProfileLine], basis: ProfileBasis) -> tuple[ProfileLine, ...]:
    """Return lines by category, what the user fixed first, as many as the budget allows.

    Within a category the order is kept, except that pinned facts come first.
    """

    def rank(line: ProfileLine) -> tuple[int, bool]:
        if line in fixed:
            return -1, False
        found = (basis.by_id.get(each.fact_id) for each in line.sources)
        return min((fact_rank(fact) for fact in found if fact is not None), default=(-1, False))

    fixed = basis.fixed
    return within_tokens(sorted(lines, key=rank), basis.max_tokens, fixed)


def matters(diff: ProfileDiff, basis: ProfileBasis, at: datetime) -> bool:
    """Return whether a difference is worth a proposal `at` a time (UTC).

    So is a line that no longer holds, three new ones, a standing instruction, which has no effect
    until then, a pinned fact, and what has waited for a week.
    """
    facts = [basis.by_id[each.fact_id] for line in diff.added for each in line.sources]
    return (
        bool(diff.removed)
        or len(diff.added) >= _LEAST_ADDED
        or any(fact.pinned or fact.category is FactCategory.INSTRUCTION for fact in facts)
        or any(fact.made_at <= at - _WAITS_AT_MOST for fact in facts)
    )


def is_grounded(text: str, facts: Sequence[Fact]) -> bool:
    """Return whether a line says what its facts say, in their language.

    It must have most of its words from them, and all of its numbers, names and negations; so
    neither an instruction nor a claim of somebody else can become part of it.
    """
    said = " ".join(fact.text for fact in facts)
    terms, known = set(content_terms(text)), set(content_terms(said))
    if not terms or len(terms & known) < _GROUNDED_SHARE * len(terms):
        return False
    words = set(split_words(said)) | distinguishing_words(said)
    addresses = _ADDRESS.findall(text)
    return distinguishing_words(text) <= words and all(each in said for each in addresses)


def lines_of_text(text: str, known: Sequence[ProfileLine]) -> tuple[ProfileLine, ...]:
    """Return the lines of a text that the user wrote or edited, with the sources of `known` ones.

    A line that was edited keeps the sources of the line it resembles most, so that it is forgotten
    with them.
    """
    texts = (_one_line(line.strip().lstrip(_BULLETS)) for line in clean(text).splitlines())
    written = [ProfileLine(each) for each in dict.fromkeys(texts) if each]
    by_key = {line.key: line for line in known}
    keys = {line.key for line in written}
    changed = [line for line in known if line.sources and line.key not in keys]
    return tuple(
        replace(line, sources=by_key[line.key].sources)
        if line.key in by_key
        else _as_edited(line, changed)
        for line in written
    )


def _as_edited(line: ProfileLine, changed: Sequence[ProfileLine]) -> ProfileLine:
    ratios = [SequenceMatcher(None, each.text, line.text).ratio() for each in changed]
    if not ratios or max(ratios) < _EDITED_RATIO:
        return line
    return replace(line, sources=changed[ratios.index(max(ratios))].sources)


def _words(text: str) -> str:
    """Return the key of a text by its words; equal meanings are one fact already."""
    return " ".join(split_words(text)) or text_key(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())

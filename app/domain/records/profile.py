"""The profile: a few lines about the user that are part of every prompt, each with its facts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.ids import PassageId
from app.domain.text import content_hash, sanitize
from app.domain.turns import estimate_tokens

LINE_LIMIT_CHARS = 300


@dataclass(frozen=True, slots=True)
class FactSource:
    """The version of a fact that a line says; `made_at` (UTC) identifies the version."""

    fact_id: PassageId
    made_at: datetime


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """A line without its bullet; one without sources is the user's own."""

    text: str
    sources: tuple[FactSource, ...] = ()

    @property
    def key(self) -> str:
        return text_key(self.text)

    @property
    def in_prompt(self) -> str:
        return f"- {sanitize(self.text)}\n"

    @property
    def tokens(self) -> int:
        """The estimated tokens that it takes in a prompt."""
        return estimate_tokens(self.in_prompt)


@dataclass(frozen=True, slots=True)
class Profile:
    """A version of the profile; `made_at` is UTC. `author` is "user", "extractive" or PROVIDER:MODEL."""

    lines: tuple[ProfileLine, ...]
    author: str
    made_at: datetime

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class ProfileReview:
    """When facts were last turned into a profile, and the proposal that waits for the user.

    `facts_key` identifies the facts; "" when some of them were deleted since, so that the review is to be
    repeated at once. The proposal is None when there was nothing to change or the user has decided.
    """

    made_at: datetime
    facts_key: str
    proposal: Profile | None = None


@dataclass(frozen=True, slots=True)
class ProfileDiff:
    """The lines that a proposal adds to a profile and removes from it."""

    added: tuple[ProfileLine, ...]
    removed: tuple[ProfileLine, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def text_key(text: str) -> str:
    """Return a hash that texts with other white space or other case share."""
    return content_hash(" ".join(text.casefold().split()))


def keep_key(line: ProfileLine) -> str:
    """Return the hash that stands for the user's wish to keep a line whatever its facts became."""
    return content_hash(f"keep {line.key}")


def profile_diff(before: Sequence[ProfileLine], after: Sequence[ProfileLine]) -> ProfileDiff:
    """Return what distinguishes two profiles, whatever the order of their lines."""
    return ProfileDiff(lines_without(after, before), lines_without(before, after))


def lines_without(
    lines: Sequence[ProfileLine], others: Sequence[ProfileLine]
) -> tuple[ProfileLine, ...]:
    """Return the lines whose text others do not have."""
    keys = {line.key for line in others}
    return tuple(line for line in lines if line.key not in keys)


def supported_lines(
    lines: Sequence[ProfileLine], texts: Mapping[FactSource, str]
) -> tuple[ProfileLine, ...]:
    """Return the lines that say nothing that only missing sources said.

    `texts` are those of the sources that exist. A line that has lost a source stays only in the words of
    one that is left.
    """
    kept = []
    for line in lines:
        left = tuple(source for source in line.sources if source in texts)
        if len(left) == len(line.sources):
            kept.append(line)
        elif line.key in {text_key(texts[source]) for source in left}:
            kept.append(replace(line, sources=left))
    return tuple(kept)


def within_tokens(
    lines: Sequence[ProfileLine], limit: int, always: Collection[ProfileLine] = ()
) -> tuple[ProfileLine, ...]:
    """Return the first lines that fit into a number of tokens; those of `always` come before others."""
    left = limit - sum(line.tokens for line in always)
    kept = []
    for line in lines:
        if line in always:
            kept.append(line)
        elif line.tokens <= left:
            kept.append(line)
            left -= line.tokens
    return tuple(kept)

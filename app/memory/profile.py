"""Profile service: the lines in every prompt, and the user's decisions about proposals.

Everything is decided on the writer thread, so that no line outlives a fact that is forgotten
meanwhile.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from app.domain.changes import Change, ProfileLinesRejected, ProfilePut, ProfileReviewPut
from app.domain.errors import InvalidInput, NotFound
from app.domain.records.facts import BY_IMPORT, BY_USER, Fact, FactCategory
from app.domain.records.profile import (
    Profile,
    ProfileDiff,
    ProfileLine,
    ProfileReview,
    keep_key,
    lines_without,
    profile_diff,
    supported_lines,
    text_key,
)
from app.domain.text import content_hash
from app.memory.profile_lines import LASTING, ProfileBasis, lines_of_text
from app.memory.user_texts import later_than, version_at
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.facts import Facts
from app.storage.tables.profile import ProfileRows
from app.storage.tables.projects import stored_projects
from app.storage.tables.settings import Settings

T = TypeVar("T")

ENABLED = "profile_enabled"
_LIMIT = "profile_max_tokens"
_ANNOUNCED = "profile_announced"
_MOST_FACTS = 1_000


@dataclass(frozen=True, slots=True)
class ProfileState:
    """The profile as shown; without a proposal `proposal` is None and `diff` empty."""

    is_on: bool
    lines: tuple[ProfileLine, ...]
    proposal: Profile | None
    diff: ProfileDiff
    max_tokens: int

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @property
    def tokens(self) -> int:
        return sum(line.tokens for line in self.lines)


class ProfileService:
    """Reads and changes the profile. Thread-safe; blocks; raises StorageError."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._rows = ProfileRows(store)
        self._facts = Facts(store)

    # -- reading

    def lines(self) -> tuple[ProfileLine, ...]:
        profile = self._rows.current()
        return () if profile is None else profile.lines

    def lines_in(self, project: str | None) -> tuple[ProfileLine, ...]:
        """Return the lines that prompts of a project contain, by its uid.

        In a bounded one those that were learned elsewhere are left out.
        """
        known = {each.uid: each for each in stored_projects(self._store)}
        if project not in known or not known[project].is_bounded:
            return self.lines()
        return tuple(line for line in self.lines() if not line.sources)

    def state(self) -> ProfileState:
        lines, review = self.lines(), self._rows.review()
        is_on = self._settings.flag(ENABLED)
        proposal = review.proposal if review is not None and is_on else None
        diff = profile_diff(lines, lines if proposal is None else proposal.lines)
        return ProfileState(is_on, lines, proposal if diff else None, diff, self._max_tokens)

    def waiting(self) -> int:
        """Return how many proposals wait for the user: one or none."""
        return int(self.state().proposal is not None)

    def unannounced(self) -> ProfileDiff:
        """Return what the proposal that waits would change, standing instructions first.

        Nothing once it was announced.
        """
        state = self.state()
        if state.proposal is None or self._settings.text(_ANNOUNCED) == _stamp(state.proposal):
            return ProfileDiff((), ())
        added = state.diff.added
        known = self._facts.by_ids(each.fact_id for line in added for each in line.sources)
        asked = {
            each for each, found in known.items() if found.fact.category is FactCategory.INSTRUCTION
        }
        first = sorted(
            added, key=lambda line: asked.isdisjoint(each.fact_id for each in line.sources)
        )
        return replace(state.diff, added=tuple(first))

    def note_announced(self) -> None:
        """Remember that the user was told of the proposal that waits."""
        if (proposal := self.state().proposal) is not None:
            self._settings.set(_ANNOUNCED, _stamp(proposal))

    def versions(self) -> tuple[Profile, ...]:
        """Return the accepted versions, newest first."""
        return self._rows.versions()

    def basis(self) -> tuple[ProfileBasis, str]:
        """Return what a new profile is made from, and the key of its facts."""
        facts = self._facts.lasting(LASTING, _MOST_FACTS)
        lines, rejected = self.lines(), self._rows.rejected()
        review = self._rows.review()
        waiting = None if review is None else review.proposal
        if waiting is not None and waiting.author == BY_IMPORT:  # an import cannot be read again
            lines = (*lines, *lines_without(waiting.lines, lines))
        covered = {source.fact_id for line in lines for source in line.sources}
        wanted = [
            fact for fact in facts if fact.id in covered or text_key(fact.text) not in rejected
        ]
        texts = self._rows.source_texts(lines)
        basis = ProfileBasis(wanted, lines, texts, rejected, self._max_tokens)
        return basis, _facts_key(facts)

    # -- for the user

    def turn(self, on: bool) -> None:
        """Use the profile in prompts, and propose changes to it, or not."""
        self._settings.set(ENABLED, on)

    def accept(self, made_at: datetime | None = None) -> Profile:
        """Put a proposal in force, the one of a time if given; raises NotFound."""

        def changes() -> tuple[Profile, list[Change]]:
            review, proposal = self._waiting(made_at)
            profile = replace(proposal, made_at=self._next_time())
            return profile, [ProfilePut(profile), ProfileReviewPut(replace(review, proposal=None))]

        return self._commit(changes)

    def reject(self, made_at: datetime | None = None) -> None:
        """Drop a proposal, the one of a time if given, and never propose its lines again.

        What it would have removed stays. Raises NotFound.
        """

        def changes() -> tuple[None, list[Change]]:
            review, proposal = self._waiting(made_at)
            diff = profile_diff(self.lines(), proposal.lines)
            rejected = self._rejections(diff.added, diff.removed)
            return None, [rejected, ProfileReviewPut(replace(review, proposal=None))]

        self._commit(changes)

    def set(self, text: str, decides: datetime | None = None) -> Profile:
        """Replace the profile by the lines of a text; raises InvalidInput, NotFound.

        Lines that the user removes are not proposed again. `decides` is the time of the proposal
        that the text was made from; without it one that waits goes on to wait.
        """

        def changes() -> tuple[Profile, list[Change]]:
            review, before = self._rows.review(), self.lines()
            proposed: tuple[ProfileLine, ...] | None = None
            if decides is not None:
                review, proposal = self._waiting(decides)
                proposed = proposal.lines
            lines = lines_of_text(text, (*before, *(proposed or ())))
            return self._replacing(lines, review, proposed)

        return self._commit(changes)

    def restore(self, made_at: datetime) -> Profile:
        """Restore an earlier version; raises NotFound."""

        def changes() -> tuple[Profile, list[Change]]:
            version = version_at(self._rows.versions(), made_at, "the profile")
            return self._replacing(version.lines, self._rows.review(), None)

        return self._commit(changes)

    # -- for the worker

    def propose(
        self, lines: Sequence[ProfileLine], author: str, facts_key: str, *spent: Change
    ) -> None:
        """Store a review with what it proposes, and its cost.

        Lines whose facts were deleted meanwhile are left out, and the review is to be repeated.
        """

        def changes() -> tuple[None, list[Change]]:
            at = now()
            left = supported_lines(lines, self._rows.source_texts(lines))
            key = facts_key if left == tuple(lines) else ""
            proposal = Profile(left, author, at) if profile_diff(self.lines(), left) else None
            return None, [*spent, ProfileReviewPut(ProfileReview(at, key, proposal))]

        self._commit(changes)

    # -- inside

    @property
    def _max_tokens(self) -> int:
        return self._settings.number(_LIMIT)

    def _waiting(self, made_at: datetime | None) -> tuple[ProfileReview, Profile]:
        review = self._rows.review()
        proposal = None if review is None else review.proposal
        if review is None or proposal is None or made_at not in (None, proposal.made_at):
            raise NotFound(
                "This proposal for the profile does not wait any more",
                "Look at the profile again: it may have been decided or replaced by a newer one.",
            )
        return review, proposal

    def _next_time(self) -> datetime:
        current = self._rows.current()
        return now() if current is None else later_than(current.made_at)

    def _replacing(
        self,
        lines: tuple[ProfileLine, ...],
        review: ProfileReview | None,
        proposed: Sequence[ProfileLine] | None,
    ) -> tuple[Profile, list[Change]]:
        """Return a profile by the user and its changes; `proposed` lines are decided with it."""
        before = self.lines()
        self._check_size(lines, before)
        profile = Profile(lines, BY_USER, self._next_time())
        if lines == before and proposed is None:
            return profile, []
        decided = profile_diff(before, before if proposed is None else proposed)
        kept = {line.key for line in lines}
        covered = {source.fact_id for line in lines for source in line.sources}
        offered = (*lines_without(before, decided.removed), *decided.added)
        refused = [
            line
            for line in lines_without(offered, lines)
            if any(source.fact_id not in covered for source in line.sources)
        ]
        wanted = [line for line in decided.removed if line.key in kept]
        changes: list[Change] = [ProfilePut(profile), self._rejections(refused, wanted)]
        if review is not None and review.proposal is not None:
            is_decided = proposed is not None
            rest = None if is_decided else _rebased(review.proposal, before, lines)
            changes.append(ProfileReviewPut(replace(review, proposal=rest)))
        return profile, changes

    def _check_size(self, lines: Sequence[ProfileLine], before: Sequence[ProfileLine]) -> None:
        tokens, most = sum(line.tokens for line in lines), self._max_tokens
        if tokens > most and tokens >= sum(line.tokens for line in before):
            raise InvalidInput(
                f"The profile would be {tokens:,} tokens long, {_LIMIT} allows {most:,}",
                "Shorten it, or remove less important lines.",
            )

    def _rejections(
        self, refused: Sequence[ProfileLine], wanted: Iterable[ProfileLine]
    ) -> ProfileLinesRejected:
        texts = self._rows.source_texts(refused).values()
        hashes = {*(line.key for line in refused), *map(text_key, texts), *map(keep_key, wanted)}
        return ProfileLinesRejected(tuple(sorted(hashes)))

    def _commit(self, changes: Callable[[], tuple[T, list[Change]]]) -> T:
        def commit() -> T:
            outcome, found = changes()
            if found:
                self._store.commit_now(*found)
            return outcome

        return self._store.on_writer(commit).result()


def _rebased(
    proposal: Profile, before: Sequence[ProfileLine], lines: Sequence[ProfileLine]
) -> Profile:
    """Return a proposal for a profile that the user changed from `before` to `lines` meanwhile."""
    stay = lines_without(proposal.lines, lines_without(before, lines))
    return replace(proposal, lines=(*lines_without(lines, (*before, *stay)), *stay))


def _stamp(proposal: Profile) -> str:
    return proposal.made_at.isoformat()


def _facts_key(facts: Iterable[Fact]) -> str:
    rows = sorted(f"{each.id} {each.made_at} {each.category} {each.pinned}" for each in facts)
    return content_hash("\n".join(rows))

"""The profile writer: at most once a day it turns facts into a proposal for the user's profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.changes import SpendAdded
from app.domain.records.facts import Fact
from app.domain.records.profile import LINE_LIMIT_CHARS, ProfileDiff, ProfileLine, profile_diff
from app.domain.text import clean, one_line
from app.domain.translation import format_count
from app.domain.workers import WORKERS, WorkerName
from app.language.extractive import MODEL
from app.memory.profile import ENABLED, ProfileService
from app.memory.profile_lines import (
    ProfileBasis,
    fact_rank,
    is_grounded,
    matters,
    ordered,
    profile_by_rules,
    source_of,
)
from app.providers.pricing.usage import estimated_tokens
from app.storage.engine.stamps import now
from app.storage.tables.attempts import Attempts
from app.storage.tables.profile import ProfileRows
from app.storage.work.extraction_work import ExtractionWork
from app.storage.work.queue import Tally
from app.workers.background_model import MODEL_KEYS, ModelClient, UnusableAnswer
from app.workers.job_interface import PAID, IsCancelled, Job, Saved
from app.workers.jobs import JobParts
from app.workers.progress import total_usage
from app.workers.prompts_and_answers import Prompt, Quoted, fill_prompt, list_schema

_EXTRACTOR_KEY = WORKERS[WorkerName.KNOWLEDGE_EXTRACTOR].enabled_key
_MOST_FACT_TOKENS = 8_000
_LEAST_FACT_TOKENS = 500
_WORDS_PER_TOKEN = 0.6
_MARK_TOKENS = 20  # of a piece
_BULLETS = "-*•– "
_SCHEMA = list_schema(
    "lines", text={"type": "string"}, facts={"type": "array", "items": {"type": "integer"}}
)


@dataclass(frozen=True, slots=True)
class DueProfile:
    """A profile to be renewed; `id` counts days, `by_rules` is what rules make of the facts."""

    id: int
    basis: ProfileBasis
    facts_key: str
    by_rules: tuple[ProfileLine, ...]

    @property
    def diff(self) -> ProfileDiff:
        """What rules would change."""
        return profile_diff(self.basis.lines, self.by_rules)


@dataclass(frozen=True, slots=True)
class WrittenProfile:
    """The new lines, their author and the cost."""

    due: DueProfile
    lines: tuple[ProfileLine, ...]
    author: str = MODEL
    spent: tuple[SpendAdded, ...] = ()


class ProfileWriter(Job[DueProfile, WrittenProfile]):
    """A `Job` with one item a day, once all conversations have been read for facts.

    Without a model, lines are facts in their own words. A model's line that says more than its facts is
    replaced by them. After facts of the profile were deleted it is renewed at once.
    """

    name = WorkerName.PROFILE_WRITER
    pace = PAID
    poll_s = 600.0  # until the day may have changed
    wakes_on = MODEL_KEYS.union(("memory", "providers", ENABLED, "profile_max_tokens"))

    def __init__(self, parts: JobParts) -> None:
        self._settings = parts.settings
        self._opened = parts.open_conversation
        self._model = parts.model
        self._profile = ProfileService(parts.store, parts.settings)
        self._rows = ProfileRows(parts.store)
        self._attempts = Attempts(parts.store, self.name)
        self._extraction = ExtractionWork(parts.store)
        self._found: Sequence[DueProfile] | None = None  # until it is counted or worked on

    def find(self, at: datetime) -> Sequence[DueProfile]:
        """Return the profile when it is due, facts changed, and the change matters."""
        self._found = self._due(at)
        return self._found

    def _due(self, at: datetime) -> Sequence[DueProfile]:
        day = _day_number(at)
        review = self._rows.review()
        is_stale = review is not None and not review.facts_key
        if review is not None and not is_stale and _day_number(review.made_at) == day:
            return ()
        flag, opened = self._settings.flag, self._opened
        if not flag(ENABLED) or self._attempts.is_postponed(day, at):
            return ()
        if flag(_EXTRACTOR_KEY) and self._extraction.exchange_ids(1, opened.skipped(at), at):
            return ()  # conversations are still to be read for facts
        basis, facts_key = self._profile.basis()
        if review is not None and review.facts_key == facts_key:
            return ()
        due = DueProfile(day, basis, facts_key, profile_by_rules(basis))
        return (due,) if is_stale or matters(due.diff, basis, at) else ()

    def describe(self, item: DueProfile) -> str:
        return format_count(len(item.basis.facts), "fact")

    def make(self, items: Sequence[DueProfile], is_cancelled: IsCancelled) -> WrittenProfile:
        """Return the new profile, by the background model if one is chosen."""
        self._found = None
        (due,) = items
        if self._model is None or not self._model.model or not due.diff:
            return WrittenProfile(due, due.by_rules)
        asked, offered = _request(due.basis, self._model)
        try:
            answer = self._model.ask(asked, self.name, is_cancelled, _SCHEMA)
        except UnusableAnswer:  # its cost is recorded
            return WrittenProfile(due, due.by_rules)
        lines = _checked(answer.fields, due.basis, offered)
        if not lines:  # nothing of it can be used
            return WrittenProfile(due, due.by_rules, spent=(answer.spent,))
        return WrittenProfile(due, lines, answer.model, (answer.spent,))

    def save(self, results: Sequence[WrittenProfile]) -> Saved:
        for each in results:
            self._profile.propose(each.lines, each.author, each.due.facts_key, *each.spent)
        return Saved(
            len(results), spent=total_usage([one for each in results for one in each.spent])
        )

    def tally(self) -> Tally:
        """Return one item, done unless the profile is due; none before the first."""
        at = now()
        retry = self._attempts.next_try(_day_number(at))
        if retry is not None:
            waits = retry[0] is not None
            return Tally(0, 1, int(waits), int(not waits), retry[0])
        found, self._found = self._found, None
        is_due = bool(self._due(at) if found is None else found)
        was_made = self._rows.review() is not None
        return Tally(int(was_made and not is_due), int(was_made or is_due))


def _request(basis: ProfileBasis, model: ModelClient) -> tuple[Prompt, Mapping[int, Fact]]:
    """Return the prompt for as many facts as fit, the lasting ones first, and these facts by id."""
    words = round(basis.max_tokens * _WORDS_PER_TOKEN)
    present = Quoted("lines of the present profile", "\n".join(each.text for each in basis.lines))
    around = fill_prompt("profile", (present,), words=str(words))
    room = model.context_tokens() - model.answer_tokens()
    room -= estimated_tokens(f"{around.system}{around.user}{_SCHEMA}")
    room = max(_LEAST_FACT_TOKENS, min(room, _MOST_FACT_TOKENS))
    offered: dict[int, Fact] = {}
    pieces = [present]
    for fact in sorted(basis.facts, key=fact_rank):
        label = f"fact {fact.id}, {fact.said_at:%d %B %Y}, {fact.category}"
        room -= estimated_tokens(f"{label} {fact.text}") + _MARK_TOKENS
        if room < 0:
            break
        pieces.append(Quoted(label, fact.text))
        offered[fact.id] = fact
    return fill_prompt("profile", pieces, words=str(words)), offered


def _checked(
    fields: Mapping[str, Any], basis: ProfileBasis, offered: Mapping[int, Fact]
) -> tuple[ProfileLine, ...]:
    """Return a model's lines that say what their facts say, in order, within the budget.

    A line that does not is replaced by its facts. What the user fixed stays; () if nothing is left.
    """
    lines: list[ProfileLine] = []
    for each in fields["lines"]:
        facts = [offered[number] for number in dict.fromkeys(each["facts"]) if number in offered]
        text = one_line(clean(each["text"]).strip(_BULLETS), LINE_LIMIT_CHARS)
        if facts and is_grounded(text, facts):
            lines.append(ProfileLine(text, tuple(map(source_of, facts))))
        else:
            lines += [
                ProfileLine(one_line(fact.text, LINE_LIMIT_CHARS), (source_of(fact),))
                for fact in facts
            ]
    new = {line.key: line for line in reversed(lines) if line.key not in basis.rejected}
    kept = [line for line in basis.fixed if line.key not in new]
    return ordered([*kept, *reversed(new.values())], basis) if new else ()


def _day_number(at: datetime) -> int:
    return at.astimezone().toordinal()


build = ProfileWriter

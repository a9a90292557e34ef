"""History of a request: the past turns it repeats, and the compaction of earlier ones.

What a request repeats is read from the stored prompt before it, so that it begins with that prompt,
also after a restart. Only a full prompt is compacted: with the text that was prepared, else with
sentences of the turns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby

from app.chat.planner import ExchangePlan
from app.chat.sent_turns import SentTurn, SentTurns, first_sent
from app.domain.conversations import Exchange, Message, Role
from app.domain.ids import PassageId
from app.domain.recall import PlanPart, PlanPartKind, StoredPrompt
from app.domain.records.facts import BY_USER
from app.domain.translation import local_day
from app.domain.turns import TurnMarkdown, turn_markdown
from app.language.extractive import MODEL, representative
from app.language.statements.extraction import without_quoted_lines
from app.memory.context.plan import (
    FULL_SHARE,
    LEFT_SHARE,
    KeptTurns,
    compacted,
    compaction_bytes,
    compaction_part,
    kept_tokens,
    message_tokens,
)
from app.memory.context.text import NOTES_INTRO, cut_lines
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.memories import CoreMemory
from app.storage.tables.prompts import Feedback, Prompts
from app.storage.tables.summaries import Summaries

CONTEXT = "context"  # the kind of prepared compactions
_READ_TOGETHER = 16  # turns; doubled with each read
_ADDED_SHARE = 2 / 3  # of a compaction, for what the text before it lacks
_EXTRACTIVE_PARTS = 6  # of two or three sentences each


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most tokens of a prompt, and of the compaction in it."""

    tokens: int
    compaction_tokens: int


@dataclass(frozen=True, slots=True)
class History:
    """What precedes the question of a request.

    Attributes:
        turns: The past turns that are repeated, oldest first; of the first `shortened` with short
            results.
        compaction: What stands for the turns of the segment before them.
        is_cut: Whether turns of the segment are not repeated.
        before: The newest prompt before this one, of the same segment.
        runs: The earlier prompts of the exchange itself, oldest first.
        rejected: The passages never to be used again, or not in the conversation's project.
    """

    turns: tuple[SentTurn, ...] = ()
    shortened: int = 0
    compaction: PlanPart | None = None
    is_cut: bool = False
    before: StoredPrompt | None = None
    runs: tuple[StoredPrompt, ...] = ()
    rejected: frozenset[PassageId] = frozenset()
    messages: tuple[Message, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Take each turn as it is sent."""
        turns = enumerate(self.turns)
        sent = [turn.short if place < self.shortened else turn.whole for place, turn in turns]
        object.__setattr__(self, "messages", tuple(each for turn in sent for each in turn))

    @property
    def parts(self) -> tuple[PlanPart, ...]:
        parts = [self.compaction] if self.compaction is not None else []
        for kind, turns in (
            (PlanPartKind.SHORTENED, self.turns[: self.shortened]),
            (PlanPartKind.HISTORY, self.turns[self.shortened :]),
        ):
            if ids := tuple(each.id for turn in turns for each in turn.stored):
                is_short = kind is PlanPartKind.SHORTENED
                sent = (turn.short if is_short else turn.whole for turn in turns)
                tokens = sum(message_tokens(each) for turn in sent for each in turn)
                parts.append(PlanPart(kind, tokens, True, message_ids=ids))
        return tuple(parts)

    @property
    def quoted(self) -> frozenset[PassageId]:
        """The passages quoted in full in past turns."""
        return frozenset(each for turn in self.turns for each in turn.quoted)

    @property
    def lines(self) -> frozenset[str]:
        """The texts of what past turns recall."""
        return frozenset(each for turn in self.turns for each in turn.lines)


class HistoryReader:
    """Reads the history of a request. Blocking; thread-safe."""

    def __init__(self, store: Store) -> None:
        self._prompts = Prompts(store)
        self._exchanges = Exchanges(store)
        self._summaries = Summaries(store)
        self._core_memory = CoreMemory(store)
        self._feedback = Feedback(store)
        self._turns = SentTurns(store)

    def recent_messages(self, plan: ExchangePlan, turns: int) -> tuple[Message, ...]:
        """Return the messages of a segment's last turns before the planned one, oldest first."""
        found = map(self._exchanges.messages_of, plan.segment[:-1][-turns:])
        return tuple(each for messages in found for each in messages)

    def read(
        self,
        plan: ExchangePlan,
        runs: tuple[StoredPrompt, ...],
        around_tokens: int,
        ceiling: Ceiling,
    ) -> History:
        """Return the history of a plan, compacted if it and the tokens around it fill the ceiling.

        `runs` are the exchange's own; the tokens around include its block.
        """
        past = plan.segment[:-1]
        withheld = self._prompts.recalled_beyond(
            [each.id for each in plan.segment], plan.conversation.project
        )
        number = plan.exchange.segment_number
        own_segment = [each for each in past if each.segment_number == number]
        before = runs[-1] if runs else self._newest(own_segment)
        compaction = _compaction_of(before)
        start, shortened = 0, 0
        if not _lost_compaction(before):
            start, shortened = past_position(plan.segment, before)
        room = ceiling.tokens - around_tokens - (compaction.tokens if compaction else 0)
        first, turns = self._newest_turns(past, start, shortened, room, withheld)
        kept = KeptTurns(0, max(0, shortened - first))
        sizes = [turn.sizes for turn in turns]
        full = ceiling.tokens * FULL_SHARE - ceiling.tokens + room
        if first > start or kept_tokens(sizes, kept) > full:
            goal = ceiling.tokens * LEFT_SHARE
            around = around_tokens + ceiling.compaction_tokens
            kept = compacted(sizes, kept, around, goal, ceiling.tokens)
            if first + kept.dropped > start:
                compaction, dropped = self._compaction(
                    plan, start, first, turns, kept.dropped, compaction, ceiling
                )
                kept = KeptTurns(dropped, kept.shortened)
        return History(
            tuple(turns[kept.dropped :]), max(0, kept.shortened - kept.dropped), compaction,
            is_cut=first + kept.dropped > 0, before=before, runs=runs,
            rejected=self._feedback.rejected(now()) | withheld,
        )  # fmt: skip

    def own_runs(self, exchange: Exchange) -> tuple[StoredPrompt, ...]:
        """Return the prompts of an exchange, oldest first, the newest with its items."""
        newest = self._prompts.of(exchange.id)
        if newest is None:
            return ()
        *before, last = self._prompts.runs([exchange.id])[exchange.id]
        return (*before, replace(last, items=newest.items))

    def core_memory(self, before: StoredPrompt | None) -> str | None:
        """Return the core memory of the prompt before while it is to stay as it is: for a day.

        None when it is to be read again: the user has changed it, or it was forgotten.
        """
        if before is None or _local_day(before.sent_at) != _local_day(now()):
            return None
        for version in self._core_memory.versions():
            if version.author == BY_USER and version.made_at and version.made_at > before.sent_at:
                return None
        pieces = before.part(PlanPartKind.CORE_MEMORY).pieces
        return (pieces[-1].text or None) if pieces else ""

    def _newest(self, past: Sequence[Exchange]) -> StoredPrompt | None:
        last = self._prompts.last_with_prompt(past)
        return None if last is None else self._prompts.runs([last.id])[last.id][-1]

    def _newest_turns(
        self,
        past: Sequence[Exchange],
        start: int,
        shortened: int,
        room_tokens: int,
        withheld: frozenset[PassageId],
    ) -> tuple[int, list[SentTurn]]:
        """Return past turns from `start` on, at most a few more than fit; and where they begin."""
        first, tokens, count, at = len(past), 0, _READ_TOGETHER, now()
        turns: list[SentTurn] = []
        while first > start and tokens <= room_tokens:
            begin = max(start, first - count)
            read = self._turns.of(past[begin:first], at, withheld)
            tokens += kept_tokens([each.sizes for each in read], KeptTurns(0, shortened - begin))
            turns, first, count = [*read, *turns], begin, count * 2
        return first, turns

    def _compaction(
        self,
        plan: ExchangePlan,
        start: int,
        first: int,
        turns: Sequence[SentTurn],
        dropped: int,
        compaction: PlanPart | None,
        ceiling: Ceiling,
    ) -> tuple[PlanPart | None, int]:
        """Return what stands for turns before `first + dropped`, and how many it covers of `turns`.

        A prepared text is taken, with sentences of the turns that it lacks.
        """
        past = plan.segment[:-1]
        covered, text = start, _unquoted(compaction)
        is_notes = compaction is not None and compaction.pieces[0].text == NOTES_INTRO
        prepared = self._summaries.latest(CONTEXT, [each.id for each in past])
        for place in range(len(past) - 2, start - 1, -1):
            if (found := prepared.get(past[place].id)) is not None:
                covered, text = place + 1, found.text
                is_notes |= found.model != MODEL  # else sentences were added to what was there
                break
        most = ceiling.compaction_tokens
        if covered >= first + dropped:
            dropped = covered - first
        else:
            summarized = self._summaries_of(plan, past[covered:first])
            missing = turns[max(0, covered - first) : dropped]
            added = extract([markdown_of(turn.stored) for turn in missing])
            if text and summarized:
                added = joined(summarized, added, int(most * _ADDED_SHARE))
            text = joined(text or summarized, added, most)
        return compaction_part(text, plan.conversation.id, most, is_notes=is_notes), dropped

    def _summaries_of(self, plan: ExchangePlan, turns: Sequence[Exchange]) -> str:
        """Return what summaries tell of turns too many to be read while a message is sent.

        First that of the conversation unless each turn has its own.
        """
        own = self._summaries.latest("exchange", [each.id for each in turns])
        summarized = extract(
            [
                TurnMarkdown("", own[each.id].text, day=local_day(each.started_at))
                for each in turns
                if each.id in own
            ]
        )
        if len(own) == len(turns) or plan.exchange.segment_number:
            return summarized
        here = plan.conversation.id
        whole = self._summaries.latest("conversation", [here]).get(here)
        told = f"Summary: {' '.join(whole.text.split())}" if whole else ""
        return "\n".join(each for each in (told, summarized) if each)


def joined(before: str, added: str, most_tokens: int) -> str:
    """Return the text of a compaction and what is added to it, which gets its room first.

    Two thirds at most, or what the former leaves; of what is added the newest lines remain.
    """
    room = compaction_bytes(most_tokens, before, added)
    for_added = max(int(room * _ADDED_SHARE), room - len(before.encode()) - 1)
    newest_first = "\n".join(reversed(added.strip().splitlines()))
    added = "\n".join(reversed(cut_lines(newest_first, for_added).splitlines()))
    before = cut_lines(before, room - len(added.encode()) - 1)
    return "\n".join(each for each in (before, added) if each)


def compaction_text(prompt: StoredPrompt) -> str:
    """Return the text that stood for earlier turns in a prompt."""
    return _unquoted(_compaction_of(prompt))


def extract(turns: Sequence[TurnMarkdown]) -> str:
    """Return central sentences from each part of a conversation, in order, with day and speaker.

    What the user quotes is left out, as it is not the user's, unless there is nothing else.
    """
    said = (without_quoted_lines(turn.asked) for turn in turns)
    own = [
        replace(turn, asked=text) if text.strip() else turn
        for turn, text in zip(turns, said, strict=True)
    ]
    size = max(1, -(-len(own) // _EXTRACTIVE_PARTS))
    parts = (own[place : place + size] for place in range(0, len(own), size))
    return "\n".join(
        _dated(day, said)
        for part in parts
        for day, said in groupby(representative(part), key=lambda each: each[0].day)
    )


def _dated(day: str, said: Iterable[tuple[TurnMarkdown, bool, str]]) -> str:
    """Return sentences of a day as a line; those of a summary, which asks nothing, are nobody's."""
    words = [day] if day else []
    before: bool | None = None
    for turn, asks, text in said:
        is_named = turn.asked and asks is not before
        words.append(f"{'User' if asks else 'Assistant'}: {text}" if is_named else text)
        before = asks
    return " ".join(words)


def markdown_of(messages: Sequence[Message]) -> TurnMarkdown:
    """Return both sides of a turn with its day."""
    both = turn_markdown(
        (message.role, message.blocks)
        for message in messages
        if message.role in (Role.USER, Role.ASSISTANT)
    )
    return replace(both, day=local_day(messages[0].created_at)) if messages else both


def past_position(segment: Sequence[Exchange], before: StoredPrompt | None) -> tuple[int, int]:
    """Return the indexes of the first turn in a prompt and of the first with whole results."""
    if before is None:
        return 0, 0
    shortened = before.part(PlanPartKind.SHORTENED).message_ids
    start = _index_of(segment, first_sent(before))
    return start, _index_of(segment, shortened[-1]) + 1 if shortened else start


def _index_of(segment: Sequence[Exchange], message_id: int | None) -> int:
    found = (place for place, each in enumerate(segment) if message_id in each.message_ids)
    return next(found, 0)


def _compaction_of(before: StoredPrompt | None) -> PlanPart | None:
    part = None if before is None else before.part(PlanPartKind.COMPACTION)
    return part if part and part.pieces and all(each.text for each in part.pieces) else None


def _lost_compaction(before: StoredPrompt | None) -> bool:
    """Return whether the compaction was forgotten, so that the turns are compacted again."""
    has_any = before is not None and before.part(PlanPartKind.COMPACTION).pieces
    return bool(has_any) and _compaction_of(before) is None


def _unquoted(compaction: PlanPart | None) -> str:
    """Return the text of a compaction without its introduction and quotation marks."""
    if compaction is None:
        return ""
    lines = compaction.pieces[-1].text.splitlines()
    return "\n".join(line.removeprefix("> ") for line in lines)


def _local_day(moment: datetime) -> object:
    return moment.astimezone().date()

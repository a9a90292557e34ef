"""Turns as they were sent: the block before the user's message, the answer, our notes between.

A turn is rebuilt from its stored messages and prompts, so that every later request repeats it byte
for byte. Only forgetting and the verdict "never" change it: they remove what they concern from its
block.

A segment break, an exchange after which `/new` starts a new segment, is stored in the setting `clean_slates`, so it
survives a restart before the next message and applies to every branch that continues from that exchange.
"""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.chat.tools.results import shortened_results, truncate_results
from app.domain.changes import PromptStored
from app.domain.conversations import FORGOTTEN, Exchange, Forgotten, Message, Role, Text
from app.domain.ids import ExchangeId, MessageId, PassageId
from app.domain.recall import PAST_KINDS, PlanPart, PlanPartKind, PromptPiece, StoredPrompt
from app.domain.settings_schema import SETTINGS
from app.memory.context.plan import compaction_block, message_tokens, recalled_block
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.prompts import Feedback, Prompts
from app.storage.tables.settings import Settings

BLOCK_KINDS = (
    PlanPartKind.DATE, PlanPartKind.FACTS, PlanPartKind.RELATED, PlanPartKind.DOCUMENTS,
    PlanPartKind.EARLIER,
)  # fmt: skip
_RESULT_CHARS = int(SETTINGS["tool_output_max_chars"].default)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class SentTurn:
    """A past turn.

    `stored` are its messages, `whole` the same as they are sent, `short` with one line for each
    tool result; `quoted` are the passages that its block quotes in full, `lines` the texts of what
    it recalls.
    """

    exchange: Exchange
    stored: tuple[Message, ...]
    whole: tuple[Message, ...]
    short: tuple[Message, ...]
    quoted: frozenset[PassageId]
    lines: frozenset[str]

    @property
    def sizes(self) -> tuple[int, int]:
        """The tokens of the turn, whole and with short results."""
        return sum(map(message_tokens, self.whole)), sum(map(message_tokens, self.short))


class SentTurns:
    """Reads turns as they were sent. Blocking."""

    def __init__(self, store: Store) -> None:
        self._exchanges = Exchanges(store)
        self._prompts = Prompts(store)
        self._feedback = Feedback(store)

    def of(
        self,
        exchanges: Sequence[Exchange],
        until: datetime,
        withheld: frozenset[PassageId] = frozenset(),
    ) -> list[SentTurn]:
        """Return turns as a request at the time `until` has them, without `withheld` passages."""
        found = self._exchanges.messages(each for turn in exchanges for each in turn.message_ids)
        runs = self._prompts.runs([each.id for each in exchanges])
        rejected = self._feedback.rejected(until) | withheld
        turns = []
        for exchange in exchanges:
            stored = tuple(found[each] for each in exchange.message_ids if each in found)
            own = [each for each in runs.get(exchange.id, ()) if each.sent_at < until]
            whole = as_sent(stored, own, rejected)
            short = shortened_results(whole)
            quoted = {id_ for run in own for part in run.parts for id_ in part.sources} - rejected
            pieces = (piece for run in own for part in run.parts for piece in part.pieces)
            lines = frozenset(each.text for each in pieces if each.passage_id is not None)
            turns.append(SentTurn(exchange, stored, whole, short, frozenset(quoted), lines))
        return turns


def runs_before(prompts: Prompts, of: Exchange, branch: Exchange) -> Sequence[PromptStored]:
    """Return the stored prompts of earlier questions, for a new branch that shares them.

    Without what was forgotten since.
    """
    before = frozenset(branch.message_ids[:-1])
    stored = reversed(prompts.history(of.id, "")) if before else ()
    return [
        PromptStored(replace(run, exchange_id=branch.id, parts=tuple(map(_without, run.parts))))
        for run in stored
        if before.issuperset(run.part(PlanPartKind.QUESTION).message_ids)
    ]


def as_sent(
    messages: Sequence[Message],
    runs: Sequence[StoredPrompt],
    rejected: frozenset[PassageId] = frozenset(),
) -> tuple[Message, ...]:
    """Return the messages of an exchange as requests contain them; `runs` are oldest first.

    None of a turn that was forgotten as a whole; a single forgotten message is named as such.
    """
    if all(each.is_forgotten or each.role is Role.TOOL for each in messages):
        return ()
    messages = [_with_placeholder(each) if each.is_forgotten else each for each in messages]
    blocks: dict[MessageId, str] = {}
    notes: dict[MessageId, str] = {}
    for run in runs:
        question = run.part(PlanPartKind.QUESTION).message_ids
        if (opening := opening_of(messages, question)) is not None:
            blocks[opening] = turn_block(run.parts, rejected)
        note = run.part(PlanPartKind.NOTE)
        notes |= {id_: each.text for id_, each in zip(note.message_ids, note.pieces, strict=False)}
    sent: list[Message] = []
    for message in _truncated(messages, runs):
        if block := blocks.get(message.id):
            message = replace(message, blocks=(Text(block), *message.blocks))  # noqa: PLW2901
        note_text = notes.get(message.id)
        if note_text and message.role is Role.TOOL:
            message = replace(message, blocks=(*message.blocks, Text(note_text)))  # noqa: PLW2901
        sent.append(message)
        if note_text and message.role is Role.ASSISTANT:
            sent.append(replace(message, role=Role.USER, blocks=(Text(note_text),), raw=None))
    return tuple(sent)


def _with_placeholder(message: Message) -> Message:
    blocks = (Text(FORGOTTEN) if each == Forgotten() else each for each in message.blocks)
    return replace(message, blocks=tuple(blocks))


def turn_block(parts: Iterable[PlanPart], rejected: frozenset[PassageId] = frozenset()) -> str:
    """Return what stands before the user's words: the date, and what was recalled."""
    kept = [_without(part, rejected) for part in parts if part.kind in BLOCK_KINDS]
    date = "".join(part.text for part in kept if part.kind is PlanPartKind.DATE)
    return "\n".join(text for text in (date, recalled_block(kept)) if text)


def opening_of(messages: Iterable[Message], ids: Iterable[MessageId]) -> MessageId | None:
    """Return the last message among `ids` that opens a turn."""
    known = frozenset(ids)
    opening = [each.id for each in messages if each.id in known and each.opens_turn]
    return opening[-1] if opening else None


def with_note(prompt: StoredPrompt, message_id: MessageId, text: str) -> StoredPrompt:
    """Return a prompt after which `text` was sent as well, behind a message of its exchange."""
    note = prompt.part(PlanPartKind.NOTE)
    pieces, ids = (*note.pieces, PromptPiece(text)), (*note.message_ids, message_id)
    others = tuple(part for part in prompt.parts if part.kind is not PlanPartKind.NOTE)
    return replace(prompt, parts=(*others, replace(note, pieces=pieces, message_ids=ids)))


def with_compaction(messages: Sequence[Message], compaction: PlanPart | None) -> list[Message]:
    """Return the messages of a request; the first begins with what stands for earlier turns."""
    sent = list(messages)
    if compaction is not None and sent and (text := compaction_block(compaction)):
        if sent[0].role is Role.USER:
            sent[0] = replace(sent[0], blocks=(Text(text), *sent[0].blocks))
        else:
            sent.insert(0, replace(sent[0], role=Role.USER, blocks=(Text(text),), raw=None))
    return sent


def first_sent(prompt: StoredPrompt) -> MessageId | None:
    kinds = (*PAST_KINDS, PlanPartKind.QUESTION)
    return next(
        (part.message_ids[0] for kind in kinds if (part := prompt.part(kind)).message_ids), None
    )


def _without(part: PlanPart, rejected: frozenset[PassageId] = frozenset()) -> PlanPart:
    """Return a part without rejected and forgotten items; without any item it is empty."""
    quotes = any(piece.passage_id for piece in part.pieces)
    pieces = tuple(
        piece for piece in part.pieces if piece.text and piece.passage_id not in rejected
    )
    if quotes and not any(piece.passage_id for piece in pieces):
        pieces = ()
    return replace(part, pieces=pieces)


def _truncated(messages: Sequence[Message], runs: Sequence[StoredPrompt]) -> Iterable[Message]:
    """Yield messages with tool results cut as the run did that produced them."""
    cut: dict[int, Mapping[MessageId, Message]] = {}
    for message in messages:
        chars = _RESULT_CHARS
        for run in runs:
            if message.id not in run.part(PlanPartKind.QUESTION).message_ids:
                chars = run.result_chars
        if chars not in cut:
            cut[chars] = {each.id: each for each in truncate_results(messages, chars)}
        yield cut[chars][message.id]


SEGMENT_BREAKS_KEY = "clean_slates"
_MAX_BREAKS = 1_000  # older ones are followed by messages, which store their segment


class SegmentBreaks:
    """The stored breaks. Reading does not block; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()

    def is_after(self, exchange_id: ExchangeId) -> bool:
        """Return whether the next message after an exchange starts a new segment."""
        return exchange_id in self._stored()

    def begin_after(self, exchange_id: ExchangeId) -> None:
        """Start a new segment after an exchange. Blocking; raises StorageError."""
        with self._lock:
            others = [each for each in self._stored() if each != exchange_id]
            kept = [*others, exchange_id][-_MAX_BREAKS:]
            self._settings.set(SEGMENT_BREAKS_KEY, json.dumps(kept))

    def _stored(self) -> list[int]:
        """Return exchange ids, newest last."""
        return self._settings.listed(SEGMENT_BREAKS_KEY, int)

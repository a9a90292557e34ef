"""Inspection of answers: what memory contributed, and the prompt that was sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.chat.sent_prompt import PartDifference, SentPrompt, by_id, difference, sent_prompt
from app.chat.sent_turns import BLOCK_KINDS, SentTurns, as_sent, first_sent, opening_of
from app.domain.conversations import Conversation, Exchange, Message, Role, ToolCall
from app.domain.errors import NotFound
from app.domain.ids import ExchangeId, MessageId, PassageId
from app.domain.links import labeled_links
from app.domain.passages import PassageKind
from app.domain.recall import (
    PAST_KINDS,
    PlanPartKind,
    RecalledItemDetails,
    RecallLayer,
    StoredPrompt,
    Verdict,
)
from app.memory.context.text import cited_items
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, path_to
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.texts import PassagePlace
from app.storage.tables.prompts import Feedback, Prompts

_OF_TURNS = (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY)


@dataclass(frozen=True, slots=True)
class Source:
    """An item that was retrieved for an answer. `rank` counts from 1 within its layer."""

    place: RecalledItemDetails
    rank: int
    cited: bool
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Contribution:
    """The items injected into an answer's newest prompt, in its order, and its notice."""

    sources: tuple[Source, ...] = ()
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """One run of an exchange.

    Attributes:
        runs: When each run was sent, newest first (UTC). Empty where no prompt is stored; then
            `prompt` and `sent` are None.
        compared: The differences from the newest prompt of the exchange before; None without one.
        requests: The number of requests of the newest run: one more than tool rounds.
        links: (label, target) of the links of an answer without a prompt, such as Recall's.
    """

    exchange: Exchange
    conversation: Conversation
    question: str
    runs: tuple[datetime, ...] = ()
    run: int = 0
    prompt: StoredPrompt | None = None
    sent: SentPrompt | None = None
    sources: tuple[Source, ...] = ()
    compared: tuple[PartDifference, ...] | None = None
    requests: int = 1
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SentSummary:
    """A summary that was sent instead of all messages before `first_sent`."""

    text: str
    first_sent: MessageId


@dataclass(frozen=True, slots=True)
class LastRecall:
    """The newest prompt with its question, and what was found for it, in the prompt's order."""

    prompt: StoredPrompt
    question: str
    turn_number: int
    places: tuple[RecalledItemDetails, ...]


class InspectionService:
    """Reads the sources and prompts of answers, and stores verdicts on sources. Blocking."""

    def __init__(self, store: Store) -> None:
        self._prompts = Prompts(store)
        self._exchanges = Exchanges(store)
        self._conversations = Conversations(store)
        self._feedback = Feedback(store)
        self._passages = Passages(store)
        self._turns = SentTurns(store)

    def contributions(self, ids: Iterable[ExchangeId]) -> Mapping[ExchangeId, Contribution]:
        """Return the contributions to the answers that have a stored prompt."""
        notices = self._prompts.notices(ids)
        found = {}
        for exchange_id, exchange in self._exchanges.by_ids(notices).items():
            places = self._prompts.places(exchange_id)
            is_any = any(place.item.injected for place in places)
            sources = self._sources(exchange, places, {}) if is_any else ()
            injected = tuple(each for each in sources if each.place.item.injected)
            found[exchange_id] = Contribution(injected, notices[exchange_id])
        return found

    def inspect(self, exchange_id: ExchangeId, run: int = 0) -> Inspection:
        """Return a run of an exchange, counted from its newest; raise NotFound."""
        exchange = self._exchanges.get(exchange_id)
        conversation = self._conversations.get(exchange.conversation_id)
        question = self._passages.questions([exchange_id]).get(exchange_id, "")
        history = self._prompts.history(exchange_id)
        if not history:
            links = labeled_links(self._answer_text(exchange))
            return Inspection(exchange, conversation, question, links=links)
        run = min(run, len(history) - 1)
        prompt = history[run]
        path = path_to(exchange, self._exchanges.of(exchange.conversation_id))
        before = None if exchange.parent_id is None else self._prompts.of(exchange.parent_id)
        sent = self._sent(prompt, path)
        compared = None if before is None else difference(self._sent(before, path[:-1]), sent)
        places = self._prompts.placed(prompt.items)
        return Inspection(
            exchange, conversation, question, tuple(each.sent_at for each in history), run, prompt,
            sent, self._sources(exchange, places, self._feedback.verdicts()), compared,
            1 + sum(map(_calls_tools, self._exchanges.messages_of(exchange))) if run == 0 else 1,
        )  # fmt: skip

    def _sent(self, prompt: StoredPrompt, path: Sequence[Exchange]) -> SentPrompt:
        """Return a prompt of the last exchange of a path with all messages as they were sent."""
        asked = PlanPartKind.QUESTION
        past = {each for kind in PAST_KINDS for each in prompt.part(kind).message_ids}
        turns = self._turns.of(
            [each for each in path[:-1] if past.intersection(each.message_ids)], prompt.sent_at
        )
        short = frozenset(prompt.part(PlanPartKind.SHORTENED).message_ids)
        question = prompt.part(asked).message_ids
        found = self._exchanges.messages(question)
        own = [found[each] for each in question if each in found]
        opening = opening_of(own, question)
        runs = [
            run if opening_of(own, run.part(asked).message_ids) != opening else _without_block(run)
            for run in self._prompts.runs([prompt.exchange_id]).get(prompt.exchange_id, [])
            if run.sent_at < prompt.sent_at
        ]
        messages = [
            each
            for turn in turns
            for each in (
                turn.short if short.intersection(turn.exchange.message_ids) else turn.whole
            )
        ]
        return sent_prompt(prompt, by_id([*messages, *as_sent(own, runs)]))

    def sent_summary(self, exchange_id: ExchangeId) -> SentSummary | None:
        """Return the summary in an exchange's newest prompt; None without one."""
        prompt = self._prompts.of(exchange_id)
        summary = None if prompt is None else prompt.part(PlanPartKind.COMPACTION)
        if prompt is None or summary is None or not summary.pieces:
            return None
        first = first_sent(prompt)
        return None if first is None else SentSummary(summary.text, first)

    def last_recall(self) -> LastRecall | None:
        """Return the most recent recall; None before the first."""
        exchange_id = self._prompts.newest_exchange()
        prompt = None if exchange_id is None else self._prompts.of(exchange_id)
        if exchange_id is None or prompt is None:
            return None
        question = self._passages.questions([exchange_id]).get(exchange_id, "")
        turn_number = self._exchanges.get(exchange_id).turn_number
        return LastRecall(prompt, question, turn_number, self._prompts.placed(prompt.items))

    def vote(self, place: RecalledItemDetails, verdict: Verdict | None) -> None:
        """Store a verdict on a recalled item, or (None) delete it. Raises StorageError.

        A verdict on a turn applies to its summary too.
        """
        self._vote(place.item.passage_id, place.item.kind, place.exchange_id, verdict)

    def vote_on_passage(self, passage_id: PassageId, verdict: Verdict) -> PassagePlace:
        """Store a verdict on a passage, and return the place of the passage; raise NotFound."""
        place = self._passages.places([passage_id]).get(passage_id)
        if place is None:
            raise NotFound(
                f"There is no passage {passage_id}", "`/rag try QUESTION` shows passages by number."
            )
        self._vote(passage_id, place.kind, place.exchange_id, verdict)
        return place

    def _vote(
        self,
        passage_id: PassageId,
        kind: PassageKind,
        exchange_id: ExchangeId | None,
        verdict: Verdict | None,
    ) -> None:
        passages = {passage_id}
        if kind in _OF_TURNS and exchange_id is not None:
            for each in _OF_TURNS:
                passages.update(self._passages.of_source(each, exchange_id))
        for passage in sorted(passages):
            self._feedback.give(passage, verdict)

    def _answer_text(self, exchange: Exchange) -> str:
        return "\n\n".join(
            message.text
            for message in self._exchanges.messages_of(exchange)
            if message.role is Role.ASSISTANT
        )

    def _sources(
        self,
        exchange: Exchange,
        places: Sequence[RecalledItemDetails],
        verdicts: Mapping[PassageId, Verdict],
    ) -> tuple[Source, ...]:
        answer = self._answer_text(exchange)
        numbers = {
            place.item.exchange_id: place.turn_number
            for place in places
            if place.item.exchange_id is not None and place.turn_number is not None
        }
        for each in self._exchanges.not_shown(numbers):
            del numbers[each]  # a turn number refers to the shown path
        named = cited_items(answer, [place.item for place in places], numbers)
        ranks: dict[RecallLayer, int] = {}
        sources = []
        for place in places:
            rank = ranks[place.item.layer] = ranks.get(place.item.layer, 0) + 1
            verdict = verdicts.get(place.item.passage_id)
            sources.append(Source(place, rank, place.item in named, verdict))
        return tuple(sources)


def requests_text(inspection: Inspection) -> str:
    """Return a note on the requests of later tool rounds; "" without one."""
    if inspection.requests == 1:
        return ""
    more = "the later ones also held the tool calls and results of this turn"
    return f"{inspection.requests:,} requests: {more}"


def _calls_tools(message: Message) -> bool:
    return message.role is Role.ASSISTANT and any(
        isinstance(block, ToolCall) for block in message.blocks
    )


def _without_block(run: StoredPrompt) -> StoredPrompt:
    """Return an earlier run of the same question without its block, which is shown as parts."""
    return replace(run, parts=tuple(part for part in run.parts if part.kind not in BLOCK_KINDS))

"""What memory contributed to an answer and what it was asked with, put together for a screen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.chat.prompt_difference import PartDifference, difference
from app.chat.sent import SentPrompt, sent_prompt
from app.domain.conversations import Conversation, Exchange, Message, Role, ToolCall
from app.domain.errors import NotFound
from app.domain.ids import ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.recalls import KeptPrompt, PlanPartKind, RecalledPlace, RecallLayer, Verdict
from app.memory.citations import cited
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.feedback import Feedback
from app.storage.passage_texts import PassagePlace
from app.storage.passages import Passages
from app.storage.prompts import Prompts
from app.storage.store import Store

_OF_TURNS = (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY)


@dataclass(frozen=True, slots=True)
class Source:
    """Something that was retrieved for an answer. `rank` counts from 1 within its layer."""

    place: RecalledPlace
    rank: int
    cited: bool
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Contribution:
    """What was injected into an answer's newest prompt, in its order; `notice` as it was kept."""

    sources: tuple[Source, ...] = ()
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """All that is known of how an exchange was asked, in one of its runs.

    `runs` says when each was sent, newest first (UTC); empty where no prompt is kept, then `prompt`
    and `sent` are None. `compared` is how it differs from the newest prompt of the exchange before;
    None where that has none. `requests` counts those of the newest run, one more than tool rounds.
    """

    exchange: Exchange
    conversation: Conversation
    question: str
    runs: tuple[datetime, ...] = ()
    run: int = 0
    prompt: KeptPrompt | None = None
    sent: SentPrompt | None = None
    sources: tuple[Source, ...] = ()
    compared: tuple[PartDifference, ...] | None = None
    requests: int = 1


@dataclass(frozen=True, slots=True)
class StandIn:
    """A summary that was sent in place of all messages before `first_sent`."""

    text: str
    first_sent: MessageId


class Inspector:
    """Reads what answers were made from, and takes what the user thinks of it. Blocking."""

    def __init__(self, store: Store) -> None:
        self._prompts = Prompts(store)
        self._exchanges = Exchanges(store)
        self._conversations = Conversations(store)
        self._feedback = Feedback(store)
        self._passages = Passages(store)

    def contributions(self, ids: Iterable[ExchangeId]) -> Mapping[ExchangeId, Contribution]:
        """Return what was injected into the answers of those exchanges that have a prompt."""
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
        """Return what is known of an exchange's run, counted from its newest; raise NotFound."""
        exchange = self._exchanges.get(exchange_id)
        conversation = self._conversations.get(exchange.conversation_id)
        question = self._passages.questions([exchange_id]).get(exchange_id, "")
        history = self._prompts.history(exchange_id)
        if not history:
            return Inspection(exchange, conversation, question)
        run = min(run, len(history) - 1)
        prompt = history[run]
        before = None if exchange.parent_id is None else self._prompts.of(exchange.parent_id)
        messages = self._exchanges.messages(_message_ids([prompt, before]))
        sent = sent_prompt(prompt, messages)
        compared = None if before is None else difference(sent_prompt(before, messages), sent)
        places = self._prompts.placed(prompt.items)
        return Inspection(
            exchange, conversation, question, tuple(each.sent_at for each in history), run, prompt,
            sent, self._sources(exchange, places, self._feedback.verdicts()), compared,
            1 + sum(map(_calls_tools, self._exchanges.messages_of(exchange))) if run == 0 else 1,
        )  # fmt: skip

    def stand_in(self, exchange_id: ExchangeId) -> StandIn | None:
        """Return the summary that an exchange's newest prompt held; None where it held none."""
        prompt = self._prompts.of(exchange_id)
        parts = {} if prompt is None else {part.kind: part for part in prompt.parts}
        if (summary := parts.get(PlanPartKind.SUMMARY)) is None:
            return None
        sent = [
            each
            for kind in (PlanPartKind.WINDOW, PlanPartKind.QUESTION)
            if kind in parts
            for each in parts[kind].message_ids
        ]
        return StandIn(summary.text, sent[0]) if sent else None

    def judge(self, place: RecalledPlace, verdict: Verdict | None) -> None:
        """Keep what the user thinks of something recalled; None takes it back. Raises StorageError.

        Of a turn it holds for its summary too.
        """
        self._judge(place.item.passage_id, place.item.kind, place.exchange_id, verdict)

    def judge_passage(self, passage_id: PassageId, verdict: Verdict) -> PassagePlace:
        """Keep what the user thinks of any passage, and return where it stands; raise NotFound."""
        place = self._passages.places([passage_id]).get(passage_id)
        if place is None:
            raise NotFound(
                f"There is no passage {passage_id}", "`/rag try QUESTION` shows passages by number."
            )
        self._judge(passage_id, place.kind, place.exchange_id, verdict)
        return place

    def _judge(
        self,
        passage_id: PassageId,
        kind: PassageKind,
        exchange_id: ExchangeId | None,
        verdict: Verdict | None,
    ) -> None:
        passages: set[PassageId] = {passage_id}
        if kind in _OF_TURNS and exchange_id is not None:
            for each in _OF_TURNS:
                passages.update(self._passages.of_source(each, exchange_id))
        for passage in sorted(passages):
            self._feedback.give(passage, verdict)

    def _sources(
        self,
        exchange: Exchange,
        places: Sequence[RecalledPlace],
        verdicts: Mapping[PassageId, Verdict],
    ) -> tuple[Source, ...]:
        answer = "\n\n".join(
            message.text
            for message in self._exchanges.messages_of(exchange)
            if message.role is Role.ASSISTANT
        )
        numbers = {
            place.item.exchange_id: place.turn_number
            for place in places
            if place.item.exchange_id is not None and place.turn_number is not None
        }
        for each in self._exchanges.not_shown(numbers):
            del numbers[each]  # a number names the turn of the shown path
        named = cited(answer, [place.item for place in places], numbers)
        ranks: dict[RecallLayer, int] = {}
        sources = []
        for place in places:
            rank = ranks[place.item.layer] = ranks.get(place.item.layer, 0) + 1
            verdict = verdicts.get(place.item.passage_id)
            sources.append(Source(place, rank, place.item in named, verdict))
        return tuple(sources)


def request_words(inspection: Inspection) -> str:
    """Return what was sent beside the prompt, where tools were called; "" for nothing."""
    if inspection.requests == 1:
        return ""
    more = "the later ones also held the tool calls and results of this turn"
    return f"{inspection.requests:,} requests: {more}"


def _calls_tools(message: Message) -> bool:
    return message.role is Role.ASSISTANT and any(
        isinstance(block, ToolCall) for block in message.blocks
    )


def _message_ids(prompts: Iterable[KeptPrompt | None]) -> Iterable[MessageId]:
    return {
        each
        for prompt in prompts
        if prompt is not None
        for part in prompt.parts
        for each in part.message_ids
    }

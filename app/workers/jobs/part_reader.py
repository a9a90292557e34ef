"""Reading by a language model: one request for the new part of a conversation serves three workers.

The conversation summarizer, the exchange summarizer and the knowledge extractor share a
`PartReader`. Only one of them works, the first that runs; the request asks for the results of all
that run, and what comes back is stored in one commit, so that the others find nothing missing.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from app.domain.changes import Change, ConversationEdited, SpendAdded, TagsChanged
from app.domain.conversations import TitleOrigin
from app.domain.errors import Cancelled, ContextTooLong, KnownError
from app.domain.records.facts import BY_PATTERNS, Fact
from app.domain.records.summaries import SummarySource, SummaryText, summary_changes
from app.domain.text import one_line
from app.domain.translation import tr
from app.domain.workers import WorkerName
from app.language.extractive import MODEL, summarize_conversation, summarize_exchange
from app.language.statements.extraction import extract_statements
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.facts import FactFilter, Facts
from app.storage.tables.settings import Settings
from app.storage.work.extraction_work import ExchangeToRead
from app.storage.work.part_work import ConversationPart, PartTurn, PartWork, WantedResults
from app.storage.work.queue import FACTS, SUMMARIES, is_superseded
from app.storage.work.summary_work import (
    CONVERSATION_SUMMARIES,
    EXCHANGE_SUMMARIES,
    Summarizable,
    SummaryWork,
)
from app.workers.background_model import AnswerTooLong, ModelClient, UnusableAnswer
from app.workers.job_interface import Blocked, IsCancelled, OpenConversation, Saved
from app.workers.jobs.fact_writer import Compared, ExtractedFact, FactWriter, ReadExchange, is_kept
from app.workers.jobs.part_request import PartAnswer, PartRequest, part_request
from app.workers.progress import total_usage
from app.workers.retries import classify

READERS = (
    WorkerName.CONVERSATION_SUMMARIZER,
    WorkerName.EXCHANGE_SUMMARIZER,
    WorkerName.KNOWLEDGE_EXTRACTOR,
)
_MOST_KNOWN_FACTS = 20
_LEAST_CONTEXT_TOKENS = 2_000
_MOST_SUMMARY_CHARS = 1_000
_MOST_UNUSABLE = 3  # answers in a row: each of them was paid for

NearestFacts = Callable[[Sequence[str], int, str | None], Sequence[Fact]]


@dataclass(frozen=True, slots=True)
class PartRead:
    """A part that was read: what was asked, the answer, its model and its cost."""

    request: PartRequest
    answer: PartAnswer
    model: str
    spent: tuple[SpendAdded, ...]
    begun_at: datetime


class PartItem(NamedTuple):
    """What a reader finds for a worker, with the item's id and title.

    Not a part but a number: how many results of it another worker has stored with its own.
    """

    id: int
    title: str
    found: ConversationPart | int


class RunningReaders:
    """Which of the three workers run, and which of them asks the model. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[WorkerName] = set()
        self._leader: WorkerName | None = None

    def start(self, name: WorkerName) -> None:
        with self._lock:
            self._running.add(name)

    def end(self, name: WorkerName) -> None:
        """Note that a worker has ended; another one of the three then asks the model."""
        with self._lock:
            self._running.discard(name)
            if self._leader is name:
                self._leader = None

    def leads(self, name: WorkerName) -> bool:
        """Return whether this worker asks the model; it goes on to as long as it runs."""
        with self._lock:
            if self._leader is None:
                running = self._running | {name}
                self._leader = next(each for each in READERS if each in running)
            return self._leader is name

    def running(self) -> frozenset[WorkerName]:
        """Return the workers whose results are wanted."""
        with self._lock:
            return frozenset(self._running)


class PartReader:
    """Reads parts with the background model and stores all that comes of them. Blocking.

    `nearest` returns the current facts that are nearest to some texts, of those that a project may recall.

    Attributes:
        running: The workers that run.
        on_stored: Called with the workers whose results were stored, or that cannot be; returns at
            once.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        model: ModelClient,
        opened: OpenConversation,
        nearest: NearestFacts | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._model = model
        self._opened = opened
        self._nearest = nearest or _newest(store)
        self._work = PartWork(store)
        self._summaries = SummaryWork(store)
        self._writer = FactWriter(store)
        self._stored_for: Counter[WorkerName] = Counter()  # not reported by their workers yet
        self._block: Blocked | None = None
        self._unusable = 0  # answers in a row
        self.running = RunningReaders()
        self.on_stored: Callable[[Collection[WorkerName]], None] = lambda _: None

    @property
    def is_chosen(self) -> bool:
        """Whether a model is chosen now that has not been given up."""
        return bool(self._model.model) and self._unusable < _MOST_UNUSABLE

    @property
    def limitation(self) -> str:
        """That the model was given up, as text; "" while it is asked, or none is chosen."""
        if not self._model.model or self.is_chosen:
            return ""
        return tr(
            "The model's last 3 answers could not be used. Summaries and facts are made without it until "
            "you choose another model in Settings, Background work, or Run now tries it again."
        )

    def retry_model(self) -> None:
        """Ask a model again that was given up; for any thread."""
        self._unusable = 0

    def find(
        self, name: WorkerName, at: datetime, has_work: Callable[[], bool]
    ) -> Sequence[PartItem]:
        """Return the next part for a worker, or what another one has stored for it; () for none.

        Raises what keeps another worker from reading if this one `has_work`.
        """
        if count := self._stored_for.pop(name, 0):
            return (PartItem(0, "", count),)
        if not self.running.leads(name):
            if self._block is not None and has_work():
                raise self._block
            return ()
        part = self._work.next(name, self._wanted(name), self._opened.skipped(at), at)
        if part is None:
            return ()
        own = part.conversation
        is_of_conversation = name is WorkerName.CONVERSATION_SUMMARIZER
        item_id = own.id if is_of_conversation else part.turns[0].exchange.id
        return (PartItem(item_id, one_line(own.title, 60) or f"conversation {own.id}", part),)

    def read(self, name: WorkerName, part: ConversationPart, is_cancelled: IsCancelled) -> PartRead:
        """Return the answer for as many turns as fit; fewer where they prove too many.

        Raises as `ModelClient.ask`.
        """
        try:
            read = self._read(name, part, is_cancelled)
        except UnusableAnswer:
            self._count_unusable()
            raise
        except KnownError as error:
            if (block := classify(error, 0)) is not None:
                is_news, self._block = str(block) != str(self._block), block
                if is_news:
                    self.on_stored(READERS)
            raise
        self._block = None
        return read

    def _count_unusable(self) -> None:
        self._unusable += 1
        if not self.is_chosen:
            self.on_stored(READERS)  # all go on by themselves

    def _read(
        self, name: WorkerName, part: ConversationPart, is_cancelled: IsCancelled
    ) -> PartRead:
        context_tokens, begun_at = self._model.context_tokens(), now()
        known = self._known(part)
        while True:
            request = part_request(part, known, context_tokens, self._model.answer_tokens())
            try:
                answer = self._model.ask(request.prompt, name, is_cancelled, request.schema)
            except (ContextTooLong, AnswerTooLong) as error:
                turns = request.part.turns
                is_cut_off = isinstance(error, AnswerTooLong)  # a shorter prompt helps little
                if len(turns) == 1 and is_cut_off:
                    self._count_unusable()
                    made = _without_model(request.part, is_cancelled)
                    return PartRead(request, made, MODEL, (), begun_at)
                if len(turns) == 1 and context_tokens <= _LEAST_CONTEXT_TOKENS:
                    raise
                part = replace(part, turns=turns[: max(1, len(turns) // 2)])
                if not is_cut_off:
                    context_tokens = max(_LEAST_CONTEXT_TOKENS, context_tokens // 2)
                continue
            try:
                made = request.answer(answer.fields)
            except UnusableAnswer:
                self._model.write_off(answer)
                raise
            self._unusable = 0
            return PartRead(request, made, answer.model, (answer.spent,), begun_at)

    def save(self, name: WorkerName, results: Sequence[PartRead]) -> Saved:
        """Store the results of the workers that still run, in one commit; raises StorageError."""

        def commit() -> Saved:
            spent = [one for each in results for one in each.spent]
            changes: list[Change] = [*spent]
            counts: Counter[WorkerName] = Counter()
            running = self.running.running() | {name}
            for each in results:
                for kind, store in (
                    (WorkerName.CONVERSATION_SUMMARIZER, self._of_conversation),
                    (WorkerName.EXCHANGE_SUMMARIZER, self._of_exchanges),
                    (WorkerName.KNOWLEDGE_EXTRACTOR, self._of_facts),
                ):
                    # They may have been requested of another model since this one was asked.
                    what = FACTS if kind is WorkerName.KNOWLEDGE_EXTRACTOR else SUMMARIES
                    given = (what, each.begun_at, each.model)
                    if kind in running and not self._store.read(is_superseded, *given):
                        made, count = store(each)
                        changes += made
                        counts[kind] += count
            self._store.commit_now(*changes)
            saved = Saved(counts.pop(name, 0), 0, total_usage(spent))
            self._stored_for += counts
            return saved

        saved = self._store.on_writer(commit).result()
        self.on_stored([each for each in READERS if each in self._stored_for])
        return saved

    # -- what is asked

    def _wanted(self, name: WorkerName) -> WantedResults:
        running = self.running.running() | {name}

        def least(worker: WorkerName, key: str) -> int | None:
            return self._settings.number(key) if worker in running else None

        return WantedResults(
            least(WorkerName.EXCHANGE_SUMMARIZER, "min_messages_for_exchange_summary"),
            least(WorkerName.CONVERSATION_SUMMARIZER, "min_exchanges_for_conversation_summary"),
            WorkerName.KNOWLEDGE_EXTRACTOR in running,
        )

    def _known(self, part: ConversationPart) -> Sequence[Fact]:
        """Return the facts near to what the user says.

        Facts of turns that are read again are left out unless the user changed them: the answer
        takes their place.
        """
        again = {turn.exchange.id for turn in part.turns if turn.wants_facts}
        if not again:
            return ()
        texts = [turn.text.asked for turn in part.turns if turn.wants_facts and turn.text.asked]
        most = _MOST_KNOWN_FACTS + len(again)
        found = self._nearest(texts, most, part.conversation.project)
        kept = [each for each in found if each.exchange_id not in again or is_kept(each)]
        return kept[:_MOST_KNOWN_FACTS]

    # -- what is stored

    def _of_conversation(self, read: PartRead) -> tuple[list[Change], int]:
        part, answer = read.request.part, read.answer
        covered = [turn for turn in part.turns if turn.covered]
        own = part.conversation
        stored = self._summaries.summarizable(CONVERSATION_SUMMARIES, [own.id])
        if not covered or own.id not in stored.ids:
            return [], 0
        summary = SummaryText(answer.summary, read.model, covered[-1].covered)
        source = SummarySource(own.id, None, own.updated_at)
        changes = self._summary_changes(source, summary, stored)
        if answer.title and own.title_origin is TitleOrigin.FIRST_WORDS:
            origin = TitleOrigin.SUMMARISER
            changes.append(ConversationEdited(own.id, title=answer.title, title_origin=origin))
        if answer.tags and part.wants_tags and own.id not in stored.tagged:
            changes.append(TagsChanged(own.id, answer.tags, automatic=True))
        return changes, 1

    def _of_exchanges(self, read: PartRead) -> tuple[list[Change], int]:
        turns = {
            turn.exchange.id: (place, turn)
            for place, turn in enumerate(read.request.part.turns)
            if turn.wants_line
        }
        stored = self._summaries.summarizable(EXCHANGE_SUMMARIES, turns)
        changes: list[Change] = []
        for own, (place, turn) in turns.items():
            if own in stored.ids:
                summary = _line(turn, read.answer.lines.get(place, ""), read.model)
                source = SummarySource(turn.exchange.conversation_id, own, turn.said_at)
                changes += self._summary_changes(source, summary, stored)
        return changes, len(stored.ids)

    def _summary_changes(
        self, source: SummarySource, summary: SummaryText, stored: Summarizable
    ) -> list[Change]:
        replaced = stored.passages.get(source.id, ())
        return [*summary_changes(source, summary, now(), self._store.ids.passage(), replaced)]

    def _of_facts(self, read: PartRead) -> tuple[list[Change], int]:
        return self._writer.changes(
            [
                ReadExchange(
                    turn.exchange,
                    tuple(map(Compared, read.answer.facts.get(place, ()))),
                    BY_PATTERNS if read.model == MODEL else read.model,
                )
                for place, turn in enumerate(read.request.part.turns)
                if turn.wants_facts
            ]
        )


def _without_model(part: ConversationPart, is_cancelled: IsCancelled) -> PartAnswer:
    """Return the results for turns of which every answer was cut off, made without the model."""
    said = summarize_conversation([turn.text for turn in part.turns])
    summary = one_line(f"{part.summary} {said}", _MOST_SUMMARY_CHARS)
    found = read_by_patterns([turn.exchange for turn in part.turns], is_cancelled)
    return PartAnswer(summary, "", (), {}, dict(enumerate(found)))


def read_by_patterns(
    exchanges: Sequence[ExchangeToRead], is_cancelled: IsCancelled
) -> Sequence[tuple[ExtractedFact, ...]]:
    """Return the facts that the user's messages state, exchange by exchange. Raises `Cancelled`."""
    found = []
    for exchange in exchanges:
        if is_cancelled():
            raise Cancelled("The worker was stopped")
        facts = []
        for message in exchange.messages:
            if message.by_user:
                # What was said before its own opening, the last one like it.
                openings = exchange.openings
                own = [at for at, each in enumerate(openings) if message.text.startswith(each)]
                before = openings[: own[-1]] if own else openings
                facts += [
                    ExtractedFact(
                        one.text, one.category, one.subject, one.value, message.id, message.said_at
                    )
                    for one in extract_statements(message.text, before)
                ]
        found.append(tuple(facts))
    return found


def _line(turn: PartTurn, line: str, model: str) -> SummaryText:
    """Return the summary of a turn; an extract where the model left it out."""
    text, maker = (line, model) if line else (summarize_exchange(turn.text), MODEL)
    return SummaryText(text, maker, turn.exchange.stamp)


def _newest(store: Store) -> NearestFacts:
    def newest(_texts: Sequence[str], limit: int, _project: str | None) -> Sequence[Fact]:
        return [known.fact for known in Facts(store).listed(FactFilter(limit=limit))]

    return newest

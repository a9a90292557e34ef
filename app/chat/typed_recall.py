"""Recall while the user types: the result for a text likely to be sent is kept for sending it."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace

from app.chat.context_fetcher import FetchedContext, Retrieve
from app.chat.planner import NewConversation, unsaved_planner
from app.chat.request_builder import RequestBuilder
from app.domain.change_set import ChangeSet
from app.domain.conversations import Draft, Text
from app.domain.ids import ConversationId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import (
    RecalledItem,
    RecalledItemDetails,
    RecallLayer,
    RecallSettings,
    RetrievalResult,
    SegmentContext,
)
from app.domain.text import clean
from app.language.analyzer import surface_words_of
from app.memory.context.items import NOT_THIS_TIME
from app.memory.context.text import best_of_summary, best_sentence
from app.memory.recall.mentions import Mention, Mentions
from app.storage.engine.store import Store
from app.storage.tables.prompts import Prompts
from app.storage.tables.settings import Settings

MIN_WORDS = 3
_KEPT = 8
_KEPT_S = 120.0
_POLL_S = 0.02  # whether a caller that waits is cancelled

_Key = tuple[str, ConversationId | None, SegmentContext, RecallSettings]


@dataclass(eq=False, slots=True)
class _TypedSearch:
    """A running search, cancelled or awaited by others; its result is None if useless to them."""

    result: "Future[RetrievalResult | None]" = field(default_factory=Future)
    changed: set[ConversationId] = field(default_factory=set)
    is_awaited: bool = False
    is_cancelled: bool = False


class RetrievalCache:
    """Retrieves; keeps complete results by meaning for equal questions. Thread-safe; blocking.

    A result is dropped when a conversation that it quotes changes, or anything that is recalled.
    Who asks for what is being searched for waits for that search.
    """

    def __init__(self, store: Store, retrieve: Retrieve) -> None:
        self._retrieve = retrieve
        self._kept: OrderedDict[_Key, tuple[float, RetrievalResult]] = OrderedDict()
        self._running: dict[_Key, _TypedSearch] = {}
        self._lock = threading.Lock()
        store.subscribe(self._on_changed)

    def __call__(
        self, question: str, conversation_id: ConversationId, segment: SegmentContext,
        settings: RecallSettings, is_cancelled: Callable[[], bool], by_meaning: bool,
    ) -> RetrievalResult:  # fmt: skip
        """Return what `RecallService.retrieve` finds, or a kept result of any mode."""
        asked = question, conversation_id, segment, settings
        key = _key(*asked)
        with self._lock:
            kept, running, own = self._kept.get(key), self._running.get(key), _TypedSearch()
            if kept is not None and time.monotonic() - kept[0] < _KEPT_S:
                return kept[1]
            if by_meaning and running is not None and not running.is_cancelled:
                running.is_awaited = True
            else:
                running = None
                if by_meaning:
                    self._running[key] = own
        if running is None:
            return self._search(
                key, own, is_cancelled, lambda is_over: self._retrieve(*asked, is_over, by_meaning)
            )
        found = _result_of(running, is_cancelled)
        return self(*asked, is_cancelled, by_meaning) if found is None else found

    def _search(
        self,
        key: _Key,
        own: _TypedSearch,
        is_cancelled: Callable[[], bool],
        retrieve: Callable[[Callable[[], bool]], RetrievalResult],
    ) -> RetrievalResult:
        """Search, also for waiting callers; keep the result if the key is still this search's."""

        def is_over() -> bool:
            with self._lock:
                own.is_cancelled = own.is_cancelled or (is_cancelled() and not own.is_awaited)
                return own.is_cancelled

        usable: RetrievalResult | None = None
        try:
            found = retrieve(is_over)
            is_whole = not is_over()
            with self._lock:
                if is_whole and own.changed.isdisjoint(found.quoted_conversations):
                    usable = found
                    if not found.notice and self._running.get(key) is own:
                        self._kept[key] = time.monotonic(), found
                        if len(self._kept) > _KEPT:
                            self._kept.popitem(last=False)
            return found
        finally:
            with self._lock:
                if self._running.get(key) is own:
                    del self._running[key]
            own.result.set_result(usable)

    def _on_changed(self, changed: ChangeSet) -> None:
        with self._lock:
            is_stale = changed.passages or changed.memory or changed.settings
            if is_stale or changed.vectors or changed.projects:
                self._kept.clear()
                self._running.clear()  # who waits gets what was found before the change
            elif changed.conversations:
                for search in self._running.values():
                    search.changed |= changed.conversations
                for key, (_, found) in [*self._kept.items()]:
                    if not changed.conversations.isdisjoint(found.quoted_conversations):
                        del self._kept[key]


def _result_of(search: _TypedSearch, is_cancelled: Callable[[], bool]) -> RetrievalResult | None:
    """Return the result of a running search, an empty one when cancelled, None if useless."""
    while not is_cancelled():
        with suppress(TimeoutError):
            return search.result.result(_POLL_S)
    return RetrievalResult()


def _key(
    question: str,
    conversation_id: ConversationId,
    segment: SegmentContext,
    settings: RecallSettings,
) -> _Key:
    """Return what a result depends on; a new conversation's id changes until it is stored."""
    if not settings.auto_rag_enabled:  # else it depends on the messages that are sent anyway
        segment = replace(segment, held=frozenset())
    return question, conversation_id if segment.exchange_ids else None, segment, settings


@dataclass(frozen=True, slots=True)
class TypedItem:
    """An item that a message would recall, with the sentence that would be quoted."""

    place: RecalledItemDetails
    sentence: str

    @property
    def is_left_out(self) -> bool:
        """Whether the user leaves it out of this message."""
        return not self.place.item.injected


@dataclass(frozen=True, slots=True)
class TypedContribution:
    """What a text would recall: `items` in prompt order, None where nothing is searched."""

    items: Sequence[TypedItem] | None = None
    mentions: Sequence[Mention] = ()


class TypedRecall:
    """Searches for a text that is being typed. Blocking; never raises what a message would not."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        builder: RequestBuilder,
        cache: RetrievalCache,
        mentions: Mentions,
    ) -> None:
        self._mentions = mentions
        self._builder = builder
        self._cache = cache
        self._prompts = Prompts(store)
        self._planner = unsaved_planner(store, settings)

    def prepare(
        self,
        draft: Draft,
        conversation_id: ConversationId | None,
        is_cancelled: Callable[[], bool] = lambda: False,
        project: str | None = None,
    ) -> TypedContribution:
        """Search for a text as sending it in a conversation, or (None) in a new one, would.

        Nothing is searched for fewer than three words without a mention, and where memory is off.
        Raises NotFound, StorageError.
        """
        text = draft.text
        mentions = self._mentions.in_text(text)
        is_short = len(surface_words_of(clean(text))) < MIN_WORDS and not mentions
        if is_short or text.startswith("/"):
            return TypedContribution()
        choice = replace(draft.choice, mentioned=tuple(each.conversation_id for each in mentions))
        plan = self._planner.send(conversation_id, (Text(text),), NewConversation(project=project))
        prompt = self._builder.draft(replace(plan, choice=choice))
        query = prompt.query(FetchedContext())
        if query is None:
            return TypedContribution(None, mentions)
        found = self._cache(
            query.text, plan.conversation.id, query.segment, query.settings, is_cancelled, True
        )
        items = [
            each
            for each in prompt.context(FetchedContext(found=found)).items
            if each.injected or each.dropped_by == NOT_THIS_TIME
        ]
        sentences = _sentences_of(found)
        places = self._prompts.placed(_of_turns(items))
        typed = [TypedItem(each, sentences.get(each.item.passage_id, "")) for each in places]
        return TypedContribution(typed, mentions)


def _of_turns(items: Sequence[RecalledItem]) -> Sequence[RecalledItem]:
    """Return items once each, without conversations that only head the turns quoted of them."""
    headed = {each.conversation_id for each in items if each.layer is RecallLayer.EXCHANGE}
    once: dict[PassageId, RecalledItem] = {}
    for each in items:
        is_heading = each.layer is RecallLayer.CONVERSATION and (
            each.kind is PassageKind.TURN and each.conversation_id in headed
        )
        if not is_heading:
            once.setdefault(each.passage_id, each)
    return [*once.values()]


def _sentences_of(found: RetrievalResult) -> Mapping[PassageId, str]:
    """Return the best sentence of everything found, by passage."""
    talks = (*found.mentioned, *found.conversations)
    sentences = {each.match.passage_id: best_of_summary(each) for each in talks}
    sentences |= {each.match.passage_id: best_sentence(each)[1] for each in found.turns}
    sentences |= {fact.match.passage_id: fact.text for fact in found.facts}
    return sentences | {message.match.passage_id: message.text for message in found.earlier}

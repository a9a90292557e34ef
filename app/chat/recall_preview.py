"""Recall previews: what a question would recall, fetched once and planned for any settings.

The prompt is drafted like that of a message, with settings that are tried. Nothing is sent or
stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.chat.context_fetcher import ContextFetcher, FetchedContext, RecallQuery
from app.chat.planner import NewConversation, unsaved_planner
from app.chat.request_builder import PromptDraft, RequestBuilder
from app.domain.chat import ModelRef
from app.domain.conversations import Text
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    RecalledItem,
    RecalledItemDetails,
    RecallLayer,
    RecallSettings,
    RetrievalResult,
    is_recall_on,
)
from app.domain.settings_schema import SettingValue
from app.domain.text import clean
from app.domain.translation import tr_noop
from app.memory.context.items import prompt_position
from app.memory.context.narrowing import narrowed
from app.providers.vendors.recall import RECALL
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.prompts import Prompts
from app.storage.tables.settings import OverriddenSettings, Settings, SettingValues

PREVIEW_LIMIT_S = 10.0  # no reply waits for a preview
_RECENT_QUESTIONS = 20
_HALF_LIFE = "rag_recency_half_life_days"
_BUDGETS = (
    ("rag_max_tokens", (PlanPartKind.FACTS, PlanPartKind.RELATED)),
    ("rag_document_max_tokens", (PlanPartKind.DOCUMENTS,)),
    ("auto_rag_max_tokens", (PlanPartKind.EARLIER,)),
    ("profile_max_tokens", (PlanPartKind.PROFILE,)),
    ("core_memory_max_tokens", (PlanPartKind.CORE_MEMORY,)),
    ("compaction_max_tokens", (PlanPartKind.COMPACTION,)),
)
_LIMITS = {
    RecallLayer.MENTION: "rag_max_tokens",
    RecallLayer.FACT: "rag_fact_limit",
    RecallLayer.CONVERSATION: "rag_conversation_limit",
    RecallLayer.EXCHANGE: "rag_exchange_limit_per_conversation",
    RecallLayer.HISTORY: "rag_history_limit",
    RecallLayer.HINT: "rag_hint_similarity",
    RecallLayer.DOCUMENT: "rag_document_max_tokens",
    RecallLayer.EARLIER: "auto_rag_top_k",
}
_NO_PROMPT = tr_noop(
    "Recall, the built-in model, receives no prompt: this is what another model would get."
)
_PRIVATE = tr_noop("Nothing is recalled in this conversation.")
_OFF = tr_noop("Recall is off: rag_enabled is off, and every message fits into the window.")

_ItemKey = tuple[RecallLayer, PassageId, MessageId | None]
_SourceKey = tuple[PassageId, ExchangeId | None, MessageId | None]


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How much of the budget set by `key` is used, in tokens."""

    key: str
    tokens: int
    most_tokens: int


@dataclass(frozen=True, slots=True)
class RecallCandidates:
    """A question with everything that could be recalled for it, for `RecallPreviews`.

    Attributes:
        half_life_days: The weight of age during the search.
        places: The details of each item found.
    """

    draft: PromptDraft
    fetched: FetchedContext
    half_life_days: float
    places: Mapping[_SourceKey, RecalledItemDetails]


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be recalled, and its cost in tokens.

    Attributes:
        places: What was found, in the order of the prompt.
        spent: The use of each budget.
        window_count: The number of messages sent whole before the question.
        tokens: The whole prompt, of at most `most_tokens`.
        notice: What else the user should know, one a line; "" for nothing.
        changed: The items that the settings compared with treat differently.
    """

    places: tuple[RecalledItemDetails, ...]
    spent: tuple[BudgetUse, ...]
    window_count: int
    tokens: int
    most_tokens: int
    took_ms: float
    notice: str = ""
    changed: frozenset[_ItemKey] = frozenset()

    @property
    def injected(self) -> tuple[RecalledItemDetails, ...]:
        return tuple(each for each in self.places if each.item.injected)


class RecallPreviews:
    """Previews recall. Thread-safe; everything blocks, `preview` for some milliseconds."""

    def __init__(
        self, store: Store, settings: Settings, builder: RequestBuilder, fetcher: ContextFetcher
    ) -> None:
        self._settings = settings
        self._builder = builder
        self._fetcher = fetcher
        self._prompts = Prompts(store)
        self._passages = Passages(store)
        self._planner = unsaved_planner(store, settings)

    def fetch(
        self,
        question: str,
        conversation_id: ConversationId | None = None,
        tried: Mapping[str, SettingValue] | None = None,
    ) -> RecallCandidates:
        """Fetch what a question could recall in a conversation, or (None) a new one.

        Raises InvalidInput for an empty question, NotFound, StorageError.
        """
        text = clean(question)
        if not text.strip():
            raise InvalidInput("The question is empty", "Type a question.")
        settings = OverriddenSettings(self._settings, tried or {})
        blocks = (Text(text),)
        plan = self._planner.send(conversation_id, blocks, NewConversation())
        draft = replace(self._builder.draft(plan), settings=settings)

        def widest_query(_: FetchedContext) -> RecallQuery | None:
            if not is_recall_on(plan.conversation):
                return None
            widest = RecallSettings.read(settings.get).widest()
            return RecallQuery(plan.messages[-1].text, widest, draft.segment_context())

        fetched = self._fetcher.fetch(draft.plan, widest_query)
        items = draft.context(fetched).items
        places = zip(map(_source_of, items), self._prompts.placed(items), strict=True)
        return RecallCandidates(draft, fetched, settings.real(_HALF_LIFE), dict(places))

    def is_current(self, candidates: RecallCandidates, tried: Mapping[str, SettingValue]) -> bool:
        """Return whether candidates are valid for some settings; if not, fetch them again."""
        half_life = OverriddenSettings(self._settings, tried).real(_HALF_LIFE)
        return half_life == candidates.half_life_days

    def preview(
        self,
        candidates: RecallCandidates,
        tried: Mapping[str, SettingValue] | None = None,
        before: Preview | None = None,
    ) -> Preview:
        """Return what would be sent with the settings `tried`, compared with `before`."""
        settings = OverriddenSettings(self._settings, tried or {})
        draft, fetched = replace(candidates.draft, settings=settings), candidates.fetched
        alone = replace(fetched, found=RetrievalResult())
        query = draft.query(alone)
        found = alone.found
        if query is not None:
            found = narrowed(fetched.found, query.settings, query.segment)
        context = draft.context(replace(alone, found=found))
        places = [replace(candidates.places[_source_of(item)], item=item) for item in context.items]
        if before is not None:
            places = _with_dropped(places, before, settings)
        return Preview(
            tuple(places),
            tuple(_budget_use(context.parts, settings)),
            len(draft.history.messages),
            context.tokens,
            draft.ceiling.tokens,
            fetched.found.took_ms,
            _notice(candidates, has_query=query is not None),
            _changed(places, before),
        )

    def recent(self) -> Sequence[str]:
        """Return recent questions, newest first, without duplicates."""
        return self._passages.recent_questions(_RECENT_QUESTIONS)


def is_changed(preview: Preview, place: RecalledItemDetails) -> bool:
    """Return whether the settings compared with treat an item differently."""
    return _key_of(place.item) in preview.changed


def _key_of(item: RecalledItem) -> _ItemKey:
    return item.layer, item.passage_id, item.message_id


def _source_of(item: RecalledItem) -> _SourceKey:
    """Return the identity of an item without its layer, which depends on the settings."""
    return item.passage_id, item.exchange_id, item.message_id


def _notice(candidates: RecallCandidates, *, has_query: bool) -> str:
    plan = candidates.draft.plan
    notices = [candidates.fetched.notice]
    if not is_recall_on(plan.conversation):
        notices.append(_PRIVATE)
    elif not has_query:
        notices.append(_OFF)
    if ModelRef.parse(plan.exchange.model or "").provider == RECALL:
        notices.append(_NO_PROMPT)
    return "\n".join(filter(None, notices))


def _budget_use(parts: Sequence[PlanPart], settings: SettingValues) -> list[BudgetUse]:
    return [
        BudgetUse(
            key, sum(part.tokens for part in parts if part.kind in kinds), settings.number(key)
        )
        for key, kinds in _BUDGETS
    ]


def _changed(places: Sequence[RecalledItemDetails], before: Preview | None) -> frozenset[_ItemKey]:
    if before is None:
        return frozenset()
    injected = {_key_of(each.item) for each in before.injected}
    return frozenset(
        key for each in places if each.item.injected != ((key := _key_of(each.item)) in injected)
    )


def _with_dropped(
    places: Sequence[RecalledItemDetails], before: Preview, settings: SettingValues
) -> list[RecalledItemDetails]:
    """Return places with the items that were injected before and are not searched for any more."""
    present = {_source_of(each.item) for each in places}
    dropped = [
        replace(each, item=replace(each.item, injected=False, dropped_by=_reason(each, settings)))
        for each in before.injected
        if _source_of(each.item) not in present
    ]
    return sorted([*places, *dropped], key=lambda place: prompt_position(place.item.layer))


def _reason(place: RecalledItemDetails, settings: SettingValues) -> str:
    layer = place.item.layer
    switch = "auto_rag_enabled" if layer is RecallLayer.EARLIER else "rag_enabled"
    if not settings.flag(switch):
        return f"{switch} is off"
    return f"{_LIMITS[layer]} is {settings.number(_LIMITS[layer])}"

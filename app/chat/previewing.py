"""What would be recalled for a question, before it is asked: looked up once, planned at will.

The plan is the one a message is sent by (`preparing`), with settings that are only tried. Nothing is
stored, sent or saved.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.chat.looking_up import Looked, LookUps, Question
from app.chat.plans import Allocator, Plan, new_conversation, plan_send
from app.chat.preparing import Preparing, limits_of
from app.chat.slates import CleanSlates, in_segment
from app.chat.tools.cutting import with_cut_results
from app.chat.tools.toolbox import Toolbox
from app.domain.chat import ModelRef, ToolSchema
from app.domain.conversations import Conversation, Exchange, Message, Text
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.recalls import (
    PlanPart,
    PlanPartKind,
    RecalledItem,
    RecalledPlace,
    RecallLayer,
    is_recall_on,
)
from app.domain.retrieved import Retrieved
from app.domain.settings_schema import SettingValue
from app.domain.text import clean
from app.memory.context_plan import Limits
from app.memory.recall_narrowing import narrowed, widest
from app.providers.recall import RECALL
from app.storage.asked import LastAsked
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges, path_to, shown_path
from app.storage.prompts import Prompts
from app.storage.settings import Settings, SettingValues, TriedSettings
from app.storage.store import Store
from app.storage.times import now

PREVIEW_LIMIT_S = 10.0  # nobody waits to be answered
_NOWHERE = -1  # the id of what is never stored
_HALF_LIFE = "rag_recency_half_life_days"
_BUDGETS = (
    ("rag_max_tokens", (PlanPartKind.FACTS, PlanPartKind.RELATED)),
    ("auto_rag_max_tokens", (PlanPartKind.EARLIER,)),
    ("core_memory_max_tokens", (PlanPartKind.CORE_MEMORY,)),
    ("summary_max_tokens", (PlanPartKind.SUMMARY,)),
)
_LIMITS = {
    RecallLayer.FACT: "rag_fact_limit",
    RecallLayer.CONVERSATION: "rag_conversation_limit",
    RecallLayer.EXCHANGE: "rag_exchange_limit_per_conversation",
    RecallLayer.HISTORY: "rag_history_limit",
    RecallLayer.EARLIER: "auto_rag_top_k",
}
_NO_PROMPT = "Recall, the built-in model, is sent no prompt: this is what another model would get."
_PRIVATE = "Nothing is recalled in this conversation."
_NOTHING_ASKED = "Recall is off: rag_enabled is off, and no message is out of the window."

_GROUPS = (
    (RecallLayer.FACT,),
    (RecallLayer.CONVERSATION, RecallLayer.EXCHANGE),
    (RecallLayer.HISTORY,),
    (RecallLayer.EARLIER,),
)

_ItemKey = tuple[RecallLayer, PassageId, MessageId | None]


@dataclass(frozen=True, slots=True)
class Spent:
    """What of the budget that `key` sets is used, in tokens."""

    key: str
    tokens: int
    most_tokens: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with all that could be recalled for it; only `RecallPreviews` looks inside.

    `places` says where each thing found stands, `half_life_days` how age was weighed.
    """

    plan: Plan
    tools: tuple[ToolSchema, ...]
    limits: Limits
    looked: Looked
    half_life_days: float
    places: Mapping[_ItemKey, RecalledPlace] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be recalled and what it costs.

    `places` are what was found, in the order of the prompt, `changed` those of them that other
    settings left out or took in. `window_count` messages are sent whole before the question, all of
    it takes `tokens` of `most_tokens`. `notice` is "" when nothing is to be said.
    """

    places: tuple[RecalledPlace, ...]
    spent: tuple[Spent, ...]
    window_count: int
    tokens: int
    most_tokens: int
    took_ms: float
    notice: str = ""
    changed: frozenset[_ItemKey] = frozenset()

    @property
    def injected(self) -> tuple[RecalledPlace, ...]:
        """What goes into the prompt."""
        return tuple(each for each in self.places if each.item.injected)


class RecallPreviews:
    """Asks recall for show. Thread-safe; all of it blocks, `preview` for some milliseconds."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        context_tokens: Callable[[ModelRef], int | None],
        toolbox: Toolbox,
        look_ups: LookUps,
    ) -> None:
        self._settings = settings
        self._context_tokens = context_tokens
        self._toolbox = toolbox
        self._look_ups = look_ups
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._prompts = Prompts(store)
        self._asked = LastAsked(store)
        self._slates = CleanSlates(settings)

    def ask(
        self,
        question: str,
        conversation_id: ConversationId | None = None,
        tried: Mapping[str, SettingValue] | None = None,
    ) -> Asked:
        """Look up what there is for a question, as the next message of a conversation or a new one.

        Raises InvalidInput for no words, NotFound, StorageError.
        """
        words = clean(question)
        if not words.strip():
            raise InvalidInput("There is nothing to recall for", "Type a question.")
        settings = TriedSettings(self._settings, tried or {})
        plan = self._planned(words, conversation_id)
        tools = self._toolbox.offered_in(plan.conversation)
        limits = limits_of(self._context_tokens(ModelRef.parse(plan.exchange.model or "")))
        half_life = settings.real(_HALF_LIFE)

        def everything(_looked: Looked) -> Question | None:
            if not is_recall_on(plan.conversation):
                return None
            return Question(plan.path[-1].text, widest(half_life), frozenset())

        looked = self._look_ups(plan, everything)
        asked = Asked(plan, tools, limits, looked, half_life)
        found = Preparing(settings, plan, tools, limits).planned(looked).items
        places = zip(map(_key_of, found), self._prompts.placed(found), strict=True)
        return replace(asked, places=dict(places))

    def suits(self, asked: Asked, tried: Mapping[str, SettingValue]) -> bool:
        """Return whether what was found is what there is to find; else it is to be asked again."""
        return TriedSettings(self._settings, tried).real(_HALF_LIFE) == asked.half_life_days

    def preview(
        self,
        asked: Asked,
        tried: Mapping[str, SettingValue] | None = None,
        before: Preview | None = None,
    ) -> Preview:
        """Return what would be sent with some settings tried; `before` is what it is compared with."""
        settings = TriedSettings(self._settings, tried or {})
        preparing = Preparing(settings, asked.plan, asked.tools, asked.limits)
        bare = replace(asked.looked, found=Retrieved())
        wanted = preparing.question(bare)
        found = bare.found
        if wanted is not None:
            found = narrowed(asked.looked.found, wanted.options, wanted.held)
        made = preparing.planned(replace(bare, found=found))
        places = [replace(asked.places[_key_of(item)], item=item) for item in made.items]
        if before is not None:
            places = _with_vanished(places, before, settings)
        return Preview(
            tuple(places),
            tuple(_spent(made.parts, settings)),
            made.asked_at,
            made.tokens,
            asked.limits.usable_tokens,
            asked.looked.found.took_ms,
            self._notice(asked, is_asked=wanted is not None),
            _changed(places, before),
        )

    def recent(self, limit: int = 20) -> Sequence[str]:
        """Return the questions asked last, newest first, each once."""
        return self._asked.questions(limit)

    def close(self) -> None:
        """Wait for look-ups that are under way, at most a second each."""
        self._look_ups.close()

    def _planned(self, words: str, conversation_id: ConversationId | None) -> Plan:
        """Return what the next message would be planned as."""
        nothing = Allocator(lambda: MessageId(_NOWHERE), lambda: ExchangeId(_NOWHERE), now)
        shown: tuple[Exchange, ...] = ()
        if conversation_id is None:
            conversation = new_conversation(_NOWHERE, now())
        else:
            conversation = self._conversations.get(conversation_id)
            shown = shown_path(conversation, self._exchanges.of(conversation_id))
        plan = plan_send(
            conversation, shown, self._messages(shown), (Text(words),), self._model(conversation),
            nothing, is_new=conversation_id is None,
            clean_slate=bool(shown) and self._slates.is_after(shown[-1].id),
        )  # fmt: skip
        sent = in_segment(plan.path, plan.exchange, lambda: path_to(plan.exchange, shown))
        most_chars = self._settings.number("tool_output_max_chars")
        return replace(plan, path=with_cut_results(sent, most_chars))

    def _messages(self, path: Sequence[Exchange]) -> tuple[Message, ...]:
        ids = [each for exchange in path for each in exchange.message_ids]
        found = self._exchanges.messages(ids)
        return tuple(found[each] for each in ids)

    def _model(self, conversation: Conversation) -> str:
        return conversation.model or self._settings.text("default_model")

    def _notice(self, asked: Asked, *, is_asked: bool) -> str:
        notices = [asked.looked.notice]
        if not is_recall_on(asked.plan.conversation):
            notices.append(_PRIVATE)
        elif not is_asked:
            notices.append(_NOTHING_ASKED)
        if ModelRef.parse(asked.plan.exchange.model or "").provider == RECALL:
            notices.append(_NO_PROMPT)
        return " ".join(f"{each.rstrip('.')}." for each in notices if each)


def _key_of(item: RecalledItem) -> _ItemKey:
    return item.layer, item.passage_id, item.message_id


def is_changed(preview: Preview, place: RecalledPlace) -> bool:
    """Return whether the settings compared with did otherwise with something."""
    return _key_of(place.item) in preview.changed


def _spent(parts: Sequence[PlanPart], settings: SettingValues) -> list[Spent]:
    return [
        Spent(key, sum(part.tokens for part in parts if part.kind in kinds), settings.number(key))
        for key, kinds in _BUDGETS
    ]


def _changed(places: Sequence[RecalledPlace], before: Preview | None) -> frozenset[_ItemKey]:
    if before is None:
        return frozenset()
    was_in = {_key_of(each.item) for each in before.injected}
    return frozenset(
        key for each in places if each.item.injected != ((key := _key_of(each.item)) in was_in)
    )


def _with_vanished(
    places: Sequence[RecalledPlace], before: Preview, settings: SettingValues
) -> list[RecalledPlace]:
    """Return places with those that went in before and are not even looked for now, left out."""
    there = {_key_of(each.item) for each in places}
    gone = [each for each in before.injected if _key_of(each.item) not in there]
    left_out = [
        replace(each, item=replace(each.item, injected=False, dropped_by=_why_gone(each, settings)))
        for each in gone
    ]
    return sorted([*places, *left_out], key=_group_of)


def _group_of(place: RecalledPlace) -> int:
    return next(n for n, layers in enumerate(_GROUPS) if place.item.layer in layers)


def _why_gone(place: RecalledPlace, settings: SettingValues) -> str:
    layer = place.item.layer
    switch = "auto_rag_enabled" if layer is RecallLayer.EARLIER else "rag_enabled"
    if not settings.flag(switch):
        return f"{switch} is off"
    return f"{_LIMITS[layer]} is {settings.number(_LIMITS[layer])}"

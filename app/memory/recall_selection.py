"""Recall selection: which retrieved items go into a prompt, and why the others do not. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.recall import (
    MatchScore,
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    RecallSettings,
    RetrievalResult,
    RetrievedConversation,
    RetrievedExchange,
    RetrievedFact,
    RetrievedMessage,
    Verdict,
)
from app.memory import recalled_text
from app.memory.recalled_text import cut_at_sentence

BYTES_PER_TOKEN = 4
_MIN_EXCERPT_BYTES = 80  # of an earlier message; less than a sentence says nothing
_LAYERS = {
    PlanPartKind.FACTS: (RecallLayer.FACT,),
    PlanPartKind.RELATED: (RecallLayer.CONVERSATION, RecallLayer.EXCHANGE, RecallLayer.HISTORY),
    PlanPartKind.EARLIER: (RecallLayer.EARLIER,),
}
_QUOTED = "it is already quoted"
_IN_PROMPT = "it is already in the prompt"
_SAME_CONVERSATION = "it is in this conversation"
_LEFT_OUT = "its conversation was left out"
_NEVER = "you asked never to use it again"


@dataclass(frozen=True, slots=True)
class SelectionContext:
    """The conversation of the question; what the prompt contains anyway is not quoted again.

    `turn_numbers` are those of facts' exchanges, as far as known; `can_fetch` when the model has the tool
    that fetches more.
    """

    conversation_id: ConversationId
    question: str
    held: frozenset[MessageId]
    turn_numbers: Mapping[ExchangeId, int] = field(default_factory=dict)
    can_fetch: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The recalled parts of a prompt, and everything that was found as items, selected or not."""

    parts: tuple[PlanPart, ...]
    items: tuple[RecalledItem, ...]

    def tokens(self, *kinds: PlanPartKind) -> int:
        """Return the tokens of the parts of some kinds (none: all)."""
        return sum(part.tokens for part in self.parts if part.kind in (kinds or PlanPartKind))


def select_recalled(
    found: RetrievalResult,
    settings: RecallSettings,
    context: SelectionContext,
    related_tokens: int,
    earlier_tokens: int,
) -> Selection:
    """Return what fits of facts, conversations and turns, and of earlier messages, in these budgets."""
    introduction = recalled_text.INTRO + (recalled_text.MORE if context.can_fetch else "")
    budget = TokenBudget(related_tokens, introduction)
    selector = _Selector(settings, context, budget)
    selector.select_facts(found.facts)
    selector.select_conversations(found.conversations)
    selector.select_turns(
        RecallLayer.HISTORY, found.history, "rag_history_limit", titles=found.titles
    )
    parts = budget.parts(selector.items)
    selector.budget = TokenBudget(earlier_tokens, "" if parts else introduction)
    selector.select_earlier(found.earlier)
    return Selection((*parts, *selector.budget.parts(selector.items)), tuple(selector.items))


def tokens_of(size_bytes: int) -> int:
    """Return the estimated tokens of so many bytes, rounded up."""
    return -(-size_bytes // BYTES_PER_TOKEN)


class TokenBudget:
    """Pieces within a token budget; introduction and headings are added with the first piece that needs them."""

    def __init__(self, budget_tokens: int, introduction: str = "") -> None:
        self._left_bytes = budget_tokens * BYTES_PER_TOKEN
        self._introduction = introduction
        self._headings: set[str] = set()
        self._pieces: dict[PlanPartKind, list[PromptPiece]] = {}

    def left_bytes(self, heading: str) -> int:
        """Return the room for text under a heading."""
        return self._left_bytes - sum(map(_size, self._before(heading)))

    def put(self, kind: PlanPartKind, heading: str, piece: PromptPiece) -> bool:
        """Add a piece if there is room; return whether there was."""
        before = self._before(heading)
        cost = sum(map(_size, before)) + _size(piece.text)
        if before and self._introduction:
            cost += recalled_text.MARK_BYTES
        if cost > self._left_bytes:
            return False
        self._left_bytes -= cost
        self._introduction = ""
        self._headings.add(heading)
        self._pieces.setdefault(kind, []).extend([*map(PromptPiece, before), piece])
        return True

    def parts(self, items: Iterable[RecalledItem]) -> tuple[PlanPart, ...]:
        """Return the non-empty parts, in order, with the passages that `items` quote."""
        return tuple(self._part(kind, items) for kind in _LAYERS if self._pieces.get(kind))

    def _part(self, kind: PlanPartKind, items: Iterable[RecalledItem]) -> PlanPart:
        pieces = tuple(self._pieces[kind])
        quoted = (
            item.passage_id for item in items if item.injected and item.layer in _LAYERS[kind]
        )
        size = sum(_size(piece.text) for piece in pieces)
        if pieces[0].text.startswith(recalled_text.INTRO):
            size += recalled_text.MARK_BYTES
        return PlanPart(kind, tokens_of(size), False, pieces, sources=tuple(dict.fromkeys(quoted)))

    def _before(self, heading: str) -> list[str]:
        new = [heading] if heading not in self._headings else []
        return [self._introduction, *new] if self._introduction else new


class _Selector:
    """Selects layer by layer; every item is noted with the reason why it was left out, "" if it was not."""

    def __init__(
        self, settings: RecallSettings, context: SelectionContext, budget: TokenBudget
    ) -> None:
        self._settings = settings
        self._context = context
        self._exchanges: set[ExchangeId] = set()
        self._texts: set[str] = set()
        self.budget = budget
        self.items: list[RecalledItem] = []

    def select_facts(self, facts: Sequence[RetrievedFact]) -> None:
        taken = 0
        for fact in facts:
            number = None
            if fact.exchange_id is not None:
                number = self._context.turn_numbers.get(fact.exchange_id)
            piece = recalled_text.fact_piece(fact, number)
            why_not = (
                self._refused(fact.match)
                or (_IN_PROMPT if fact.message_id in self._context.held else "")
                or self._repeated(fact.text)
                or self._over(taken, "rag_fact_limit")
                or self._placed(PlanPartKind.FACTS, recalled_text.FACTS, piece)
            )
            source = (fact.conversation_id, fact.exchange_id, fact.message_id)
            taken += self._note(RecallLayer.FACT, fact.match, source, piece, why_not, fact.text)

    def select_conversations(self, conversations: Sequence[RetrievedConversation]) -> None:
        taken: set[ConversationId] = set()
        for each in conversations:
            piece = recalled_text.conversation_piece(each)
            why_not = (
                self._refused(each.match)
                or self._same_conversation(each.conversation_id)
                or (_QUOTED if each.conversation_id in taken else "")
                or self._over(len(taken), "rag_conversation_limit")
                or self._placed(PlanPartKind.RELATED, recalled_text.RELATED, piece)
            )
            source = (each.conversation_id, None, None)
            if self._note(RecallLayer.CONVERSATION, each.match, source, piece, why_not):
                taken.add(each.conversation_id)
            self.select_turns(
                RecallLayer.EXCHANGE,
                each.exchanges,
                "rag_exchange_limit_per_conversation",
                blocked=_LEFT_OUT if why_not else "",
            )

    def select_turns(
        self,
        layer: RecallLayer,
        turns: Sequence[RetrievedExchange],
        limit_key: str,
        blocked: str = "",
        titles: Mapping[ConversationId, str] | None = None,
    ) -> None:
        """Select turns under their conversation or, with `titles`, as single turns."""
        heading = recalled_text.RELATED if titles is None else recalled_text.HISTORY
        taken = 0
        for turn in turns:
            if titles is None:
                piece = recalled_text.exchange_piece(turn, indent="  ")
            else:
                piece = recalled_text.exchange_piece(turn, titles.get(turn.conversation_id, ""))
            text = turn.user + turn.assistant
            why_not = (
                blocked
                or self._refused(turn.match)
                or self._same_conversation(turn.conversation_id)
                or (_QUOTED if turn.exchange_id in self._exchanges else self._repeated(text))
                or self._over(taken, limit_key)
                or self._placed(PlanPartKind.RELATED, heading, piece)
            )
            source = (turn.conversation_id, turn.exchange_id, turn.message_id)
            if self._note(layer, turn.match, source, piece, why_not, text):
                taken += 1
                self._exchanges.add(turn.exchange_id)

    def select_earlier(self, messages: Sequence[RetrievedMessage]) -> None:
        """Select messages of this segment, cut at a sentence; each may use what others left."""
        settings = self._settings
        taken = 0
        for place, message in enumerate(messages):
            why_not = (
                self._never(message.match)
                or ("" if settings.auto_rag_enabled else "auto_rag_enabled is off")
                or self._below(message.match, "auto_rag_relevance_threshold")
                or (_IN_PROMPT if message.message_id in self._context.held else "")
                or self._repeated(message.text)
                or self._over(taken, "auto_rag_top_k")
            )
            piece = PromptPiece(message.text)
            if not why_not:
                still_wanted = min(settings.auto_rag_top_k - taken, len(messages) - place)
                piece, why_not = self._place_excerpt(message, still_wanted)
            source = (self._context.conversation_id, message.exchange_id, message.message_id)
            layer, text = RecallLayer.EARLIER, message.text
            taken += self._note(layer, message.match, source, piece, why_not, text)

    def _place_excerpt(
        self, message: RetrievedMessage, still_wanted: int
    ) -> tuple[PromptPiece, str]:
        """Add what fits of a message into its share of the budget."""
        context, heading = self._context, recalled_text.EARLIER
        frame = recalled_text.message_piece(message, context.conversation_id, "")
        share = self.budget.left_bytes(heading) // still_wanted
        share -= _size(frame.text) + recalled_text.MARK_BYTES
        why_not = f"auto_rag_max_tokens is {self._settings.auto_rag_max_tokens}"
        if share < min(_MIN_EXCERPT_BYTES, _size(message.text)):
            return frame, why_not
        # Quoting adds two characters to each line, so a smaller excerpt may be needed.
        for room in (share, share * 3 // 4, share // 2):
            words = cut_at_sentence(message.text, room, context.question)
            piece = recalled_text.message_piece(message, context.conversation_id, words)
            if words and self.budget.put(PlanPartKind.EARLIER, heading, piece):
                return piece, ""
        return frame, why_not

    # -- reasons; "" for none

    def _refused(self, match: MatchScore) -> str:
        if not self._settings.rag_enabled:
            return "rag_enabled is off"
        return self._never(match) or self._below(match, "rag_min_similarity")

    def _never(self, match: MatchScore) -> str:
        return _NEVER if match.verdict is Verdict.NEVER else ""

    def _below(self, match: MatchScore, key: str) -> str:
        threshold: float = getattr(self._settings, key)
        return "" if match.relevance >= threshold else f"{key} is {threshold:g}"

    def _over(self, taken: int, key: str) -> str:
        limit: int = getattr(self._settings, key)
        return "" if taken < limit else f"{key} is {limit}"

    def _same_conversation(self, conversation_id: ConversationId) -> str:
        return _SAME_CONVERSATION if conversation_id == self._context.conversation_id else ""

    def _repeated(self, text: str) -> str:
        return _QUOTED if _normalized(text) in self._texts else ""

    def _placed(self, kind: PlanPartKind, heading: str, piece: PromptPiece) -> str:
        if self.budget.put(kind, heading, piece):
            return ""
        return f"rag_max_tokens is {self._settings.rag_max_tokens}"

    def _note(
        self,
        layer: RecallLayer,
        match: MatchScore,
        source: tuple[ConversationId | None, ExchangeId | None, MessageId | None],
        piece: PromptPiece,
        why_not: str,
        text: str | None = None,
    ) -> bool:
        """Add an item; return whether it was selected, and remember its `text` then."""
        if not why_not and text is not None:
            self._texts.add(_normalized(text))
        tokens = tokens_of(_size(piece.text))
        self.items.append(
            RecalledItem(
                layer, match.kind, match.passage_id, *source, match.relevance, match.cosine,
                match.coverage, tokens, injected=not why_not, dropped_by=why_not,
            )
        )  # fmt: skip
        return not why_not


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())


def _size(text: str) -> int:
    return len(text.encode("utf-8"))

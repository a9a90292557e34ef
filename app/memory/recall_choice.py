"""Which of what was found goes into a prompt, and in words why the rest does not. Pure.

What is found is `app.memory.recall`'s business, how it reads `recalled_text`'s, where it stands
`context_plan`'s.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.recalls import Piece, PlanPart, PlanPartKind, RecalledItem, RecallLayer, Verdict
from app.domain.retrieved import (
    FoundConversation,
    FoundExchange,
    FoundFact,
    FoundMessage,
    Match,
    Retrieved,
)
from app.memory import recalled_text
from app.memory.recalled_text import cut_at_sentence

FETCH_TOOL = "fetch_conversation_details"
BYTES_PER_TOKEN = 4
_LEAST_CUT_BYTES = 80  # of an earlier message: less than a sentence says nothing
_LAYERS = {
    PlanPartKind.FACTS: (RecallLayer.FACT,),
    PlanPartKind.RELATED: (RecallLayer.CONVERSATION, RecallLayer.EXCHANGE, RecallLayer.HISTORY),
    PlanPartKind.EARLIER: (RecallLayer.EARLIER,),
}
_ALREADY = "it is quoted already"
_IN_WINDOW = "it stands in the prompt already"
_OWN = "it belongs to this conversation"
_LEFT_OUT = "its conversation was left out"
_NEVER = "you asked never to use it again"


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """What the settings of these names say; limits are counts, relevances 0-1, budgets tokens."""

    rag_enabled: bool = True
    rag_conversation_limit: int = 3
    rag_exchange_limit_per_conversation: int = 2
    rag_min_similarity: float = 0.7
    rag_fact_limit: int = 3
    rag_history_limit: int = 2
    rag_max_tokens: int = 1200
    auto_rag_enabled: bool = True
    auto_rag_top_k: int = 3
    auto_rag_max_tokens: int = 400
    auto_rag_relevance_threshold: float = 0.5


@dataclass(frozen=True, slots=True)
class AskedIn:
    """Where it is asked: what stands in the prompt anyway is not quoted again.

    `turn_numbers` are those of facts' exchanges, as far as they are known; `can_fetch` when the
    model has the tool that fetches more.
    """

    conversation_id: ConversationId
    question: str
    held: frozenset[MessageId]
    turn_numbers: Mapping[ExchangeId, int] = field(default_factory=dict)
    can_fetch: bool = False


class Shelf:
    """Pieces within a budget; the introduction and headings come with the first that needs them."""

    def __init__(self, budget_tokens: int, introduction: str = "") -> None:
        self._left_bytes = budget_tokens * BYTES_PER_TOKEN
        self._introduction = introduction
        self._headings: set[str] = set()
        self._pieces: dict[PlanPartKind, list[Piece]] = {}

    def left_bytes(self, heading: str) -> int:
        """Return what room there is for words under a heading."""
        return self._left_bytes - sum(map(_size, self._before(heading)))

    def put(self, kind: PlanPartKind, heading: str, piece: Piece) -> bool:
        """Add a piece if there is room for it; return whether there was."""
        before = self._before(heading)
        cost = sum(map(_size, before)) + _size(piece.text)
        if before and self._introduction:
            cost += recalled_text.MARK_BYTES
        if cost > self._left_bytes:
            return False
        self._left_bytes -= cost
        self._introduction = ""
        self._headings.add(heading)
        self._pieces.setdefault(kind, []).extend([*map(Piece, before), piece])
        return True

    def parts(self, items: Iterable[RecalledItem]) -> tuple[PlanPart, ...]:
        """Return the parts there are, in order; `items` tell which passages they quote."""
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


def tokens_of(size_bytes: int) -> int:
    """Return about how many tokens so many bytes are, rounded up."""
    return -(-size_bytes // BYTES_PER_TOKEN)


def introduction(*, can_fetch: bool) -> str:
    """Return what is said before any quotation."""
    return recalled_text.INTRO + (recalled_text.MORE if can_fetch else "")


class Choosing:
    """Takes what fits, layer by layer. Every thing that was found becomes one of `items`."""

    def __init__(self, settings: RecallSettings, asked_in: AskedIn) -> None:
        self._settings = settings
        self._asked_in = asked_in
        self._shelf = Shelf(0)
        self._exchanges: set[ExchangeId] = set()
        self._texts: set[str] = set()
        self.items: list[RecalledItem] = []

    def related(self, found: Retrieved, shelf: Shelf) -> None:
        """Take facts, conversations with their exchanges, and turns of all history."""
        self._shelf = shelf
        self._facts(found.facts)
        self._conversations(found.conversations)
        self._history(found)

    def _facts(self, found: Sequence[FoundFact]) -> None:
        settings = self._settings
        taken = 0
        for fact in found:
            number = None
            if fact.exchange_id is not None:
                number = self._asked_in.turn_numbers.get(fact.exchange_id)
            piece = recalled_text.of_fact(fact, number)
            why_not = (
                self._unwanted(fact.match)
                or (_IN_WINDOW if fact.message_id in self._asked_in.held else "")
                or self._said_already(fact.text)
                or _over(taken, settings.rag_fact_limit, "rag_fact_limit")
                or self._placed(PlanPartKind.FACTS, recalled_text.FACTS, piece)
            )
            if not why_not:
                taken += 1
                self._texts.add(_key(fact.text))
            place = (fact.conversation_id, fact.exchange_id, fact.message_id)
            self._note(RecallLayer.FACT, fact.match, place, piece, why_not)

    def _conversations(self, found: Sequence[FoundConversation]) -> None:
        limit = self._settings.rag_conversation_limit
        taken: set[ConversationId] = set()
        for talk in found:
            piece = recalled_text.of_conversation(talk)
            why_not = (
                self._unwanted(talk.match)
                or self._own(talk.conversation_id)
                or (_ALREADY if talk.conversation_id in taken else "")
                or _over(len(taken), limit, "rag_conversation_limit")
                or self._placed(PlanPartKind.RELATED, recalled_text.RELATED, piece)
            )
            place = (talk.conversation_id, None, None)
            self._note(RecallLayer.CONVERSATION, talk.match, place, piece, why_not)
            if not why_not:
                taken.add(talk.conversation_id)
            self._exchanges_of(talk, _LEFT_OUT if why_not else "")

    def _exchanges_of(self, talk: FoundConversation, left_out: str) -> None:
        limit = self._settings.rag_exchange_limit_per_conversation
        taken = 0
        for turn in talk.exchanges:
            piece = recalled_text.of_exchange(turn, indent="  ")
            why_not = (
                left_out
                or self._unwanted(turn.match)
                or self._own(turn.conversation_id)
                or self._quoted(turn)
                or _over(taken, limit, "rag_exchange_limit_per_conversation")
                or self._placed(PlanPartKind.RELATED, recalled_text.RELATED, piece)
            )
            taken += not why_not
            self._note_turn(RecallLayer.EXCHANGE, turn, piece, why_not)

    def _history(self, found: Retrieved) -> None:
        limit = self._settings.rag_history_limit
        taken = 0
        for turn in found.history:
            title = found.titles.get(turn.conversation_id, "")
            piece = recalled_text.of_exchange(turn, title)
            why_not = (
                self._unwanted(turn.match)
                or self._own(turn.conversation_id)
                or self._quoted(turn)
                or _over(taken, limit, "rag_history_limit")
                or self._placed(PlanPartKind.RELATED, recalled_text.HISTORY, piece)
            )
            taken += not why_not
            self._note_turn(RecallLayer.HISTORY, turn, piece, why_not)

    def earlier(self, found: Sequence[FoundMessage], shelf: Shelf) -> None:
        """Take messages of this segment, cut at a sentence; each may use what others left."""
        self._shelf = shelf
        settings = self._settings
        taken = 0
        for place, message in enumerate(found):
            why_not = (
                self._never(message.match)
                or ("" if settings.auto_rag_enabled else "auto_rag_enabled is off")
                or _below(
                    message.match,
                    settings.auto_rag_relevance_threshold,
                    "auto_rag_relevance_threshold",
                )
                or (_IN_WINDOW if message.message_id in self._asked_in.held else "")
                or self._said_already(message.text)
                or _over(taken, settings.auto_rag_top_k, "auto_rag_top_k")
            )
            piece = Piece(message.text)
            if not why_not:
                still_wanted = min(settings.auto_rag_top_k - taken, len(found) - place)
                piece, why_not = self._cut(message, still_wanted)
            if not why_not:
                taken += 1
                self._texts.add(_key(message.text))
            source = (self._asked_in.conversation_id, message.exchange_id, message.message_id)
            self._note(RecallLayer.EARLIER, message.match, source, piece, why_not)

    def _cut(self, message: FoundMessage, still_wanted: int) -> tuple[Piece, str]:
        """Put what of a message fits into its share of the budget."""
        asked_in, heading = self._asked_in, recalled_text.EARLIER
        left = self._shelf.left_bytes(heading)
        frame = recalled_text.of_message(message, asked_in.conversation_id, "")
        share = left // still_wanted - _size(frame.text) - recalled_text.MARK_BYTES
        why_not = f"auto_rag_max_tokens is {self._settings.auto_rag_max_tokens}"
        if share < min(_LEAST_CUT_BYTES, _size(message.text)):
            return frame, why_not
        # Every line is quoted by two more signs: lines are few, but they are counted.
        for room in (share, share * 3 // 4, share // 2):
            words = cut_at_sentence(message.text, room, asked_in.question)
            piece = recalled_text.of_message(message, asked_in.conversation_id, words)
            if words and self._shelf.put(PlanPartKind.EARLIER, heading, piece):
                return piece, ""
        return frame, why_not

    # -- why not, in words; "" when nothing speaks against it

    def _unwanted(self, match: Match) -> str:
        settings = self._settings
        if not settings.rag_enabled:
            return "rag_enabled is off"
        return self._never(match) or _below(
            match, settings.rag_min_similarity, "rag_min_similarity"
        )

    def _never(self, match: Match) -> str:
        return _NEVER if match.verdict is Verdict.NEVER else ""

    def _own(self, conversation_id: ConversationId) -> str:
        return _OWN if conversation_id == self._asked_in.conversation_id else ""

    def _quoted(self, turn: FoundExchange) -> str:
        if turn.exchange_id in self._exchanges:
            return _ALREADY
        return self._said_already(turn.user + turn.assistant)

    def _said_already(self, text: str) -> str:
        return _ALREADY if _key(text) in self._texts else ""

    def _placed(self, kind: PlanPartKind, heading: str, piece: Piece) -> str:
        if self._shelf.put(kind, heading, piece):
            return ""
        return f"rag_max_tokens is {self._settings.rag_max_tokens}"

    # -- what became of it

    def _note_turn(
        self, layer: RecallLayer, turn: FoundExchange, piece: Piece, why_not: str
    ) -> None:
        if not why_not:
            self._exchanges.add(turn.exchange_id)
            self._texts.add(_key(turn.user + turn.assistant))
        place = (turn.conversation_id, turn.exchange_id, turn.message_id)
        self._note(layer, turn.match, place, piece, why_not)

    def _note(
        self,
        layer: RecallLayer,
        match: Match,
        place: tuple[ConversationId | None, ExchangeId | None, MessageId | None],
        piece: Piece,
        why_not: str,
    ) -> None:
        tokens = tokens_of(_size(piece.text))
        self.items.append(
            RecalledItem(
                layer, match.kind, match.passage_id, *place, match.relevance, match.cosine,
                match.coverage, tokens, injected=not why_not, dropped_by=why_not,
            )
        )  # fmt: skip


def _below(match: Match, threshold: float, key: str) -> str:
    return "" if match.relevance >= threshold else f"{key} is {threshold:g}"


def _over(taken: int, limit: int, key: str) -> str:
    return "" if taken < limit else f"{key} is {limit}"


def _key(text: str) -> str:
    return " ".join(text.casefold().split())


def _size(text: str) -> int:
    return len(text.encode("utf-8"))

"""Recall selection: which retrieved items go into a prompt, and why the others do not. Pure.

Each selected turn or summary is first quoted by its best sentence. After facts and hints, what is
left of the budget goes to further sentences, the best first, until none is worth anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.recall import (
    MatchScore,
    PlanPart,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    RecallSettings,
    RetrievalResult,
    RetrievedConversation,
    RetrievedDocument,
    RetrievedExchange,
    RetrievedFact,
    RetrievedMessage,
)
from app.language.titles import strip_markdown
from app.memory.context import text as recalled_text
from app.memory.context.growing_quotation import (
    GrowingQuotation,
    extend_quotations,
    quotation_of_document,
    quotation_of_summary,
    quotation_of_turn,
)
from app.memory.context.items import (
    IN_PROMPT,
    LEFT_OUT,
    NOT_THIS_TIME,
    QUOTED,
    SUMMARY_ALONE,
    ItemList,
    Refusals,
    SelectionContext,
    Source,
    is_by_summary,
)
from app.memory.context.text import cut_at_sentence, size_of, turn_link
from app.memory.context.token_budget import RecallRoom, TokenBudget, budget_share, tokens_of

_MIN_EXCERPT_BYTES = 80  # of an earlier message; less than a sentence says nothing
_MAX_HINTS = 3


@dataclass(frozen=True, slots=True)
class Selection:
    """The recalled parts of a prompt, and everything that was found as items, selected or not."""

    parts: tuple[PlanPart, ...]
    items: tuple[RecalledItem, ...]

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


def select_recalled(
    found: RetrievalResult, settings: RecallSettings, context: SelectionContext, room: RecallRoom
) -> Selection:
    """Return what fits of facts, conversations and turns, of documents, and of earlier messages.

    Of the room for related history the share is used that what was found is worth.
    """
    related = round(room.related_tokens * budget_share(found))
    return select_within(found, settings, context, replace(room, related_tokens=related))


def select_within(
    found: RetrievalResult, settings: RecallSettings, context: SelectionContext, room: RecallRoom
) -> Selection:
    """Return what fits in these budgets, whatever it is worth."""
    introduction = recalled_text.INTRO + (recalled_text.MORE if context.can_fetch else "")
    budget = TokenBudget(room.related_tokens, introduction)
    selector = _Selector(settings, context, budget, found)
    selector.select_mentioned(found.mentioned)
    selector.select_conversations(found.conversations)
    selector.select_turns(RecallLayer.HISTORY, found.history, "rag_history_limit")
    selector.select_facts(found.asked_facts, are_asked_for=True)
    selector.select_facts(found.facts)
    selector.select_hints()
    selector.extend_quotations()
    parts = budget.parts(selector.items.in_order(), selector.cut())
    selector.begin(TokenBudget(room.document_tokens, "" if parts else introduction))
    selector.select_documents(found.documents)
    parts += selector.budget.parts(selector.items.in_order(), selector.cut())
    selector.begin(TokenBudget(room.earlier_tokens, "" if parts else introduction))
    selector.select_earlier(found.earlier)
    items = selector.items.in_order()
    return Selection((*parts, *selector.budget.parts(items)), items)


class _Selector:
    """Selects layer by layer; every item is recorded with the reason why it was left out."""

    def __init__(
        self,
        settings: RecallSettings,
        context: SelectionContext,
        budget: TokenBudget,
        found: RetrievalResult,
    ) -> None:
        self._settings = settings
        self._context = context
        self._titles = found.titles
        self._said = "\n".join(context.lines)
        self._mentioned = {each.conversation_id for each in found.mentioned}
        self._why_not = Refusals(settings, context, found)
        self._quotations: dict[PassageId, GrowingQuotation] = {}
        self._exchanges: dict[ExchangeId, str] = {}  # turns that are quoted, with their links
        self._stated: set[ExchangeId] = set()  # that facts come from
        self.items = ItemList()
        self.budget = budget

    def begin(self, budget: TokenBudget) -> None:
        """Begin another block, with a budget of its own."""
        self.budget = budget
        self._quotations = {}

    def cut(self) -> frozenset[PassageId]:
        """Return the passages that are quoted in part."""
        return frozenset(each for each, of in self._quotations.items() if not of.is_complete)

    def select_mentioned(self, conversations: Sequence[RetrievedConversation]) -> None:
        """Select what the message mentions, with summary and best turns, whatever the relevance."""
        layer, heading = RecallLayer.MENTION, recalled_text.MENTIONED
        for each in conversations:
            header = recalled_text.conversation_piece(each)
            before = [header]
            if is_by_summary(each):
                summary = replace(quotation_of_summary(each), relevance=1.0)
                why_not = self._why_not.unwanted(each.match, each.conversation_id)
                why_not = why_not or self._quoted(each.match, summary, heading)
                source = (each.conversation_id, None, None)
                self.items.add(layer, each.match, source, summary, why_not)
                before = [] if not why_not else before
            for turn in each.exchanges:
                quotation = replace(quotation_of_turn(turn, None), relevance=1.0)
                why_not = self._why_not.unwanted(turn.match, turn.conversation_id)
                why_not = why_not or self._quoted(turn.match, quotation, heading, *before)
                self.items.add(layer, turn.match, _source_of(turn), quotation, why_not)
                if not why_not:
                    before = []
                    self._exchanges[turn.exchange_id] = turn_link(turn)

    def select_conversations(self, conversations: Sequence[RetrievedConversation]) -> None:
        """Select conversations with their summary, if that was found, and their best turns."""
        taken: set[ConversationId] = set()
        for each in conversations:
            why_not = (
                self._why_not.refused(each.match, each.conversation_id)
                or (QUOTED if each.conversation_id in taken | self._mentioned else "")
                or self._why_not.over(len(taken), "rag_conversation_limit")
            )
            quotation, header = quotation_of_summary(each), recalled_text.conversation_piece(each)
            has_summary = is_by_summary(each) and not self._is_repeated(each)
            if has_summary and not self._answers(each.exchanges):
                why_not = why_not or SUMMARY_ALONE
            if has_summary and not why_not:
                why_not = self._quoted(each.match, quotation, recalled_text.RELATED)
            entry = self.items.add(
                RecallLayer.CONVERSATION, each.match, (each.conversation_id, None, None),
                quotation if has_summary else header, why_not,
                hint=recalled_text.conversation_hint(each, self._said) if has_summary else None,
            )  # fmt: skip
            has_turn = self.select_turns(
                RecallLayer.EXCHANGE, each.exchanges, "rag_exchange_limit_per_conversation",
                blocked=why_not and (why_not if why_not == NOT_THIS_TIME else LEFT_OUT),
                header=None if has_summary else header,
            )  # fmt: skip
            if entry.item.injected and not (has_summary or has_turn):
                no_room = self._why_not.no_room()
                entry.item = replace(entry.item, injected=False, dropped_by=no_room)
            if entry.item.injected or why_not == NOT_THIS_TIME:
                taken.add(each.conversation_id)

    def select_turns(
        self,
        layer: RecallLayer,
        turns: Sequence[RetrievedExchange],
        limit_key: str,
        blocked: str = "",
        header: PromptPiece | None = None,
    ) -> bool:
        """Select single turns, or turns of a conversation whose `header` precedes the first.

        Beside a turn that answers, another one of its conversation needs to be worth a hint only:
        it often has the outcome. Return whether any was selected.
        """
        is_single = layer is RecallLayer.HISTORY
        heading = recalled_text.HISTORY if is_single else recalled_text.RELATED
        taken, has_any = 0, False
        least = "rag_min_similarity"
        if not is_single and self._answers(turns):
            keys = ("rag_hint_similarity", least)
            least = min(keys, key=lambda key: float(getattr(self._settings, key)))
        for turn in turns:
            title = self._titles.get(turn.conversation_id, "")
            quotation = quotation_of_turn(turn, title if is_single else None)
            text = " ".join(unit.text for units in quotation.texts for unit in units)
            why_not = (
                blocked
                or self._why_not.refused(turn.match, turn.conversation_id, least)
                or (QUOTED if turn.exchange_id in self._exchanges else self._repeated(text))
                or self._why_not.over(taken, limit_key)
            )
            if not why_not:
                before = [] if header is None or has_any else [header]
                why_not = self._quoted(turn.match, quotation, heading, *before)
            hint = recalled_text.exchange_hint(turn, title, self._said)
            self.items.add(layer, turn.match, _source_of(turn), quotation, why_not, text, hint)
            taken += why_not in ("", NOT_THIS_TIME)
            if not why_not:
                has_any = True
                self._exchanges[turn.exchange_id] = turn_link(turn)
        return has_any

    def select_facts(self, facts: Sequence[RetrievedFact], *, are_asked_for: bool = False) -> None:
        """Select facts; for one that a quoted turn says, that turn's sentence is quoted instead.

        Those that the message asks for are limited by the budget only. So are those that replaced
        what a quoted turn states; they come first.
        """
        taken = 0
        quoted = self._exchanges
        for fact in sorted(facts, key=lambda each: quoted.keys().isdisjoint(each.replaces)):
            older = frozenset(quoted[each] for each in fact.replaces if each in quoted)
            is_due = are_asked_for or bool(older)
            numbers = self._context.turn_numbers
            number = numbers.get(fact.exchange_id) if fact.exchange_id is not None else None
            piece = recalled_text.fact_piece(fact, number, older)
            why_not = (
                self._why_not.unwanted(fact.match)
                or self._repeated(fact.text)
                or ("" if is_due else self._why_not.refused(fact.match))
                or (IN_PROMPT if fact.message_id in self._context.held else "")
                or (QUOTED if self._is_quoted(fact.text, older) else "")
                or ("" if is_due else self._why_not.over(taken, "rag_fact_limit"))
            )
            if not why_not and self.budget.put(recalled_text.FACTS, piece) is None:
                why_not = self._why_not.no_room()
            source, layer = _source_of(fact), RecallLayer.FACT
            self.items.add(layer, fact.match, source, piece, why_not, fact.text, hint=piece)
            if not why_not and fact.exchange_id is not None:
                self._stated.add(fact.exchange_id)
            taken += not is_due and why_not in ("", NOT_THIS_TIME)

    def select_hints(self) -> None:
        """Select the best of what was left out, one line for each turn, fact or summary.

        A fact and the turn it comes from count as one, the fact quoted or not, and so do those of one
        sentence. Summaries come last: they say what the turns say, but less.
        """
        self.budget.introduce(recalled_text.INTRO_TO_HINTS)
        shown: set[tuple[bool, int]] = {(True, each) for each in {*self._exchanges, *self._stated}}
        most, sentences = len(shown) + _MAX_HINTS, set[str]()
        for entry in self.items.hints(self._why_not.may_hint):
            item, line = entry.item, entry.hint
            key = (item.exchange_id is not None, item.exchange_id or item.passage_id)
            if key in shown or line is None or line.text in self._context.lines:
                continue
            sentence = line.text.rpartition("> ")[2].rstrip(" .…\n").casefold()
            if sentence in sentences or self.budget.put(recalled_text.HINTS, line) is None:
                continue
            shown.add(key)
            sentences.add(sentence)
            tokens = tokens_of(size_of(line.text))
            entry.item = replace(
                item, layer=RecallLayer.HINT, tokens=tokens, injected=True, dropped_by=""
            )
            if len(shown) == most:
                break

    def extend_quotations(self) -> None:
        """Quote further sentences, the best first, as far as the budget goes."""
        extend_quotations([*self._quotations.values()], self.budget)
        self.items.update_sizes()

    def select_documents(self, documents: Sequence[RetrievedDocument]) -> None:
        """Select passages of documents, and quote them as far as their budget goes."""
        heading = recalled_text.DOCUMENTS
        for each in documents:
            quotation = quotation_of_document(each)
            text = " ".join(unit.text for unit in each.units)
            why_not = self._why_not.refused(each.match) or self._repeated(text)
            if not why_not and not quotation.put(self.budget, heading):
                why_not = self._why_not.no_room("rag_document_max_tokens")
            if not why_not:
                self._quotations[each.match.passage_id] = quotation
            self.items.add(
                RecallLayer.DOCUMENT, each.match, (None, None, None), quotation, why_not, text
            )
        self.extend_quotations()

    def select_earlier(self, messages: Sequence[RetrievedMessage]) -> None:
        """Select messages of this segment, cut at a sentence; each may use what others left."""
        settings, taken = self._settings, 0
        for place, message in enumerate(messages):
            why_not = (
                self._why_not.unwanted(message.match)
                or ("" if settings.auto_rag_enabled else "auto_rag_enabled is off")
                or self._why_not.below(message.match, "auto_rag_relevance_threshold")
                or (IN_PROMPT if message.message_id in self._context.held else "")
                or self._repeated(message.text)
                or self._why_not.over(taken, "auto_rag_top_k")
            )
            piece = PromptPiece(message.text)
            if not why_not:
                still_wanted = min(settings.auto_rag_top_k - taken, len(messages) - place)
                piece, why_not = self._place_excerpt(message, still_wanted)
            source = (self._context.conversation_id, message.exchange_id, message.message_id)
            layer, text = RecallLayer.EARLIER, message.text
            self.items.add(layer, message.match, source, piece, why_not, text)
            taken += not why_not

    def _place_excerpt(
        self, message: RetrievedMessage, still_wanted: int
    ) -> tuple[PromptPiece, str]:
        """Add what fits of a message into its share of the budget."""
        context, heading = self._context, recalled_text.EARLIER
        frame = recalled_text.message_piece(message, context.conversation_id, "")
        left = self.budget.left_bytes(heading) - size_of(frame.text)
        share = max(left // still_wanted, min(left, 2 * _MIN_EXCERPT_BYTES))
        why_not = f"auto_rag_max_tokens is {self._settings.auto_rag_max_tokens}"
        if share < min(_MIN_EXCERPT_BYTES, size_of(message.text)):
            return frame, why_not
        # Quoting adds two characters to each line, so a smaller excerpt may be needed.
        for room in (share, share * 3 // 4, share // 2):
            words = cut_at_sentence(message.text, room, context.question)
            piece = recalled_text.message_piece(message, context.conversation_id, words)
            if words and self.budget.put(heading, piece) is not None:
                return piece, ""
        return frame, why_not

    # -- reasons; "" for none

    def _repeated(self, text: str) -> str:
        return QUOTED if self.items.is_repeated(text) else ""

    def _quoted(
        self, match: MatchScore, quotation: GrowingQuotation, heading: str, *before: PromptPiece
    ) -> str:
        if not quotation.put(self.budget, heading, *before):
            return self._why_not.no_room()
        self._quotations[match.passage_id] = quotation
        return ""

    def _is_repeated(self, found: RetrievedConversation) -> bool:
        """Return whether a summary has only sentences of the turns that may be quoted, without marks."""
        turns = [turn for turn in found.exchanges if self._answers([turn])]
        texts = chain.from_iterable(
            turn.texts for turn in turns[: self._settings.rag_exchange_limit_per_conversation]
        )
        said = {strip_markdown(unit.text) for each in texts for unit in each.units}
        return said.issuperset(strip_markdown(unit.text) for unit in found.summary)

    def _is_quoted(self, statement: str, older: frozenset[str]) -> bool:
        """Return whether a quoted turn says what a statement says; its sentence is quoted then.

        The turn is marked as newer than those with the links `older`.
        """
        said = (each for each in self._quotations.values() if each.say(self.budget, statement))
        quotation = next(said, None)
        if quotation is not None and older:
            quotation.mark_newer(self.budget, older)
        return quotation is not None

    def _answers(self, turns: Sequence[RetrievedExchange]) -> bool:
        """Return whether one of some turns is relevant enough to be quoted."""
        return any(not self._why_not.refused(each.match, each.conversation_id) for each in turns)


def _source_of(found: RetrievedExchange | RetrievedFact) -> Source:
    return found.conversation_id, found.exchange_id, found.message_id

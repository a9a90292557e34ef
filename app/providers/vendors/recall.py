"""Recall, the built-in model: it answers from the library, without a network or a language model.

It quotes the best passages with date and link, and states that no language model answered.
`app.storage.deletion.redaction` parses this form when a quoted text is forgotten.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from app.domain.chat import ChatRequest, Finished, FinishReason, ListedModel, ModelRef, StreamEvent
from app.domain.conversations import Image, Message, RecallChoice, Role, Text
from app.domain.errors import MemoryOff
from app.domain.ids import ConversationId, PassageId
from app.domain.links import document_link, link_to
from app.domain.passages import PassageKind
from app.domain.results import FoundAnswer, SearchResult
from app.domain.text import escape_markdown, is_question, one_line
from app.domain.translation import format_day, tr
from app.domain.turns import RECALL_MODEL
from app.language.sentences import lead_chars
from app.language.titles import strip_markdown

RECALL = "recall"
_PASSAGES = 6
_MAX_UNCERTAIN = 3  # passages that are only possibly related
_MIN_RELEVANCE = 0.035  # below that a passage is unrelated to the question
_QUESTION_LIMIT_CHARS = 90
_LINE_CHARS = 240  # of a passage that is only possibly related
_MAX_ANSWERS = 16
_ENDS = ".!。！ "
_END = "\n\n"
_NO_MODEL = tr(
    "Recall answered, not a language model. Choose a model below or in Settings to talk to one."
)
_NO_IMAGES = tr("Recall cannot see images.")
_NOT_CLEAR = tr("No clear answer was found. Possibly related:")
_NEAREST = tr("Nothing is clearly relevant. This comes closest:")
_ALSO = tr("Possibly related:")
_NOTHING = tr(
    "I found nothing about that in your conversations and documents. Import your past chats, or rephrase the question."
)
_NOTHING_ASKED = tr("This names nothing to look up. Ask about something from your conversations.")
_STATED = tr("I found nothing earlier about that. Your message is stored.")
_YOU, _REPLY, _SAVED, _FACT = tr("You:"), tr("Reply:"), tr("Saved memory"), tr("Fact")
_KINDS = {
    PassageKind.FACT: tr("fact {number}"),
    PassageKind.MEMORY: tr("memory {number}"),
    PassageKind.DOCUMENT: tr("document {number}"),
}

# Raises MemoryOff; None for a question that names nothing to look up.
FindAnswers = Callable[
    [str, Sequence[str], ConversationId, int, RecallChoice], Sequence[FoundAnswer] | None
]


class RecallModel:
    """The model that answers from the library.

    `find(question, earlier turns, conversation to exclude, limit, choice)` returns answers best first: turns, facts
    and saved memories. It may block.
    """

    name = RECALL

    def __init__(self, find: FindAnswers) -> None:
        self._find = find
        self._quoted: dict[ConversationId, Sequence[SearchResult]] = {}

    async def stream(self, request: ChatRequest) -> AsyncIterator[StreamEvent]:
        """Yield the answer in a few pieces; without results it says so."""
        question = next(m for m in reversed(request.messages) if m.role is Role.USER)
        quoted: Sequence[FoundAnswer] = ()
        try:
            found: Sequence[FoundAnswer] | None = ()
            if question.text.strip():  # else only files
                found = await asyncio.to_thread(
                    self._find,
                    question.text,
                    _recent(request.messages, question),
                    question.conversation_id,
                    _PASSAGES,
                    request.choice,
                )
        except MemoryOff as off:
            parts = [f"{off.display_text}\n\n"]
        else:
            quoted = _quoted(found or ())
            parts = [_NOTHING_ASKED + _END] if found is None else _answer(question.text, quoted)
        if any(isinstance(block, Image) for block in question.blocks):
            parts = [f"*{_NO_IMAGES}*{_END}", *parts]
        if not any(each.model == RECALL_MODEL for each in request.messages):
            parts.append(f"*{_NO_MODEL}*")
        shown = (each.result for answer in quoted for each in (answer, *answer.newer))
        by_passage = {each.passage_id: each for each in shown}
        self._remember(question.conversation_id, list(by_passage.values()))
        for part in parts:
            yield Text(part)
        yield Finished(FinishReason.STOP)

    def last_quoted(self, conversation_id: ConversationId) -> Sequence[SearchResult]:
        """Return what the last answer in a conversation quotes, best first; kept for the newest few."""
        return self._quoted.get(conversation_id, ())

    def _remember(self, conversation_id: ConversationId, quoted: Sequence[SearchResult]) -> None:
        self._quoted = dict([*self._quoted.items()][-_MAX_ANSWERS:]) | {conversation_id: quoted}

    async def models(self) -> tuple[ListedModel, ...]:
        return (ListedModel(ModelRef(RECALL, ""), "Recall (built in)"),)

    def chat_model(self) -> "RecallModel":
        return self

    async def aclose(self) -> None:
        """Nothing to close."""


def _recent(messages: Sequence[Message], question: Message) -> Sequence[str]:
    """Return the earlier questions of the conversation; Recall's answers are quotations and add nothing."""
    earlier = messages[: messages.index(question)]
    return [each.text for each in earlier if each.role is Role.USER]


def _quoted(found: Sequence[FoundAnswer]) -> Sequence[FoundAnswer]:
    """Return the answers to quote: relevant ones, and at most three possibly related ones.

    Beside a relevant one only other turns of its conversations are possibly related: of others one in thirty
    is, and a fact counts as the turn it comes from. Without either, the three that are nearest. What another one of them quotes is left out, and so is a summary where
    turns of its conversation are quoted.
    """
    clear = [each for each in found if not each.result.is_weak]
    talks = {each.result.conversation_id for each in clear}
    turns = {each.result.exchange_id for each in clear} - {None}
    related = [
        each
        for each in found
        if each.result.is_hint
        and (not clear or each.result.conversation_id in talks)
        and each.result.exchange_id not in turns
    ]
    relevant = [*clear, *related[:_MAX_UNCERTAIN]] or [
        each for each in found if each.result.relevance >= _MIN_RELEVANCE
    ][:_MAX_UNCERTAIN]
    with_turns = {
        each.result.conversation_id for each in relevant if each.result.kind is PassageKind.TURN
    }
    kept: list[FoundAnswer] = []
    for each in relevant:
        is_summary = each.result.kind is PassageKind.CONVERSATION_SUMMARY
        is_covered = is_summary and each.result.conversation_id in with_turns
        if _said(each) and not is_covered and not any(_repeats(each, other) for other in kept):
            kept.append(each)
    return kept


def _repeats(answer: FoundAnswer, other: FoundAnswer) -> bool:
    """Return whether an answer says what another one says, or what the fact from the same turn says."""
    said, known = _said(answer).rstrip(_ENDS), _said(other).rstrip(_ENDS)
    is_same_turn = answer.result.exchange_id is not None and (
        answer.result.exchange_id == other.result.exchange_id
    )
    return said in known or (is_same_turn and known == answer.question.rstrip(_ENDS))


def _said(answer: FoundAnswer) -> str:
    return "\n\n".join(filter(None, (answer.question, answer.reply))).strip()


def _answer(asked: str, quoted: Sequence[FoundAnswer]) -> list[str]:
    if not quoted:
        return [(_NOTHING if is_question(asked) else _STATED) + _END]
    clear: dict[ConversationId | PassageId, list[FoundAnswer]] = {}
    for each in quoted:
        if not each.result.is_weak:
            key = each.result.conversation_id or each.result.passage_id
            clear.setdefault(key, []).append(each)
    parts = [_section(asked, group) for group in clear.values()]
    if uncertain := [each for each in quoted if each.result.is_weak]:
        is_hint = uncertain[0].result.is_hint
        parts.append((_ALSO if clear else _NOT_CLEAR if is_hint else _NEAREST) + _END)
        parts.append("".join(map(_line, uncertain)) + "\n")
    return parts


def _section(asked: str, answers: Sequence[FoundAnswer]) -> str:
    """Return the quotations from one conversation, each followed by its source."""
    lines = []
    for number, answer in enumerate(answers):
        source = _source(asked, answer, is_first=not number)
        newer = f"\n{_newer(answer)}" if answer.newer else ""
        lines.append(f"{_blockquote(answer)}\n{source}\n{newer}")
    return "\n".join(lines) + "\n"


def _newer(answer: FoundAnswer) -> str:
    """Return the facts that replaced what a quotation states, as list items."""
    return "".join(_line(each, tr("Newer: {source}")) for each in answer.newer)


def _blockquote(answer: FoundAnswer) -> str:
    texts = [answer.reply]
    if answer.question:
        texts = [
            f"**{_YOU}** {answer.question}",
            *([f"**{_REPLY}** {answer.reply}"] if answer.reply else []),
        ]
    lines = "\n\n".join(texts).strip().splitlines()
    return "".join(f"> {line}".rstrip() + "\n" for line in lines)


def _source(asked: str, answer: FoundAnswer, *, is_first: bool) -> str:
    """Return the source of a quotation: title and date, then what was asked there."""
    result = answer.result
    question = one_line(result.user_question, _QUESTION_LIMIT_CHARS).replace(" · ", " - ")
    if answer.question or one_line(asked, _QUESTION_LIMIT_CHARS) == question:
        question = ""
    label = _label(result) if is_first or not question else question
    more = f" · {escape_markdown(question)}" if is_first and question else ""
    return _linked(result, label) + more


def _line(answer: FoundAnswer, form: str = "{source}") -> str:
    """Return a passage as a list item, after its source, and what replaced what it states."""
    lines = (line[lead_chars(line) :] for line in _said(answer).splitlines())
    text = one_line(strip_markdown("\n".join(lines)), _LINE_CHARS)
    result = answer.result
    label = form.format(source=_label(result))
    return f"- {_linked(result, label)}: {text}\n{_newer(answer)}"


def _label(result: SearchResult) -> str:
    """Return title and date, and the id of a fact, memory or passage, which `app.storage.deletion.redaction` reads."""
    title = _SAVED if result.kind is PassageKind.MEMORY else result.conversation_title
    known = _KINDS.get(result.kind)
    end = f" · {known.format(number=result.passage_id)}" if known else ""
    return f"{title or _FACT}, {format_day(result.created_at)}{end}"


def _linked(result: SearchResult, label: str) -> str:
    """Return a label, linked unless the result belongs to no conversation."""
    words = escape_markdown(label)
    if result.kind is PassageKind.DOCUMENT:
        return f"[{words}]({document_link(result.passage_id)})"
    if result.conversation_id is None:
        return words
    link = link_to(
        result.conversation_id,
        result.turn_number or 0,
        result.exchange_id,
        is_shown=result.is_shown,
    )
    return f"[{words}]({link})"

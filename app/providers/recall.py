"""Recall, the built-in model: no network, no language model, only what the book holds.

It answers with the best passages, quoted, dated and linked, and says plainly what it is. The form is
read again by `app.storage.quotes`, when something that was quoted is forgotten.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    ModelCard,
    ModelRef,
    StreamEvent,
    TextDelta,
)
from app.domain.conversations import Role
from app.domain.errors import MemoryOff
from app.domain.ids import ConversationId
from app.domain.links import link_to
from app.domain.passages import PassageKind, SearchResult
from app.domain.text import as_markdown, one_line

RECALL = "recall"
_PASSAGES = 6
_NEAREST = 3  # shown when nothing fits for certain
_MAYBE = 0.3  # relevance: below what recall takes, but right as often as not
_LEAST = 0.035  # relevance: what is less has nothing to do with the question
_QUESTION_LIMIT_CHARS = 160
_ANSWERS_KEPT = 16
_SAID = "conversations"
_PLACES = {PassageKind.MEMORY: "saved memories"}
_KNOWN = {
    PassageKind.FACT: "**Facts** · learned from what was said",
    PassageKind.MEMORY: "**Saved memories** · kept on purpose",
}
_NO_MODEL = (
    "*Recall answered, not a language model. Choose a model above or in Settings to talk to one.*"
)

FindPassages = Callable[[str, ConversationId, int], Sequence[SearchResult]]


class RecallModel:
    """Answers from the book.

    `find(question, conversation to leave out, limit)` returns results best first, turns, facts and
    saved memories; it may block, and raise MemoryOff.
    """

    name = RECALL

    def __init__(self, find: FindPassages) -> None:
        self._find = find
        self._quoted: dict[ConversationId, Sequence[SearchResult]] = {}

    async def stream(self, request: ChatRequest) -> AsyncIterator[StreamEvent]:
        """Yield the answer in a few pieces; never fails for want of a result."""
        question = next(m for m in reversed(request.messages) if m.role is Role.USER)
        quoted: Sequence[SearchResult] = ()
        try:
            found = await asyncio.to_thread(
                self._find, question.text, question.conversation_id, _PASSAGES
            )
        except MemoryOff as off:
            parts = [f"{off.screen_words}\n\n", _NO_MODEL]
        else:
            quoted = _quoted(found)
            parts = _answer(quoted)
        self._remember(question.conversation_id, quoted)
        for part in parts:
            yield TextDelta(part)
        yield Finished(FinishReason.STOP)

    def quoted_in(self, conversation_id: ConversationId) -> Sequence[SearchResult]:
        """Return what the last answer in a conversation quotes, best first; of the newest few."""
        return self._quoted.get(conversation_id, ())

    def _remember(self, conversation_id: ConversationId, quoted: Sequence[SearchResult]) -> None:
        self._quoted = dict([*self._quoted.items()][-_ANSWERS_KEPT:]) | {conversation_id: quoted}

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the one model there is."""
        return (ModelCard(ModelRef(RECALL, ""), "Recall (built in)"),)

    def chat_model(self) -> "RecallModel":
        """Return itself."""
        return self

    async def aclose(self) -> None:
        """Nothing to close."""


def _quoted(found: Sequence[SearchResult]) -> Sequence[SearchResult]:
    """Return what is worth quoting: all that fits, else the nearest three that may.

    A summary is left out where turns of its conversation are quoted: it says them again.
    """
    fitting = (
        [each for each in found if not each.is_weak]
        or [each for each in found if each.relevance >= _MAYBE][:_NEAREST]
        or [each for each in found if each.relevance >= _LEAST][:_NEAREST]
    )
    told = {each.conversation_id for each in fitting if each.kind is PassageKind.TURN}
    return [each for each in fitting if not (_is_summary(each) and each.conversation_id in told)]


def _is_summary(result: SearchResult) -> bool:
    return result.kind is PassageKind.CONVERSATION_SUMMARY


def _opening(quoted: Sequence[SearchResult]) -> str:
    best = quoted[0]
    where = " and ".join(dict.fromkeys(_PLACES.get(each.kind, _SAID) for each in quoted))
    if not best.is_weak:
        return f"From your {where}:\n\n"
    if best.relevance >= _MAYBE:
        return f"This may be it, from your {where}:\n\n"
    return f"Nothing fits well. The nearest in your {where}:\n\n"


def _answer(quoted: Sequence[SearchResult]) -> list[str]:
    if not quoted:
        return [
            "I found nothing about that in your conversations.\n\n",
            "Import your past chats, or ask with other words.\n\n",
            _NO_MODEL,
        ]
    sections: dict[object, list[SearchResult]] = {}
    for each in quoted:
        sections.setdefault(_section_of(each), []).append(each)
    return [_opening(quoted), *map(_section, sections.values()), _NO_MODEL]


def _section_of(result: SearchResult) -> object:
    return result.kind if result.kind in _KNOWN else result.conversation_id


def _section(results: Sequence[SearchResult]) -> str:
    first = results[0]
    title = as_markdown(first.conversation_title)
    lines = [f"{_KNOWN.get(first.kind) or f'**{title}** · {_date(first)}'}\n"]
    for result in results:
        lines.append(f"{_source(result)} · {result.relevance:.0%}\n")
        quote = result.snippet.strip().replace("\n", "\n> ")
        lines.append(f"> {_quotable(quote)}\n")
    return "\n".join(lines) + "\n"


def _source(result: SearchResult) -> str:
    """Return where a quote is from: linked, but for what was kept outside of any conversation."""
    if result.kind in _KNOWN:
        title = f"{result.kind.capitalize()} {result.passage_id} · {_date(result)}"
    else:
        question = one_line(result.user_question, _QUESTION_LIMIT_CHARS)
        other = "Summary of the conversation" if _is_summary(result) else "Open the turn"
        title = as_markdown(question) or other
    return title if result.conversation_id is None else f"[{title}]({_link(result)})"


def _link(result: SearchResult) -> str:
    talk = result.conversation_id
    assert talk is not None
    number = result.turn_number or 0
    return link_to(talk, number, result.exchange_id, is_shown=result.is_shown)


def _date(result: SearchResult) -> str:
    local = result.created_at.astimezone()
    return f"{local.day} {local:%B %Y}"


def _quotable(text: str) -> str:
    return text.replace("```", "'''")

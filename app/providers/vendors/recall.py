"""Recall, the built-in model: it answers from the library, without a network or a language model.

It quotes the best passages with date and link, and states that no language model answered.
`app.storage.deletion.quotes` parses this form when a quoted text is forgotten.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    ListedModel,
    ModelRef,
    StreamEvent,
    TextDelta,
)
from app.domain.conversations import Image, Role
from app.domain.errors import MemoryOff
from app.domain.ids import ConversationId
from app.domain.links import link_to
from app.domain.passages import PassageKind
from app.domain.results import SearchResult
from app.domain.text import escape_markdown, one_line

RECALL = "recall"
_PASSAGES = 6
_MAX_UNCERTAIN = 3  # passages that are only possibly related
_MIN_RELEVANCE = 0.035  # below that a passage is unrelated to the question
_QUESTION_LIMIT_CHARS = 160
_MAX_ANSWERS = 16
_SOURCE_NAMES = {PassageKind.MEMORY: "saved memories"}
_HEADINGS = {  # `app.storage.deletion.quotes` recognizes these
    PassageKind.FACT: "**Facts** · learned from what was said",
    PassageKind.MEMORY: "**Saved memories** · kept on purpose",
}
_NO_MODEL = (
    "*Recall answered, not a language model. Choose a model above or in Settings to talk to one.*"
)

_NO_IMAGES = "*Recall cannot see images.*\n\n"

FindPassages = Callable[[str, ConversationId, int], Sequence[SearchResult]]


class RecallModel:
    """The model that answers from the library.

    `find(question, conversation to exclude, limit)` returns results best first: turns, facts and
    saved memories. It may block, and raise MemoryOff.
    """

    name = RECALL

    def __init__(self, find: FindPassages) -> None:
        self._find = find
        self._quoted: dict[ConversationId, Sequence[SearchResult]] = {}

    async def stream(self, request: ChatRequest) -> AsyncIterator[StreamEvent]:
        """Yield the answer in a few pieces; without results it says so."""
        question = next(m for m in reversed(request.messages) if m.role is Role.USER)
        quoted: Sequence[SearchResult] = ()
        try:
            if question.text.strip():
                found = await asyncio.to_thread(
                    self._find, question.text, question.conversation_id, _PASSAGES
                )
            else:  # only files
                found = ()
        except MemoryOff as off:
            parts = [f"{off.display_text}\n\n", _NO_MODEL]
        else:
            quoted = _quoted(found)
            parts = _answer(quoted)
        if any(isinstance(block, Image) for block in question.blocks):
            parts = [_NO_IMAGES, *parts]
        self._remember(question.conversation_id, quoted)
        for part in parts:
            yield TextDelta(part)
        yield Finished(FinishReason.STOP)

    def last_quoted(self, conversation_id: ConversationId) -> Sequence[SearchResult]:
        """Return what the last answer in a conversation quotes, best first; kept for the newest few."""
        return self._quoted.get(conversation_id, ())

    def _remember(self, conversation_id: ConversationId, quoted: Sequence[SearchResult]) -> None:
        self._quoted = dict([*self._quoted.items()][-_MAX_ANSWERS:]) | {conversation_id: quoted}

    async def models(self) -> tuple[ListedModel, ...]:
        """Return its only model."""
        return (ListedModel(ModelRef(RECALL, ""), "Recall (built in)"),)

    def chat_model(self) -> "RecallModel":
        """Return the model itself."""
        return self

    async def aclose(self) -> None:
        """Nothing to close."""


def _quoted(found: Sequence[SearchResult]) -> Sequence[SearchResult]:
    """Return the results to quote: relevant ones, and at most three possibly related ones.

    Without either, the three that are nearest. A summary is left out where turns of its conversation are quoted.
    """
    relevant = [
        *(each for each in found if not each.is_weak),
        *[each for each in found if each.is_hint][:_MAX_UNCERTAIN],
    ] or [each for each in found if each.relevance >= _MIN_RELEVANCE][:_MAX_UNCERTAIN]
    quoted_conversations = {
        each.conversation_id for each in relevant if each.kind is PassageKind.TURN
    }
    return [
        each
        for each in relevant
        if not (_is_summary(each) and each.conversation_id in quoted_conversations)
    ]


def _is_summary(result: SearchResult) -> bool:
    return result.kind is PassageKind.CONVERSATION_SUMMARY


def _opening(quoted: Sequence[SearchResult]) -> str:
    best = quoted[0]
    sources = " and ".join(
        dict.fromkeys(_SOURCE_NAMES.get(each.kind, "conversations") for each in quoted)
    )
    if not best.is_weak:
        return f"From your {sources}:\n\n"
    if best.is_hint:
        return f"Possibly related, from your {sources}:\n\n"
    return f"Nothing is clearly relevant. The closest passages from your {sources}:\n\n"


def _answer(quoted: Sequence[SearchResult]) -> list[str]:
    if not quoted:
        return [
            "I found nothing about that in your conversations.\n\n",
            "Import your past chats, or rephrase the question.\n\n",
            _NO_MODEL,
        ]
    sections: dict[object, list[SearchResult]] = {}
    for each in quoted:
        key = each.kind if each.kind in _HEADINGS else each.conversation_id
        sections.setdefault(key, []).append(each)
    return [_opening(quoted), *map(_section, sections.values()), _NO_MODEL]


def _section(results: Sequence[SearchResult]) -> str:
    first = results[0]
    title = escape_markdown(first.conversation_title)
    lines = [f"{_HEADINGS.get(first.kind) or f'**{title}** · {_date(first)}'}\n"]
    for result in results:
        hint = " · possibly related" if result.is_hint else ""
        lines.append(f"{_source(result)} · {result.relevance:.0%}{hint}\n")
        quote = result.snippet.strip().replace("\n", "\n> ").replace("```", "'''")
        lines.append(f"> {quote}\n")
    return "\n".join(lines) + "\n"


def _source(result: SearchResult) -> str:
    """Return the source of a quote, linked unless it belongs to no conversation."""
    if result.kind in _HEADINGS:
        title = f"{result.kind.capitalize()} {result.passage_id} · {_date(result)}"
    else:
        question = one_line(result.user_question, _QUESTION_LIMIT_CHARS)
        other = "Summary of the conversation" if _is_summary(result) else "Open the turn"
        title = escape_markdown(question) or other
    if result.conversation_id is None:
        return title
    link = link_to(
        result.conversation_id,
        result.turn_number or 0,
        result.exchange_id,
        is_shown=result.is_shown,
    )
    return f"[{title}]({link})"


def _date(result: SearchResult) -> str:
    local = result.created_at.astimezone()
    return f"{local.day} {local:%B %Y}"

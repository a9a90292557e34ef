"""Search results: their fields, and what of them each front end shows.

The sidebar, `commonplace search`, `/search`, `--json` and the tools all take their fields from here. A new
field needs a line in `SearchResult`, its value in `app.memory.search.results`, and a line in each of `as_document`,
`as_tool_entry` and `details` that should show it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.links import name_of_document, name_of_page
from app.domain.passages import PassageKind
from app.domain.text import one_line
from app.domain.translation import model_label

_SNIPPET_CHARS = 200


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One line of a search.

    `relevance` is 0-1; `is_weak` when it is below what recall quotes, `is_hint` when recall may hint at it;
    `cosine` is None without a vector. `message_id` is the message of the turn that was found. `marks`,
    `question_marks` and `title_marks` are (start, end) offsets of matching words in `snippet`, `user_question` and
    `conversation_title`.
    `turn_number` counts on the exchange's own path; `is_shown` when that path is the one its conversation
    shows. Times are UTC.
    """

    kind: PassageKind
    passage_id: PassageId
    source: str
    conversation_id: ConversationId | None
    conversation_title: str
    archived: bool
    turn_number: int | None
    exchange_id: ExchangeId | None
    message_id: MessageId | None
    relevance: float
    is_weak: bool
    cosine: float | None
    user_question: str
    snippet: str
    marks: tuple[tuple[int, int], ...]
    created_at: datetime
    model: str | None
    is_shown: bool = True
    is_hint: bool = False
    question_marks: tuple[tuple[int, int], ...] = ()
    title_marks: tuple[tuple[int, int], ...] = ()

    @property
    def place(self) -> str:
        """The place as people name it: ID:TURN, ID, man:PAGE.SECTION, document:N, else kind and id ("fact 12")."""
        if self.kind is PassageKind.MAN_PAGE:
            return name_of_page(self.source)
        if self.kind is PassageKind.DOCUMENT:
            return name_of_document(self.passage_id)
        if self.conversation_id is None:
            return f"{self.kind.value} {self.passage_id}"
        turn = "" if self.turn_number is None else f":{self.turn_number}"
        return f"{self.conversation_id}{turn}"


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """A result with what was said: of a turn both sides, of another passage its text as `reply`.

    `newer` are the facts that replaced what it states.
    """

    result: SearchResult
    question: str
    reply: str
    newer: "tuple[FoundAnswer, ...]" = ()


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """The results of a search, best first, with the time it took and the share of passages searched.

    `by_meaning` is True when vectors were used; if they should have been but were not, `notice` says why.
    Without a word to rank by it `is_list`: what the filters leave, newest first. If nothing was found,
    `unmatched` are the filters that match nothing by themselves, as they are typed.
    """

    query: str
    results: tuple[SearchResult, ...]
    took_ms: float
    covered_share: float = 1.0
    by_meaning: bool = False
    notice: str = ""
    is_list: bool = False
    unmatched: tuple[str, ...] = ()


def as_document(result: SearchResult) -> dict[str, Any]:
    """Return a result as `--json` prints it; the names are part of the command-line contract."""
    return {
        "kind": result.kind.value,
        "id": result.passage_id,
        "source": result.source,
        "conversation_id": result.conversation_id,
        "conversation_title": result.conversation_title,
        "turn_number": result.turn_number,
        "exchange_id": result.exchange_id,
        "message_id": result.message_id,
        "relevance": round(result.relevance, 4),
        "cosine": result.cosine,
        "user_question": result.user_question,
        "snippet": result.snippet,
        "created_at": result.created_at.isoformat(),
        "model": result.model,
    }


# The fields of a result that each tool returns, in order.
MEMORY_TOOL = (
    "kind", "id", "relevance", "date", "title", "conversation_id", "exchange_id",
)  # fmt: skip
CONVERSATION_TOOL = (
    "conversation_id", "title", "relevance", "turn_number", "exchange_id", "date",
)  # fmt: skip
MANUAL_TOOL = ("page", "title", "relevance", "text")


def as_tool_entry(result: SearchResult, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a result that a tool returns to a model; long texts are cut."""
    entry = {
        "kind": result.kind.value,
        "id": result.passage_id,
        "page": result.source,
        "conversation_id": result.conversation_id,
        "title": result.conversation_title,
        "turn_number": result.turn_number,
        "exchange_id": result.exchange_id,
        "relevance": f"{max(0.0, min(1.0, result.relevance)):.0%}",
        "text": one_line(result.snippet, _SNIPPET_CHARS),
        "date": f"{result.created_at:%Y-%m-%d %H:%M UTC}",
    }
    return {name: entry[name] for name in names}


def local_day(moment: datetime) -> str:
    """Return the local date of a moment: 2026-05-03."""
    return f"{moment.astimezone():%Y-%m-%d}"


def details(result: SearchResult, day: Callable[[datetime], str] = local_day) -> list[str]:
    """Return what a line or tooltip says of a result besides title, relevance and place: day, model."""
    words = [day(result.created_at)]
    if result.model:
        words.append(model_label(result.model))
    if result.archived:
        words.append("archived")
    return words

"""Retrieval results in a few words."""

from datetime import UTC, datetime

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import (
    MatchScore,
    QuotableText,
    QuoteUnit,
    RetrievedConversation,
    RetrievedDocument,
    RetrievedExchange,
    RetrievedFact,
    RetrievedMessage,
    Verdict,
)
from app.domain.results import SearchResult
from app.domain.text import sanitize

SAID_AT = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)


def match(
    passage_id: int,
    relevance: float = 0.9,
    kind: PassageKind = PassageKind.TURN,
    verdict: Verdict | None = None,
) -> MatchScore:
    """Return a match by words alone."""
    return MatchScore(kind, PassageId(passage_id), relevance, None, relevance, verdict)


def fact(
    passage_id: int, text: str, relevance: float = 0.9, message_id: int = 900
) -> RetrievedFact:
    return RetrievedFact(
        match(passage_id, relevance, PassageKind.FACT), text, SAID_AT,
        ConversationId(50), ExchangeId(500), MessageId(message_id),
    )  # fmt: skip


def document(passage_id: int, text: str, relevance: float = 0.9) -> RetrievedDocument:
    """Return a passage of a document that is one sentence."""
    score = match(passage_id, relevance, PassageKind.DOCUMENT)
    return RetrievedDocument(score, "tea.pdf, p. 2", SAID_AT, (QuoteUnit(text, 0, (), relevance),))


def turn(
    exchange_id: int,
    user: str = "",
    relevance: float = 0.9,
    conversation_id: int = 60,
    number: int = 3,
) -> RetrievedExchange:
    """Return a turn; its passage is its exchange's id and a thousand."""
    said = user or f"question {exchange_id}"
    return RetrievedExchange(
        match(exchange_id + 1000, relevance), ConversationId(conversation_id),
        ExchangeId(exchange_id), None, number, SAID_AT,
        (quotable(said, is_user=True), quotable(f"answer to {said}", is_user=False)),
    )  # fmt: skip


def quotable(text: str, *, is_user: bool) -> QuotableText:
    """Return a message whose lines are its units, all of the same worth."""
    return QuotableText(is_user, units_of(text))


def units_of(text: str) -> tuple[QuoteUnit, ...]:
    lines = enumerate(sanitize(text).splitlines())
    return tuple(QuoteUnit(line, number, worth=0.5) for number, line in lines if line.strip())


def said_in(found: RetrievedExchange, *, is_user: bool) -> str:
    """Return all that one side says in a turn."""
    sides = (each.units for each in found.texts if each.is_user is is_user)
    return " ".join(unit.text for units in sides for unit in units)


def talk(
    conversation_id: int,
    *turns: RetrievedExchange,
    relevance: float = 0.9,
    summary: str = "A talk.",
) -> RetrievedConversation:
    """Return a conversation; its passage is its id and two thousand."""
    return RetrievedConversation(
        match(conversation_id + 2000, relevance, PassageKind.CONVERSATION_SUMMARY),
        ConversationId(conversation_id), f"Talk {conversation_id}", SAID_AT, units_of(summary), 7, turns,
    )  # fmt: skip


def earlier(message_id: int, text: str, relevance: float = 0.9) -> RetrievedMessage:
    """Return an earlier message of the segment; its passage is its id and three thousand."""
    return RetrievedMessage(
        match(message_id + 3000, relevance), ExchangeId(message_id), MessageId(message_id), 0,
        SAID_AT, True, text,
    )  # fmt: skip


def search_result(relevance: float, kind: PassageKind, *, is_weak: bool = False) -> SearchResult:
    return SearchResult(
        kind, PassageId(int(relevance * 1000)), "", None, "", False, None, None, None, relevance,
        is_weak, None, "", "", (), SAID_AT, None,
    )  # fmt: skip

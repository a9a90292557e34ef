"""Narrowing of a retrieval to stricter settings, to try limits without another search."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from app.domain.ids import PassageId
from app.domain.recall import (
    RecallSettings,
    RetrievalResult,
    RetrievedConversation,
    RetrievedDocument,
    RetrievedExchange,
    RetrievedFact,
    RetrievedMessage,
    SegmentContext,
)
from app.memory.recall.retrieved import SPARE, first_facts, with_spare

_T = TypeVar(
    "_T",
    RetrievedFact,
    RetrievedConversation,
    RetrievedExchange,
    RetrievedDocument,
    RetrievedMessage,
)


def narrowed(
    found: RetrievalResult, settings: RecallSettings, segment: SegmentContext
) -> RetrievalResult:
    """Return what these settings find in a segment, out of what `settings.widest()` found.

    Of a conversation with branches that share a question, a spare turn may differ from that of
    `retrieve`.
    """
    found = _without_quoted(found, segment.quoted)
    if not settings.rag_enabled:
        found = replace(
            found,
            facts=(),
            conversations=(),
            history=(),
            documents=(),
            mentioned=(),
            asked_facts=(),
        )
    if not settings.auto_rag_enabled:
        found = replace(found, earlier=())
    exchanges = settings.rag_exchange_limit_per_conversation
    taken = settings.rag_conversation_limit * exchanges
    earlier = [each for each in found.earlier if each.message_id not in segment.held]
    return replace(
        found,
        facts=first_facts(found.facts, settings.rag_fact_limit),
        asked_facts=found.asked_facts if settings.rag_fact_limit else (),
        conversations=tuple(
            replace(each, exchanges=each.exchanges[: exchanges + SPARE])
            for each in found.conversations[: settings.rag_conversation_limit + SPARE]
        ),
        history=found.history[: with_spare(settings.rag_history_limit, taken)],
        earlier=tuple(earlier[: settings.auto_rag_top_k + SPARE]),
    )


def _without_quoted(found: RetrievalResult, quoted: frozenset[PassageId]) -> RetrievalResult:
    def kept(items: Iterable[_T]) -> tuple[_T, ...]:
        return tuple(each for each in items if each.match.passage_id not in quoted)

    def kept_of(talks: Iterable[RetrievedConversation]) -> tuple[RetrievedConversation, ...]:
        return tuple(replace(each, exchanges=kept(each.exchanges)) for each in kept(talks))

    return replace(
        found,
        facts=kept(found.facts),
        asked_facts=kept(found.asked_facts),
        mentioned=kept_of(found.mentioned),
        conversations=kept_of(found.conversations),
        history=kept(found.history),
        documents=kept(found.documents),
        earlier=kept(found.earlier),
    )

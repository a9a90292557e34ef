"""Finds as values: turns with cuts of what both sides said, messages whole, each with its match."""

from collections.abc import Mapping, Sequence

from app.domain.conversations import Role
from app.domain.ids import PassageId, passage_of
from app.domain.passages import Part, PassageText, SearchQuery
from app.domain.recalls import Verdict
from app.domain.retrieved import FoundExchange, FoundMessage, Match
from app.domain.text import one_line
from app.index.ranking import Ranked
from app.index.snippets import snippet
from app.storage.passage_texts import PassagePlace
from app.storage.passages import Passages
from app.storage.recall_reads import Head

CUT_CHARS = 200
_WORTH_A_CUT = 0.3  # relevance: what will hardly be used is cut where it begins


class FoundTurns:
    """Makes values of what was found. Thread-safe; blocking."""

    def __init__(self, passages: Passages) -> None:
        self._passages = passages

    def exchanges(
        self,
        query: SearchQuery,
        found: Sequence[tuple[Ranked, Head]],
        verdicts: Mapping[PassageId, Verdict],
    ) -> dict[PassageId, FoundExchange]:
        """Return turns by their passages; those that are gone meanwhile are absent."""
        shown = self._passages.shown(head.id for _, head in found)
        made = {}
        for ranked, head in found:
            if head.id in shown:
                exchange = _exchange(query, ranked, head, *shown[head.id], verdicts)
                if exchange is not None:
                    made[head.id] = exchange
        return made

    def messages(
        self, ranked: Sequence[Ranked], verdicts: Mapping[PassageId, Verdict]
    ) -> list[FoundMessage]:
        """Return messages, in order."""
        shown = self._passages.shown({passage_of(each.part_id) for each in ranked})
        made = []
        for each in ranked:
            if (whole := shown.get(passage_of(each.part_id))) is None:
                continue
            place, text = whole
            part = next((part for part in text.parts if part.id == each.part_id), None)
            if part is None or part.message_id is None or place.exchange_id is None:
                continue
            made.append(
                FoundMessage(
                    match=match_of(each, place, verdicts),
                    exchange_id=place.exchange_id,
                    message_id=part.message_id,
                    turn_number=place.turn_number or 0,
                    said_at=place.created_at,
                    is_user=part.role is Role.USER,
                    text=part.text or part.shown,
                )
            )
        return made


def match_of(
    ranked: Ranked, of: PassagePlace | Head, verdicts: Mapping[PassageId, Verdict]
) -> Match:
    """Return how well a passage answers."""
    return Match(
        kind=of.kind,
        passage_id=of.id,
        relevance=ranked.relevance,
        cosine=ranked.cosine,
        coverage=ranked.coverage,
        verdict=verdicts.get(of.id),
    )


def _exchange(
    query: SearchQuery,
    ranked: Ranked,
    head: Head,
    place: PassagePlace,
    text: PassageText,
    verdicts: Mapping[PassageId, Verdict],
) -> FoundExchange | None:
    if place.conversation_id is None or place.exchange_id is None:
        return None
    best = next((part for part in text.parts if part.id == ranked.part_id), None)
    is_likely = ranked.relevance >= _WORTH_A_CUT

    def cut(role: Role) -> str:
        part = _of_side(text, role, best)
        if part is None:
            return ""
        words = part.text or part.shown
        if len(words) <= CUT_CHARS or not is_likely:
            return one_line(words, CUT_CHARS)
        return snippet(words, query, limit_chars=CUT_CHARS).text

    return FoundExchange(
        match=match_of(ranked, head, verdicts),
        conversation_id=place.conversation_id,
        exchange_id=place.exchange_id,
        message_id=(best.message_id if best else None) or place.first_message_id,
        turn_number=place.turn_number or 0,
        started_at=place.created_at,
        user=cut(Role.USER),
        assistant=cut(Role.ASSISTANT),
        is_shown=place.is_shown,
    )


def _of_side(text: PassageText, role: Role, best: Part | None) -> Part | None:
    """Return what stands for a side: the message that was found, else its first that says something."""
    if best is not None and best.role is role:
        return best
    own = [part for part in text.parts if part.role is role]
    return next((part for part in own if part.text), own[0] if own else None)

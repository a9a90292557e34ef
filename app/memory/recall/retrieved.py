"""Retrieved turns and messages from rankings, divided into the units that can be quoted.

The state of one retrieval: what it was asked for, what it found so far, and the votes that apply.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType

from app.domain.conversations import Role
from app.domain.errors import Cancelled, KnownError
from app.domain.ids import ConversationId, ExchangeId, MessageId, PartId, PassageId, passage_id_of
from app.domain.passages import Passage, PassageKind, PassagePart, PassageText
from app.domain.recall import (
    MatchScore,
    QuotableText,
    QuoteUnit,
    RecallSettings,
    RetrievalResult,
    RetrievedConversation,
    RetrievedExchange,
    RetrievedFact,
    RetrievedMessage,
    SegmentContext,
    Verdict,
)
from app.domain.text import is_question, one_line, sanitize
from app.domain.translation import tr_noop
from app.index.id_set import IdSet
from app.index.ranking import Ranked
from app.language.analyzer import surface_words_of
from app.language.statements.extraction import is_correction
from app.memory.recall.quotation import quote_units
from app.memory.recall.ranking import PreparedQuery, with_feedback_and_age
from app.storage.tables.facts import KnownFact
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.recall_reads import ConversationHeader
from app.storage.tables.passages.texts import PassagePlace

SURE = Ranked(PartId(0), 0.0, 1.0, None, 0.0)  # what is quoted whatever the question
_PLAIN_CHARS = 200
_MOSTLY_SAME = 0.6  # share of the words of a statement and of its edited form
_CORRECTED_AGAIN = 5  # corrections of one turn that are followed
_WORTH_READING = 0.1  # relevance; below it a text is one unit, cut at the beginning


def retrieved_exchanges(
    passages: Passages,
    prepared: PreparedQuery,
    ranked: Mapping[PassageId, Ranked],
    verdicts: Mapping[PassageId, Verdict],
) -> dict[PassageId, RetrievedExchange]:
    """Return turns by passage; deleted ones, and statements that an edit corrected, are absent. Blocking."""
    shown = passages.shown(ranked)
    left_out = corrected_statements(shown, prepared)
    made = {}
    for passage, found in ranked.items():
        if passage in shown and passage not in left_out:
            made[passage] = _exchange(prepared, found, *shown[passage], verdicts)
    return {passage: exchange for passage, exchange in made.items() if exchange is not None}


def corrected_statements(
    shown: Mapping[PassageId, tuple[PassagePlace, PassageText]], prepared: PreparedQuery | None
) -> set[PassageId]:
    """Return the turns of which another one here, in their place on the shown path, is the edited form.

    Only statements of which few words changed: a former question has an answer of its own. A turn stays
    if what is asked contains a word that only the former turn has.
    """

    def spot(place: PassagePlace) -> tuple[int | None, ...]:
        return place.conversation_id, place.parent_id, place.turn_number

    turns = [each for each in shown.values() if each[0].kind is PassageKind.TURN]
    current = {spot(place): text for place, text in turns if place.is_shown and place.is_completed}
    asked = Counter(_words(prepared.quoting[0].words)) if prepared else Counter[str]()
    return {
        place.id
        for place, text in turns
        if (edited := current.get(spot(place))) is not None
        and _is_former_statement(text, edited, asked)
    }


def _is_former_statement(text: PassageText, edited: PassageText, asked: Counter[str]) -> bool:
    sides = [
        ["\n".join(part.text for part in turn.said if part.role is role) for turn in (text, edited)]
        for role in (Role.USER, Role.ASSISTANT)
    ]
    before, now = (Counter(_words(said)) for said in sides[0])
    if sides[0][0] == sides[0][1] or is_question(sides[0][0]):
        return False
    if 2 * (before & now).total() < _MOSTLY_SAME * (before.total() + now.total()):
        return False
    former, present = (Counter(_words(" ".join(said))) for said in zip(*sides, strict=True))
    return not any(word in former and word not in present for word in asked)


def _words(text: str) -> list[str]:
    return surface_words_of(text.casefold())


def retrieved_messages(
    passages: Passages,
    prepared: PreparedQuery,
    ranked: Sequence[Ranked],
    verdicts: Mapping[PassageId, Verdict],
) -> list[RetrievedMessage]:
    """Return messages, in order; deleted ones are absent. Blocking."""
    shown = passages.shown({passage_id_of(each.part_id) for each in ranked})
    made = []
    for each in ranked:
        if (whole := shown.get(passage_id_of(each.part_id))) is None:
            continue
        place, text = whole
        part = next((part for part in text.said if part.id == each.part_id), None)
        if part is None or part.message_id is None or place.exchange_id is None:
            continue
        file, words = _best_piece(prepared, part)
        made.append(
            RetrievedMessage(
                match=match_score(each, place, verdicts),
                exchange_id=place.exchange_id,
                message_id=part.message_id,
                turn_number=place.turn_number or 0,
                said_at=place.created_at,
                is_user=part.role is Role.USER,
                text=words,
                file=file,
            )
        )
    return made


def ordered_exchanges(
    found: Iterable[tuple[Ranked, Passage]],
    made: Mapping[PassageId, RetrievedExchange],
    corrections: Mapping[PassageId, PartId],
) -> tuple[RetrievedExchange, ...]:
    """Return the turns that exist, each with those that correct it, and each other, behind it.

    Of branches that share the message found, the best.
    """
    kept: dict[MessageId | ExchangeId, RetrievedExchange] = {}
    for _, head in found:
        first, behind = _chain(head.id, corrections)
        for passage in (first, *map(passage_id_of, behind)):
            if (each := made.get(passage)) is not None:
                kept.setdefault(each.message_id or each.exchange_id, each)
    return tuple(kept.values())


def with_corrections(
    ranked: Sequence[Ranked], corrections: Mapping[PassageId, PartId]
) -> list[Ranked]:
    """Return a ranking in which what corrects a turn is behind it, as relevant."""
    first: dict[PassageId, Ranked] = {}
    for each in ranked:
        first.setdefault(passage_id_of(each.part_id), each)
    placed: dict[PartId, Ranked] = {}
    for each in ranked:
        own, behind = _chain(passage_id_of(each.part_id), corrections)
        turn = first.get(own, each)
        placed.setdefault(turn.part_id, turn)
        for part in behind:
            placed.setdefault(part, replace(max(turn, each, key=_relevance), part_id=part))
        placed.setdefault(each.part_id, each)
    return list(placed.values())


def _chain(
    passage: PassageId, corrections: Mapping[PassageId, PartId]
) -> tuple[PassageId, list[PartId]]:
    """Return the turn that a correction, or one of it, corrects, and all of them in order."""
    corrected = {passage_id_of(part): own for own, part in corrections.items()}
    while passage in corrected:
        passage = corrected[passage]
    first, behind = passage, list[PartId]()
    while (part := corrections.get(passage)) is not None:
        behind.append(part)
        passage = passage_id_of(part)
    return first, behind


def _relevance(ranked: Ranked) -> float:
    return ranked.relevance


def _best_piece(prepared: PreparedQuery, part: PassagePart) -> tuple[str, str]:
    """Return what answers best of a message with files, after the name of its file."""
    if len(part.by_source) == 1:
        return part.by_source[0]
    units = quotable(prepared, [text for _, text in part.by_source], 1.0)
    worth = [max((unit.worth for unit in each), default=0.0) for each in units]
    return part.by_source[worth.index(max(worth))]


def named_conversation(
    prepared: PreparedQuery,
    conversation_id: ConversationId,
    talk: ConversationHeader,
    turns: Sequence[RetrievedExchange],
    summary: Passage | None,
) -> RetrievedConversation:
    """Return a conversation that a message names, to be quoted whatever its relevance.

    Its `turns` are at least one, or it has a summary.
    """
    return RetrievedConversation(
        match=turns[0].match if summary is None else match_score(SURE, summary, {}),
        conversation_id=conversation_id,
        title=talk.title,
        started_at=talk.started_at,
        summary=quotable(prepared, [talk.summary], 1.0)[0] if summary else (),
        exchange_count=talk.exchange_count,
        exchanges=tuple(turns),
    )


def match_score(
    ranked: Ranked, of: PassagePlace | Passage, verdicts: Mapping[PassageId, Verdict]
) -> MatchScore:
    return MatchScore(
        kind=of.kind,
        passage_id=of.id,
        relevance=ranked.relevance,
        cosine=ranked.cosine,
        coverage=ranked.coverage,
        verdict=verdicts.get(of.id),
    )


def _exchange(
    prepared: PreparedQuery,
    ranked: Ranked,
    place: PassagePlace,
    text: PassageText,
    verdicts: Mapping[PassageId, Verdict],
) -> RetrievedExchange | None:
    if place.conversation_id is None or place.exchange_id is None:
        return None
    best = next((part for part in text.parts if part.id == ranked.part_id), None)
    parts = [part for part in text.said if part.text] or list(text.said)
    if not parts:
        return None
    pieces = [
        (part.role is Role.USER, file, piece) for part in parts for file, piece in part.by_source
    ]
    units = quotable(prepared, [piece for *_, piece in pieces], ranked.relevance)
    return RetrievedExchange(
        match=match_score(ranked, place, verdicts),
        conversation_id=place.conversation_id,
        exchange_id=place.exchange_id,
        message_id=(best.message_id if best else None) or place.first_message_id,
        turn_number=place.turn_number or 0,
        started_at=place.created_at,
        texts=tuple(
            QuotableText(is_user, each, file)
            for (is_user, file, _), each in zip(pieces, units, strict=True)
        ),
        is_shown=place.is_shown,
    )


def quotable(
    prepared: PreparedQuery, texts: Sequence[str], relevance: float
) -> list[tuple[QuoteUnit, ...]]:
    """Return the units of texts that follow each other, for a question."""
    if relevance < _WORTH_READING:
        return [(QuoteUnit(one_line(sanitize(text), _PLAIN_CHARS), 0),) for text in texts]
    clean_texts = [sanitize(text) for text in texts]
    return quote_units(clean_texts, *prepared.quoting)


_log = logging.getLogger(__name__)
SPARE = 2  # results of each kind beyond the limit
_TOO_LONG = tr_noop("Recall was stopped because it took too long.")
_FAILED = tr_noop("A part of recall failed. See the log for details.")


@dataclass(slots=True)
class Retrieval:
    """The state of one retrieval."""

    conversation_id: ConversationId | None
    segment: SegmentContext
    settings: RecallSettings
    is_cancelled: Callable[[], bool]
    by_meaning: bool = True
    verdicts: Mapping[PassageId, Verdict] = field(default_factory=dict)
    found: RetrievalResult = field(default_factory=RetrievalResult)
    notices: list[str] = field(default_factory=list)

    def attempt(self, step: Callable[[], None], *, is_last: bool = False) -> None:
        """Run a step; errors become notices. The last step runs even after a cancellation."""
        try:
            if not is_last and self.is_cancelled():
                self.notices.append(_TOO_LONG)
                return
            step()
        except Cancelled:
            self.notices.append(_TOO_LONG)
        except KnownError as error:
            self.notices.append(tr_noop(f"Recall found less: {error}"))
        except Exception:  # noqa: BLE001 - the chat goes on without what was not found
            _log.exception("recall failed")
            self.notices.append(_FAILED)

    def unquoted(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """Return a ranking without what the request quotes; that is ranked with the rest before."""
        quoted = self.segment.quoted
        return [each for each in ranked if passage_id_of(each.part_id) not in quoted]

    def corrections(
        self, passages: Passages, turns: Iterable[PassageId]
    ) -> Mapping[PassageId, PartId]:
        """Return, by turn, the message shown after it, where that corrects what was said. Blocking.

        Corrections of corrections too, up to five. Left out are those that the request quotes, or that the user
        refused.
        """
        left_out, found = refused(self.verdicts), dict[PassageId, PartId]()
        for _ in range(_CORRECTED_AGAIN):
            next_turns = passages.shown_after(turns)
            texts = {each.id: each for each in passages.texts([*next_turns, *next_turns.values()])}
            more = {
                own: after.id
                for own, turn in next_turns.items()
                if texts.keys() >= {own, turn}  # else it was forgotten meanwhile
                for after in texts[turn].parts[:1]
                if after.role is Role.USER
                and is_correction(after.text, *_last_of(texts[own]))
                and turn not in left_out
                and turn not in self.segment.quoted
            }
            if not more:
                break
            found |= more
            turns = [next_turns[own] for own in more]
        return found

    def with_feedback(
        self,
        ranked: Sequence[Ranked],
        heads: Mapping[PassageId, Passage],
        facts: Mapping[PassageId, KnownFact] = MappingProxyType({}),
    ) -> list[Ranked]:
        """Return a ranking with votes and age applied."""
        said_at = {each: head.created_at for each, head in heads.items()}
        verdicts = with_pins(self.verdicts, facts)
        return with_feedback_and_age(
            ranked, verdicts, said_at, self.settings.rag_recency_half_life_days, datetime.now(UTC)
        )


def _last_of(turn: PassageText) -> tuple[str, str]:
    """Return what the user and the assistant said last in a turn; "" for nothing."""
    last = {part.role: part.text for part in turn.said}
    return last.get(Role.USER, ""), last.get(Role.ASSISTANT, "")


def refused(verdicts: Mapping[PassageId, Verdict]) -> IdSet:
    """Return the passages never to use again."""
    return IdSet({each for each, verdict in verdicts.items() if verdict is Verdict.NEVER})


def with_pins(
    verdicts: Mapping[PassageId, Verdict], facts: Mapping[PassageId, KnownFact]
) -> Mapping[PassageId, Verdict]:
    """Return the votes; a pinned fact without a vote counts as voted up."""
    pinned = (each for each, known in facts.items() if known.fact.pinned)
    return dict.fromkeys(pinned, Verdict.UP) | dict(verdicts)


def first_facts(facts: Sequence[RetrievedFact], limit: int) -> tuple[RetrievedFact, ...]:
    """Return the facts for a limit, and those that replaced what a turn states; none for 0."""
    most = with_spare(limit)
    return tuple(
        each for place, each in enumerate(facts) if place < most or (limit and each.replaces)
    )


def with_spare(limit: int, more: int = 0) -> int:
    """Return how many results to retrieve for a limit; none for a limit of 0."""
    return limit + more + SPARE if limit else 0

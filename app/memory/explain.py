"""Why a turn was, or was not, found for a question: its rank, its points, and what kept it back.

Built from what the search itself ranks by (`SearchService.inspect`); nothing is ranked here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.domain.conversations import Conversation, Exchange, ExchangeStatus
from app.domain.explanations import AskedWord, Cause, Explanation, Obstacle, Points
from app.domain.ids import ExchangeId, PartId, PassageId, passage_of
from app.domain.passages import PassageKind, SearchQuery
from app.domain.text import one_line
from app.domain.turn_text import turn_passage
from app.domain.workers import WorkerName
from app.index.ranking import FEATURES, WEIGHTS, Ranked, features
from app.index.text_index import TantivyTextIndex
from app.memory.search import CANDIDATES, Considered, Inspection, SearchService, ranking_of
from app.storage.attempts import Attempts
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store

LIMIT = 20  # of the search box

_QUESTION_CHARS = 200
_COMPANY = "company"
_FEATURE_WORDS = {
    "words": "Words of the question in the message",
    "context_words": "Words of the question in and around the message",
    "coverage": "Share of the question's words that it holds",
    "cosine": "Nearness in meaning",
    "context_cosine": "Nearness in meaning of what stands around it",
    "answers_words": "It answers a message with such words",
    "answers_cosine": "It answers a message near in meaning",
    "speaker_named": "Its speaker is named in the question",
    "time_told": "It tells a time, and the question asks for one",
    "dated": "It was said about when the question names",
    "asking": "It asks more than it tells",
    "length": "It is long enough to say something",
    "own_side": "The user said it to an assistant",
    "instruction": "It says what should always or never be done",
    "preference": "It tells what the user likes",
    _COMPANY: "How well other messages of the turn fit",
}
_LEAST = 0.005  # points that count


class Explainer:
    """Explains searches. Thread-safe; every call blocks, as long as a search or two."""

    def __init__(
        self, store: Store, settings: Settings, index: TantivyTextIndex, search: SearchService
    ) -> None:
        self._store = store
        self._settings = settings
        self._index = index
        self._search = search
        self._passages = Passages(store)
        self._exchanges = Exchanges(store)
        self._conversations = Conversations(store)

    def explain(self, question: str, exchange_id: ExchangeId, limit: int = LIMIT) -> Explanation:
        """Return how `question`, in the search box's language, finds a turn.

        `limit` is how many results are shown. Raises NotFound for a turn that is gone, InvalidInput
        for a question that cannot be taken, IndexUnavailable.
        """
        exchange = self._exchanges.get(exchange_id)
        passage = next(iter(self._passages.of_source(PassageKind.TURN, exchange_id)), None)
        parts = self._parts(passage)
        seen = self._search.inspect(question, parts)
        conversation = self._conversations.get(
            exchange.conversation_id
        )  # at least as new as `seen`
        best = _best_of(seen, parts)
        place, count = self._place(seen.ranked, passage)
        case = _Case(exchange, conversation, passage, parts, seen, best, place, limit)
        messages = self._passages.messages_of([best.part_id] if best else [])
        asked = self._passages.questions([exchange_id]).get(exchange_id, "")
        return Explanation(
            question=question,
            exchange_id=exchange_id,
            conversation_id=conversation.id,
            conversation_title=conversation.title,
            turn_number=exchange.turn_number,
            user_question=one_line(asked, _QUESTION_CHARS),
            rank=place.rank,
            ranked_count=count,
            message_id=messages.get(best.part_id) if best else None,
            score=best.score if best and seen.considered else None,
            relevance=best.relevance if best and seen.considered else None,
            cosine=best.cosine if best else None,
            coverage=best.coverage if best and seen.considered else None,
            floor=self._settings.share("rag_min_similarity"),
            points=_points(seen, best),
            words=self._words(seen.query, passage, best),
            obstacles=tuple(self._obstacles(case)),
            by_meaning=seen.considered is not None and seen.considered.cosines is not None,
            notice=seen.problem,
        )

    def rank(self, question: str, exchange_id: ExchangeId) -> int | None:
        """Return the place of a turn among all results, from 1; None when it is not found.

        Raises like `explain`.
        """
        self._exchanges.get(exchange_id)
        passage = next(iter(self._passages.of_source(PassageKind.TURN, exchange_id)), None)
        return self._place(self._search.inspect(question).ranked, passage)[0].rank

    def _parts(self, passage: PassageId | None) -> tuple[PartId, ...]:
        texts = self._passages.texts([passage]) if passage is not None else []
        return tuple(part.id for text in texts for part in text.parts)

    def _place(self, ranked: Sequence[Ranked], passage: PassageId | None) -> tuple["_Place", int]:
        """Return where a passage stands among the results, and how many there are.

        Each turn is one result, and so are two branches that share the message that was found.
        """
        messages = self._passages.messages_of(each.part_id for each in ranked)
        shown: dict[object, int] = {}
        count, place = 0, _Place(None)
        for each in ranked:
            own = passage_of(each.part_id)
            alias = ("message", messages.get(each.part_id, -each.part_id))
            if own in shown:
                continue
            if alias in shown:
                if own == passage and place.rank is None and place.twin_rank is None:
                    place = _Place(None, shown[alias])
                continue
            count += 1
            shown[own] = shown[alias] = count
            if own == passage:
                place = _Place(count)
        return place, count

    def _words(
        self, query: SearchQuery, passage: PassageId | None, best: Ranked | None
    ) -> tuple[AskedWord, ...]:
        """Return the words that count, as they were typed."""
        if not query.words:
            return ()
        weighty = self._index.document_frequencies(query).keys()
        words = []
        for word in dict.fromkeys(query.words.split()):
            if not weighty & self._index.document_frequencies(word).keys():
                continue
            hits = [] if passage is None else self._index.search(word, CANDIDATES, {passage})
            held = best is not None and any(hit.part_id == best.part_id for hit in hits)
            words.append(AskedWord(word, held))
        return tuple(words)

    # -- what kept it back

    def _obstacles(self, case: "_Case") -> list[Obstacle]:
        """Return what keeps a turn from being shown, the most final first."""
        found = list(_of_conversation(case))
        if case.passage is None:
            return found or [_UNFINISHED]
        found += self._of_filters(case, case.passage)
        found += self._of_words(case, case.passage)
        if is_unanswered := case.passage in self._search.standing().unanswered:
            found.append(_UNANSWERED)
        found += _of_rank(case, is_left_out=bool(found))
        lacks_vector = case.is_by_meaning and case.best is not None and case.best.cosine is None
        if lacks_vector and not is_unanswered:
            found.append(self._no_vector(case.exchange, case.passage))
        floor = self._settings.share("rag_min_similarity")
        if case.seen.considered and case.best is not None and case.best.relevance < floor:
            found.append(
                Obstacle(
                    Cause.WEAK,
                    f"Its relevance of {case.best.relevance:.0%} is below {floor:.0%}: a search "
                    "lists it as a weak match, and recall leaves it out.",
                    "The setting is rag_min_similarity.",
                )
            )
        return found

    def _of_filters(self, case: "_Case", passage: PassageId) -> Iterator[Obstacle]:
        """Yield the filters of the query that leave it out, asked one by one."""
        hidden = case.conversation.private or case.conversation.deleted_at is not None
        for name, own in _single_filters(case.seen.query):
            alone = replace(own, archived=case.conversation.archived)
            if not hidden and passage not in self._passages.allowed(alone, None):
                yield Obstacle(Cause.FILTER, f"The filter {name} leaves it out.")

    def _of_words(self, case: "_Case", passage: PassageId) -> Iterator[Obstacle]:
        query, parts = case.seen.query, case.parts
        if not len(self._index.survey(SearchQuery(words=query.words), parts).parts):
            yield Obstacle(
                Cause.NOT_INDEXED,
                "It is not in the text index yet.",
                "It follows within a second, or when the index is rebuilt.",
            )
            return
        if query.excluded and passage in self._index.holding(query):
            words = ", ".join(f"'-{each}'" for each in query.excluded)
            yield Obstacle(Cause.EXCLUDED_WORD, f"It holds what {words} excludes.")
        for phrase in query.phrases:
            if not len(self._index.survey(SearchQuery(phrase, (phrase,)), parts).parts):
                yield Obstacle(Cause.PHRASE, f'No message of it says "{phrase}" as it stands.')

    def _no_vector(self, exchange: Exchange, passage_id: PassageId) -> Obstacle:
        """Say why a turn has no vector in the space that answers."""
        least = self._settings.number("min_message_tokens")
        passage = turn_passage(passage_id, exchange, self._exchanges.messages_of(exchange))
        tokens = passage.tokens if passage else 0
        words = "It is found by its words alone: "
        if not tokens:
            return Obstacle(
                Cause.NO_VECTOR,
                f"{words}its reply did not come to an end, so that it is not embedded.",
                "Continue the reply, or ask again.",
            )
        if tokens < least:
            return Obstacle(
                Cause.NO_VECTOR,
                f"{words}with about {tokens} tokens it is too short to be embedded.",
                f"The setting is min_message_tokens, {least} now.",
            )
        if not self._settings.flag("embedding_pipeline_enabled"):
            return Obstacle(
                Cause.NO_VECTOR,
                f"{words}it waits to be embedded, and the embedding pipeline is off.",
                "Switch the pipeline on.",
            )
        if Attempts(self._store, WorkerName.EMBEDDING_PIPELINE).tries().get(passage_id):
            return Obstacle(
                Cause.NO_VECTOR,
                f"{words}embedding it has failed so far.",
                "The embedding pipeline's card tells why.",
            )
        return Obstacle(Cause.NO_VECTOR, f"{words}it waits to be embedded.")


@dataclass(frozen=True, slots=True)
class _Place:
    """A turn's rank; without one, that of the branch which shares the message found, if any."""

    rank: int | None
    twin_rank: int | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """A turn and a question, with all that was found out about them."""

    exchange: Exchange
    conversation: Conversation
    passage: PassageId | None
    parts: tuple[PartId, ...]
    seen: Inspection
    best: Ranked | None
    place: _Place
    limit: int

    @property
    def is_by_meaning(self) -> bool:
        """Whether vectors took part."""
        return self.seen.considered is not None and self.seen.considered.cosines is not None


_UNFINISHED = Obstacle(
    Cause.UNFINISHED,
    "The turn has no reply yet, so that it is not indexed.",
    "It is when a reply has ended.",
)

_UNANSWERED = Obstacle(
    Cause.UNFINISHED,
    "It only asks: Recall alone answered it, or the answer failed. A search lists it, by its words, "
    "behind turns that answer, and recall leaves it out.",
    "Ask again with a language model.",
)


def _of_conversation(case: _Case) -> Iterator[Obstacle]:
    conversation, asks_archived = case.conversation, case.seen.query.archived
    if conversation.private:
        yield Obstacle(
            Cause.PRIVATE, "Its conversation is private: it is never indexed or recalled."
        )
    if conversation.deleted_at is not None:
        yield Obstacle(
            Cause.TRASH, "Its conversation is in the trash.", "Restore it to find it again."
        )
    if conversation.archived and not asks_archived:
        yield Obstacle(
            Cause.ARCHIVED, "Its conversation is archived.", "Add is:archived to the question."
        )
    if asks_archived and not conversation.archived:
        yield Obstacle(Cause.FILTER, "The filter is:archived leaves it out.")
    if case.passage is not None and case.exchange.status is ExchangeStatus.RUNNING:
        yield _UNFINISHED


def _of_rank(case: _Case, *, is_left_out: bool) -> Iterator[Obstacle]:
    place, count = case.place, CANDIDATES
    if place.twin_rank is not None:
        yield Obstacle(
            Cause.OTHER_BRANCH,
            f"Another branch that shares this message is shown in its place, as number "
            f"{place.twin_rank}.",
        )
    elif place.rank is not None and place.rank > case.limit:
        yield Obstacle(
            Cause.LIMIT,
            f"It is number {place.rank}, and the first {case.limit} results are shown.",
            "A more exact question, or a filter, brings it forward.",
        )
    elif place.rank is None and case.best is not None and not is_left_out:
        also = ", nor by its meaning" if case.is_by_meaning else ""
        yield Obstacle(
            Cause.NOT_A_CANDIDATE,
            f"It is among the best {count} neither by its words nor by those around it{also}.",
        )


def _single_filters(query: SearchQuery) -> Iterator[tuple[str, SearchQuery]]:
    """Yield each filter as it is written, with a query that asks for nothing else."""
    for title in query.titles:
        yield f"title:{title}", SearchQuery(titles=(title,))
    for tag in query.tags:
        yield f"tag:{tag}", SearchQuery(tags=(tag,))
    for model in query.models:
        yield f"model:{model}", SearchQuery(models=(model,))
    if query.after is not None:
        yield f"after:{query.after.astimezone():%Y-%m-%d}", SearchQuery(after=query.after)
    if query.before is not None:
        yield f"before:{query.before.astimezone():%Y-%m-%d}", SearchQuery(before=query.before)
    if query.pinned:
        yield "is:pinned", SearchQuery(pinned=True)


def _best_of(seen: Inspection, parts: Sequence[PartId]) -> Ranked | None:
    """Return the best message of a turn: as it ranks, else as it would among the candidates."""
    for ranked in (seen.ranked, _ranking(seen.considered)):
        if (best := next((each for each in ranked if each.part_id in parts), None)) is not None:
            return best
    return None


def _ranking(found: Considered | None) -> list[Ranked]:
    return [] if found is None else ranking_of(found)


def _points(seen: Inspection, best: Ranked | None) -> tuple[Points, ...]:
    """Return what each feature that counts adds, for a message and for the first result's."""
    if seen.considered is None or best is None:
        return ()
    own = _weighed(seen.considered, best.part_id)
    first = _weighed(seen.considered, seen.ranked[0].part_id) if seen.ranked else None
    points = [
        Points(
            name,
            _FEATURE_WORDS[name],
            own.get(name, 0.0),
            None if first is None else first.get(name, 0.0),
        )
        for name in (*FEATURES, _COMPANY)
    ]
    counting = [each for each in points if abs(each.points) + abs(each.best_points or 0) >= _LEAST]
    return tuple(sorted(counting, key=lambda each: -abs(each.points)))


def _weighed(found: Considered, part: PartId) -> dict[str, float]:
    """Return the points of a message by feature; what its turn's other messages add is one more."""
    rows = [int(each) for each in found.survey.parts]
    if part not in rows:
        return {}
    row = features(found.question, found.survey, found.cosines)[rows.index(part)] * WEIGHTS
    whole = next(each.score for each in _ranking(found) if each.part_id == part)
    return dict(zip(FEATURES, map(float, row), strict=True)) | {_COMPANY: whole - float(row.sum())}

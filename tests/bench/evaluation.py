"""Evaluation conversations with questions: read, put into a library, and rankings scored.

The format is one JSON file: conversations of dated sessions of turns, and questions with the ids of
the turns that answer them. Each session becomes a conversation of its own, as a real chat would be,
through the product's own import.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from app.bootstrap import RunMode, Services, build
from app.domain.conversations import Role, Text
from app.domain.ids import ConversationId, ExchangeId, MessageId, new_uid
from app.domain.records.facts import BY_USER, Fact, FactCategory
from app.domain.transfer import ImportedConversation, ImportedMessage, PortableSummary
from app.domain.workers import WorkerName
from app.language.sentences import unspaced_runs
from app.storage.engine.store import Store
from app.storage.tables.facts import fact_changes
from app.system.paths import DataPaths
from app.transfer.existing import message_key
from app.transfer.importer import ConversationImporter
from tests.bench.shared.measuring import Figures, latency, timed

T = TypeVar("T", bound=Hashable)
Words = Annotated[str, BeforeValidator(lambda found: "" if found is None else str(found))]
Moment = Annotated[datetime, AfterValidator(lambda at: at.astimezone(UTC))] | None

_SOURCE = "evaluation"
_BATCH = 64
_PLAIN_SPEAKERS = frozenset({"", "user", "assistant", "human", "ai"})
_NAMES = ("Anna", "Ben")
_KEYWORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_SENTENCE_ENDS = re.compile(r"[.!?\n。！？]+")
MOST_KEYWORDS = 3
KEYWORDS_APART = 8  # rare words at most
FRAGMENT_WORDS = (3, 7)
FRAGMENT_SHARE = 0.05  # of the messages contain a word of a fragment, at most
KEYWORD_SHARE = 0.02  # of the messages contain a word that is drawn, at most
DEPTHS = (1, 3, 5, 10, 20)
GAIN_DEPTH = 10


# -- what is in a file
@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance; `speaker` is a name where people talk. `at` is UTC or None."""

    id: Words
    role: Role
    text: str
    speaker: Words = ""
    at: Moment = None

    @property
    def said(self) -> str:
        """The text as it is stored: with the speaker's name before it, as a pasted chat log has it."""
        named = self.speaker.lower() not in _PLAIN_SPEAKERS
        return f"{self.speaker}: {self.text}" if named else self.text


@dataclass(frozen=True, slots=True)
class Statement:
    """A ready-made statement about a speaker, and the ids of the turns it comes from."""

    text: str
    turns: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """What was said at one sitting. `title` and `summary` may be empty. `started_at` is UTC or None."""

    id: Words
    turns: tuple[Turn, ...]
    title: Words = ""
    started_at: Moment = None
    summary: Words = ""
    facts: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the conversation that a follow-up continues."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its gold answer ("" for none), and the ids of the turns that hold it.

    `history` is what was said before a follow-up, and `rewrite` its wording without that, "" for none.
    `is_keywords` is true for words typed into a search box, `is_fragment` for some words of a message.
    """

    category: Words
    text: Annotated[str, Field(alias="question")]
    evidence: frozenset[Words]
    answer: Annotated[Words, AfterValidator(lambda text: "" if text == "None" else text)] = ""
    history: tuple[Said, ...] = ()
    rewrite: Words = ""
    is_keywords: bool = False
    is_fragment: bool = False


@dataclass(frozen=True, slots=True)
class Talk:
    """An evaluation conversation: all that two speakers said to each other, over many sessions."""

    id: Words
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    title: Words = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    name: str
    talks: Annotated[tuple[Talk, ...], Field(alias="conversations")]

    @property
    def asked(self) -> list[tuple[Talk, Question]]:
        return [(talk, question) for talk in self.talks for question in talk.questions]


def read_evaluation(path: Path, asked: str = "question") -> Evaluation:
    """Return a file's data set; raise ValueError where it has another form.

    `asked` names the field with a question's wording; raise KeyError where a question lacks it.
    """
    content = json.loads(path.read_bytes())
    for talk in content["conversations"]:
        for question in talk["questions"]:
            question["question"] = question[asked]
    return TypeAdapter(Evaluation).validate_python(content)


def renamed(evaluation: Evaluation) -> Evaluation:
    """Return a data set whose speakers all have the same two names, in messages and questions.

    In a real library nearly everything is said by one person, so that a name in a question tells nothing of
    whether there is an answer.
    """
    talks = []
    for talk in evaluation.talks:
        speakers = [turn.speaker for session in talk.sessions for turn in session.turns]
        known = [each for each in dict.fromkeys(speakers) if each.lower() not in _PLAIN_SPEAKERS]
        names = {each: _NAMES[at % len(_NAMES)] for at, each in enumerate(known)}
        names |= {each.split()[0]: name for each, name in names.items()}
        pattern = re.compile("|".join(rf"\b{re.escape(each)}\b" for each in names) or r"(?!)")
        new = partial(pattern.sub, lambda match, names=names: names[match[0]])
        sessions = tuple(
            replace(
                session,
                turns=tuple(
                    replace(
                        turn, text=new(turn.text), speaker=names.get(turn.speaker, turn.speaker)
                    )
                    for turn in session.turns
                ),
                summary=new(session.summary),
                facts=tuple(replace(fact, text=new(fact.text)) for fact in session.facts),
            )
            for session in talk.sessions
        )
        questions = tuple(
            replace(each, text=new(each.text), answer=new(each.answer)) for each in talk.questions
        )
        talks.append(replace(talk, sessions=sessions, questions=questions))
    return replace(evaluation, name=f"{evaluation.name}, renamed", talks=tuple(talks))


def with_keywords(evaluation: Evaluation, count: int, drawing: Random) -> Evaluation:
    """Return a set whose questions are up to `count` keyword searches, as people type them into a search box.

    Each is one to three words that a drawn message contains close together; in scripts without spaces, two
    characters stand for a word. Frequent words are not drawn. All messages of the conversation that contain
    every word are evidence (known-item search: Azzopardi, de Rijke, Balog 2007).
    """
    said = _said(evaluation)
    pieces = {(talk.id, turn.id): _pieces(turn.text) for talk, turn in said}
    questions: dict[str, list[Question]] = {talk.id: [] for talk in evaluation.talks}
    for talk, turn in drawing.sample(said, min(count, len(said))):
        own = {
            each: frozenset(found)
            for (of_talk, each), found in pieces.items()
            if of_talk == talk.id
        }
        counts = Counter(piece for found in own.values() for piece in found)
        rare = [
            piece
            for piece in pieces[talk.id, turn.id]
            if counts[piece] <= max(1, KEYWORD_SHARE * len(own))
        ]
        start = drawing.randrange(max(1, len(rare) - KEYWORDS_APART))
        near = list(dict.fromkeys(rare[start : start + KEYWORDS_APART]))
        chosen = drawing.sample(near, min(len(near), drawing.randint(1, MOST_KEYWORDS)))
        if chosen:
            holding = frozenset(each for each, found in own.items() if found.issuperset(chosen))
            questions[talk.id].append(
                Question(f"{len(chosen)} words", " ".join(chosen), holding, is_keywords=True)
            )
    return _with_questions(evaluation, "keywords", questions)


def with_fragments(evaluation: Evaluation, count: int, drawing: Random) -> Evaluation:
    """Return a set whose questions are fragments of what up to `count` messages of each side say.

    Each is some of the rarer words of one sentence, in order, with a question mark: what a user remembers of a
    message. The message is the evidence (known-item search).
    """
    said = _said(evaluation)
    counts: dict[str, Counter[str]] = {talk.id: Counter() for talk in evaluation.talks}
    for talk, turn in said:
        counts[talk.id].update(set(_pieces(turn.text)))
    sizes = Counter(talk.id for talk, _ in said)
    drawn: Counter[Role] = Counter()
    questions: dict[str, list[Question]] = {talk.id: [] for talk in evaluation.talks}
    for talk, turn in drawing.sample(said, len(said)):
        most = max(1, FRAGMENT_SHARE * sizes[talk.id])
        sentences = [
            [piece for piece in dict.fromkeys(_pieces(each)) if counts[talk.id][piece] <= most]
            for each in _SENTENCE_ENDS.split(turn.text)
        ]
        long = [each for each in sentences if len(each) > FRAGMENT_WORDS[1]]
        if drawn[turn.role] < count and long:
            words = drawing.choice(long)
            kept = sorted(drawing.sample(range(len(words)), drawing.randint(*FRAGMENT_WORDS)))
            text = " ".join(words[at] for at in kept) + "?"
            questions[talk.id].append(
                Question(turn.role, text, frozenset({turn.id}), is_fragment=True)
            )
            drawn[turn.role] += 1
    return _with_questions(evaluation, "fragments", questions)


def _said(evaluation: Evaluation) -> list[tuple[Talk, Turn]]:
    return [
        (talk, turn) for talk in evaluation.talks for each in talk.sessions for turn in each.turns
    ]


def _with_questions(
    evaluation: Evaluation, what: str, questions: Mapping[str, Sequence[Question]]
) -> Evaluation:
    talks = tuple(replace(each, questions=tuple(questions[each.id])) for each in evaluation.talks)
    return replace(evaluation, name=f"{evaluation.name}, {what}", talks=talks)


def has_words(talks: Iterable[Talk], words: str) -> bool:
    """Return whether a message of some conversations contains all of the words."""
    wanted = set(_pieces(words))
    return any(
        wanted.issubset(_pieces(turn.text))
        for talk in talks
        for session in talk.sessions
        for turn in session.turns
    )


def _pieces(text: str) -> list[str]:
    """Return the words of a text in order; a pair of characters counts as a word in scripts without spaces.

    A single character is none.
    """
    return [
        "".join(piece)
        for word in _KEYWORD.findall(text.casefold())
        if len(word) > 1
        for piece in (pairwise(word) if unspaced_runs(word[0]) else [word])
    ]


# -- in a library
@dataclass(frozen=True, slots=True)
class StoredTalk:
    """Where an evaluation conversation went; `messages` are by the turn's id."""

    conversation_ids: frozenset[ConversationId]
    messages: Mapping[str, MessageId]

    def evidence(self, question: Question) -> frozenset[MessageId]:
        return frozenset(self.messages[each] for each in question.evidence & self.messages.keys())


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """A data set in a store. The two maps cover every message of every talk."""

    talks: Mapping[str, StoredTalk]
    exchange_of: Mapping[MessageId, ExchangeId]
    conversation_of: Mapping[MessageId, ConversationId]


def few_of(evaluation: Evaluation, count: int, drawing: Random) -> Evaluation:
    """Return a set of `count` conversations, of as few speakers as there are for so many."""
    talks: list[Talk] = []
    for talk in drawing.sample(evaluation.talks, len(evaluation.talks)):
        if not (left := count - sum(len(each.sessions) for each in talks)):
            break
        sessions = tuple(drawing.sample(talk.sessions, min(left, len(talk.sessions))))
        said = {turn.id for session in sessions for turn in session.turns}
        asked = (each for each in talk.questions if each.evidence and each.evidence <= said)
        talks.append(replace(talk, sessions=sessions, questions=tuple(asked)))
    return replace(evaluation, talks=tuple(talks))


def fill(
    services: Services,
    sets: Iterable[Evaluation],
    *,
    with_notes: bool = False,
    with_facts: bool = True,
    words_only: bool = False,
) -> tuple[list[StoredEvaluation], Figures]:
    """Store, index and embed data sets; return where they went and the seconds that took.

    `with_notes` stores the ready-made summaries, and the facts unless not `with_facts`, as a background
    model's.
    """

    def store_and_index() -> list[StoredEvaluation]:
        stored = []
        for each in sets:
            stored.append(_store(services.store, each, with_notes))
            if with_notes:
                _store_notes(services.store, each, stored[-1], with_facts=with_facts)
        services.index_sync.catch_up()
        return stored

    def embed() -> None:
        if not words_only:
            services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])

    stored, embedded = timed(store_and_index), timed(embed)
    times = {
        "stored_and_indexed_s": round(stored.wall_s, 2),
        "embedded_s": round(embedded.wall_s, 2),
    }
    return stored.result, times


def _store(store: Store, evaluation: Evaluation, with_notes: bool) -> StoredEvaluation:
    importer = ConversationImporter(store)
    imported = _all_imported(evaluation, with_notes=with_notes)
    everything = list(imported.values())
    for at in range(0, len(everything), _BATCH):
        for pending in importer.store(everything[at : at + _BATCH]):
            assert pending.wait().conversations, "a data set is stored once"
    store.checkpoint().result()
    return _places(store, evaluation, imported)


def _store_notes(
    store: Store, evaluation: Evaluation, places: StoredEvaluation, *, with_facts: bool
) -> None:
    """Store the ready-made facts."""
    for talk in evaluation.talks:
        messages = places.talks[talk.id].messages
        for session in talk.sessions:
            at = session.started_at
            for each in session.facts if with_facts else ():
                source = next((messages[turn] for turn in each.turns if turn in messages), None)
                if source is not None and at is not None:
                    fact = Fact(
                        store.ids.passage(), new_uid(), each.text, FactCategory.OTHER, "",
                        places.conversation_of[source], places.exchange_of[source], source,
                        at, BY_USER, at,
                    )  # fmt: skip
                    store.save(*fact_changes(fact))


@contextmanager
def library_of(
    folder: Path, evaluation: Evaluation, embedder: str | None = None
) -> Iterator[tuple[Services, StoredEvaluation]]:
    """Open a library in `folder` with one data set, stored unless it is there; None: the usual embedder."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(build(DataPaths(folder), RunMode.COMMAND_LINE)) as services:
        for key in ("embedder", "embedder_before") if embedder else ():
            services.settings.set(key, embedder)
        stored = stored_before(services.store, evaluation) or fill(services, [evaluation])[0][0]
        services.index_sync.catch_up()
        yield services, stored


def stored_before(store: Store, evaluation: Evaluation) -> StoredEvaluation | None:
    """Return where a data set is in a store, None where it is not."""
    found = _places(store, evaluation, _all_imported(evaluation, with_notes=False))
    return found if found.exchange_of else None


def _all_imported(
    evaluation: Evaluation, *, with_notes: bool
) -> dict[tuple[str, str], ImportedConversation]:
    return {
        (talk.id, session.id): _imported(evaluation, talk, session, with_notes)
        for talk in evaluation.talks
        for session in talk.sessions
        if session.turns
    }


def _places(
    store: Store, evaluation: Evaluation, imported: Mapping[tuple[str, str], ImportedConversation]
) -> StoredEvaluation:
    turns = {
        message_key(found, message.source_id): (talk_id, message.source_id)
        for (talk_id, _), found in imported.items()
        for message in found.messages
    }
    rows = store.rows(
        "SELECT o.source_id, message_id, exchange_id, conversation_id FROM origin o "
        "JOIN exchange_message ON message_id = local_id JOIN exchange e ON e.id = exchange_id "
        "WHERE o.source = ? AND kind = 'message' ORDER BY exchange_id, place",
        [_SOURCE],
    )
    places = [(*turns[key], *ids) for key, *ids in rows if key in turns]
    return StoredEvaluation(
        {
            talk.id: StoredTalk(
                frozenset(row[4] for row in places if row[0] == talk.id),
                {row[1]: row[2] for row in places if row[0] == talk.id},
            )
            for talk in evaluation.talks
        },
        {message: exchange for _, _, message, exchange, _ in places},
        {message: conversation for _, _, message, _, conversation in places},
    )


def _imported(
    evaluation: Evaluation, talk: Talk, session: Session, with_notes: bool
) -> ImportedConversation:
    messages, parent = [], None
    for turn in session.turns:
        messages.append(ImportedMessage(turn.id, parent, turn.role, (Text(turn.said),), turn.at))
        parent = turn.id
    times = [turn.at for turn in session.turns if turn.at is not None]
    begun = session.started_at or min(times, default=None)
    ended = max(times, default=begun)
    summaries: tuple[PortableSummary, ...] = ()
    if with_notes and session.summary and ended is not None:
        summaries = (PortableSummary(session.summary, _SOURCE, ended),)
    date = f"{begun.day} {begun:%B %Y}" if begun else ""
    return ImportedConversation(
        _SOURCE, f"{evaluation.name}/{talk.id}/{session.id}",
        session.title or ", ".join(part for part in (talk.title, date) if part), tuple(messages),
        visible_leaf=parent, created_at=begun, updated_at=ended, summaries=summaries,
    )  # fmt: skip


# -- how good a ranking is
@dataclass(frozen=True, slots=True)
class Asked:
    """A question with what came back: messages best first, from the whole search in `took_ms`."""

    talk_id: str
    question: Question
    ranking: Sequence[MessageId]
    took_ms: float


def first_places(ranking: Iterable[MessageId], group_of: Mapping[MessageId, T]) -> list[T]:
    return list(dict.fromkeys(group_of[each] for each in ranking if each in group_of))


def scores(ranking: Sequence[Hashable], evidence: Collection[Hashable]) -> dict[str, float]:
    """Return any@k, all@k and frac@k (the share found), MRR and NDCG@10 of one ranking, each 0-1.

    `ranking` is best first, without repetition; `evidence` is not empty. Gains are 1 or 0 (Jarvelin
    and Kekalainen 2002, discounted by log2 of the rank plus one); the ideal has all evidence first.
    """
    wanted = frozenset(evidence)
    places = [place for place, each in enumerate(ranking, start=1) if each in wanted]
    found: dict[str, float] = {}
    for depth in DEPTHS:
        share = sum(place <= depth for place in places) / len(wanted)
        found[f"any@{depth}"] = float(share > 0)
        found[f"all@{depth}"] = float(share == 1)
        found[f"frac@{depth}"] = share
    gain = sum(1 / math.log2(place + 1) for place in places if place <= GAIN_DEPTH)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(wanted), GAIN_DEPTH) + 1))
    return found | {"mrr": 1 / places[0] if places else 0.0, f"ndcg@{GAIN_DEPTH}": gain / ideal}


def report(stored: StoredEvaluation, answers: Sequence[Asked]) -> Figures:
    """Return every figure: by turn, by exchange and by session, over all and by category.

    Questions without evidence are left out of all but the latency. Where the turns' ranking holds
    several messages of an exchange or session, the best counts.
    """
    scored: dict[str, list[dict[str, dict[str, float]]]] = {}
    for each in answers:
        if evidence := stored.talks[each.talk_id].evidence(each.question):
            units = _by_unit(stored, each.ranking, evidence)
            scored.setdefault(each.question.category, []).append(units)
    return {
        "overall": _means([units for found in scored.values() for units in found]),
        "by_category": {name: _means(scored[name]) for name in sorted(scored)},
        "latency_ms": latency([each.took_ms for each in answers]),
    }


def _by_unit(
    stored: StoredEvaluation, ranking: Sequence[MessageId], evidence: frozenset[MessageId]
) -> dict[str, dict[str, float]]:
    units: dict[str, Mapping[MessageId, Hashable]] = {
        "turn": {each: each for each in stored.exchange_of},
        "exchange": stored.exchange_of,
        "session": stored.conversation_of,
    }
    return {
        name: scores(first_places(ranking, unit), {unit[each] for each in evidence})
        for name, unit in units.items()
    }


def _means(found: Sequence[Mapping[str, Mapping[str, float]]]) -> Figures:
    """Return the mean of each unit's figures, to four digits; of none, nothing."""
    means = {
        unit: {
            name: round(sum(each[unit][name] for each in found) / len(found), 4) for name in figures
        }
        for unit, figures in (found[0] if found else {}).items()
    }
    return {"questions": len(found), **means}

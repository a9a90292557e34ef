"""Evaluation conversations with questions: read, put into a store, and rankings scored.

The format is one JSON file: conversations of dated sessions of turns, and questions with the ids of
the turns that answer them. Each session becomes a conversation of its own, as a real chat would be,
through the product's own import. Who asks, and how, is `retrieval.py` and `peers.py`.
"""

import json
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from app.domain.conversations import Role, Text
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.transfer import ImportedConversation, ImportedMessage, PortableSummary
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.transfer.existing import message_key
from app.transfer.importer import ConversationImporter
from tests.bench.shared.measuring import Figures, latency

T = TypeVar("T", bound=Hashable)

_SOURCE = "evaluation"
_BATCH = 64
_PLAIN_SPEAKERS = frozenset({"", "user", "assistant", "human", "ai"})
DEPTHS = (1, 3, 5, 10, 20)
GAIN_DEPTH = 10


# -- what is in a file


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance; `speaker` is a name where people talk. `at` is UTC or None."""

    id: str
    role: Role
    speaker: str
    at: datetime | None
    text: str

    @property
    def said(self) -> str:
        """The text as it is stored: with the speaker's name before it, as a pasted chat log has it."""
        named = self.speaker.lower() not in _PLAIN_SPEAKERS
        return f"{self.speaker}: {self.text}" if named else self.text


@dataclass(frozen=True, slots=True)
class Fact:
    """A ready-made statement about a speaker, and the ids of the turns it comes from."""

    text: str
    speaker: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """What was said at one sitting. `title` and `summary` may be empty. `started_at` is UTC or None."""

    id: str
    title: str
    started_at: datetime | None
    turns: tuple[Turn, ...]
    summary: str = ""
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the turns that hold its answer (of its own conversation)."""

    category: str
    text: str
    answer: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Talk:
    """An evaluation conversation: all that two speakers said to each other, over many sessions."""

    id: str
    title: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    name: str
    talks: tuple[Talk, ...]


def read_evaluation(path: Path) -> Evaluation:
    """Return a file's data set; raise KeyError or ValueError where it has another form."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Evaluation(found["name"], tuple(map(_talk, found["conversations"])))


def _talk(found: Mapping[str, Any]) -> Talk:
    speakers = [turn.get("speaker") for each in found["sessions"] for turn in each["turns"]]
    sessions = tuple(
        Session(
            str(each["id"]),
            each.get("title") or "",
            _moment(each.get("started_at")),
            tuple(_turn(turn, speakers[0]) for turn in each["turns"]),
            each.get("summary") or "",
            tuple(
                Fact(fact["text"], fact.get("speaker") or "", tuple(map(str, fact["turns"])))
                for fact in each.get("facts") or ()
            ),
        )
        for each in found["sessions"]
    )
    known = {turn.id for session in sessions for turn in session.turns}
    questions = tuple(
        Question(
            each.get("category") or "",
            each["question"],
            str(each.get("answer") or ""),
            frozenset(map(str, each["evidence"])) & known,
        )
        for each in found["questions"]
    )
    return Talk(str(found["id"]), found.get("title") or "", sessions, questions)


def _turn(found: Mapping[str, Any], first_speaker: str | None) -> Turn:
    speaker = found.get("speaker") or ""
    role = found.get("role") or ("user" if speaker == first_speaker else "assistant")
    return Turn(str(found["id"]), Role(role), speaker, _moment(found.get("at")), found["text"])


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


# -- in a store


@dataclass(frozen=True, slots=True)
class StoredTalk:
    """Where an evaluation conversation went: ours by its own ids.

    `conversations` are by the session's id, `messages` by the turn's.
    """

    conversations: Mapping[str, ConversationId]
    messages: Mapping[str, MessageId]

    @property
    def conversation_ids(self) -> frozenset[ConversationId]:
        """The conversations to stay within when a question is asked of this talk alone."""
        return frozenset(self.conversations.values())

    def evidence(self, question: Question) -> frozenset[MessageId]:
        return frozenset(self.messages[each] for each in question.evidence)


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """A data set in a store. The two maps cover every message of every talk."""

    talks: Mapping[str, StoredTalk]
    exchange_of: Mapping[MessageId, ExchangeId]
    conversation_of: Mapping[MessageId, ConversationId]


def store_evaluation(
    store: Store, evaluation: Evaluation, *, with_summaries: bool = False
) -> StoredEvaluation:
    """Import a data set, one conversation a session; return where everything went. Blocking.

    Several data sets can go into one store. `with_summaries` stores the sessions' ready-made
    summaries as the conversations' own.
    """
    adoption = ConversationImporter(store)
    imported = {
        (talk.id, session.id): _imported(evaluation, talk, session, with_summaries)
        for talk in evaluation.talks
        for session in talk.sessions
        if session.turns
    }
    everything = list(imported.values())
    for at in range(0, len(everything), _BATCH):
        for pending in adoption.store(everything[at : at + _BATCH]):
            assert pending.wait().conversations, "a data set is stored once"
    store.checkpoint().result()
    return _found_again(store, evaluation, imported)


def _imported(
    evaluation: Evaluation, talk: Talk, session: Session, with_summaries: bool
) -> ImportedConversation:
    messages, parent = [], None
    for turn in session.turns:
        messages.append(ImportedMessage(turn.id, parent, turn.role, (Text(turn.said),), turn.at))
        parent = turn.id
    times = [turn.at for turn in session.turns if turn.at is not None]
    begun = session.started_at or min(times, default=None)
    ended = max(times, default=begun)
    summaries: tuple[PortableSummary, ...] = ()
    if with_summaries and session.summary and ended is not None:
        summaries = (PortableSummary(session.summary, _SOURCE, ended),)
    return ImportedConversation(
        _SOURCE,
        f"{evaluation.name}/{talk.id}/{session.id}",
        session.title or _dated(talk.title, begun),
        tuple(messages),
        visible_leaf=parent,
        created_at=begun,
        updated_at=ended,
        summaries=summaries,
    )


def _dated(title: str, begun: datetime | None) -> str:
    date = f"{begun.day} {begun:%B %Y}" if begun else ""
    return ", ".join(part for part in (title, date) if part)


def _found_again(
    store: Store,
    evaluation: Evaluation,
    imported: Mapping[tuple[str, str], ImportedConversation],
) -> StoredEvaluation:
    reader = Conversations(store)
    wanted = {
        (talk_id, message.source_id): message_key(found, message.source_id)
        for (talk_id, _), found in imported.items()
        for message in found.messages
    }
    names = [found.source_id for found in imported.values()]
    conversations = reader.imported_ids(_SOURCE, "conversation", names)
    messages = reader.imported_ids(_SOURCE, "message", wanted.values())
    talks = {
        talk.id: StoredTalk(
            {
                session_id: ConversationId(conversations[found.source_id])
                for (talk_id, session_id), found in imported.items()
                if talk_id == talk.id
            },
            {
                turn_id: MessageId(messages[key])
                for (talk_id, turn_id), key in wanted.items()
                if talk_id == talk.id
            },
        )
        for talk in evaluation.talks
    }
    places = _places(store, conversations.values())
    return StoredEvaluation(
        talks,
        {message: exchange for message, exchange, _ in places},
        {message: conversation for message, _, conversation in places},
    )


def _places(
    store: Store, conversation_ids: Iterable[int]
) -> list[tuple[MessageId, ExchangeId, ConversationId]]:
    wanted = list(conversation_ids)
    return store.read(
        lambda cursor: cursor.execute(
            "SELECT message_id, exchange_id, conversation_id FROM exchange_message "
            "JOIN exchange ON exchange.id = exchange_id "
            "WHERE conversation_id IN (SELECT unnest(?)) ORDER BY exchange_id, place",
            [wanted],
        ).fetchall()
    )


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


def mean(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each figure, to four digits; of none, nothing."""
    names = found[0] if found else ()
    return {name: round(sum(each[name] for each in found) / len(found), 4) for name in names}


def report(stored: StoredEvaluation, answers: Sequence[Asked]) -> Figures:
    """Return every figure: by turn, by exchange and by session, over all and by category.

    Questions without evidence are left out of all but the latency. Where the turns' ranking holds
    several messages of an exchange or session, the best counts.
    """
    scored: list[tuple[str, dict[str, dict[str, float]]]] = [
        (each.question.category, _by_unit(stored, each))
        for each in answers
        if each.question.evidence
    ]
    categories = sorted({category for category, _ in scored})
    return {
        "overall": _means([units for _, units in scored]),
        "by_category": {
            name: _means([units for category, units in scored if category == name])
            for name in categories
        },
        "latency_ms": latency([each.took_ms for each in answers]),
    }


def _by_unit(stored: StoredEvaluation, asked: Asked) -> dict[str, dict[str, float]]:
    evidence = stored.talks[asked.talk_id].evidence(asked.question)
    units: dict[str, Mapping[MessageId, Hashable]] = {
        "turn": {each: each for each in stored.exchange_of},
        "exchange": stored.exchange_of,
        "session": stored.conversation_of,
    }
    return {
        name: scores(first_places(asked.ranking, unit), {unit[each] for each in evidence})
        for name, unit in units.items()
    }


def _means(found: Sequence[Mapping[str, Mapping[str, float]]]) -> Figures:
    units = found[0] if found else ()
    means = {unit: mean([each[unit] for each in found]) for unit in units}
    return {"questions": len(found), **means}

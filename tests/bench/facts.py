"""How good the facts are that patterns find, beside facts that people were given; prints JSON.

    python -m tests.bench.facts --data FILE [--talk ID ...]

The file is an evaluation set (see `evaluation`) whose sessions carry facts. A given fact counts as
covered when one of ours is from a turn it names and near to it: by cosine of the built-in
embedder's vectors, at 0.6 and at 0.7, or by ROUGE-L at 0.4. `turns_found` is the share of given
facts for which anything was learned from a turn they name. Ours are supported when their content
words, cut to stems, are in their turn (or are names or dates worked out from it).
"""

import re
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from app.domain.conversations import Role
from app.language.statements.clauses import find_speakers
from app.language.statements.extraction import extract_statements
from app.language.statements.statement import SourceMessage, Statement, content_words
from app.providers.embedders.local import LocalEmbedder
from tests.bench.evaluation import Session, Talk, read_evaluation
from tests.bench.shared.measuring import MODEL, Figures, options, print_json, timed
from tests.bench.summaries import rouge, words

NEAR, NEARER, ROUGE_L = 0.6, 0.7, 0.4
STEM_CHARS = 4
DATED = re.compile(r"(?:on|in|around) (?:the (?:week|weekend) of )?[\w ]*\d{4}")
FRAME = frozenset(("find", "finds", "found"))  # "It was great to" is "Ann found it great to"
Ours = tuple[str, Statement]  # the turn's id and what was learned from it


def main() -> None:
    given = options(__doc__, required=["data"], data=[Path], talk=[str])
    embedder = LocalEmbedder(MODEL, threads=2)
    figures = Figures()
    for path in given.data:
        talks = [t for t in read_evaluation(path).talks if not given.talk or t.id in given.talk]
        figures[path.stem] = {talk.id: measured([talk], embedder) for talk in talks}
        figures[path.stem]["all"] = measured(talks, embedder)
    print_json(figures)


def measured(talks: Sequence[Talk], embedder: LocalEmbedder) -> Figures:
    sessions = [session for talk in talks for session in talk.sessions]
    messages = sum(len(session.turns) for session in sessions)
    took = timed(lambda: [learned(session) for session in sessions])
    found = took.result
    rows = [
        row
        for each, session in zip(found, sessions, strict=True)
        for row in compared(each, session, embedder)
    ]
    ours = [(one, session) for each, session in zip(found, sessions, strict=True) for one in each]
    supported = [is_supported(one, session) for one, session in ours]
    sizes = [len(words(one.text)) for (_, one), _ in ours]
    return {
        "messages": messages,
        "ms_per_message": round(took.ms / max(1, messages), 3),
        "facts": len(ours),
        "given": len(rows),
        "turns_found": share(row[0] for row in rows),
        f"covered_cosine_{NEAR}": share(row[1] >= NEAR for row in rows),
        f"covered_cosine_{NEARER}": share(row[1] >= NEARER for row in rows),
        f"covered_rouge_l_{ROUGE_L}": share(row[2] >= ROUGE_L for row in rows),
        "supported": share(supported),
        "mean_words": round(statistics.mean(sizes), 1) if sizes else 0,
    }


def learned(session: Session) -> list[Ours]:
    """Return what is learned from a session, turn by turn as the program stores it."""
    made: list[Ours] = []
    exchange: list[int] = []
    for place, turn in enumerate(session.turns):
        if turn.role is Role.USER and any(
            session.turns[each].role is not Role.USER for each in exchange
        ):
            made += of_exchange(session, exchange)
            exchange = []
        exchange.append(place)
    return made + of_exchange(session, exchange)


def of_exchange(session: Session, places: Sequence[int]) -> list[Ours]:
    turns = [session.turns[place] for place in places]
    began = session.started_at or datetime.now(UTC)
    said = [SourceMessage(turn.said, turn.role is Role.USER, turn.at or began) for turn in turns]
    speakers = find_speakers(turn.said for turn in session.turns)
    return [(turns[one.place].id, one) for one in extract_statements(said, speakers)]


def compared(
    ours: Sequence[Ours], session: Session, embedder: LocalEmbedder
) -> list[tuple[bool, float, float]]:
    """Return for each given fact: whether its turns gave any, the best cosine, the best ROUGE-L."""
    rows = []
    vectors = embedder.embed([one.text for _, one in ours]) if ours else None
    facts = session.facts
    theirs = embedder.embed([fact.text for fact in facts]) if facts else None
    for place, fact in enumerate(facts):
        same = [number for number, (turn, _) in enumerate(ours) if turn in fact.turns]
        if not same or vectors is None or theirs is None:
            rows.append((False, 0.0, 0.0))
            continue
        near = float(np.max(vectors[same] @ theirs[place]))
        longest = max(rouge(words(ours[each][1].text), words(fact.text))[2] for each in same)
        rows.append((True, near, longest))
    return rows


def is_supported(ours: Ours, session: Session) -> bool:
    """Return whether the content words of a fact are those of its turn."""
    turn_id, one = ours
    turn = next(turn for turn in session.turns if turn.id == turn_id)
    names = " ".join({each.speaker for each in session.turns})
    known = {word[:STEM_CHARS] for word in content_words(f"{turn.text} {names}")}
    said = [word for word in content_words(DATED.sub("", one.text)) if word not in FRAME]
    return all(
        word[:STEM_CHARS] in known or word.removesuffix("'s")[:STEM_CHARS] in known for word in said
    )


def share(values: Iterable[object]) -> float:
    found = [bool(value) for value in values]
    return round(sum(found) / len(found), 3) if found else 0.0


if __name__ == "__main__":
    main()

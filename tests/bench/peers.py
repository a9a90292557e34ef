"""Benchmark of other stores on the same turns, vectors and questions; prints JSON.

    python -m tests.bench.peers --work DIR --data FILE [--data FILE] [--only NAME] [--questions N]

Each peer runs in its best documented setting, in a virtual environment of its own below `--work`
(made there if it is missing), as a process of its own (`shared/peer_stores.py`). All data sets lie in one
store, as a user's whole history would. Peers get every message twice over, in two runs: whole,
with the vector of as much as the model reads, and in the chunks that we embed; a message then
takes the rank of its best chunk. Every search is asked for 50 rows, within the question's own
talk and over everything ("pooled"). The time to embed the question is added to all peers alike;
ours includes it. Ratios: ours to theirs for quality, theirs to ours for time; above 1 is ours.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.bootstrap import RunMode, build
from app.domain.ids import ConversationId, MessageId
from app.providers.embedders.local import LocalEmbedder
from app.system.paths import DataPaths
from tests.bench.evaluation import (
    Asked,
    Evaluation,
    Question,
    StoredEvaluation,
    fill,
    read_evaluation,
    report,
)
from tests.bench.retrieval import Ask, asker
from tests.bench.shared.measuring import (
    MODEL,
    ROOT,
    Figures,
    latency,
    options,
    print_json,
    timed,
    wait_for,
)

OVERLAP_TOKENS = 25  # a tenth, as in the product
LIMIT_S = 1800
LIMIT = 50  # messages of a ranking that count
WARM_UP = 70
SCOPES = ("own", "pooled")
SHAPES = ("whole", "chunks")
HEADLINES = (  # what is compared: by which unit, which figure
    ("turn", "any@1"), ("turn", "any@10"), ("turn", "frac@10"), ("turn", "mrr"),
    ("exchange", "any@10"), ("exchange", "frac@10"), ("session", "any@1"), ("session", "frac@5"),
)  # fmt: skip

Answer = tuple[Sequence[int], float]  # messages best first, and milliseconds


@dataclass(frozen=True, slots=True)
class Kind:
    """A peer: its name in `shared/peer_stores.py`, and what to install."""

    store: str
    requirements: tuple[str, ...]


PEERS = {
    "sqlite-vec + FTS5": Kind("sqlite", ("sqlite-vec==0.1.9", "apsw", "numpy")),
    "DuckDB vss + fts": Kind(
        "duckdb",
        ("duckdb==1.4.4", "duckdb-ext-vss==1.4.4.*", "duckdb-ext-fts==1.4.4.*", "duckdb-ext", "numpy"),
    ),
    "Chroma": Kind("chroma", ("chromadb==1.5.9",)),
    "LanceDB hybrid": Kind("lancedb", ("lancedb==0.40.0", "numpy")),
    "mem0": Kind("mem0", ("mem0ai==2.2.1", "qdrant-client==1.20.0", "fastembed==0.9.1")),
    "MemPalace": Kind("mempalace", ("mempalace==3.11.0", "chromadb==1.5.9")),
    "bm25s": Kind("bm25s", ("bm25s==0.3.16", "PyStemmer", "numpy")),
    "MiniLM cosine": Kind("cosine", ("numpy",)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asking:
    """A question of a set's talk, with its vector and the time that took."""

    data_set: str
    talk_id: str
    question: Question
    vector: npt.NDArray[np.float32]
    embedding_ms: float


@dataclass(frozen=True, slots=True)
class Library:
    """All data sets in one store, and what is asked of them."""

    sets: Mapping[str, tuple[Evaluation, StoredEvaluation]]
    asked: Sequence[Asking]

    def within(self, asking: Asking, scope: str) -> frozenset[ConversationId]:
        if scope == "pooled":
            return frozenset()
        return self.sets[asking.data_set][1].talks[asking.talk_id].conversation_ids


def main() -> None:
    given = options(
        __doc__, required=["work", "data"], work=Path, data=[Path], only=[str], questions=int
    )
    given.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.work) as scratch:
        embedder = LocalEmbedder(MODEL, threads=4)
        library, our_answers = answered_by_us(Path(scratch, "book"), given, embedder)
        ours = {scope: scored(library, answers) for scope, answers in our_answers.items()}
        for shape in SHAPES:
            in_chunks = shape == "chunks"
            write_turns(Path(scratch, shape), given.work, embedder, library, in_chunks=in_chunks)
        peers = {
            name: {
                shape: measured(kind, Path(scratch, shape), given.work, library, ours)
                for shape in SHAPES
            }
            for name, kind in PEERS.items()
            if not given.only or name in given.only
        }
    figures = {"embedding_ms": latency([each.embedding_ms for each in library.asked])}
    print_json({**figures, "ours": ours, "peers": peers})


# -- ours
def answered_by_us(
    folder: Path, given: argparse.Namespace, embedder: LocalEmbedder
) -> tuple[Library, dict[str, list[Answer]]]:
    paths = DataPaths(folder)
    with closing(build(paths, RunMode.COMMAND_LINE)) as services:
        read = [read_evaluation(file) for file in given.data]
        stored, _ = fill(services, read)
        sets = {each.name: (each, places) for each, places in zip(read, stored, strict=True)}
    library = Library(sets, list(questions(embedder, sets, given.questions)))
    with closing(build(paths, RunMode.WINDOW)) as services:
        wait_for(lambda: services.search.search("ready").by_meaning)
        ask = asker(services)
        answers: dict[str, list[Answer]] = {}
        for scope in SCOPES:
            for number in range(WARM_UP):  # and so that no question's vector is remembered
                ask(f"Is it {number}?", frozenset())
            answers[scope] = [our_answer(ask, library, each, scope) for each in library.asked]
    return library, answers


def our_answer(ask: Ask, library: Library, asking: Asking, scope: str) -> Answer:
    """Return the messages and the time they took without the embedding, which is added to all."""
    took = timed(lambda: ask(asking.question.text, library.within(asking, scope)))
    return took.result[:LIMIT], took.ms - asking.embedding_ms


# -- what everyone gets
def questions(
    embedder: LocalEmbedder,
    sets: Mapping[str, tuple[Evaluation, StoredEvaluation]],
    limit: int | None,
) -> Iterator[Asking]:
    """Yield questions with their vectors, embedded one at a time: all, or evenly chosen ones."""
    every = [
        (name, talk.id, question)
        for name, (evaluation, _) in sets.items()
        for talk in evaluation.talks
        for question in talk.questions
    ]
    embedder.load()
    for name, talk_id, question in every[:: max(1, len(every) // (limit or len(every)))]:
        took = timed(partial(embedder.embed, [question.text]))
        yield Asking(name, talk_id, question, took.result[0], took.ms)


def write_turns(
    folder: Path, work: Path, embedder: LocalEmbedder, library: Library, *, in_chunks: bool
) -> None:
    """Write rows and questions with their vectors, as `shared/peer_stores.py` reads them."""
    folder.mkdir()
    rows: list[tuple[int, str, str]] = []
    for name, (evaluation, stored) in library.sets.items():
        for talk in evaluation.talks:
            messages = stored.talks[talk.id].messages
            for turn in (turn for session in talk.sessions for turn in session.turns):
                spans = [(0, len(turn.said))]
                if in_chunks:
                    spans = embedder.chunks(turn.said, embedder.space.max_tokens, OVERLAP_TOKENS)
                rows += [
                    (messages[turn.id], f"{name}/{talk.id}", turn.said[start:end])
                    for start, end in spans
                ]
    write_json(folder / "rows.json", rows)
    np.save(folder / "vectors.npy", embedded([text for _, _, text in rows], embedder, work))
    asked = [(f"{each.data_set}/{each.talk_id}", each.question.text) for each in library.asked]
    write_json(folder / "questions.json", asked)
    np.save(folder / "question_vectors.npy", np.stack([each.vector for each in library.asked]))


def embedded(texts: Sequence[str], embedder: LocalEmbedder, work: Path) -> npt.NDArray[np.float32]:
    """Return the texts' vectors; they are kept in `work` for the next time."""
    name = hashlib.sha256("\0".join([embedder.space.name, *texts]).encode()).hexdigest()[:16]
    kept = work / f"vectors-{name}.npy"
    if not kept.exists():
        np.save(kept, embedder.embed(texts))
    vectors: npt.NDArray[np.float32] = np.load(kept)
    return vectors


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


# -- one peer
def measured(
    kind: Kind, turns: Path, work: Path, library: Library, ours: Mapping[str, Any]
) -> Figures:
    try:
        python = environment(kind.requirements, work)
        with tempfile.TemporaryDirectory(dir=turns) as folder:
            answers = run(python, kind, turns, Path(folder))
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"failed": f"ended with {error.returncode}: {last[:300]}"}
    except subprocess.TimeoutExpired as error:
        return {"failed": f"not done after {error.timeout:.0f} s"}
    figures: dict[str, Any] = {"note": answers["note"], "build_s": answers["build_s"]}
    for scope in SCOPES:
        theirs = scored(library, answers[scope])
        figures[scope] = {**theirs, "ratios": ratios(ours[scope], theirs)}
    sys.stderr.write(f"{kind.store} {turns.name}: done\n")
    return figures


def environment(requirements: Sequence[str], work: Path) -> Path:
    """Return the Python of an environment that has the requirements; raise CalledProcessError."""
    name = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:12]
    folder = work / f"env-{name}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, clear=True, with_pip=True)
        finished([python, "-m", "pip", "install", "--quiet", *requirements])
        (folder / "complete").touch()
    return python


def run(python: Path, kind: Kind, turns: Path, folder: Path) -> Figures:
    target = folder / "answers.json"
    module = "tests.bench.shared.peer_stores"
    finished([python, "-m", module, kind.store, turns, folder / "store", target])
    answers: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return answers


def finished(command: Sequence[str | Path]) -> None:
    subprocess.run(
        [str(part) for part in command], cwd=ROOT, check=True, capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip


def scored(library: Library, answers: Sequence[Answer]) -> Figures:
    """Return the figures of each data set, and the latency over all."""
    asked: dict[str, list[Asked]] = {}
    for each, (ranking, taken_ms) in zip(library.asked, answers, strict=True):
        asked.setdefault(each.data_set, []).append(
            Asked(
                each.talk_id, each.question, list(map(MessageId, ranking)),
                taken_ms + each.embedding_ms,
            )
        )  # fmt: skip
    figures: dict[str, Any] = {
        name: headlines(report(library.sets[name][1], some)["overall"])
        for name, some in asked.items()
    }
    every = [each.took_ms for some in asked.values() for each in some]
    return {**figures, "latency_ms": latency(every)}


def headlines(overall: Mapping[str, Any]) -> dict[str, float]:
    return {f"{unit} {name}": overall[unit][name] for unit, name in HEADLINES}


def ratios(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Figures:
    """Return how many times better or faster ours is; None where theirs is nought."""
    return {
        name: {
            figure: round(mine / other if name != "latency_ms" else other / mine, 2)
            if other
            else None
            for figure, other in theirs[name].items()
            for mine in [ours[name][figure]]
        }
        for name in theirs
    }


if __name__ == "__main__":
    main()

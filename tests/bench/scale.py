"""How a library of a given size opens, searches and weighs; prints JSON.

    python -m tests.bench.scale --passages N [N ...] [--answer-words N] [--searches N] [--cores N]
                                [--folder DIR]

The library is stored through the product's own import and indexed by its own text index. Passages
are turns: a question of about 20 words, an answer of 4 to 1,500 (median 40), words by Zipf's law
(see `text_search.py`). Vectors are random, of unit length, as many as the embedder would make: to
embed a million turns takes a day. Each search is a question of 3 to 8 words of what was said, new
every time, through the whole of the product: its embedding, both indexes, the ranking, the results
with snippets. A process of its own measures, on so many cores; it has no window. A library in
`--folder` is kept, and measured again by the next call without being made again.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from app.bootstrap import RunMode, Services, build
from app.domain import conversations
from app.domain.ids import PARTS_PER_PASSAGE
from app.domain.passages import PassageKind
from app.domain.transfer import ImportedConversation, ImportedMessage
from app.language.word_lists import STOP_WORDS
from app.storage.engine.database import Connection
from app.storage.tables.spaces import table_of
from app.storage.tables.vector_rows import to_blobs
from app.storage.tables.vectors import Vectors
from app.system.paths import DataPaths
from app.transfer.importer import ConversationImporter, PendingImport
from tests.bench.shared.measuring import (
    Figures,
    latency,
    options,
    peak_mb,
    print_json,
    resident_mb,
    run_step,
    timed,
    unit_vectors,
    wait_for,
)
from tests.bench.text_search import MadeUp

TURNS = 20  # of a conversation
BATCH = 200  # conversations stored at once
CHECKPOINT_EVERY = 5  # batches
VECTOR_BATCH = 5_000
CHARS_OF_A_CHUNK = 1_100  # about the 256 tokens that the built-in embedder reads
STARTED = datetime(2016, 1, 1, tzinfo=UTC)
APART = timedelta(minutes=5)  # of one turn from the next


def main() -> None:
    given = options(
        __doc__, required=["passages"], passages=[int], searches=200, cores=2, answer_words=40,
        folder=Path, step=("", *_STEPS),
    )  # fmt: skip
    if given.step:
        print_json(_STEPS[given.step](given))
        return
    with tempfile.TemporaryDirectory(prefix="scale-") as scratch:
        folder = given.folder or Path(scratch)
        libraries = [_library(given, count, folder / str(count)) for count in given.passages]
    print_json({"answer_words_median": given.answer_words, "libraries": libraries})


def _library(given: argparse.Namespace, passages: int, folder: Path) -> Figures:
    run = partial(
        run_step, "scale", "--folder", folder, "--passages", passages, "--searches",
        given.searches, "--cores", given.cores, "--answer-words", given.answer_words, "--step",
    )  # fmt: skip
    figures: Figures = {"passages": passages}
    if not (folder / "complete").exists():
        figures["building"] = run("build")
        (folder / "complete").touch()
    return figures | run("measure")


# -- building


def _build(given: argparse.Namespace) -> Figures:
    with closing(build(made(given.folder), RunMode.COMMAND_LINE)) as services:
        services.index_sync.start()  # beside all that follows
        stored = timed(lambda: store_turns(services, given.passages[0], given.answer_words))
        vectors = timed(lambda: store_vectors(services))
        indexed = timed(services.index_sync.catch_up)
        backup = timed(services.back_up)  # else the window begins with one
    made(given.folder).checked.touch()  # likewise with reading every table
    return {
        "vectors": vectors.result,
        "storing_s": round(stored.wall_s, 1),
        "vectors_s": round(vectors.wall_s, 1),
        "text_index_after_that_s": round(indexed.wall_s, 1),
        "backup_s": round(backup.wall_s, 1),
    }


def store_turns(services: Services, turns: int, answer_words: int) -> None:
    importer = ConversationImporter(services.store)
    pending: list[PendingImport] = []
    made_up = talks(turns, answer_words)
    batches = 0
    while batch := list(islice(made_up, BATCH)):
        previous, pending = pending, importer.store(batch)
        batches += 1
        for each in previous:
            each.wait()
        if batches % CHECKPOINT_EVERY == 0:  # what is in the log stays in memory
            services.store.checkpoint().result()
    for each in pending:
        each.wait()
    services.store.checkpoint().result()


def talks(turns: int, answer_words: int) -> Iterator[ImportedConversation]:
    """Yield conversations of so many turns in all, the same each time."""
    words, source = MadeUp(), np.random.default_rng(5)
    lengths = np.clip(source.lognormal(np.log(answer_words), 1.0, turns), 4, 1500).astype(int)
    for first in range(0, turns, TURNS):
        messages: list[ImportedMessage] = []
        for number in range(first, min(first + TURNS, turns)):
            question_index = STARTED + number * APART
            for role, length in (
                (conversations.Role.USER, int(source.integers(5, 40))),
                (conversations.Role.ASSISTANT, int(lengths[number])),
            ):
                said = (conversations.Text(words.text(length)),)
                parent = messages[-1].source_id if messages else None
                name = f"{number}/{role}"
                messages.append(ImportedMessage(name, parent, role, said, question_index))
        title = words.text(4)
        yield ImportedConversation("scale", str(first), title, tuple(messages))


def store_vectors(services: Services) -> int:
    """Write random vectors for every chunk of every message straight into the space's table."""
    space = services.embedders.active().space
    vectors, source = Vectors(services.store), np.random.default_rng(3)
    vectors.ensure(space, "random")
    table, dimension = table_of(space.name), space.dimension
    chunks = services.store.read(_chunks)
    for at in range(0, len(chunks["part"]), VECTOR_BATCH):
        some = {name: column[at : at + VECTOR_BATCH] for name, column in chunks.items()}
        blobs = to_blobs(unit_vectors(source, len(some["part"]), dimension))
        services.store.write_derived(partial(_insert, table, some, blobs)).result()
    services.store.checkpoint().result()
    return len(chunks["part"])


def _chunks(cursor: Connection) -> dict[str, Any]:
    """The chunks of all turns as columns: passage, number in it, part, start and end."""
    return cursor.execute(
        "SELECT passage, (row_number() OVER (PARTITION BY passage ORDER BY place, piece) - 1)::INTEGER"
        " AS number, passage * $1 + place AS part, (piece * $2)::INTEGER AS first,"
        " least((piece + 1) * $2, length)::INTEGER AS last "
        "FROM (SELECT p.id AS passage, place, length(m.text) AS length,"
        " unnest(range((length(m.text) - 1) // $2 + 1)) AS piece FROM passage p"
        " JOIN exchange_message e ON e.exchange_id = p.source_id"
        " JOIN message m ON m.id = e.message_id WHERE p.kind = $3) ORDER BY passage, number",
        [PARTS_PER_PASSAGE, CHARS_OF_A_CHUNK, PassageKind.TURN.value],
    ).fetchnumpy()


def _insert(
    table: str, chunks: dict[str, Any], blobs: Sequence[bytes], connection: Connection
) -> None:
    columns = [chunks[name].tolist() for name in ("passage", "number", "part", "first", "last")]
    connection.execute(
        f"INSERT INTO {table} SELECT unnest($1), unnest($2), unnest($3), unnest($4), unnest($5), "
        "unnest($6), now()::TIMESTAMP",
        [*columns, blobs],
    )


# -- measuring


def _measure(given: argparse.Namespace) -> Figures:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    paths = made(given.folder)
    questions = asked(given)
    middle = STARTED + given.passages[0] // 2 * APART
    started = time.perf_counter()
    with closing(build(paths, RunMode.WINDOW)) as services:
        opened_s = time.perf_counter() - started
        wait_for(lambda: services.search.search(next(questions)).by_meaning)
        ready_s = time.perf_counter() - started
        memory_mb = resident_mb()
        for _ in range(20):
            services.search.search(next(questions))
        active = services.embedders.active()

        def embed() -> float:
            return timed(lambda: active.embed([next(questions)])).ms

        figures = {
            "open_s": round(opened_s, 2),
            "until_meaning_answers_s": round(ready_s, 2),
            "search_ms": taken(services, questions, given.searches),
            "words_alone_ms": taken(services, questions, given.searches, by_meaning=False),
            "with_date_filter_ms": taken(
                services, questions, 50, filters=f" after:{middle:%Y-%m-%d}"
            ),
            "embedding_ms": latency([embed() for _ in range(given.searches)]),
            "memory_ready_mb": memory_mb,
            "memory_after_searches_mb": resident_mb(),
            "memory_peak_mb": round(peak_mb()),
            "visible_after_ms": latency([visible_ms(services, number) for number in range(10)]),
        }
    parts = {
        "database": [paths.database, paths.wal],
        "journal": [paths.journal],
        "text_index": [paths.index],
        "backups": [paths.backups],
    }
    return {**figures, "disk_mb": {name: _mb(where) for name, where in parts.items()}}


def asked(given: argparse.Namespace) -> Iterator[str]:
    """Yield questions without end, each of words of one of the messages."""
    source = np.random.default_rng(13)
    said = [
        [word for word in message.blocks[0].text.replace(".", "").split() if word not in SMALL]
        for talk in talks(min(given.passages[0], 5 * given.searches), given.answer_words)
        for message in talk.messages
        if isinstance(message.blocks[0], conversations.Text)
    ]
    told = [words for words in said if len(words) >= 3]
    while True:
        words = told[int(source.integers(len(told)))]
        count = min(int(source.integers(3, 9)), len(words))
        yield "what about " + " ".join(source.choice(np.array(words, dtype=object), count, False))


SMALL = STOP_WORDS["english"]


def taken(
    services: Services,
    questions: Iterator[str],
    searches: int,
    *,
    by_meaning: bool = True,
    filters: str = "",
) -> dict[str, float]:
    """Return the milliseconds that searches take, and of the processor, which busy machines stretch less."""
    took = [
        timed(lambda: services.search.search(next(questions) + filters, by_meaning=by_meaning))
        for _ in range(searches)
    ]
    cpu_ms = 1000 * sum(each.cpu_s for each in took) / searches
    return {**latency([each.ms for each in took]), "cpu_mean": round(cpu_ms, 2)}


def visible_ms(services: Services, number: int) -> float:
    """Return the time from a turn's being stored until a search for its words finds it."""
    word = f"newword{number}{time.time_ns()}"
    talk = ImportedConversation(
        "scale-new", word, "New",
        (
            ImportedMessage("1", None, conversations.Role.USER, (conversations.Text(f"Is it {word}?"),)),
            ImportedMessage("2", "1", conversations.Role.ASSISTANT, (conversations.Text("It is."),)),
        ),
    )  # fmt: skip
    for pending in ConversationImporter(services.store).store([talk]):
        pending.wait()
    return timed(
        lambda: wait_for(lambda: services.search.search(word, by_meaning=False).results)
    ).ms


def _mb(places: Sequence[Path]) -> float:
    files = [file for each in places for file in (each, *each.rglob("*")) if file.is_file()]
    return round(sum(each.stat().st_size for each in files) / 1e6, 1)


def made(folder: Path) -> DataPaths:
    paths = DataPaths(folder.absolute())
    paths.make()
    return paths


_STEPS = {"build": _build, "measure": _measure}

if __name__ == "__main__":
    main()

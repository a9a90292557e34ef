"""Benchmark of a library of a given size: opening, search, recall, memory; prints JSON.

    python -m tests.bench.scale --passages N [N ...] [--answer-words N] [--searches N] [--cores N]
                                [--folder DIR]

The library is stored through the product's own import and indexed by its own text index. Passages
are turns: a question of about 20 words, an answer of 4 to 1,500 (median 40), words by Zipf's law.
Vectors are random, of unit length, as many as the embedder would make: to embed a million turns
takes a day. Each search is a question of 3 to 8 words of what was said, new every time, through the
whole of the product: its embedding, both indexes, the ranking, the results with snippets. A process
of its own measures, on so many cores; it has no window. A library in `--folder` is kept, and
measured again by the next call without being made again.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.bootstrap import RunMode, Services, build
from app.domain import conversations
from app.domain.ids import PARTS_PER_PASSAGE
from app.domain.passages import PassageKind
from app.domain.transfer import ImportedConversation, ImportedMessage
from app.language.languages import STOP_WORDS
from app.storage.engine.connection import Connection
from app.storage.tables.passages.vectors import Vectors
from app.system.paths import DataPaths
from app.transfer.importer import ConversationImporter
from tests.bench.recall import retrieved
from tests.bench.shared.made_up import ZipfText, insert_vectors
from tests.bench.shared.measuring import (
    Figures,
    in_process,
    latency,
    options,
    peak_mb,
    print_json,
    resident_mb,
    timed,
    wait_for,
)

TURNS = 20  # of a conversation
BATCH = 1_000  # conversations stored at once
CHARS_OF_A_CHUNK = 1_100  # about the 256 tokens that the built-in embedder reads
STARTED = datetime(2016, 1, 1, tzinfo=UTC)
APART = timedelta(minutes=5)  # of one turn from the next
SMALL = STOP_WORDS["english"]


def main() -> None:
    given = options(
        __doc__, required=["passages"], passages=[int], searches=200, cores=2, answer_words=40,
        folder=Path,
    )  # fmt: skip
    libraries = []
    with tempfile.TemporaryDirectory(prefix="scale-") as scratch:
        for passages in given.passages:
            paths = DataPaths((given.folder or Path(scratch)).absolute() / str(passages))
            figures: Figures = {"passages": passages}
            complete = paths.root / "complete"
            if not complete.exists():
                figures["building"] = in_process(_build, paths, passages, given.answer_words)
                complete.touch()
            arguments = paths, passages, given.answer_words, given.searches, given.cores
            libraries.append(figures | in_process(_measure, *arguments))
    print_json({"answer_words_median": given.answer_words, "libraries": libraries})


# -- building
def _build(paths: DataPaths, turns: int, answer_words: int) -> Figures:
    paths.make()
    with closing(build(paths, RunMode.COMMAND_LINE)) as services:
        services.index_sync.start()  # beside all that follows
        stored = timed(lambda: store(services, talks(turns, answer_words)))
        vectors = timed(lambda: store_vectors(services))
        indexed = timed(services.index_sync.catch_up)
        backup = timed(services.back_up)  # else the window begins with one
    paths.checked.touch()  # likewise with reading every table
    return {
        "vectors": vectors.result, "storing_s": round(stored.wall_s, 1),
        "vectors_s": round(vectors.wall_s, 1), "text_index_after_that_s": round(indexed.wall_s, 1),
        "backup_s": round(backup.wall_s, 1),
    }  # fmt: skip


def store(services: Services, made: Iterator[ImportedConversation]) -> None:
    importer = ConversationImporter(services.store)
    while batch := list(islice(made, BATCH)):
        for each in importer.store(batch):
            each.wait()
        services.store.checkpoint().result()  # what is in the log stays in memory


def talks(turns: int, answer_words: int) -> Iterator[ImportedConversation]:
    """Yield conversations of so many turns in all, the same each time."""
    words, source = ZipfText(), np.random.default_rng(5)
    lengths = np.clip(source.lognormal(np.log(answer_words), 1.0, turns), 4, 1500).astype(int)
    for first in range(0, turns, TURNS):
        texts = [
            text
            for number in range(first, min(first + TURNS, turns))
            for text in (words.text(int(source.integers(5, 40))), words.text(int(lengths[number])))
        ]
        yield talk("scale", str(first), words.text(4), texts, STARTED + first * APART)


def talk(
    source: str, name: str, title: str, texts: Sequence[str], at: datetime
) -> ImportedConversation:
    roles = conversations.Role.USER, conversations.Role.ASSISTANT
    messages = [
        ImportedMessage(
            f"{name}/{place}", f"{name}/{place - 1}" if place else None, roles[place % 2],
            (conversations.Text(text),), at + place // 2 * APART,
        )
        for place, text in enumerate(texts)
    ]  # fmt: skip
    return ImportedConversation(source, name, title, tuple(messages))


def store_vectors(services: Services) -> int:
    """Write random vectors for every chunk of every message; return how many."""
    space = services.embedders.active().space
    Vectors(services.store).ensure(space, "random")
    columns = services.store.read(_chunks)
    insert_vectors(services.store, space, columns)
    return len(columns[0])


def _chunks(cursor: Connection) -> list[npt.NDArray[np.int64]]:
    """The chunks of all turns as columns: passage, number in it, part, start and end."""
    found = cursor.execute(
        "SELECT passage, (row_number() OVER (PARTITION BY passage ORDER BY place, piece) - 1)::INTEGER"
        " AS number, passage * $1 + place AS part, (piece * $2)::INTEGER AS first,"
        " least((piece + 1) * $2, length)::INTEGER AS last "
        "FROM (SELECT p.id AS passage, place, length(m.text) AS length,"
        " unnest(range((length(m.text) - 1) // $2 + 1)) AS piece FROM passage p"
        " JOIN exchange_message e ON e.exchange_id = p.source_id"
        " JOIN message m ON m.id = e.message_id WHERE p.kind = $3) ORDER BY passage, number",
        [PARTS_PER_PASSAGE, CHARS_OF_A_CHUNK, PassageKind.TURN.value],
    ).fetchnumpy()
    return [found[name] for name in ("passage", "number", "part", "first", "last")]


# -- measuring
def _measure(
    paths: DataPaths, passages: int, answer_words: int, searches: int, cores: int
) -> Figures:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    questions = asked(min(passages, 5 * searches), answer_words)
    after = f" after:{STARTED + passages // 2 * APART:%Y-%m-%d}"
    started = time.perf_counter()
    with closing(build(paths, RunMode.WINDOW)) as services:
        search, embedder = services.search.search, services.embedders.active()

        def taken(ask: Callable[[str], object], times: int = searches) -> dict[str, float]:
            """Return milliseconds, also of the processor, which busy machines stretch less."""
            took = [timed(lambda: ask(next(questions))) for _ in range(times)]
            cpu_ms = 1000 * sum(each.cpu_s for each in took) / times
            return {**latency([each.ms for each in took]), "cpu_mean": round(cpu_ms, 2)}

        opened_s = time.perf_counter() - started
        wait_for(lambda: search(next(questions)).by_meaning)
        ready_s = time.perf_counter() - started
        memory_mb = resident_mb()
        taken(search, 20)
        figures = {
            "open_s": round(opened_s, 2), "until_meaning_answers_s": round(ready_s, 2),
            "search_ms": taken(search),
            "words_alone_ms": taken(lambda each: search(each, by_meaning=False)),
            "with_date_filter_ms": taken(lambda each: search(each + after), 50),
            "retrieval_ms": taken(lambda each: retrieved(services, each)),
            "embedding_ms": taken(lambda each: embedder.embed([each])),
            "memory_ready_mb": memory_mb, "memory_after_searches_mb": resident_mb(),
            "memory_peak_mb": round(peak_mb()),
            "visible_after_ms": latency([visible_ms(services, number) for number in range(10)]),
        }  # fmt: skip
    parts = {
        "database": [paths.database, paths.wal], "journal": [paths.journal],
        "text_index": [paths.index], "backups": [paths.backups],
    }  # fmt: skip
    return {**figures, "disk_mb": {name: _mb(where) for name, where in parts.items()}}


def asked(turns: int, answer_words: int) -> Iterator[str]:
    """Yield questions without end, each of words of one of the messages."""
    source = np.random.default_rng(13)
    said = [
        [word for word in message.blocks[0].text.replace(".", "").split() if word not in SMALL]
        for each in talks(turns, answer_words)
        for message in each.messages
        if isinstance(message.blocks[0], conversations.Text)
    ]
    told = [words for words in said if len(words) >= 3]
    while True:
        words = told[int(source.integers(len(told)))]
        count = min(int(source.integers(3, 9)), len(words))
        yield "what about " + " ".join(source.choice(np.array(words, dtype=object), count, False))


def visible_ms(services: Services, number: int) -> float:
    """Return the time from a turn's being stored until a search for its words finds it."""
    word = f"newword{number}{time.time_ns()}"
    new = talk("scale-new", word, "New", [f"Is it {word}?", "It is."], datetime.now(UTC))
    for pending in ConversationImporter(services.store).store([new]):
        pending.wait()
    return timed(
        lambda: wait_for(lambda: services.search.search(word, by_meaning=False).results)
    ).ms


def _mb(places: Sequence[Path]) -> float:
    files = [file for each in places for file in (each, *each.rglob("*")) if file.is_file()]
    return round(sum(each.stat().st_size for each in files) / 1e6, 1)


if __name__ == "__main__":
    main()

"""How a library of a given size opens, searches and weighs; prints JSON.

    python tests/bench/scale.py --passages N [N ...] [--answer-words N] [--searches N] [--cores N]
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
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.bootstrap import Role, Services, build
from app.domain import conversations
from app.domain.ids import PARTS_OF_A_PASSAGE
from app.domain.passages import PassageKind
from app.domain.transfer import ImportedConversation, ImportedMessage
from app.index.stop_words import STOP_WORDS
from app.storage.database import Connection
from app.storage.spaces import table_of
from app.storage.vector_rows import to_blobs
from app.storage.vectors import Vectors
from app.system.paths import DataPaths
from app.transfer.adopting import Adoption, Written
from tests.bench.evaluation import latency
from tests.bench.text_search import MadeUp

TURNS = 20  # of a conversation
BATCH = 200  # conversations stored at once
CHECKPOINT_EVERY = 5  # batches
VECTOR_BATCH = 5_000
CHARS_OF_A_CHUNK = 1_100  # about the 256 tokens that the built-in embedder reads
STARTED = datetime(2016, 1, 1, tzinfo=UTC)
APART = timedelta(minutes=5)  # of one turn from the next
PATIENCE_S = 900.0

Figures = dict[str, Any]


def main() -> None:
    """Build and measure, each in a process of its own; print."""
    given = options()
    if given.step:
        print(json.dumps(STEPS[given.step](given)))  # noqa: T201
        return
    with tempfile.TemporaryDirectory(prefix="scale-") as scratch:
        folder = given.folder or Path(scratch)
        libraries = [
            library(given, passages, folder / str(passages)) for passages in given.passages
        ]
    print(json.dumps({"answer_words_median": given.answer_words, "libraries": libraries}, indent=1))  # noqa: T201


def library(given: argparse.Namespace, passages: int, folder: Path) -> Figures:
    """Return the figures of one library; it is made unless it is there."""
    figures: Figures = {"passages": passages}
    if not (folder / "complete").exists():
        figures["building"] = child("build", given, passages, folder)
        (folder / "complete").touch()
    return figures | child("measure", given, passages, folder)


def options() -> argparse.Namespace:
    """Return the arguments; `--step` is for the children."""
    parser = argparse.ArgumentParser(description="Measure a library of a given size.")
    parser.add_argument("--passages", type=int, nargs="+", required=True)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--answer-words", type=int, default=40, help="the median")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step", choices=("build", "measure"), help=argparse.SUPPRESS)
    return parser.parse_args()


def child(step: str, given: argparse.Namespace, passages: int, folder: Path) -> Figures:
    """Run a step in a process of its own and return its figures."""
    command = [
        sys.executable, __file__, "--step", step, "--folder", str(folder),
        "--passages", str(passages), "--searches", str(given.searches),
        "--cores", str(given.cores), "--answer-words", str(given.answer_words),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: Figures = json.loads(done.stdout)
    return figures


# -- building


def build_library(given: argparse.Namespace) -> Figures:
    """Store, index and give vectors to so many turns; return what took how many seconds."""
    with closing(build(made(given.folder), Role.COMMAND_LINE)) as services:
        services.index_sync.start()  # beside all that follows
        stored_s = seconds(partial(store_turns, services, given.passages[0], given.answer_words))
        vectors: list[int] = []
        vectors_s = seconds(lambda: vectors.append(store_vectors(services)))
        indexed_s = seconds(services.index_sync.catch_up)
        backup_s = seconds(services.back_up)  # else the window begins with one
    made(given.folder).checked.touch()  # likewise with reading every table
    return {
        "vectors": vectors[0],
        "storing_s": round(stored_s, 1),
        "vectors_s": round(vectors_s, 1),
        "text_index_after_that_s": round(indexed_s, 1),
        "backup_s": round(backup_s, 1),
    }


def store_turns(services: Services, turns: int, answer_words: int) -> None:
    """Import conversations of 20 turns; while a batch is written the next one is made up."""
    adoption, written = Adoption(services.store), Written()
    made_up = talks(turns, answer_words)
    batches = 0
    while batch := list(islice(made_up, BATCH)):
        begun = adoption.adopt(batch)
        list(written.results())
        written, batches = begun, batches + 1
        if batches % CHECKPOINT_EVERY == 0:  # what is in the log stays in memory
            services.store.checkpoint().result()
    list(written.results())
    services.store.checkpoint().result()


def talks(turns: int, answer_words: int) -> Iterator[ImportedConversation]:
    """Yield conversations of so many turns in all, the same each time."""
    words, source = MadeUp(), np.random.default_rng(5)
    lengths = np.clip(source.lognormal(np.log(answer_words), 1.0, turns), 4, 1500).astype(int)
    for first in range(0, turns, TURNS):
        messages: list[ImportedMessage] = []
        for number in range(first, min(first + TURNS, turns)):
            asked_at = STARTED + number * APART
            for role, length in (
                (conversations.Role.USER, int(source.integers(5, 40))),
                (conversations.Role.ASSISTANT, int(lengths[number])),
            ):
                said = (conversations.Text(words.text(length)),)
                parent = messages[-1].source_id if messages else None
                name = f"{number}/{role}"
                messages.append(ImportedMessage(name, parent, role, said, asked_at))
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
        drawn = source.standard_normal((len(some["part"]), dimension), np.float32)
        blobs = to_blobs(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))
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
        [PARTS_OF_A_PASSAGE, CHARS_OF_A_CHUNK, PassageKind.TURN.value],
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


def measure_library(given: argparse.Namespace) -> Figures:
    """Open the library as the window does and search it."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    paths = made(given.folder)
    questions = asked(given)
    started = time.perf_counter()
    with closing(build(paths, Role.WINDOW)) as services:
        opened_s = time.perf_counter() - started
        wait_for(lambda: services.search.search(next(questions)).by_meaning)
        ready_s = time.perf_counter() - started
        memory_mb = resident_mb()
        for _ in range(20):
            services.search.search(next(questions))
        figures = {
            "open_s": round(opened_s, 2),
            "until_meaning_answers_s": round(ready_s, 2),
            "search_ms": taken(services, questions, given.searches),
            "words_alone_ms": taken(services, questions, given.searches, by_meaning=False),
            "with_date_filter_ms": taken(
                services, questions, 50, filters=" after:" + middle(given.passages[0])
            ),
            "embedding_ms": embedding(services, questions, given.searches),
            "memory_ready_mb": memory_mb,
            "memory_after_searches_mb": resident_mb(),
            "memory_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "visible_after_ms": latency([visible_ms(services, number) for number in range(10)]),
        }
    return {**figures, "disk_mb": sizes(paths)}


def middle(turns: int) -> str:
    """Return the day that half of so many turns were said after, as the search box takes it."""
    return f"{STARTED + turns // 2 * APART:%Y-%m-%d}"


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
    ask, cpu_s = services.search.search, time.process_time()
    taken_ms = [
        1000 * seconds(partial(ask, next(questions) + filters, by_meaning=by_meaning))
        for _ in range(searches)
    ]
    cpu_ms = 1000 * (time.process_time() - cpu_s) / searches
    return {**latency(taken_ms), "cpu_mean": round(cpu_ms, 2)}


def embedding(services: Services, questions: Iterator[str], searches: int) -> dict[str, float]:
    """Return the milliseconds of a search that go into its question's vector."""
    embed = services.embedders.active().embed
    return latency([1000 * seconds(partial(embed, [next(questions)])) for _ in range(searches)])


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
    list(Adoption(services.store).adopt([talk]).results())
    return 1000 * seconds(
        lambda: wait_for(lambda: services.search.search(word, by_meaning=False).results)
    )


def wait_for(is_so: Callable[[], object]) -> None:
    """Ask until it is so."""
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.005)


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def resident_mb() -> dict[str, int]:
    """Return what of the process is in memory, and how much of that is its own, not mapped files."""
    kept = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            kept[name] = round(int(value.split()[0]) / 1024)
    return {"all": kept["VmRSS"], "own": kept["RssAnon"]}


def sizes(paths: DataPaths) -> dict[str, float]:
    """Return how large the parts of the data directory are."""
    return {
        "database": mb(paths.database) + mb(paths.wal),
        "journal": mb(paths.journal),
        "text_index": mb(paths.index),
        "backups": mb(paths.backups),
    }


def mb(path: Path) -> float:
    """Return the size of a file or folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return round(sum(each.stat().st_size for each in files if each.is_file()) / 1e6, 1)


def made(folder: Path) -> DataPaths:
    """Return the data directory in a folder."""
    paths = DataPaths(folder.absolute())
    paths.make()
    return paths


STEPS = {"build": build_library, "measure": measure_library}

if __name__ == "__main__":
    main()

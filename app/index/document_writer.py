"""Writers of the text index: in this process, or for a long backlog in a process of its own.

Analysis holds the interpreter's lock for half of an import. A process of its own uses the second core,
and the window gets the lock. It costs a third of a second to start, and about 90 MB while it runs.
"""

import logging
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, NamedTuple, Protocol

import tantivy

from app.domain.passages import PassageText
from app.index.text_schema import PASSAGE, PassageDocuments
from app.system.process import limit_malloc_retention, module_command

_log = logging.getLogger(__name__)
_MEMORY_BYTES = 48_000_000  # per writer thread; tantivy requires at least 15 MB
_END_S = 10.0  # for merges of segments
_NICENESS = 5  # the window comes first
_LAST_BYTES = 2_000  # of the process's errors, for the log
PANIC = "PanicException"  # as PyO3 names it


class Committed(NamedTuple):
    """tantivy's operation count, the documents since the last commit by language, and the highest id."""

    opstamp: int
    languages: Counter[str]
    highest: int


class WriterPanic(OSError):
    """A panic of tantivy in the process of a `ProcessWriter`: the files may be damaged."""


class DocumentWriter(Protocol):
    """Writes documents of passages. For one thread at a time; raises what tantivy and the disk do."""

    def put(self, passages: Iterable[PassageText]) -> None:
        """Add passages; those with the ids of others replace them."""

    def remove(self, passage_ids: Collection[int]) -> None:
        """Remove passages."""

    def commit(self) -> Committed:
        """Make everything durable."""

    def close(self) -> None:
        """End it, dropping what was not committed."""


class LocalWriter:
    """A `DocumentWriter` in this process; `highest` is the highest id in the index."""

    def __init__(self, index: tantivy.Index, highest: int) -> None:
        self._writer = index.writer(_MEMORY_BYTES, num_threads=1)
        self._languages: Counter[str] = Counter()
        self._highest = highest

    def put(self, passages: Iterable[PassageText]) -> None:
        """Analyze and add passages."""
        maker = PassageDocuments()
        for passage in passages:
            if passage.id <= self._highest:
                self._writer.delete_documents_by_term(PASSAGE, passage.id)
            for document, language in maker.documents(passage):
                self._writer.add_document(document)
                self._languages[language] += 1
            self._highest = max(self._highest, passage.id)

    def remove(self, passage_ids: Collection[int]) -> None:
        """Remove passages."""
        for each in passage_ids:
            self._writer.delete_documents_by_term(PASSAGE, each)

    def commit(self) -> Committed:
        """Take 20-100 ms after a few changes."""
        committed = Committed(self._writer.commit(), self._languages, self._highest)
        self._languages = Counter()
        return committed

    def close(self) -> None:
        """Release the files: the last reference to tantivy's writer holds their lock."""
        del self._writer

    def finish_merges(self) -> None:
        """Wait for merges of segments; nothing can be written after it."""
        self._writer.wait_merging_threads()


class ProcessWriter:
    """A `DocumentWriter` that has a `LocalWriter` in a process of its own.

    Passages are sent as they are read. An error there is raised by the next `commit`.
    """

    def __init__(self, files: Path, highest: int) -> None:
        """Start the process for the index in a folder; no other writer may be open. Raises OSError."""
        with ExitStack() as stack:
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(  # noqa: S603 - our own module, without a shell
                [*module_command(__name__), str(files), str(highest)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            )  # fmt: skip
            stack.pop_all()

    def put(self, passages: Iterable[PassageText]) -> None:
        """Send passages, as rows if they are; wait while the process is far behind."""
        self._send("put", passages)

    def remove(self, passage_ids: Collection[int]) -> None:
        """Send ids of passages."""
        self._send("remove", list(passage_ids))

    def commit(self) -> Committed:
        """Wait until the process has written everything. Raises OSError."""
        self._send("commit")
        assert self._process.stdout is not None
        try:
            outcome = pickle.load(self._process.stdout)  # noqa: S301 - our process
        except (EOFError, pickle.UnpicklingError) as error:
            raise self._ended() from error
        if isinstance(outcome, str):
            raise (WriterPanic if outcome.startswith(PANIC) else OSError)(outcome)
        return Committed(*outcome)

    def close(self) -> None:
        """Kill the process; what it committed is on the disk."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def end(self) -> None:
        """End the process after its merges; what was not committed is dropped. Blocking, at most 10 s."""
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=_END_S)
        self.close()

    def _send(self, name: str, *values: object) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump((name, values), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._ended() from error

    def _ended(self) -> OSError:
        """Return the error of a process that ended by itself, and log its last words."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LAST_BYTES))
        last = self._errors.read().decode(errors="replace").strip()
        _log.warning("the process of the text index ended: %s", last)
        return (WriterPanic if PANIC in last else OSError)("the process that writes it ended")


def serve(writer: LocalWriter, received: IO[bytes], sent: IO[bytes]) -> None:
    """Write what is received until the end of it."""
    failure = ""
    with suppress(EOFError):
        while True:
            name, values = pickle.load(received)  # noqa: S301 - from the program that started this one
            try:
                outcome = () if failure else getattr(writer, name)(*values)
            except BaseException as error:  # noqa: BLE001 - it is raised there
                failure = f"{type(error).__name__}: {error}"
            if name == "commit":  # as a plain tuple: the names of this module differ there
                pickle.dump(failure or tuple(outcome), sent)
                sent.flush()
    if not failure:
        writer.finish_merges()


def main() -> None:
    """Serve the program that started this one, until it closes the input."""
    limit_malloc_retention()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program ends it
    with suppress(AttributeError, OSError):
        os.nice(_NICENESS)
    _, files, highest = sys.argv
    serve(LocalWriter(tantivy.Index.open(files), int(highest)), sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()

"""Writers of the text index: in this process, or for a long backlog in a process of its own.

Analysis holds the interpreter's lock for half of an import. A process of its own uses the second core,
and the window gets the lock. It costs a third of a second to start, and about 90 MB while it runs.

The schema has a document for each part of a passage. `body` holds the terms of a message, `context` those of its
context (`message_traits.context_range`): the message with its neighbors where they are short. `title` holds those
of the conversation's title, and so does `opening` in its first turn: there they count like words of the messages.
The numeric fields are what the ranking needs: the traits of the message, the parts around it and, of a
fact, the message that states it.
"""

import gc
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple
from zlib import crc32

import tantivy

from app.domain.passages import PassageKind, PassagePart, PassageText
from app.index.message_traits import NEAR, Traits, context_range, message_traits
from app.language.analyzer import AnalyzedText, analyze, compounds_in
from app.language.date_terms import date_terms, written_date_terms
from app.language.languages import language_of
from app.system.process import limit_malloc_retention, module_command

FORMAT = 12  # increase it with every change of fields or analysis: older indexes are rebuilt

BODY = "body"
CONTEXT = "context"
OPENING = "opening"
TITLE = "title"
WEIGHTS = {BODY: 1.0, OPENING: 1.0, "tools": 0.3, TITLE: 0.2}
SURFACE = "surface"
COMPOUNDS = "compounds"
PASSAGE = "passage"
PART = "part"
KIND = "kind"
LEADS = "leads"  # 1 for the first part of each passage, to count passages
TRAITS = "traits"
LABEL = "label"
MESSAGE = "message"  # of a turn
STATED_IN = "stated_in"  # the message that states a fact
BEFORE = tuple(f"before_{step}" for step in range(1, NEAR + 1))
AFTER = tuple(f"after_{step}" for step in range(1, NEAR + 1))

_MESSAGE_FIELDS = {PassageKind.TURN: MESSAGE, PassageKind.FACT: STATED_IN}
_LANGUAGE_CHARS = 80  # shorter texts may have too few stop words to identify the language
_WORD = re.compile(r"[^\s,;()\[\]]+")
_BREAK = " ¶ "  # prevents phrase matches across two texts


def index_schema() -> tantivy.Schema:
    """Return the fields; texts are analyzed before they are added."""
    builder = tantivy.SchemaBuilder()
    for field in (PASSAGE, PART, STATED_IN):
        builder.add_integer_field(field, indexed=True, fast=True)
    builder.add_integer_field(LEADS, indexed=True)
    builder.add_text_field(KIND, tokenizer_name="raw", index_option="basic")
    for field in (TRAITS, LABEL, MESSAGE, *BEFORE, *AFTER):
        builder.add_integer_field(field, fast=True)
    for field in (*WEIGHTS, CONTEXT, COMPOUNDS):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(SURFACE, tokenizer_name="whitespace", index_option="position")
    return builder.build()


def label_number(label: str) -> int:
    """Return the number of a message's label (case folded) in the index; 0 for none."""
    return crc32(label.encode()) if label else 0


@dataclass(frozen=True, slots=True)
class _AnalyzedPart:
    """A part with its analyzed words."""

    part: PassagePart
    language: str
    said: AnalyzedText
    traits: Traits


class PassageDocuments:
    """Builds the documents of passages; each part is analyzed once, also as a neighbor."""

    def __init__(self) -> None:
        self._read: dict[int, _AnalyzedPart] = {}
        self._languages: dict[int, str] = {}

    def documents(self, passage: PassageText) -> Iterator[tuple[tantivy.Document, str]]:
        """Yield a document for each part (at least one) with the language of its words."""
        sequence = [*passage.before, *passage.parts, *passage.after]
        read = [self._analyzed(part, passage) for part in sequence]
        dated = _dates_of(passage, read)
        title = analyze(passage.title, read[0].language if read else self._language(passage)).terms
        first = len(passage.before)
        for at in range(first, first + len(passage.parts)):
            made = _document(passage, read, at, dated)
            made.add_text(TITLE, title)
            if not passage.before and passage.kind is PassageKind.TURN:
                made.add_text(OPENING, title)
            made.add_text(KIND, passage.kind.value)
            made.add_integer(LEADS, int(at == first))
            yield made, read[at].language
        if not passage.parts:  # so that the passage is counted as indexed
            made = tantivy.Document()
            made.add_integer(PASSAGE, passage.id)
            made.add_text(KIND, passage.kind.value)
            made.add_integer(LEADS, 1)
            made.add_text(TITLE, title)
            yield made, self._language(passage)

    def _language(self, passage: PassageText) -> str:
        """Return the language of a passage as a whole."""
        if passage.id not in self._languages:
            said = " ".join(part.text[:400] for part in passage.parts)
            self._languages[passage.id] = language_of(said)
        return self._languages[passage.id]

    def _analyzed(self, part: PassagePart, passage: PassageText) -> _AnalyzedPart:
        known = self._read.get(part.id)
        if known is None or (known.part is not part and known.part != part):
            is_short = len(part.text) <= _LANGUAGE_CHARS
            language = "" if is_short else language_of(part.text, "")
            language = language or self._language(passage)
            said = analyze(part.text, language)
            known = self._read[part.id] = _AnalyzedPart(part, language, said, message_traits(part))
        return known


def _dates_of(passage: PassageText, read: list[_AnalyzedPart]) -> str:
    """Return the terms of a passage's date. That of a file counts only without dates in its name and text."""
    if passage.kind is not PassageKind.DOCUMENT:
        return date_terms(passage.created_at)
    named = [term for word in _WORD.findall(passage.title) for term in written_date_terms(word)]
    if named or any("month=" in each.said.terms for each in read):
        return " ".join(named)
    return date_terms(passage.created_at)


def _document(
    passage: PassageText, read: list[_AnalyzedPart], at: int, dated: str
) -> tantivy.Document:
    own = read[at]
    tools = analyze(f"{own.part.calls}\n{own.part.results}".strip(), own.language)
    context = context_range([each.traits.words for each in read], at)
    made = tantivy.Document()
    made.add_integer(PASSAGE, passage.id)
    made.add_integer(PART, own.part.id)
    made.add_integer(TRAITS, own.traits.packed())
    made.add_integer(LABEL, label_number(own.traits.label))
    if own.part.message_id is not None and passage.kind in _MESSAGE_FIELDS:
        made.add_integer(_MESSAGE_FIELDS[passage.kind], own.part.message_id)
    before = [read[each].part.id for each in range(at - 1, context.start - 1, -1)]
    after = [read[each].part.id for each in range(at + 1, context.stop)]
    for field, near in (*zip(BEFORE, before), *zip(AFTER, after)):  # noqa: B905 - not all have one
        made.add_integer(field, near)
    made.add_text(BODY, f"{own.said.terms} {dated}")
    made.add_text(CONTEXT, " ".join([*(read[each].said.terms for each in context), dated]))
    if tools.terms:
        made.add_text("tools", tools.terms)
    made.add_text(SURFACE, _BREAK.join((own.said.surface, tools.surface)))
    if compounds := compounds_in(own.said.terms, own.language):
        made.add_text(COMPOUNDS, " ".join(f"{each} <{each[::-1]}" for each in sorted(compounds)))
    return made


_log = logging.getLogger(__name__)
_MEMORY_BYTES = 48_000_000  # per writer thread; tantivy requires at least 15 MB
_TOGETHER = 20  # passages: added one by one, each wakes tantivy's thread
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


class LocalWriter:
    """Writes documents of passages in this process; `highest` is the highest id in the index.

    For one thread at a time; raises what tantivy and the disk do.
    """

    def __init__(self, index: tantivy.Index, highest: int) -> None:
        self._writer = index.writer(_MEMORY_BYTES, num_threads=1)
        self._languages: Counter[str] = Counter()
        self._highest = highest

    def put(self, passages: Iterable[PassageText]) -> None:
        """Add passages; those with the ids of others replace them."""
        maker, left = PassageDocuments(), iter(passages)
        while some := {each.id: each for each in islice(left, _TOGETHER)}:
            made = [each for passage in some.values() for each in maker.documents(passage)]
            for known in (each for each in some if each <= self._highest):
                self._writer.delete_documents_by_term(PASSAGE, known)
            for document, language in made:
                self._writer.add_document(document)
                self._languages[language] += 1
            self._highest = max(self._highest, *some)

    def remove(self, passage_ids: Collection[int]) -> None:
        for each in passage_ids:
            self._writer.delete_documents_by_term(PASSAGE, each)

    def commit(self) -> Committed:
        """Make everything durable; 20-100 ms after a few changes."""
        committed = Committed(self._writer.commit(), self._languages, self._highest)
        self._languages = Counter()
        return committed

    def close(self) -> None:
        """Drop what was not committed and release the files: tantivy's writer holds their lock."""
        del self._writer

    def finish_merges(self) -> None:
        """Wait for merges of segments; nothing can be written after it."""
        self._writer.wait_merging_threads()


class ProcessWriter:
    """A `LocalWriter` in a process of its own.

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
    gc.disable()  # nothing here has cycles
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program ends it
    with suppress(AttributeError, OSError):
        os.nice(_NICENESS)
    _, files, highest = sys.argv
    serve(LocalWriter(tantivy.Index.open(files), int(highest)), sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()

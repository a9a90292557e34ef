"""Coverage-guided fuzzing of what reads other people's bytes; atheris must be installed for it.

    python -m tests.bench.fuzz {import|markdown|query|stream|document} FOLDER [options of libFuzzer]

FOLDER keeps the inputs that reached something new, and is begun with valid ones. An input that raises what its
reader does not document, or takes too long, is written as crash-* or timeout-*: it becomes a test.
"""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

atheris: Any = import_module("atheris")  # not among the dependencies of the project

with atheris.instrument_imports(include=["app", "ui.rendering", "markdown_it"]):
    from app.domain.errors import KnownError
    from app.index.query import parse_query, sentence_query
    from app.index.question import parse_question
    from app.language.date_terms import near_dates
    from app.language.document_chunks import chunks_of, rejoined
    from app.providers.http.error_translation import RejectedReply, StreamError
    from app.providers.wire.anthropic_messages import MessagesReader
    from app.providers.wire.chat_completions import ChatReader
    from app.providers.wire.responses import ResponsesReader
    from app.system.document_formats import html_text
    from app.system.document_tables import csv_rows
    from app.transfer.importers import read_export
    from tests.fakes.damaged_exports import check_imported
    from tests.fakes.drawn import compose
    from tests.fakes.export_files import FILES, write
    from tests.fakes.loopback_script import finish, text, thinking, tool_call, usage
    from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES, stream_bytes

_READERS = {CHAT: ChatReader, MESSAGES: MessagesReader, RESPONSES: ResponsesReader}
_MARKDOWN = (
    "# A\n\n- [x] b *c* `d`\n\n|a|b|\n|-|-|\n|1|2|\n\n$x^2$ [e](http://f.g) [^1]\n\n[^1]: h\n"
)
_SHOWN_CHARS = 4_000


def _import(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "export")
        path.write_bytes(data)
        with suppress(KnownError):
            for found in read_export(path):
                check_imported(found)


def _markdown(data: bytes) -> None:
    compose(data.decode("utf-8", "surrogateescape")[:_SHOWN_CHARS])


def _query(data: bytes) -> None:
    words = data.decode("utf-8", "surrogateescape")
    for read in (parse_query, sentence_query, parse_question):
        with suppress(KnownError):
            read(words)
    near_dates(words, date(2026, 3, 14))


def _stream(data: bytes) -> None:
    """Feed the events of a stream to the reader that its first byte chooses."""
    reader = [*_READERS.values()][data[0] % len(_READERS)]("model") if data else ChatReader("model")
    with suppress(KnownError, RejectedReply, StreamError):
        for line in data[1:].split(b"\n"):
            with suppress(ValueError):
                event = json.loads(line.removeprefix(b"data: "))
                if isinstance(event, Mapping):
                    list(reader.feed(event))
        list(reader.flush())


def _document(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(data)
        html = html_text(data)
        rows = csv_rows(path)
        for each in (html, "\n".join(row for sheet in rows for row in sheet)):
            chunks = chunks_of([rejoined(each)], is_paged=False, has_headings=True)
            assert "".join(chunk.text for chunk in chunks) == rejoined(each)


_TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "import": _import, "markdown": _markdown, "query": _query, "stream": _stream, "document": _document,
}  # fmt: skip


def _begin(target: str, folder: Path) -> None:
    """Write valid inputs of a target."""
    folder.mkdir(parents=True, exist_ok=True)
    seeds: list[bytes] = [_MARKDOWN.encode(), b"a;b\n1;2\n", b"<table><tr><td>1</table>"]
    if target == "query":
        seeds = [b'title:"a b" -c after:2025-03 "d e" f', "letzten Dienstag 去年三月".encode()]
    elif target == "stream":
        steps = (
            thinking("hm"), text("Hi", chunks=2), tool_call("a", {"b": 1}, pieces=2), usage(3, 4),
            finish("stop"),
        )  # fmt: skip
        seeds = [bytes([at]) + stream_bytes(wire, *steps) for at, wire in enumerate(_READERS)]
    elif target == "import":
        for name in FILES:
            with TemporaryDirectory() as place:
                source = write(name, Path(place))
                if source.is_file():
                    shutil.copyfile(source, folder / name)
    for at, seed in enumerate(seeds):
        (folder / f"seed-{at}").write_bytes(seed)


def main() -> None:
    target, folder, *options = sys.argv[1:]
    _begin(target, Path(folder))
    if target == "markdown":
        from PySide6.QtGui import QGuiApplication

        _ = QGuiApplication([])
    atheris.Setup([sys.argv[0], folder, "-timeout=20", *options], _TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""A model server on 127.0.0.1 that answers as a test scripts it, over the vendors' own wires.

It serves OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, `/v1/embeddings` and
`/v1/models`. Replies are taken from a queue in order (steps: `loopback_script`); with an empty queue
it makes conversation. By hand, to try the window against it:

    python -m tests.fakes.loopback --port 8123 --slow 30
    OPENAI_BASE_URL=http://127.0.0.1:8123/v1 OPENAI_API_KEY=any commonplace
"""

import argparse
import json
import select
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from tests.fakes import loopback_talk
from tests.fakes.loopback_embeddings import EMBEDDINGS, embeddings_body
from tests.fakes.loopback_script import (
    CutAfter,
    Garbage,
    HangUp,
    Http,
    Pace,
    Pieces,
    Stall,
    Step,
    Vectors,
)
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES, error_body, frames

_WIRES = (
    ("/chat/completions", CHAT), ("/responses", RESPONSES), ("/messages", MESSAGES),
    ("/embeddings", EMBEDDINGS),
)  # fmt: skip
_WHOLE = (Http, HangUp, Garbage, Stall)  # no streams: they also answer other requests


@dataclass
class Seen:
    """A request as it arrived. `headers` have small names, `body` is its JSON, None without."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    hung_up: threading.Event = field(default_factory=threading.Event)

    @property
    def wire(self) -> str:
        """Which protocol it speaks, "" for none."""
        path = self.path.partition("?")[0]
        return next((wire for end, wire in _WIRES if path.endswith(end)), "")


Route = Step | Callable[[Seen], Step]


class _HungUp(Exception):
    """The client closed the connection."""


class Loopback:
    """The server; a context manager. Each connection has its thread, all end with `stop`."""

    def __init__(self, port: int = 0, pace_ms: float = 0.0) -> None:
        self.requests: list[Seen] = []
        self.models = ["test-model", "test-model-mini"]
        self.routes: dict[str, Route] = {}  # whole answers by path, before all else
        self._pace_ms = pace_ms
        self._queue: deque[tuple[Step, ...]] = deque()
        self._always: tuple[Step, ...] | None = None
        self._by: Callable[[Seen], Iterable[Step]] = lambda seen: loopback_talk.answer(
            seen.body or {}
        )
        self._changed = threading.Condition()
        self._stopped, self._stopper = socket.socketpair()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, name="loopback")
        self._accepting.start()

    @property
    def url(self) -> str:
        """The base URL for Anthropic's wire."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def v1(self) -> str:
        """The base URL for OpenAI's wires."""
        return f"{self.url}/v1"

    def reply(self, *steps: Step) -> Self:
        """Add a reply to the queue."""
        with self._changed:
            self._queue.append(steps)
        return self

    def always(self, *steps: Step) -> Self:
        """Answer this whenever the queue is empty."""
        with self._changed:
            self._always = steps
        return self

    def by(self, answer: Callable[[Seen], Iterable[Step]]) -> Self:
        """Answer with `answer(request)`, called on the connection's thread, when nothing is scripted."""
        self._by = answer
        return self

    @property
    def posts(self) -> list[Seen]:
        """The requests for a reply, in order of arrival."""
        with self._changed:
            return [seen for seen in self.requests if seen.method == "POST" and seen.wire]

    def wait_for(self, condition: Callable[[], object], limit_s: float = 60.0) -> None:
        """Block until `condition` holds; it is asked whenever a request arrives or ends."""
        with self._changed:
            if not self._changed.wait_for(condition, limit_s):
                raise AssertionError("the loopback server waited in vain")

    def stop(self) -> None:
        """Close everything and wait until every thread is gone."""
        self._stopper.close()
        self._accepting.join()
        for thread in list(self._threads):
            thread.join()
        self._listener.close()
        self._stopped.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _accept(self) -> None:
        while self._stopped not in select.select([self._listener, self._stopped], [], [])[0]:
            connection, _ = self._listener.accept()
            thread = threading.Thread(target=self._serve, args=(connection,), name="loopback")
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            pending = b""
            seen: Seen | None = None
            try:
                while True:
                    seen = None
                    seen, pending = self._read(connection, pending)
                    with self._changed:
                        self.requests.append(seen)
                        self._changed.notify_all()
                    if not self._answer(connection, seen):
                        return
            except (_HungUp, OSError):
                if seen is not None:
                    seen.hung_up.set()
            finally:
                with self._changed:
                    self._changed.notify_all()

    def _read(self, connection: socket.socket, pending: bytes) -> tuple[Seen, bytes]:
        while b"\r\n\r\n" not in pending:
            pending += self._receive(connection)
        head, _, rest = pending.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        length = int(headers.get("content-length", "0"))
        while len(rest) < length:
            rest += self._receive(connection)
        body = json.loads(rest[:length]) if length else None
        return Seen(method, path, headers, body), rest[length:]

    def _receive(self, connection: socket.socket) -> bytes:
        ready, _, _ = select.select([connection, self._stopped], [], [])
        if self._stopped in ready:
            raise _HungUp
        received = connection.recv(65_536)
        if not received:
            raise _HungUp
        return received

    def _wait(self, connection: socket.socket, wait_s: float | None) -> None:
        """Wait, unless the client hangs up or the server stops."""
        ready, _, _ = select.select([connection, self._stopped], [], [], wait_s)
        if ready:
            raise _HungUp

    def _answer(self, connection: socket.socket, seen: Seen) -> bool:
        """Answer one request; return whether the connection stays open."""
        path = seen.path.partition("?")[0]
        if (route := self.routes.get(path)) is not None:
            steps: tuple[Step, ...] = (route(seen) if callable(route) else route,)
        elif seen.method == "GET" and path.endswith("/models"):
            steps = (self._model_list(seen),)
        elif seen.wire == EMBEDDINGS:
            steps = self._vectors(seen)
        elif seen.wire:
            steps = self._next() or tuple(self._by(seen))
        else:
            steps = (Http(404, b"404 page not found", "text/plain"),)
        if any(isinstance(step, Stall) and step.before_headers for step in steps):
            self._wait(connection, None)
        match next((step for step in steps if isinstance(step, HangUp | Garbage | Http)), None):
            case HangUp(reset=reset):
                _close(connection, reset=reset)
                return False
            case Garbage(data=data):
                connection.sendall(data)
                return False
            case Http() as whole:
                _send_whole(connection, whole, seen.wire)
                return True
        return self._stream(connection, seen, steps)

    def _vectors(self, seen: Seen) -> tuple[Step, ...]:
        """The next reply with its vectors, where there are any, as a whole answer."""
        steps = self._next((*_WHOLE, Vectors)) or (Vectors(),)
        return tuple(
            Http(200, embeddings_body(seen.body, step)) if isinstance(step, Vectors) else step
            for step in steps
        )

    def _next(self, fit: tuple[type, ...] = (object,)) -> tuple[Step, ...]:
        """Take the next reply, if any of its steps is of a kind that fits what was asked."""
        with self._changed:
            queued = self._queue[0] if self._queue else self._always or ()
            if not any(isinstance(step, fit) for step in queued):
                return ()
            if self._queue:
                self._queue.popleft()
            return queued

    def _model_list(self, seen: Seen) -> Http:
        is_anthropic = "anthropic-version" in seen.headers
        entries = [
            {"id": name, "display_name": name.title(), "max_input_tokens": 200_000}
            if is_anthropic
            else {"id": name, "object": "model", "created": 1, "owned_by": "tests"}
            for name in self.models
        ]
        listing = {"object": "list", "data": entries, "has_more": False}
        return Http(200, json.dumps(listing).encode())

    def _stream(self, connection: socket.socket, seen: Seen, steps: tuple[Step, ...]) -> bool:
        cut = next((step for step in steps if isinstance(step, CutAfter)), None)
        pace_ms = next((step.delay_ms for step in steps if isinstance(step, Pace)), self._pace_ms)
        size = next((step.size_bytes for step in steps if isinstance(step, Pieces)), 0)
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        sent = 0
        for frame in frames(seen.wire, steps, str((seen.body or {}).get("model"))):
            if isinstance(frame, Stall):
                self._wait(connection, None)
                continue
            if pace_ms:
                self._wait(connection, pace_ms / 1000)
            if cut is not None and sent + len(frame) >= cut.body_bytes:
                _send_chunk(connection, frame[: cut.body_bytes - sent])
                _close(connection, reset=cut.reset)
                return False
            for start in range(0, len(frame), size or len(frame)):
                _send_chunk(connection, frame[start : start + (size or len(frame))])
            sent += len(frame)
        connection.sendall(b"0\r\n\r\n")
        return True


def _send_chunk(connection: socket.socket, data: bytes) -> None:
    if data:
        connection.sendall(b"%x\r\n" % len(data) + data + b"\r\n")


def _send_whole(connection: socket.socket, answer: Http, wire: str) -> None:
    body = answer.body if answer.body is not None else error_body(wire, answer.error or {})
    head = [f"HTTP/1.1 {answer.status} Status", f"Content-Type: {answer.content_type}"]
    head += [f"{name}: {value}" for name, value in answer.headers]
    head += [f"Content-Length: {len(body)}", "", ""]
    connection.sendall("\r\n".join(head).encode("latin-1") + body)


def _close(connection: socket.socket, *, reset: bool) -> None:
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A model server that makes conversation.")
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes any free port")
    parser.add_argument("--slow", type=float, default=0.0, help="milliseconds before each event")
    given = parser.parse_args(arguments)
    with Loopback(given.port, given.slow) as server:
        sys.stdout.write(f"OPENAI_BASE_URL={server.v1}\nANTHROPIC_BASE_URL={server.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

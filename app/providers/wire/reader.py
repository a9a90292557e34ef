"""Wire protocols in general: the bases of all protocols and of their stream readers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from app.domain.chat import NO_IMAGES, ChatRequest, Finished, StreamEvent, ThinkingDelta
from app.domain.conversations import Message
from app.domain.text import clean
from app.providers.wire.messages import WireMessage, prepare_messages
from app.providers.wire.thinking_tags import ThinkingTags

_UNFINISHED = re.compile("([\ud800-\udbff]|\U0001f3f4?[\U000e0001-\U000e007f]+|\U0001f3f4)\\Z")
_HELD_CHARS = 64


class StreamCleaner:
    """Text of a stream, cleaned by `app.domain.text.clean`; `feed` each piece, then `flush`.

    Servers split text anywhere: between the halves of a surrogate pair, or inside an emoji flag made
    of tag characters. An incomplete sequence is held back until the rest has arrived.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the clean text that can be shown now, possibly none."""
        text = self._held + piece
        self._held = ""
        match = _UNFINISHED.search(text[-_HELD_CHARS:])
        if match and match.end() - match.start() < _HELD_CHARS:
            self._held = match[0]
            text = text[: len(text) - len(match[0])]
        return clean(text)

    def flush(self) -> str:
        """Return the text that was held back."""
        held, self._held = self._held, ""
        return clean(held)


class ReplyReader:
    """The reader of one reply's events; a subclass for each wire.

    Attributes:
        finished: None until the terminal marker was read.
        model: `PROVIDER:MODEL`, stored with the raw reply.
    """

    def __init__(self, model: str) -> None:
        self.finished: Finished | None = None
        self.model = model
        self.text = StreamCleaner()
        self.thinking = StreamCleaner()
        self._tags = ThinkingTags()

    def feed(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield the meaning of an event, possibly nothing; raise StreamError for an error event."""
        raise NotImplementedError

    def flush(self) -> Iterator[StreamEvent]:
        """Yield text that was held back; called after the last event, and before tool calls."""
        if rest := self.thinking.flush():
            yield ThinkingDelta(rest)
        yield from self._tags.feed(self.text.flush())
        yield from self._tags.flush()

    def think(self, text: str) -> Iterator[StreamEvent]:
        """Yield a piece of reasoning as far as it can be shown."""
        if text and (shown := self.thinking.feed(text)):
            self._tags.expect_no_end()
            yield ThinkingDelta(shown)

    def write(self, text: str) -> Iterator[StreamEvent]:
        """Yield a piece of text as far as it can be shown, and the reasoning in its tags."""
        if text:
            yield from self._tags.feed(self.text.feed(text))


class Wire:
    """A protocol: how a request is written and how its reply is read; a subclass for each.

    Attributes:
        name: Stored with raw replies, which are sent back over the same wire only.
        path: Where requests go, relative to the base URL.
        optional: The parameters of a request that may be omitted when a server rejects them.
        reader: The class that reads a reply.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    optional: ClassVar[tuple[str, ...]]
    reader: ClassVar[type[ReplyReader]]

    def body(self, request: ChatRequest, model: str) -> dict[str, Any]:
        """Return the request's JSON; `model` is `PROVIDER:MODEL`, as raw replies name it."""
        raise NotImplementedError

    def events_of(self, reply: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield a reply that was sent whole as the events of a stream."""
        raise NotImplementedError

    def prepared(
        self, messages: Sequence[Message], model: str, images: Mapping[str, bytes] = NO_IMAGES
    ) -> tuple[WireMessage, ...]:
        """Return messages in wire form, as `prepare_messages` does."""
        return prepare_messages(messages, self.name, model, images)

"""Wire protocols in general: the bases of all protocols and of their stream readers.

Thinking that a model writes into its text stands between tags at the start of the reply. A server that does
not know a model's reasoning format passes it on as text. Many chat templates open the tag themselves, so that
only its end arrives; what was already passed on as text is then reclassified. The pairs are those of the
models' chat templates: DeepSeek R1, Qwen and GLM (`<think>`), Seed-OSS, Magistral (`[THINK]`), Command A,
OpenThinker, Kimi. gpt-oss writes messages in channels instead: its analysis is thinking, all else is for the
user. Source: docs/format.md of OpenAI's library "harmony".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from app.domain.chat import NO_IMAGES, ChatRequest, Finished, StreamEvent, TextWasThinking
from app.domain.conversations import Message, RawReply, Text, Thinking
from app.domain.text import clean
from app.providers.wire.messages import WireMessage, prepare_messages, raw_reply

_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
)
_OPENING = tuple(opening.casefold() for opening, _ in _TAGS)
_CLOSING = tuple(closing.casefold() for _, closing in _TAGS)
_LONGEST = max(map(len, _CLOSING))
_OPEN = re.compile("|".join(map(re.escape, _OPENING)), re.IGNORECASE)
_CLOSE = re.compile("|".join(map(re.escape, _CLOSING)), re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_CODE = re.compile(rf"(?s:{_FENCE.pattern}.*?{_FENCE.pattern})|`[^`\n]*`", re.MULTILINE)
_MENTIONING = (" ", "\t", '"', "'", "(", "“", "«")  # before a tag that a sentence mentions
_MENTIONS_MAX = 20
_CHANNELS = ("<|channel|>", "<|start|>assistant")  # how a reply in channels begins
# The start of a message: who it is for if it is a call, and its channel.
_MESSAGE = r"(?:<\|start\|>assistant([^<]*))?<\|channel\|>\s*(\w+)([^<]*)(?:<\|constrain\|>[^<]*)?<\|message\|>"
_FIRST_MESSAGE = re.compile(_MESSAGE)
_NEXT_MESSAGE = re.compile(rf"<\|(?:end|call)\|>\s*{_MESSAGE}")
_LAST_MARK = re.compile(r"<\|(?:end|return|call)\|>\s*\Z")
_RECIPIENT = re.compile(r"to=(\S+)")
_MESSAGE_CHARS = 250  # the longest start of a message


class ThinkingTags:
    """Separates the thinking of a streamed reply from its text; `feed` each piece, then `flush`.

    Only thinking at the start of a reply counts: later tags, and those in code, are text.
    """

    def __init__(self) -> None:
        self._held = ""
        self._mode = self._at_start
        self._said: list[str] = []  # all text so far while a lone end tag may follow
        self._expects_end = True
        self._mentions = 0
        self._has_thought = False  # within the present tags
        self._is_after_thinking = False
        self._channel = ""
        self._has_said = False  # something to the user, in a message of a channel

    @property
    def has_found(self) -> bool:
        """Whether there was thinking in tags, or a message in a channel."""
        return self._is_after_thinking or self._mode == self._in_thinking

    def expect_no_end(self) -> None:
        """Expect no lone end tag any more: the server reports thinking by itself."""
        self._expects_end = False

    def feed(self, piece: str) -> Iterator[StreamEvent]:
        """Yield the text and thinking that can be shown now, possibly none."""
        self._held += piece
        return self._run(is_end=False)

    def flush(self) -> Iterator[StreamEvent]:
        """Yield what was held back, at the end of the text."""
        yield from self._run(is_end=True)
        self.expect_no_end()

    def _run(self, *, is_end: bool) -> Iterator[StreamEvent]:
        """Run until more is needed to decide."""
        mode = None
        while self._held and mode != self._mode:
            mode = self._mode
            yield from mode(is_end)

    def _at_start(self, is_end: bool) -> Iterator[StreamEvent]:
        """Decide whether thinking begins, once enough has arrived."""
        begin = self._held.lstrip()
        if found := _FIRST_MESSAGE.match(begin):
            self._end_thinking(begin[found.end() :])
            self._mode = self._in_channels
            yield from self._begin_message(found)
        elif found := _OPEN.match(begin):
            self._held = begin[found.end() :]
            self._expects_end = self._has_thought = False
            self._mode = self._in_thinking
        elif is_end or not (_is_prefix(begin, _OPENING + _CHANNELS) or _may_be_message(begin)):
            self._held = begin if self._is_after_thinking else self._held
            self._mode = self._in_text
        yield from ()

    def _in_thinking(self, is_end: bool) -> Iterator[StreamEvent]:
        """Yield thinking without white space at its ends."""
        held = self._held
        found = _CLOSE.search(held)
        thought = held[: found.start() if found else _before_tag(held, is_end)].rstrip()
        if shown := thought if self._has_thought else thought.lstrip():
            self._has_thought = True
            yield Thinking(shown)
        if found:
            self._end_thinking(held[found.end() :])
        else:
            self._held = "" if is_end else held[len(thought) :]

    def _in_channels(self, is_end: bool) -> Iterator[StreamEvent]:
        """Yield the messages in channels; what is final has no message after it."""
        while found := self._channel != "final" and _NEXT_MESSAGE.search(self._held):
            yield from self._in_channel(found.start())
            self._held = self._held[found.end() - found.start() :]
            yield from self._begin_message(found)
        if is_end:
            self._held = _LAST_MARK.sub("", self._held)
            yield from self._in_channel(len(self._held))
        else:
            mark = self._held.find("<|", max(0, len(self._held) - _MESSAGE_CHARS))
            size = len(self._held.removesuffix("<"))
            yield from self._in_channel(size if mark < 0 else mark)

    def _begin_message(self, found: re.Match[str]) -> Iterator[StreamEvent]:
        """Begin a message; a call that the server did not understand is shown with its recipient."""
        role, self._channel, rest = found.groups(default="")
        recipient = _RECIPIENT.search(role + rest)
        if self._channel != "analysis":
            between = "\n\n" if self._has_said else ""
            if begin := f"{between}{f'{recipient[1]} ' if recipient else ''}":
                yield Text(begin)

    def _in_channel(self, count: int) -> Iterator[StreamEvent]:
        said, self._held = self._held[:count], self._held[count:]
        if said and self._channel == "analysis":
            yield Thinking(said)
        elif said:
            self._has_said = True
            yield Text(said)

    def _in_text(self, is_end: bool) -> Iterator[StreamEvent]:
        """Yield text; a lone end tag makes thinking of all of it."""
        while found := _CLOSE.search(self._held) if self._expects_end else None:
            if found.end() == len(self._held) and not is_end:
                break  # what follows the tag decides
            rest = self._held[found.end() :]
            yield from self._say(found.start())
            if _ends_thinking("".join(self._said), found[0], rest):
                if self._said:
                    yield TextWasThinking()
                self._end_thinking(rest)
                return
            yield from self._say(len(found[0]))
            self._mentions += 1
            self._expects_end = self._mentions < _MENTIONS_MAX
        if self._expects_end:
            yield from self._say(found.start() if found else _before_tag(self._held, is_end))
        else:
            yield from self._say(len(self._held))

    def _say(self, count: int) -> Iterator[StreamEvent]:
        text, self._held = self._held[:count], self._held[count:]
        if text:
            if self._expects_end:
                self._said.append(text)
            yield Text(text)

    def _end_thinking(self, rest: str) -> None:
        self._held = rest
        self._said.clear()
        self._expects_end = False
        self._is_after_thinking = True
        self._mode = self._at_start


def _is_prefix(text: str, tags: tuple[str, ...]) -> bool:
    return any(tag.startswith(text.casefold()) for tag in tags)


def _may_be_message(text: str) -> bool:
    is_open = "<|message|>" not in text and len(text) < _MESSAGE_CHARS
    return is_open and text.casefold().startswith(_CHANNELS)


def _before_tag(text: str, is_end: bool) -> int:
    """Return the length of `text` without what may be the first part of an end tag."""
    sizes = range(min(len(text), _LONGEST - 1), 0, -1)
    partial = next((size for size in sizes if _is_prefix(text[-size:], _CLOSING)), 0)
    return len(text) if is_end else len(text) - partial


def _ends_thinking(said: str, closing: str, rest: str) -> bool:
    """Whether an end tag between `said` and `rest` ends thinking, rather than being mentioned.

    The end tag of a pair within `said` does not; tags in code are no pair.
    """
    is_at_line_end = rest[:1] in ("", "\n", "\r")
    line = said.rpartition("\n")[2]
    if line.count("`") % 2 or len(_FENCE.findall(said)) % 2:
        return False
    closing = closing.casefold()
    opening = _OPENING[_CLOSING.index(closing)]
    plain = _CODE.sub("", said).casefold()
    is_lone = plain.count(opening) <= plain.count(closing)
    return is_lone and (is_at_line_end or not line.endswith(_MENTIONING))


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
            yield Thinking(rest)
        yield from self._tags.feed(self.text.flush())
        yield from self._tags.flush()

    def raw_of(self, wire: str, items: Sequence[Mapping[str, Any]]) -> RawReply | None:
        """Return the items that a reply is sent back as; None where its text has thinking in tags."""
        return None if self._tags.has_found or not items else raw_reply(wire, self.model, items)

    def think(self, text: str) -> Iterator[StreamEvent]:
        """Yield a piece of reasoning as far as it can be shown."""
        if text and (shown := self.thinking.feed(text)):
            self._tags.expect_no_end()
            yield Thinking(shown)

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
        return prepare_messages(messages, self.name, model, images)


_TAIL_CHARS = 12_000  # a table of zeros may be shorter
_UNIT_CHARS = 250  # the longest text whose repetition is detected
_STEP_CHARS = 250  # between two checks


class RepetitionGuard:
    """Reads a streamed reply."""

    def __init__(self) -> None:
        self._tail = ""
        self._unchecked = 0

    def repeats(self, events: Sequence[StreamEvent]) -> bool:
        """Add events; return whether the last 12,000 characters are one text again and again.

        Text that comes in one piece of that size is not checked: there is nothing to stop.
        """
        text = "".join(each.text for each in events if isinstance(each, Text | Thinking))
        self._tail = (self._tail + text)[-_TAIL_CHARS:] if len(text) < _TAIL_CHARS else ""
        self._unchecked += len(text)
        if len(self._tail) < _TAIL_CHARS or self._unchecked < _STEP_CHARS:
            return False
        self._unchecked = 0
        return any(self._tail.startswith(self._tail[size:]) for size in range(1, _UNIT_CHARS + 1))

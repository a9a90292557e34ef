"""A conversation prepared for any wire: what every vendor demands, decided once.

Tool calls and results come in pairs or not at all; attachments become text; a provider's own form
of a reply goes back only over the same wire to the same model. What is sent at all (windows,
budgets) is decided above, in the context plan.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.domain.chat import ChatRequest
from app.domain.conversations import (
    Attachment,
    Block,
    Image,
    Message,
    RawReply,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

_LONE = re.compile("[\ud800-\udfff]")

Item = dict[str, Any]
ImageReader = Callable[[Image], bytes | None]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image's bytes in base64."""

    media_type: str
    base64: str

    @property
    def data_url(self) -> str:
        """The picture as a `data:` URL (RFC 2397)."""
        return f"data:{self.media_type};base64,{self.base64}"


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message as it will be sent.

    `place` is where the message stood in the request; `parts` are texts and pictures in order, `calls` and `results` complete pairs. `raw`, if not
    None, is the provider's own list of items, to be sent instead of everything else.
    """

    role: Role
    place: int
    parts: tuple[str | Picture, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    raw: tuple[Item, ...] | None = None

    @property
    def text(self) -> str:
        """The texts alone, joined by blank lines."""
        return "\n\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def has_pictures(self) -> bool:
        """Whether any part is a picture."""
        return any(isinstance(part, Picture) for part in self.parts)


def spoken(request: ChatRequest) -> tuple[Message, ...]:
    """Return the request's messages, what was recalled inside the one that asks."""
    messages = list(request.messages)
    if request.recalled and request.asked_at is not None:
        asking = messages[request.asked_at]
        messages[request.asked_at] = replace(
            asking, blocks=(Text(request.recalled), *asking.blocks)
        )
    return tuple(messages)


def prepare(
    messages: Sequence[Message], wire: str, model: str, read_image: ImageReader | None = None
) -> tuple[Utterance, ...]:
    """Return the messages as utterances, oldest first, empty ones left out.

    `wire` and `model` (`PROVIDER:MODEL`) decide whether a stored raw reply is still good: thinking
    signatures are worth something to the model that made them only. `read_image` gives an image's
    bytes, None where it has none.
    """
    answered = _answered_calls(messages)
    prepared = []
    for place, message in enumerate(messages):
        pairs = answered[place]
        calls = tuple(
            block
            for block in message.blocks
            if isinstance(block, ToolCall) and block.call_id in pairs
        )
        results = tuple(
            block
            for block in message.blocks
            if isinstance(block, ToolResult) and block.call_id in pairs
        )
        raw = None
        if message.role is Role.ASSISTANT and len(calls) == _count_calls(message.blocks):
            raw = _raw_items(message.raw, wire, model)
        parts = tuple(_parts(message.blocks, read_image))
        if parts or calls or results or raw:
            prepared.append(Utterance(message.role, place, parts, calls, results, raw))
    return tuple(prepared)


def in_words(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with tool calls and results told in words, one for one.

    For servers that know no tools, or refuse calls among the messages where none are offered. Calls
    and results without their other half are left out.
    """
    answered = _answered_calls(messages)
    return tuple(_told(message, pairs) for message, pairs in zip(messages, answered, strict=True))


def _told(message: Message, pairs: frozenset[str]) -> Message:
    if not any(isinstance(block, ToolCall | ToolResult) for block in message.blocks):
        return message
    blocks: list[Block] = []
    for block in message.blocks:
        match block:
            case ToolCall(call_id=call_id, name=name, arguments=arguments):
                if call_id in pairs:
                    blocks.append(Text(f"[The tool {name} was called with {arguments}]"))
            case ToolResult(call_id=call_id, name=name, text=text):
                if call_id in pairs:
                    blocks.append(Text(f"[The tool {name} answered: {text}]"))
            case _:
                blocks.append(block)
    role = Role.USER if message.role is Role.TOOL else message.role
    return replace(message, role=role, blocks=tuple(blocks), raw=None)


def arguments_object(arguments: str) -> Item:
    """Return a tool call's arguments as an object; what is none is put under a telling name.

    Servers parse the arguments they are sent back, and refuse the conversation for ever when a
    model has once written broken ones.
    """
    try:
        decoded = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return {"malformed_arguments": arguments}
    return decoded if isinstance(decoded, dict) else {"malformed_arguments": arguments}


def arguments_text(arguments: str) -> str:
    """Return a tool call's arguments as JSON text of an object, unchanged if they are one."""
    decoded = arguments_object(arguments)
    broken = "malformed_arguments" in decoded or not arguments
    return json.dumps(decoded, ensure_ascii=False) if broken else arguments


def schema_object(parameters_json: str) -> Item:
    """Return a tool's parameters as a JSON schema object."""
    decoded = json.loads(parameters_json or "{}")
    return decoded or {"type": "object", "properties": {}}


def raw_reply(wire: str, model: str, items: Iterable[Mapping[str, Any]]) -> RawReply:
    """Return a provider's own items for storing, as ASCII JSON that any database takes.

    Byte for byte but for lone surrogates, which no request could carry back: they are replaced.
    """
    text = json.dumps(list(items), ensure_ascii=False)
    if _LONE.search(text):
        items = json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    return RawReply(wire, model, json.dumps(list(items), separators=(",", ":")))


def _answered_calls(messages: Sequence[Message]) -> list[frozenset[str]]:
    """For each message the ids of its calls (or results) that have their other half.

    Results stand in the messages right after the call, before anyone else speaks; ids may repeat
    later in the conversation, so the search goes no further.
    """
    answered: list[frozenset[str]] = [frozenset()] * len(messages)
    for place, message in enumerate(messages):
        called = {block.call_id for block in message.blocks if isinstance(block, ToolCall)}
        if not called:
            continue
        missing = set(called)
        for later in range(place + 1, len(messages)):
            if messages[later].role is not Role.TOOL:
                break
            found = missing & {
                block.call_id for block in messages[later].blocks if isinstance(block, ToolResult)
            }
            answered[later] = frozenset(found)
            missing -= found
        answered[place] = frozenset(called - missing)
    return answered


def _count_calls(blocks: Iterable[Block]) -> int:
    return sum(isinstance(block, ToolCall) for block in blocks)


def _raw_items(raw: RawReply | None, wire: str, model: str) -> tuple[Item, ...] | None:
    if raw is None or raw.wire != wire or raw.model != model:
        return None
    try:
        items = json.loads(raw.items_json)
    except ValueError:
        return None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return None
    return tuple(items) or None


def _parts(blocks: Iterable[Block], read_image: ImageReader | None) -> Iterator[str | Picture]:
    for block in blocks:
        match block:
            case Text(text=text) if text.strip():
                yield text
            case Attachment(name=name, text=text):
                body = f"\n{text}\n" if text else " (its content could not be read) "
                yield f'<attachment name="{name}">{body}</attachment>'
            case Image(name=name, media_type=media_type):
                held = read_image(block) if read_image else None
                if held:
                    yield Picture(media_type, base64.b64encode(held).decode("ascii"))
                else:
                    yield f"[image: {name}]"

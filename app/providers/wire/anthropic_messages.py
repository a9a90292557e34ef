"""The Messages wire of Anthropic: signed thinking blocks, an explicit maximum, cache breakpoints.

Thinking blocks are sent back byte for byte to the model that signed them and are dropped when the
model changes. Sources: docs.claude.com/en/api/messages-streaming, .../build-with-claude/prompt-caching,
.../build-with-claude/extended-thinking.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.chat import ChatRequest, Finished, FinishReason, StreamEvent, UsageReported
from app.domain.conversations import Role, ToolCall
from app.domain.records.presets import Effort
from app.domain.text import clean
from app.providers.http.error_translation import StreamError
from app.providers.http.json_fields import count_at, list_at, mapping_at, member, text_at
from app.providers.wire.messages import (
    Item,
    WireMessage,
    arguments_object,
    schema_object,
    tools_as_text,
)
from app.providers.wire.reader import ReplyReader, Wire

WIRE = "anthropic.messages"
_CACHED: Item = {"type": "ephemeral"}
_DEFAULT_MAX_TOKENS = 16_384
_OLD_MAX_TOKENS = (("claude-3-5", 8192), ("claude-3-7", _DEFAULT_MAX_TOKENS), ("claude-3", 4096))
_BUDGET_MODELS = re.compile(r"claude-3|claude-(?:opus|sonnet|haiku)-4(?:-[015])?(?:-20\d{6})?$")
_SMALL_BUDGET_MODELS = re.compile(r"claude-opus-4(?:-[01])?(?:-20\d{6})?$")
_MOST_TOKENS, _SMALL_MOST_TOKENS = 64_000, 32_000  # output of models that think by a budget
_BUDGET_TOKENS = {Effort.LOW: 2048, Effort.MEDIUM: 8192}
_MAX_BUDGET_TOKENS = 16_384
_SIGNED = ("thinking", "redacted_thinking")
_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.REFUSED,
    "model_context_window_exceeded": FinishReason.CONTEXT_EXCEEDED,
}
_USAGE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class MessagesReader(ReplyReader):
    """The reader of the Messages wire. The terminal marker is message_stop."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._blocks: dict[int, Item] = {}
        self._arguments: dict[int, list[str]] = {}
        self._usage: dict[str, int] = {}
        self._hour_tokens = 0  # written to the cache for an hour
        self._stop_reason = ""
        self._last_index = -1
        self._ended: set[int] = set()
        self._last_text_index = -1

    def feed(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield the meaning of an event; raise StreamError for an error event."""
        kind = text_at(event, "type")
        index = member(event, "index")
        if type(index) is not int:
            index = self._last_index + (kind == "content_block_start")
        if kind == "error":
            raise StreamError(event)
        if kind == "message_start":
            yield from self._count(mapping_at(event, "message", "usage"))
        elif kind == "content_block_start":
            self._last_index = index
            self._blocks[index] = block = dict(mapping_at(event, "content_block"))
            if block.get("type") == "text":
                yield from self._write(index, text_at(block, "text"))
            elif block.get("type") == "thinking":
                yield from self.think(text_at(block, "thinking"))
        elif kind == "content_block_delta":
            yield from self._extend_block(index, mapping_at(event, "delta"))
        elif kind == "content_block_stop":
            yield from self._end_block(index)
        elif kind == "message_delta":
            self._stop_reason = text_at(event, "delta", "stop_reason") or self._stop_reason
            yield from self._count(mapping_at(event, "usage"))
        elif kind == "message_stop":
            yield from self._finish()

    def _write(self, index: int, text: str) -> Iterator[StreamEvent]:
        """Adjacent text blocks are one text (citations split it); others are paragraphs."""
        if text:
            is_paragraph = 0 <= self._last_text_index < index - 1
            self._last_text_index = index
            yield from self.write(f"\n\n{text}" if is_paragraph else text)

    def _extend_block(self, index: int, delta: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Add a delta to its block, which is created if its start was missing."""
        match text_at(delta, "type"):
            case "text_delta":
                self._append(index, "text", "text", text_at(delta, "text"))
                yield from self._write(index, text_at(delta, "text"))
            case "thinking_delta":
                self._append(index, "thinking", "thinking", text_at(delta, "thinking"))
                yield from self.think(text_at(delta, "thinking"))
            case "signature_delta":
                self._append(index, "thinking", "signature", text_at(delta, "signature"))
            case "input_json_delta":
                self._arguments.setdefault(index, []).append(text_at(delta, "partial_json"))
            case "citations_delta":
                block = self._blocks.setdefault(index, {"type": "text", "text": ""})
                block["citations"] = [*(block.get("citations") or ()), member(delta, "citation")]

    def _append(self, index: int, kind: str, name: str, piece: str) -> None:
        block = self._blocks.setdefault(index, {"type": kind, kind: ""})
        block[name] = text_at(block, name) + piece

    def _end_block(self, index: int) -> Iterator[StreamEvent]:
        """Complete a block; a tool call is ready then."""
        block = self._blocks.get(index, {})
        if not text_at(block, "type").endswith("tool_use") or index in self._ended:
            return
        self._ended.add(index)
        streamed = clean("".join(self._arguments.get(index, ())))
        initial = json.dumps(mapping_at(block, "input"), ensure_ascii=False)
        arguments = streamed or clean(initial)
        block["input"] = arguments_object(arguments)
        if text_at(block, "type") == "tool_use":
            yield from self.flush()
            yield ToolCall(clean(text_at(block, "id")), clean(text_at(block, "name")), arguments)

    def _count(self, usage: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Take over the latest value of each counter: message_delta's are cumulative."""
        found = {name: count_at(usage, name) for name in _USAGE}
        self._usage |= {name: count for name, count in found.items() if count is not None}
        if self._usage:
            fresh, output, cached, written = (self._usage.get(name, 0) for name in _USAGE)
            hour = count_at(usage, "cache_creation", "ephemeral_1h_input_tokens")
            self._hour_tokens = self._hour_tokens if hour is None else hour
            yield UsageReported(
                fresh + cached + written, output, cached, written, min(written, self._hour_tokens)
            )

    def _finish(self) -> Iterator[StreamEvent]:
        for index in sorted(self._blocks):
            yield from self._end_block(index)
        items = [self._blocks[index] for index in sorted(self._blocks)]
        items = [item for item in items if item and item.get("text") != ""]
        reason = _REASONS.get(self._stop_reason, FinishReason.UNKNOWN)
        self.finished = Finished(reason, self.raw_of(WIRE, items))


class MessagesWire(Wire):
    """The wire of Anthropic.

    The system prompt ends with a cache breakpoint (without one, the tools do); further breakpoints
    are at `_cache_points`. Four are allowed in all.
    """

    name = WIRE
    path = "/v1/messages"
    optional = ("output_config.format", "thinking", "output_config", "tool_choice", "tools")
    reader = MessagesReader

    def events_of(self, reply: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the blocks of a whole reply and its end."""
        for index, block in enumerate(list_at(reply, "content")):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        if text_at(reply, "stop_reason"):
            yield {"type": "message_delta", "delta": reply, "usage": mapping_at(reply, "usage")}
            yield {"type": "message_stop"}

    def body(self, request: ChatRequest, model: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens or _default_max_tokens(request.model),
            "messages": self._messages(request, model),
            "stream": True,
        }
        if request.system.strip():
            body["system"] = [
                {"type": "text", "text": request.system, "cache_control": dict(_CACHED)}
            ]
        if request.tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": schema_object(tool.parameters_json),
                }
                for tool in request.tools
            ]
            if "system" not in body:
                body["tools"][-1]["cache_control"] = dict(_CACHED)
            if request.tools_disabled:
                body["tool_choice"] = {"type": "none"}
        if request.reasoning_effort is not None:
            _set_thinking(body, request.reasoning_effort)
        if request.answer_schema_json:
            schema = schema_object(request.answer_schema_json)
            answer_format = {"type": "json_schema", "schema": schema}
            body["output_config"] = {**body.get("output_config", {}), "format": answer_format}
        return body

    def _messages(self, request: ChatRequest, model: str) -> list[Item]:
        """Alternating user and assistant messages, the user's first.

        Without tools in the request, tool calls and results are rejected, so they become text.
        """
        source = request.messages if request.tools else tools_as_text(request.messages)
        prepared = self.prepared(source, model, request.images)
        # Empty messages were left out: a breakpoint moves to the last message before it.
        cached = {
            max((place for place, each in enumerate(prepared) if each.index <= point), default=-1)
            for point in _cache_points(request)
        }
        messages: list[Item] = []
        for place, message in enumerate(prepared):
            role = "assistant" if message.role is Role.ASSISTANT else "user"
            blocks = _blocks(message)
            if not messages and role == "assistant":
                messages.append({"role": "user", "content": [_text("(earlier messages left out)")]})
            if blocks and place in cached:
                blocks[-1] = _with_breakpoint(blocks[-1])
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"] += blocks
            elif blocks:
                messages.append({"role": role, "content": blocks})
        return messages


def _cache_points(request: ChatRequest) -> tuple[int, ...]:
    """The indexes of the messages that end the stable prefix.

    That is the last message of the last finished turn, and within a tool round also the last message,
    for the next round.
    """
    messages = request.messages
    points = [request.history_count - 1] if request.history_count else []
    if messages and messages[-1].role is Role.TOOL:
        points.append(len(messages) - 1)
    return tuple(points)


def _blocks(message: WireMessage) -> list[Item]:
    if message.raw:
        # Thinking without a signature is rejected.
        unsigned = ("thinking", None)
        return [
            item
            for item in message.raw
            if (item.get("type"), item.get("signature") or None) != unsigned
        ]
    blocks: list[Item] = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": result.text or "(empty)",
            "is_error": result.is_error,
        }
        for result in message.results
    ]
    blocks += [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": image.data},
        }
        for image in message.images
    ]
    blocks += [_text(text) for text in message.texts]
    blocks += [
        {
            "type": "tool_use",
            "id": call.call_id,
            "name": call.name,
            "input": arguments_object(call.arguments),
        }
        for call in message.calls
    ]
    return blocks


def _text(text: str) -> Item:
    return {"type": "text", "text": text}


def _with_breakpoint(block: Item) -> Item:
    """The block as the end of the cached prefix; signed blocks must stay unchanged."""
    return block if block.get("type") in _SIGNED else {**block, "cache_control": dict(_CACHED)}


def _default_max_tokens(model: str) -> int:
    old = (tokens for prefix, tokens in _OLD_MAX_TOKENS if model.startswith(prefix))
    return next(old, _DEFAULT_MAX_TOKENS)


def _set_thinking(body: dict[str, Any], effort: Effort) -> None:
    """Set thinking: by a budget on models up to 4.5, which do not think without; else by effort."""
    if _BUDGET_MODELS.match(body["model"]):
        if effort is not Effort.NONE:
            budget_tokens = _BUDGET_TOKENS.get(effort, _MAX_BUDGET_TOKENS)
            body["thinking"] = {"type": "enabled", "budget_tokens": budget_tokens}
            is_small = _SMALL_BUDGET_MODELS.match(body["model"])
            most = _SMALL_MOST_TOKENS if is_small else _MOST_TOKENS
            body["max_tokens"] = min(body["max_tokens"] + budget_tokens, most)
    elif effort is Effort.NONE:
        body["thinking"] = {"type": "disabled"}  # some models reject that and have the least effort
        body["output_config"] = {"effort": Effort.LOW.value}
    else:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        body["output_config"] = {"effort": effort.value}

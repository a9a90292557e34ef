"""The Chat Completions wire, which every compatible server speaks: the bare minimum of a request.

Its reader is tolerant of the variants that compatible servers send: tool-call deltas without index or
id, reasoning under three names, content in parts, a last chunk without choices. Sources:
platform.openai.com/docs/api-reference/chat, platform.openai.com/docs/api-reference/chat-streaming.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    StreamEvent,
    TextWasThinking,
    UsageReported,
)
from app.domain.conversations import RawReply, Role, Text, ToolCall
from app.domain.text import clean
from app.providers.http.error_translation import StreamError
from app.providers.http.json_fields import count_at, list_at, mapping_at, member, text_at
from app.providers.model_options import is_openai_reasoning_model
from app.providers.wire.messages import Item, WireMessage, arguments_text, raw_reply, schema_object
from app.providers.wire.reader import ReplyReader, Wire

WIRE = "openai.chat"
_REASONS = {
    "stop": FinishReason.STOP,
    "eos_token": FinishReason.STOP,
    "complete": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.CONTEXT_EXCEEDED,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.FILTERED,
    "refusal": FinishReason.REFUSED,
}
_REASONING = ("reasoning_content", "reasoning", "thinking")
_KNOWN_FIELDS = {"role", "content", "tool_calls", "refusal", "index", *_REASONING}


class ChatReader(ReplyReader):
    """The reader of the Chat Completions wire. The terminal marker is a `finish_reason`."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._calls = _CallAssembler()
        self._content: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._unknown_fields: Item = {}
        self._refused = False

    def feed(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield the meaning of a chunk; raise StreamError for an error."""
        if event.get("error"):
            raise StreamError(event)
        if usage := mapping_at(event, "usage"):
            yield _usage_reported(usage)
        for choice in list_at(event, "choices")[:1]:
            yield from self._delta(mapping_at(choice, "delta") or mapping_at(choice, "message"))
            if (reason := text_at(choice, "finish_reason")) and self.finished is None:
                yield from self._finish(reason, choice)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[StreamEvent]:
        for name in _REASONING:
            if isinstance(text := delta.get(name), str) and text:
                self._reasoning.setdefault(name, []).append(text)
                yield from self.think(text)
                break
        content = delta.get("content")
        for part in content if isinstance(content, list) else [content]:
            yield from self._part(part)
        if refusal := text_at(delta, "refusal"):
            self._refused = True
            yield from self._write(refusal)
        for call in list_at(delta, "tool_calls"):
            if isinstance(call, Mapping):
                self._calls.add(call)
        for name in delta.keys() - _KNOWN_FIELDS:
            _merge_field(self._unknown_fields, name, delta[name])

    def _part(self, part: Any) -> Iterator[StreamEvent]:
        """Content is text, or with some servers a list of typed parts (docs.mistral.ai)."""
        if isinstance(part, str):
            yield from self._write(part)
        elif text_at(part, "type") == "thinking":
            for each in list_at(part, "thinking"):
                yield from self.think(text_at(each, "text"))
        else:
            yield from self._write(text_at(part, "text"))

    def _write(self, text: str) -> Iterator[StreamEvent]:
        yield from self._collected(self.write(text))

    def _collected(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        """Keep the text for the raw reply, without the thinking in its tags."""
        for event in events:
            if isinstance(event, Text):
                self._content.append(event.text)
            elif isinstance(event, TextWasThinking):
                self._content.clear()
            yield event

    def _finish(self, finish_reason: str, choice: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if finish_reason == "error":
            raise StreamError(choice.get("error") or {"message": "", "type": "server_error"})
        calls = self._calls.ready()
        yield from self._collected(self.flush())
        yield from calls
        reason = _REASONS.get(finish_reason.casefold(), FinishReason.UNKNOWN)
        if reason in (FinishReason.STOP, FinishReason.TOOL_CALLS):
            reason = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        if self._refused and reason is FinishReason.STOP:
            reason = FinishReason.REFUSED
        self.finished = Finished(reason, self._raw() if calls else None)

    def _raw(self) -> RawReply:
        """The reply in the form the server expects back, without thinking that it wrote as text.

        Needed with tool calls only: within a turn some servers require their reasoning (DeepSeek)
        or signatures on the calls (Gemini), between turns none does.
        """
        item: Item = {
            "role": "assistant",
            "content": "".join(self._content) or None,
            **{name: "".join(parts) for name, parts in self._reasoning.items()},
            **self._unknown_fields,
            "tool_calls": self._calls.items(),
        }
        return raw_reply(WIRE, self.model, [item])


class _CallAssembler:
    """Tool calls assembled from their deltas, identified by index, id or order."""

    def __init__(self) -> None:
        self._calls: list[Item] = []
        self._by_index: dict[int, Item] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        function = mapping_at(delta, "function")
        call = self._find(delta, text_at(delta, "id"), text_at(function, "name"))
        call["id"] = call["id"] or text_at(delta, "id")
        call["name"] = call["name"] or text_at(function, "name")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call["arguments"].append(arguments)
        elif isinstance(arguments, Mapping):  # decoded, therefore complete
            call["arguments"] = [json.dumps(arguments, ensure_ascii=False)]
        for name in delta.keys() - {"id", "index", "type", "function"}:
            _merge_field(call["extra"], name, delta[name])

    def ready(self) -> list[ToolCall]:
        """Return the calls in order; a missing id is generated, empty calls are dropped."""
        self._calls = [call for call in self._calls if call["name"] or call["arguments"]]
        for call in self._calls:
            call["id"] = call["id"] or f"call_{secrets.token_hex(8)}"
        return [
            ToolCall(
                clean(call["id"]), clean(call["name"]), clean("".join(call["arguments"])) or "{}"
            )
            for call in self._calls
        ]

    def items(self) -> list[Item]:
        """Return the calls in the protocol's form, with all their unknown fields."""
        return [
            {
                "id": clean(call["id"]),
                "type": "function",
                "function": {
                    "name": clean(call["name"]),
                    "arguments": arguments_text(clean("".join(call["arguments"]))),
                },
                **call["extra"],
            }
            for call in self._calls
        ]

    def _find(self, delta: Mapping[str, Any], call_id: str, name: str) -> Item:
        """Return the call a delta belongs to.

        Some servers number every call 0 but give each an id. Where both are missing, a name begins
        a new call.
        """
        index = member(delta, "index")
        if type(index) is int:
            known = self._by_index.get(index)
            if known and not (call_id and known["id"] and call_id != known["id"]):
                return known
            call = self._new()
            self._by_index[index] = call
            return call
        if call_id:
            same = [call for call in self._calls if call["id"] == call_id]
            return same[0] if same else self._new()
        if self._calls and not (name and self._calls[-1]["name"]):
            return self._calls[-1]
        return self._new()

    def _new(self) -> Item:
        call: Item = {"id": "", "name": "", "arguments": [], "extra": {}}
        self._calls.append(call)
        return call


def _merge_field(held: Item, name: str, value: Any) -> None:
    """Merge an unknown field of a delta: text and lists are appended, other values replaced."""
    if isinstance(value, str | list) and type(held.get(name)) is type(value):
        held[name] += value
    elif value is not None:
        held[name] = value


def _usage_reported(usage: Mapping[str, Any]) -> UsageReported:
    return UsageReported(
        count_at(usage, "prompt_tokens") or 0,
        count_at(usage, "completion_tokens") or 0,
        count_at(usage, "prompt_tokens_details", "cached_tokens")
        or count_at(usage, "prompt_cache_hit_tokens")
        or 0,
        count_at(usage, "prompt_tokens_details", "cache_write_tokens")  # OpenRouter
        or count_at(usage, "cache_creation_input_tokens")  # LiteLLM
        or 0,
    )


class ChatCompletionsWire(Wire):
    """The wire of OpenAI-compatible servers."""

    name = WIRE
    path = "/chat/completions"
    optional = (
        "stream_options", "tool_choice", "response_format", "tools", "reasoning_effort",
        "temperature", "max_completion_tokens", "max_tokens",
    )  # fmt: skip
    reader = ChatReader

    def events_of(self, reply: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the reply as one chunk: the reader accepts a message in place of a delta."""
        if choices := list_at(reply, "choices"):
            yield reply
            if mapping_at(choices[0], "message"):  # complete, even if no reason is given
                yield {"choices": [{"finish_reason": "stop"}]}

    def body(self, request: ChatRequest, model: str) -> dict[str, Any]:
        messages: list[Item] = []
        if request.system.strip():
            messages.append({"role": "system", "content": request.system})
        for message in self.prepared(request.messages, model, request.images):
            for item in _items(message):
                _append(messages, item)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": schema_object(tool.parameters_json),
                    },
                }
                for tool in request.tools
            ]
        if request.answer_schema_json:
            schema = schema_object(request.answer_schema_json)
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            }
        reasons = is_openai_reasoning_model(request.model)
        optional = {
            "tool_choice": "none" if request.tools and request.tools_disabled else None,
            "temperature": request.temperature,
            "reasoning_effort": request.reasoning_effort,
            "max_completion_tokens" if reasons else "max_tokens": request.max_output_tokens,
        }
        return body | {name: value for name, value in optional.items() if value is not None}


def _items(message: WireMessage) -> Iterator[Item]:
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.call_id, "content": result.text}
    if message.raw:
        yield from message.raw
    elif message.role is Role.ASSISTANT:
        item: Item = {"role": "assistant", "content": message.text or None}
        if message.calls:
            item["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": arguments_text(call.arguments)},
                }
                for call in message.calls
            ]
        yield item
    elif message.images:
        parts: list[Item] = [
            {"type": "image_url", "image_url": {"url": image.url}} for image in message.images
        ]
        if message.text:
            parts.append({"type": "text", "text": message.text})
        yield {"role": "user", "content": parts}
    elif message.texts:
        role = "system" if message.role is Role.SYSTEM else "user"
        yield {"role": role, "content": message.text}


def _append(messages: list[Item], item: Item) -> None:
    """Add a message; two of the assistant are merged: many chat templates require alternation."""
    last = messages[-1] if messages else {}
    is_plain = item.keys() == {"role", "content"} == last.keys() and item["role"] == "assistant"
    if is_plain and last["role"] == item["role"] and last["content"] and item["content"]:
        last["content"] = f"{last['content']}\n\n{item['content']}"
    else:
        messages.append(item)

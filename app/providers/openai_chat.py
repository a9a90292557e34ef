"""The Chat Completions wire: the request sends the minimum, the reader takes what comes.

This is what every compatible server speaks, each with its own accent: tool-call deltas without
index or id, reasoning under three names, content in parts, a last chunk without choices.
Source: platform.openai.com/docs/api-reference/chat-streaming.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    ModelRef,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    TokensReported,
    ToolCallReady,
)
from app.domain.conversations import RawReply, Role
from app.domain.text import clean
from app.providers.cleaning import StreamCleaner
from app.providers.faults import StreamFault
from app.providers.lenient import count_at, list_at, mapping_at, member, text_at
from app.providers.transcript import (
    ImageReader,
    Item,
    Picture,
    Utterance,
    arguments_text,
    prepare,
    raw_reply,
    schema_object,
)

WIRE = "openai.chat"
_REASONS = {
    "stop": FinishReason.STOP,
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


class ChatCompletions:
    """The wire of OpenAI-compatible servers. `read_image` gives the bytes of attached pictures."""

    path = "/chat/completions"
    optional: tuple[str, ...] = (
        "stream_options",
        "tools",
        "reasoning_effort",
        "temperature",
        "max_tokens",
    )

    def __init__(self, read_image: ImageReader | None = None) -> None:
        self._read_image = read_image

    def body(self, request: ChatRequest, provider: str) -> dict[str, Any]:
        """Return the request's JSON."""
        model = str(ModelRef(provider, request.model))
        messages: list[Item] = []
        if request.system.strip():
            messages.append({"role": "system", "content": request.system})
        for utterance in prepare(request.messages, WIRE, model, self._read_image):
            for item in _items(utterance):
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
        wishes = {
            "temperature": request.temperature,
            "reasoning_effort": request.reasoning_effort,
            "max_tokens": request.max_output_tokens,
        }
        return body | {name: value for name, value in wishes.items() if value is not None}

    def reader(self, request: ChatRequest, provider: str) -> "ChatReader":
        """Return a reader for one reply."""
        return ChatReader(str(ModelRef(provider, request.model)))


def _items(utterance: Utterance) -> Iterator[Item]:
    for result in utterance.results:
        yield {"role": "tool", "tool_call_id": result.call_id, "content": result.text}
    if utterance.raw:
        yield from utterance.raw
    elif utterance.role is Role.ASSISTANT:
        item: Item = {"role": "assistant", "content": utterance.text or None}
        if utterance.calls:
            item["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": arguments_text(call.arguments)},
                }
                for call in utterance.calls
            ]
        yield item
    elif utterance.parts:
        role = "system" if utterance.role is Role.SYSTEM else "user"
        yield {"role": role, "content": _content(utterance)}


def _content(utterance: Utterance) -> str | list[Item]:
    if not utterance.has_pictures:
        return utterance.text
    return [
        {"type": "image_url", "image_url": {"url": part.data_url}}
        if isinstance(part, Picture)
        else {"type": "text", "text": part}
        for part in utterance.parts
    ]


def _append(messages: list[Item], item: Item) -> None:
    """Add a message, joining two plain ones of the same speaker: many templates demand turns."""
    last = messages[-1] if messages else {}
    mergeable = item.keys() == {"role", "content"} == last.keys() and item["role"] != "system"
    texts = (last.get("content"), item["content"])
    if mergeable and last["role"] == item["role"] and all(isinstance(text, str) for text in texts):
        last["content"] = "\n\n".join(texts)  # type: ignore[arg-type]
    else:
        messages.append(item)


class ChatReader:
    """Reads the chunks of one reply. The terminal marker is a `finish_reason`."""

    def __init__(self, model: str) -> None:
        self.finished: Finished | None = None
        self._model = model
        self._text = StreamCleaner()
        self._thinking = StreamCleaner()
        self._calls = _CallAssembler()
        self._extra: Item = {}
        self._said: list[str] = []
        self._thought: dict[str, list[str]] = {}
        self._refused = False

    def feed(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield what a chunk means; raises StreamFault for an error in mid-stream."""
        if event.get("error"):
            raise StreamFault(event)
        if usage := mapping_at(event, "usage"):
            yield _tokens(usage)
        for choice in list_at(event, "choices")[:1]:
            yield from self._delta(mapping_at(choice, "delta") or mapping_at(choice, "message"))
            if (reason := text_at(choice, "finish_reason")) and self.finished is None:
                yield from self._finish(reason, choice)

    def flush(self) -> Iterator[StreamEvent]:
        """Yield text that was held back."""
        if rest := self._thinking.flush():
            yield ThinkingDelta(rest)
        if rest := self._text.flush():
            yield TextDelta(rest)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[StreamEvent]:
        for name in _REASONING:
            if isinstance(thought := delta.get(name), str) and thought:
                self._thought.setdefault(name, []).append(thought)
                yield from self._think(thought)
                break
        content = delta.get("content")
        for part in content if isinstance(content, list) else [content]:
            yield from self._part(part)
        if refusal := text_at(delta, "refusal"):
            self._refused = True
            yield from self._say(refusal)
        for call in list_at(delta, "tool_calls"):
            self._calls.add(mapping_at({"call": call}, "call"))
        for name in delta.keys() - _KNOWN_FIELDS:
            _grow(self._extra, name, delta[name])

    def _part(self, part: Any) -> Iterator[StreamEvent]:
        """Content is text, or with some servers a list of typed parts (docs.mistral.ai)."""
        if isinstance(part, str):
            yield from self._say(part)
        elif text_at(part, "type") == "thinking":
            for each in list_at(part, "thinking"):
                yield from self._think(text_at(each, "text"))
        else:
            yield from self._say(text_at(part, "text"))

    def _say(self, text: str) -> Iterator[StreamEvent]:
        if text:
            self._said.append(text)
            if shown := self._text.feed(text):
                yield TextDelta(shown)

    def _think(self, text: str) -> Iterator[StreamEvent]:
        if text and (shown := self._thinking.feed(text)):
            yield ThinkingDelta(shown)

    def _finish(self, word: str, choice: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if word == "error":
            raise StreamFault(choice.get("error") or {"message": "", "type": "server_error"})
        calls = self._calls.ready()
        yield from calls
        reason = _REASONS.get(word, FinishReason.UNKNOWN)
        if reason in (FinishReason.STOP, FinishReason.TOOL_CALLS):
            reason = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        if self._refused and reason is FinishReason.STOP:
            reason = FinishReason.REFUSED
        self.finished = Finished(reason, self._raw() if calls else None)

    def _raw(self) -> RawReply:
        """The reply as the server would want it back.

        Only with tool calls: within a turn some servers demand their reasoning (DeepSeek) or
        signatures on the calls (Gemini), between turns none does.
        """
        item: Item = {
            "role": "assistant",
            "content": "".join(self._said) or None,
            **{name: "".join(parts) for name, parts in self._thought.items()},
            **self._extra,
            "tool_calls": self._calls.items(),
        }
        return raw_reply(WIRE, self._model, [item])


class _CallAssembler:
    """Puts tool calls together from their deltas, whatever names them: index, id, or order."""

    def __init__(self) -> None:
        self._calls: list[Item] = []
        self._by_index: dict[int, Item] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take in one delta."""
        function = mapping_at(delta, "function")
        call = self._find(delta, text_at(delta, "id"), text_at(function, "name"))
        call["id"] = call["id"] or text_at(delta, "id")
        call["name"] = call["name"] or text_at(function, "name")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call["arguments"].append(arguments)
        elif isinstance(arguments, Mapping):  # already decoded, so it is whole
            call["arguments"] = [json.dumps(arguments, ensure_ascii=False)]
        for name in delta.keys() - {"id", "index", "type", "function"}:
            _grow(call["extra"], name, delta[name])

    def ready(self) -> list[ToolCallReady]:
        """Return the calls in the order they began; a missing id is made up."""
        for call in self._calls:
            call["id"] = call["id"] or f"call_{secrets.token_hex(8)}"
        return [
            ToolCallReady(
                clean(call["id"]), clean(call["name"]), clean("".join(call["arguments"])) or "{}"
            )
            for call in self._calls
        ]

    def items(self) -> list[Item]:
        """Return the calls as the protocol writes them, with every unknown field they had."""
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

        Some servers number every call 0 but give each its id; some give neither, then a name
        begins a new call.
        """
        index = member(delta, "index")
        if type(index) is int:
            known = self._by_index.get(index)
            if known and not (call_id and known["id"] and call_id != known["id"]):
                return known
            call = self._begin()
            self._by_index[index] = call
            return call
        if call_id:
            same = [call for call in self._calls if call["id"] == call_id]
            return same[0] if same else self._begin()
        if self._calls and not (name and self._calls[-1]["name"]):
            return self._calls[-1]
        return self._begin()

    def _begin(self) -> Item:
        call: Item = {"id": "", "name": "", "arguments": [], "extra": {}}
        self._calls.append(call)
        return call


def _grow(held: Item, name: str, value: Any) -> None:
    """Keep an unknown field of deltas: texts and lists grow, anything else is replaced."""
    if isinstance(value, str | list) and type(held.get(name)) is type(value):
        held[name] += value
    elif value is not None:
        held[name] = value


def _tokens(usage: Mapping[str, Any]) -> TokensReported:
    return TokensReported(
        count_at(usage, "prompt_tokens") or 0,
        count_at(usage, "completion_tokens") or 0,
        count_at(usage, "prompt_tokens_details", "cached_tokens")
        or count_at(usage, "prompt_cache_hit_tokens")
        or 0,
    )

"""Reading a reply of the Chat Completions wire, in every accent that compatible servers have.

Tool-call deltas without index or id, reasoning under three names, content in parts, a last chunk
without choices. Source: platform.openai.com/docs/api-reference/chat-streaming.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.chat import (
    Finished,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    TokensReported,
    ToolCallReady,
)
from app.domain.conversations import RawReply
from app.domain.text import clean
from app.providers.cleaning import StreamCleaner
from app.providers.faults import StreamFault
from app.providers.lenient import count_at, list_at, mapping_at, member, text_at
from app.providers.transcript import Item, arguments_text, raw_reply

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
            if isinstance(call, Mapping):
                self._calls.add(call)
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
        """Return the calls in the order they began; a missing id is made up, empty ones go."""
        self._calls = [call for call in self._calls if call["name"] or call["arguments"]]
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

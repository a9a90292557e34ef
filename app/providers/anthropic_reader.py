"""Reading a reply of the Messages wire: blocks by index, put together again as they were sent."""

import json
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
from app.domain.text import clean
from app.providers.cleaning import StreamCleaner
from app.providers.faults import StreamFault
from app.providers.lenient import count_at, mapping_at, member, text_at
from app.providers.transcript import Item, arguments_object, raw_reply

WIRE = "anthropic.messages"
_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.REFUSED,
    "model_context_window_exceeded": FinishReason.CONTEXT_EXCEEDED,
}
_USAGE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class MessagesReader:
    """Reads the events of one reply. The terminal marker is message_stop."""

    def __init__(self, model: str) -> None:
        self.finished: Finished | None = None
        self._model = model
        self._text = StreamCleaner()
        self._thinking = StreamCleaner()
        self._blocks: dict[int, Item] = {}
        self._arguments: dict[int, list[str]] = {}
        self._usage: dict[str, int] = {}
        self._stop_reason = ""
        self._last = -1
        self._ended: set[int] = set()
        self._spoken_at = -1

    def feed(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield what an event means; raises StreamFault for an error in mid-stream."""
        kind = text_at(event, "type")
        if kind == "error":
            raise StreamFault(event)
        if kind == "message_start":
            yield from self._count(mapping_at(event, "message", "usage"))
        elif kind == "content_block_start":
            yield from self._begin(self._index(event, fallback=self._last + 1), event)
        elif kind == "content_block_delta":
            yield from self._grow(self._index(event, fallback=self._last), event)
        elif kind == "content_block_stop":
            yield from self._end(self._index(event, fallback=self._last))
        elif kind == "message_delta":
            self._stop_reason = text_at(event, "delta", "stop_reason") or self._stop_reason
            yield from self._count(mapping_at(event, "usage"))
        elif kind == "message_stop":
            yield from self._finish()

    def flush(self) -> Iterator[StreamEvent]:
        """Yield text that was held back."""
        if rest := self._thinking.flush():
            yield ThinkingDelta(rest)
        if rest := self._text.flush():
            yield TextDelta(rest)

    @staticmethod
    def _index(event: Mapping[str, Any], fallback: int) -> int:
        index = member(event, "index")
        return index if type(index) is int else fallback

    def _begin(self, index: int, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        block = dict(mapping_at(event, "content_block"))
        self._last = index
        self._blocks[index] = block
        if block.get("type") == "text":
            yield from self._say(index, text_at(block, "text"))
        elif block.get("type") == "thinking":
            yield from self._think(text_at(block, "thinking"))

    def _say(self, index: int, text: str) -> Iterator[StreamEvent]:
        """Neighbouring text blocks are one text (citations split it); others are apart."""
        if text and (shown := self._text.feed(text)):
            if 0 <= self._spoken_at < index - 1:
                yield TextDelta("\n\n")
            self._spoken_at = index
            yield TextDelta(shown)

    def _think(self, text: str) -> Iterator[StreamEvent]:
        if text and (shown := self._thinking.feed(text)):
            yield ThinkingDelta(shown)

    def _grow(self, index: int, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Add a delta to its block; one for a block that never began begins it."""
        delta = mapping_at(event, "delta")
        match text_at(delta, "type"):
            case "text_delta":
                self._extend(index, "text", "text", text_at(delta, "text"))
                yield from self._say(index, text_at(delta, "text"))
            case "thinking_delta":
                self._extend(index, "thinking", "thinking", text_at(delta, "thinking"))
                yield from self._think(text_at(delta, "thinking"))
            case "signature_delta":
                self._extend(index, "thinking", "signature", text_at(delta, "signature"))
            case "input_json_delta":
                self._arguments.setdefault(index, []).append(text_at(delta, "partial_json"))
            case "citations_delta":
                block = self._blocks.setdefault(index, {"type": "text", "text": ""})
                block["citations"] = [*(block.get("citations") or ()), member(delta, "citation")]

    def _extend(self, index: int, kind: str, name: str, piece: str) -> None:
        block = self._blocks.setdefault(index, {"type": kind, kind: ""})
        block[name] = text_at(block, name) + piece

    def _end(self, index: int) -> Iterator[StreamEvent]:
        """A block is whole: a tool call is ready now."""
        block = self._blocks.get(index, {})
        if not text_at(block, "type").endswith("tool_use") or index in self._ended:
            return
        self._ended.add(index)
        streamed = clean("".join(self._arguments.get(index, ())))
        given = json.dumps(mapping_at(block, "input"), ensure_ascii=False)
        arguments = streamed or clean(given)
        block["input"] = arguments_object(arguments)
        if text_at(block, "type") == "tool_use":
            yield ToolCallReady(
                clean(text_at(block, "id")), clean(text_at(block, "name")), arguments
            )

    def _count(self, usage: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """The last value of each counts: message_delta's are cumulative."""
        found = {name: count_at(usage, name) for name in _USAGE}
        self._usage |= {name: count for name, count in found.items() if count is not None}
        if self._usage:
            fresh, output, cached, written = (self._usage.get(name, 0) for name in _USAGE)
            yield TokensReported(fresh + cached + written, output, cached)

    def _finish(self) -> Iterator[StreamEvent]:
        for index in sorted(self._blocks):
            yield from self._end(index)
        items = [block for _, block in sorted(self._blocks.items(), key=lambda pair: pair[0])]
        items = [item for item in items if item and item.get("text") != ""]
        raw = raw_reply(WIRE, self._model, items) if items else None
        reason = _REASONS.get(self._stop_reason, FinishReason.UNKNOWN)
        self.finished = Finished(reason, raw)

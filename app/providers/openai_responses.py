"""The Responses wire of api.openai.com, stateless: `store` is false, reasoning comes encrypted.

Source: platform.openai.com/docs/api-reference/responses-streaming; for replaying reasoning items
without storage, platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items.
"""

import re
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
from app.domain.conversations import Role
from app.domain.text import clean
from app.providers.cleaning import StreamCleaner
from app.providers.faults import StreamFault
from app.providers.lenient import count_at, mapping_at, text_at
from app.providers.transcript import (
    ImageReader,
    Item,
    Picture,
    Utterance,
    arguments_text,
    prepare,
    raw_reply,
    schema_object,
    spoken,
)

WIRE = "openai.responses"
_WITHOUT_REASONING = re.compile(r"(gpt-3|gpt-4|chatgpt-|ft:gpt-[34])")
_TEXT_EVENTS = ("response.output_text.delta", "response.refusal.delta")
_THINKING_EVENTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_PARTS_BEGIN = ("response.reasoning_summary_part.added",)


class Responses:
    """The wire of api.openai.com. `read_image` gives the bytes of attached pictures."""

    path = "/responses"
    optional: tuple[str, ...] = (
        "include",
        "reasoning.summary",
        "reasoning.effort",
        "temperature",
        "tools",
        "max_output_tokens",
    )

    def __init__(self, read_image: ImageReader | None = None) -> None:
        self._read_image = read_image

    def body(self, request: ChatRequest, provider: str) -> dict[str, Any]:
        """Return the request's JSON."""
        model = str(ModelRef(provider, request.model))
        utterances = prepare(spoken(request), WIRE, model, self._read_image)
        body: dict[str, Any] = {
            "model": request.model,
            "input": [item for utterance in utterances for item in _items(utterance)],
            "stream": True,
            "store": False,
        }
        if request.system.strip():
            body["instructions"] = request.system
        if not _WITHOUT_REASONING.match(request.model):
            body["include"] = ["reasoning.encrypted_content"]
            body["reasoning"] = {"summary": "auto"}
            if request.reasoning_effort is not None:
                body["reasoning"]["effort"] = request.reasoning_effort
        if request.tools and not request.tools_closed:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": schema_object(tool.parameters_json),
                    "strict": False,  # the default, true, refuses schemas with optional members
                }
                for tool in request.tools
            ]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        return body

    def reader(self, request: ChatRequest, provider: str) -> "ResponsesReader":
        """Return a reader for one reply."""
        return ResponsesReader(str(ModelRef(provider, request.model)))


def _items(utterance: Utterance) -> Iterator[Item]:
    for result in utterance.results:
        yield {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
    if utterance.raw:
        yield from _replayed(utterance.raw)
    elif utterance.role is Role.ASSISTANT:
        if utterance.text:
            yield {"role": "assistant", "content": utterance.text}
        for call in utterance.calls:
            yield {
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": arguments_text(call.arguments),
            }
    elif utterance.parts:
        role = "developer" if utterance.role is Role.SYSTEM else "user"
        yield {"role": role, "content": [_part(part) for part in utterance.parts]}


def _part(part: str | Picture) -> Item:
    if isinstance(part, Picture):
        return {"type": "input_image", "image_url": part.data_url}
    return {"type": "input_text", "text": part}


def _replayed(items: tuple[Item, ...]) -> Iterator[Item]:
    """Send a reply back as it came.

    A reasoning item without its encrypted content is only a reference to something the server
    did not store; then it is left out, and so are the ids that would tie the others to it.
    """
    reasoning = [item for item in items if item.get("type") == "reasoning"]
    whole = all(item.get("encrypted_content") for item in reasoning)
    for item in items:
        if whole:
            yield item
        elif item.get("type") != "reasoning":
            yield {name: value for name, value in item.items() if name != "id"}


class ResponsesReader:
    """Reads the events of one reply. The terminal marker is response.completed or .incomplete."""

    def __init__(self, model: str) -> None:
        self.finished: Finished | None = None
        self._model = model
        self._text = StreamCleaner()
        self._thinking = StreamCleaner()
        self._items: dict[int, Item] = {}
        self._thought = False
        self._spoken_at: int | None = None
        self._refused = False

    def feed(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield what an event means; raises StreamFault for `error` and response.failed."""
        kind = text_at(event, "type")
        if kind in _TEXT_EVENTS:
            self._refused = self._refused or kind == "response.refusal.delta"
            yield from self._say(event)
        elif kind in _THINKING_EVENTS:
            self._thought = True
            if shown := self._thinking.feed(text_at(event, "delta")):
                yield ThinkingDelta(shown)
        elif kind in _PARTS_BEGIN and self._thought:
            yield ThinkingDelta("\n\n")
        elif kind == "response.output_item.done":
            yield from self._item(event)
        elif kind in ("response.completed", "response.incomplete"):
            yield from self._finish(mapping_at(event, "response"))
        elif kind == "response.failed":
            raise StreamFault(mapping_at(event, "response"))
        elif kind == "error" or event.get("error"):
            raise StreamFault(event)

    def flush(self) -> Iterator[StreamEvent]:
        """Yield text that was held back."""
        if rest := self._thinking.flush():
            yield ThinkingDelta(rest)
        if rest := self._text.flush():
            yield TextDelta(rest)

    def _say(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Two messages in one reply (a comment before a tool call, say) are two paragraphs."""
        place = count_at(event, "output_index")
        if shown := self._text.feed(text_at(event, "delta")):
            if self._spoken_at not in (None, place):
                yield TextDelta("\n\n")
            self._spoken_at = place
            yield TextDelta(shown)

    def _item(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        item = dict(mapping_at(event, "item"))
        place = count_at(event, "output_index")
        self._items[len(self._items) if place is None else place] = item
        if item.get("type") == "function_call":
            call_id = text_at(item, "call_id") or text_at(item, "id")
            arguments = clean(text_at(item, "arguments")) or "{}"
            yield ToolCallReady(clean(call_id), clean(text_at(item, "name")), arguments)
            # Broken arguments would make the server refuse the whole conversation later.
            item["arguments"] = arguments_text(arguments)

    def _finish(self, response: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if usage := mapping_at(response, "usage"):
            yield TokensReported(
                count_at(usage, "input_tokens") or 0,
                count_at(usage, "output_tokens") or 0,
                count_at(usage, "input_tokens_details", "cached_tokens") or 0,
            )
        items = [item for _, item in sorted(self._items.items(), key=lambda pair: pair[0])]
        raw = raw_reply(WIRE, self._model, items) if items else None
        self.finished = Finished(self._reason(response, items), raw)

    def _reason(self, response: Mapping[str, Any], items: list[Item]) -> FinishReason:
        if text_at(response, "status") == "incomplete":
            why = text_at(response, "incomplete_details", "reason")
            return {
                "max_output_tokens": FinishReason.LENGTH,
                "max_tokens": FinishReason.LENGTH,
                "content_filter": FinishReason.FILTERED,
            }.get(why, FinishReason.UNKNOWN)
        if any(item.get("type") == "function_call" for item in items):
            return FinishReason.TOOL_CALLS
        return FinishReason.REFUSED if self._refused else FinishReason.STOP

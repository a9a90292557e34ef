"""The Responses wire of api.openai.com, stateless: `store` is false, reasoning comes encrypted.

Source: platform.openai.com/docs/api-reference/responses-streaming; for replaying reasoning items
without storage, platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.chat import ChatRequest, Finished, FinishReason, StreamEvent, UsageReported
from app.domain.conversations import Role, Thinking, ToolCall
from app.domain.text import clean
from app.providers.http.error_translation import StreamError
from app.providers.http.json_fields import count_at, list_at, mapping_at, text_at
from app.providers.model_options import openai_options
from app.providers.wire.messages import Item, WireMessage, arguments_text, schema_object
from app.providers.wire.reader import ReplyReader, Wire

WIRE = "openai.responses"
_TEXT_EVENTS = ("response.output_text.delta", "response.refusal.delta")
_THINKING_EVENTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_DELTAS = {  # of the parts of a whole reply
    "output_text": "response.output_text.delta",
    "refusal": "response.refusal.delta",
    "summary_text": "response.reasoning_summary_text.delta",
    "reasoning_text": "response.reasoning_text.delta",
}
_INCOMPLETE_REASONS = {
    "max_output_tokens": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.FILTERED,
}


class ResponsesReader(ReplyReader):
    """The reader of the Responses wire. Its terminal marker is response.completed or .incomplete."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._items: dict[int, Item] = {}
        self._has_reasoning = False
        self._text_index: int | None = None
        self._refused = False

    def feed(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield the meaning of an event; raise StreamError for `error` and response.failed."""
        kind = text_at(event, "type")
        if kind in _TEXT_EVENTS:
            self._refused = self._refused or kind == "response.refusal.delta"
            yield from self._write(event)
        elif kind in _THINKING_EVENTS:
            self._has_reasoning = True
            yield from self.think(text_at(event, "delta"))
        elif kind == "response.reasoning_summary_part.added" and self._has_reasoning:
            yield Thinking("\n\n")
        elif kind == "response.output_item.done":
            yield from self._add_item(event)
        elif kind in ("response.completed", "response.incomplete"):
            yield from self._finish(mapping_at(event, "response"))
        elif kind == "response.failed":
            raise StreamError(mapping_at(event, "response"))
        elif kind == "error" or event.get("error"):
            raise StreamError(event)

    def _write(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Two messages in one reply (such as a comment before a tool call) are two paragraphs."""
        index = count_at(event, "output_index")
        if text := text_at(event, "delta"):
            is_paragraph = self._text_index not in (None, index)
            self._text_index = index
            yield from self.write(f"\n\n{text}" if is_paragraph else text)

    def _add_item(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        item = dict(mapping_at(event, "item"))
        index = count_at(event, "output_index")
        self._items[len(self._items) if index is None else index] = item
        if item.get("type") == "function_call":
            call_id = text_at(item, "call_id") or text_at(item, "id")
            arguments = clean(text_at(item, "arguments")) or "{}"
            yield from self.flush()
            yield ToolCall(clean(call_id), clean(text_at(item, "name")), arguments)
            # Malformed arguments would make the server reject the whole conversation later.
            item["arguments"] = arguments_text(arguments)

    def _finish(self, response: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if usage := mapping_at(response, "usage"):
            yield UsageReported(
                count_at(usage, "input_tokens") or 0,
                count_at(usage, "output_tokens") or 0,
                count_at(usage, "input_tokens_details", "cached_tokens") or 0,
            )
        items = [self._items[index] for index in sorted(self._items)]
        self.finished = Finished(self._reason(response, items), self.raw_of(WIRE, items))

    def _reason(self, response: Mapping[str, Any], items: list[Item]) -> FinishReason:
        if text_at(response, "status") == "incomplete":
            reason = text_at(response, "incomplete_details", "reason")
            return _INCOMPLETE_REASONS.get(reason, FinishReason.UNKNOWN)
        if any(item.get("type") == "function_call" for item in items):
            return FinishReason.TOOL_CALLS
        return FinishReason.REFUSED if self._refused else FinishReason.STOP


class ResponsesWire(Wire):
    """The wire of api.openai.com."""

    name = WIRE
    path = "/responses"
    optional = (
        "include", "text.format", "reasoning.summary", "reasoning.effort", "temperature",
        "tool_choice", "tools", "max_output_tokens",
    )  # fmt: skip
    reader = ResponsesReader

    def events_of(self, reply: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the items of a whole reply and its end."""
        for index, item in enumerate(list_at(reply, "output")):
            for part in (*list_at(item, "summary"), *list_at(item, "content")):
                kind = _DELTAS.get(text_at(part, "type"))
                text = text_at(part, "text") or text_at(part, "refusal")
                if kind and text:
                    yield {"type": kind, "output_index": index, "delta": text}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        if status := text_at(reply, "status"):
            yield {"type": f"response.{status}", "response": reply}

    def body(self, request: ChatRequest, model: str) -> dict[str, Any]:
        messages = self.prepared(request.messages, model, request.images)
        body: dict[str, Any] = {
            "model": request.model,
            "input": [item for message in messages for item in _items(message)],
            "stream": True,
            "store": False,
        }
        if request.system.strip():
            body["instructions"] = request.system
        if openai_options(request.model).efforts:
            body["include"] = ["reasoning.encrypted_content"]
            body["reasoning"] = {"summary": "auto"}
            if request.reasoning_effort is not None:
                body["reasoning"]["effort"] = request.reasoning_effort
        if request.tools:
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
        if request.tools and request.tools_disabled:
            body["tool_choice"] = "none"
        if request.answer_schema_json:
            schema = schema_object(request.answer_schema_json)
            body["text"] = {
                "format": {
                    "type": "json_schema",
                    "name": "answer",
                    "strict": True,
                    "schema": schema,
                }
            }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        return body


def _items(message: WireMessage) -> Iterator[Item]:
    for result in message.results:
        yield {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
    if message.raw:
        yield from _replayed(message.raw)
    elif message.role is Role.ASSISTANT:
        if message.text:
            yield {"role": "assistant", "content": message.text}
        for call in message.calls:
            yield {
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": arguments_text(call.arguments),
            }
    elif message.texts or message.images:
        role = "developer" if message.role is Role.SYSTEM else "user"
        parts: list[Item] = [
            {"type": "input_image", "image_url": image.url, "detail": "auto"}
            for image in message.images
        ]
        parts += [{"type": "input_text", "text": text} for text in message.texts]
        yield {"role": role, "content": parts}


def _replayed(items: tuple[Item, ...]) -> Iterator[Item]:
    """Yield the items of an earlier reply as they came.

    A reasoning item without encrypted content is a reference to something that the server did not
    store: it is left out, together with the ids that refer to it.
    """
    reasoning = [item for item in items if item.get("type") == "reasoning"]
    is_complete = all(item.get("encrypted_content") for item in reasoning)
    for item in items:
        if is_complete:
            yield item
        elif item.get("type") != "reasoning":
            yield {name: value for name, value in item.items() if name != "id"}

"""The Chat Completions wire, which every compatible server speaks: the request sends the minimum.

Source: platform.openai.com/docs/api-reference/chat. How the reply is read: `openai_chat_reader`.
"""

from collections.abc import Iterator
from typing import Any

from app.domain.chat import ChatRequest, ModelRef
from app.domain.conversations import Role
from app.providers.openai_chat_reader import WIRE, ChatReader
from app.providers.transcript import (
    ImageReader,
    Item,
    Picture,
    Utterance,
    arguments_text,
    prepare,
    schema_object,
    spoken,
)


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
        for utterance in prepare(spoken(request), WIRE, model, self._read_image):
            for item in _items(utterance):
                _append(messages, item)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools and not request.tools_closed:
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

    def reader(self, request: ChatRequest, provider: str) -> ChatReader:
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

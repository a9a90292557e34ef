"""The Messages wire of Anthropic: blocks with signatures, a demanded maximum, cache breakpoints.

Thinking blocks go back byte for byte to the model that signed them and are dropped when the model
changes. Sources: docs.claude.com/en/api/messages-streaming, .../build-with-claude/prompt-caching,
.../build-with-claude/extended-thinking.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from app.domain.chat import ChatRequest, ModelRef
from app.domain.conversations import Role
from app.providers.anthropic_reader import WIRE, MessagesReader
from app.providers.transcript import (
    ImageReader,
    Item,
    Picture,
    Utterance,
    arguments_object,
    in_words,
    prepare,
    schema_object,
    spoken,
)

CachePoints = Callable[[ChatRequest], Collection[int]]
_CACHED: Item = {"type": "ephemeral"}
_DEFAULT_MAX_TOKENS = 16_384
_OLD_MAX_TOKENS = (("claude-3-5", 8192), ("claude-3-7", _DEFAULT_MAX_TOKENS), ("claude-3", 4096))
_BUDGET_MODELS = re.compile(r"claude-3|claude-(?:opus|sonnet|haiku)-4(?:-[015])?(?:-20\d{6})?$")
_BUDGET_TOKENS = {"low": 2048, "medium": 8192, "high": 16_384}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_SIGNED = ("thinking", "redacted_thinking")


def before_last_question(request: ChatRequest) -> tuple[int, ...]:
    """Return the places after which the prompt cache should end: the stable prefix.

    That is the message before the one that asks (recalled text inside that one differs each time),
    and within a tool round also the last message, for the next round.
    """
    messages, asked_at = request.messages, request.asked_at
    if asked_at is None:
        opening = [place for place, message in enumerate(messages) if message.opens_turn]
        asked_at = opening[-1] if opening else 0
    points = [asked_at - 1] if asked_at > 0 else []
    if messages and messages[-1].role is Role.TOOL:
        points.append(len(messages) - 1)
    return tuple(points)


class Messages:
    """The wire of Anthropic.

    `read_image` gives the bytes of attached pictures; `cache_points` the places of messages whose
    end is a cache breakpoint (the system prompt's end always is one, the tools' without it; four are
    allowed in all).
    """

    path = "/v1/messages"
    optional: tuple[str, ...] = (
        "thinking",
        "output_config",
        "temperature",
        "tool_choice",
        "tools",
    )

    def __init__(
        self,
        read_image: ImageReader | None = None,
        cache_points: CachePoints = before_last_question,
    ) -> None:
        self._read_image = read_image
        self._cache_points = cache_points

    def body(self, request: ChatRequest, provider: str) -> dict[str, Any]:
        """Return the request's JSON."""
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens or _default_max_tokens(request.model),
            "messages": self._messages(request, provider),
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
            if request.tools_closed:
                body["tool_choice"] = {"type": "none"}
        if (effort := request.reasoning_effort) in _EFFORTS:
            _think(body, effort)
        elif request.temperature is not None:  # with thinking on, only the default is allowed
            body["temperature"] = request.temperature
        return body

    def reader(self, request: ChatRequest, provider: str) -> MessagesReader:
        """Return a reader for one reply."""
        return MessagesReader(str(ModelRef(provider, request.model)))

    def _messages(self, request: ChatRequest, provider: str) -> list[Item]:
        """Alternating user and assistant messages, beginning with the user's.

        Calls and results are refused where no tools are defined.
        """
        model = str(ModelRef(provider, request.model))
        told = spoken(request) if request.tools else in_words(spoken(request))
        utterances = prepare(told, WIRE, model, self._read_image)
        points = _last_places(utterances, self._cache_points(request))
        messages: list[Item] = []
        for utterance in utterances:
            role = "assistant" if utterance.role is Role.ASSISTANT else "user"
            blocks = _blocks(utterance)
            if not messages and role == "assistant":
                messages.append({"role": "user", "content": [_text("(earlier messages left out)")]})
            if blocks and utterance.place in points:
                blocks[-1] = _with_breakpoint(blocks[-1])
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"] += blocks
            elif blocks:
                messages.append({"role": role, "content": blocks})
        return messages


def _last_places(utterances: Sequence[Utterance], points: Collection[int]) -> set[int]:
    """For each point the last utterance that stands there or before: empty ones were left out."""
    places = [utterance.place for utterance in utterances]
    return {max((place for place in places if place <= point), default=-1) for point in points}


def _blocks(utterance: Utterance) -> list[Item]:
    if utterance.raw:
        # What the model did not sign it does not take back.
        unsigned = ("thinking", None)
        return [
            item
            for item in utterance.raw
            if (item.get("type"), item.get("signature") or None) != unsigned
        ]
    blocks: list[Item] = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": result.text or "(empty)",
            "is_error": result.is_error,
        }
        for result in utterance.results
    ]
    blocks += [_part(part) for part in utterance.parts]
    blocks += [
        {
            "type": "tool_use",
            "id": call.call_id,
            "name": call.name,
            "input": arguments_object(call.arguments),
        }
        for call in utterance.calls
    ]
    return blocks


def _part(part: str | Picture) -> Item:
    if isinstance(part, str):
        return _text(part)
    source = {"type": "base64", "media_type": part.media_type, "data": part.base64}
    return {"type": "image", "source": source}


def _text(text: str) -> Item:
    return {"type": "text", "text": text}


def _with_breakpoint(block: Item) -> Item:
    """Mark the end of what is cached; signed blocks must stay as they are."""
    return block if block.get("type") in _SIGNED else {**block, "cache_control": dict(_CACHED)}


def _default_max_tokens(model: str) -> int:
    old = (tokens for prefix, tokens in _OLD_MAX_TOKENS if model.startswith(prefix))
    return next(old, _DEFAULT_MAX_TOKENS)


def _think(body: dict[str, Any], effort: str | None) -> None:
    """Switch thinking on: by a budget on models up to 4.5, by effort on later ones."""
    if _BUDGET_MODELS.match(body["model"]):
        budget_tokens = _BUDGET_TOKENS.get(effort or "", _BUDGET_TOKENS["high"])
        body["thinking"] = {"type": "enabled", "budget_tokens": budget_tokens}
        body["max_tokens"] += budget_tokens
    else:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        body["output_config"] = {"effort": effort}

"""Steps as the bytes of the three wires: what OpenAI and Anthropic would stream.

Each function returns a list of frames in order; a frame is the bytes of one event, or a step that
only the server can act on (`Stall`).
"""

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.fakes.loopback_script import (
    Call,
    ErrorEvent,
    Finish,
    NoMarker,
    Raw,
    Stall,
    Step,
    Text,
    Thinking,
    UsageSaid,
)

Frame = bytes | Stall
CHAT, RESPONSES, MESSAGES = "chat", "responses", "messages"
_REASONS = {
    CHAT: {
        "filtered": "content_filter",
        "refused": "refusal",
        "context": "model_length",
    },
    MESSAGES: {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "refused": "refusal",
        "filtered": "refusal",
        "context": "model_context_window_exceeded",
    },
}


def frames(wire: str, steps: Iterable[Step], model: str = "test-model") -> list[Frame]:
    """Return the stream that says these steps, terminal marker included unless `NoMarker`."""
    encode: dict[str, Callable[[list[Step], str], Iterator[Frame]]] = {
        CHAT: _chat,
        RESPONSES: _responses,
        MESSAGES: _messages,
    }
    return list(encode[wire](list(steps), model))


def stream_bytes(wire: str, *steps: Step) -> bytes:
    """Return the whole stream as one text."""
    return b"".join(frame for frame in frames(wire, steps) if isinstance(frame, bytes))


def error_body(wire: str, said: dict[str, Any]) -> bytes:
    """Return the body of an HTTP error in the wire's shape."""
    if wire == MESSAGES:
        inner = {"type": said["type"] or "api_error", "message": said["message"]}
        return json.dumps({"type": "error", "error": inner, "request_id": "req_1"}).encode()
    return json.dumps({"error": said}).encode()


def split(words: str, count: int) -> list[str]:
    """Return a text in so many parts of nearly equal length."""
    size = max(1, math.ceil(len(words) / max(1, count)))
    return [words[start : start + size] for start in range(0, len(words), size)] or [""]


def _reason(wire: str, steps: list[Step]) -> str:
    said = next((step.reason for step in steps if isinstance(step, Finish)), None)
    if said is None:
        said = "tool_calls" if any(isinstance(step, Call) for step in steps) else "stop"
    return _REASONS.get(wire, {}).get(said, said)


def _data(value: object, event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return name.encode() + b"data: " + _json(value) + b"\n\n"


def _json(value: object) -> bytes:
    """Compact, in UTF-8 as the vendors send it; escaped where that cannot be (lone surrogates)."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _is_complete(steps: list[Step]) -> bool:
    return not any(isinstance(step, NoMarker | ErrorEvent) for step in steps)


def _chat(steps: list[Step], model: str) -> Iterator[Frame]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    places = itertools.count()
    yield chunk({"role": "assistant", "content": ""})
    for step in steps:
        match step:
            case Text(text=words, chunks=count):
                yield from (chunk({"content": part}) for part in split(words, count))
            case Thinking(text=words, chunks=count):
                yield from (chunk({"reasoning_content": part}) for part in split(words, count))
            case Call():
                yield from _chat_call(step, next(places), chunk)
            case ErrorEvent(type=kind, message=message, code=code):
                yield _data({"error": {"message": message, "type": kind, "code": code}})
            case Raw(data=data):
                yield data
            case Stall():
                yield step
    if _is_complete(steps):
        yield chunk({}, _reason(CHAT, steps))
        for said in (step for step in steps if isinstance(step, UsageSaid)):
            details = {"cached_tokens": said.cached_tokens}
            counts = {
                "prompt_tokens": said.input_tokens,
                "completion_tokens": said.output_tokens,
                "total_tokens": said.input_tokens + said.output_tokens,
                "prompt_tokens_details": details,
            }
            yield _data({**head, "choices": [], "usage": counts})
        yield b"data: [DONE]\n\n"


def _chat_call(step: Call, index: int, chunk: Callable[..., bytes]) -> Iterator[bytes]:
    begin = {
        "index": index,
        "id": step.call_id,
        "type": "function",
        "function": {"name": step.name, "arguments": ""},
    }
    yield chunk({"tool_calls": [begin]})
    for part in split(step.arguments, step.pieces):
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})


def _messages(steps: list[Step], model: str) -> Iterator[Frame]:
    said = next((step for step in steps if isinstance(step, UsageSaid)), UsageSaid(1, 1, 0))
    counts = {
        "input_tokens": said.input_tokens - said.cached_tokens,
        "cache_read_input_tokens": said.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": model,
        "stop_reason": None, "stop_sequence": None, "usage": counts,
    }  # fmt: skip
    yield _event("message_start", message=message)
    yield _event("ping")
    places = itertools.count()
    for step in steps:
        match step:
            case Text(text=words, chunks=count):
                deltas = [{"type": "text_delta", "text": part} for part in split(words, count)]
                yield from _block(next(places), {"type": "text", "text": ""}, deltas)
            case Thinking(text=words, chunks=count, signature=signature):
                empty = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": part} for part in split(words, count)
                ]
                deltas.append({"type": "signature_delta", "signature": signature})
                yield from _block(next(places), empty, deltas)
            case Call(name=name, arguments=arguments, call_id=call_id, pieces=count):
                block: dict[str, Any] = {
                    "type": "tool_use", "id": call_id, "name": name, "input": {},
                }  # fmt: skip
                deltas = [
                    {"type": "input_json_delta", "partial_json": part}
                    for part in split(arguments, count)
                ]
                yield from _block(next(places), block, deltas)
            case ErrorEvent(type=kind, message=words):
                yield _event("error", error={"type": kind, "message": words})
            case Raw(data=data):
                yield data
            case Stall():
                yield step
    if _is_complete(steps):
        delta = {"stop_reason": _reason(MESSAGES, steps), "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": said.output_tokens})
        yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return _data({"type": kind, **fields}, kind)


def _block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block=block)
    yield from (_event("content_block_delta", index=index, delta=delta) for delta in deltas)
    yield _event("content_block_stop", index=index)


def _responses(steps: list[Step], model: str) -> Iterator[Frame]:
    numbers = itertools.count()
    places = itertools.count()
    output: list[dict[str, Any]] = []
    response: dict[str, Any] = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": model, "store": False,
        "status": "in_progress", "output": [], "error": None, "incomplete_details": None,
    }  # fmt: skip

    def event(kind: str, **fields: Any) -> bytes:
        return _data({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    yield event("response.created", response=response)
    yield event("response.in_progress", response=response)
    for step in steps:
        match step:
            case Text() | Thinking() | Call():
                place = next(places)
                item = {"id": f"item_{place}", **_item(step)}
                output.append(item)
                yield from _item_events(step, place, item, event)
            case ErrorEvent(type=kind, message=words, code=code):
                yield event("error", code=code or kind, message=words, param=None)
            case Raw(data=data):
                yield data
            case Stall():
                yield step
    if _is_complete(steps):
        yield from _responses_end(steps, response | {"output": output}, event)


def _responses_end(
    steps: list[Step], response: dict[str, Any], event: Callable[..., bytes]
) -> Iterator[bytes]:
    for said in (step for step in steps if isinstance(step, UsageSaid)):
        response["usage"] = {
            "input_tokens": said.input_tokens,
            "input_tokens_details": {"cached_tokens": said.cached_tokens},
            "output_tokens": said.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": said.input_tokens + said.output_tokens,
        }
    reason = _reason(RESPONSES, steps)
    causes = {"length": "max_output_tokens", "filtered": "content_filter", "context": "context"}
    if reason in causes:
        why = {"reason": causes[reason]}
        ended = response | {"status": "incomplete", "incomplete_details": why}
        yield event("response.incomplete", response=ended)
    else:
        yield event("response.completed", response=response | {"status": "completed"})


def _item(step: Text | Thinking | Call) -> dict[str, Any]:
    """Return an output item as it ends up."""
    match step:
        case Text(text=words):
            part = {"type": "output_text", "text": words, "annotations": []}
            return {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        case Thinking(text=words, signature=signature):
            summary = {"type": "summary_text", "text": words}
            return {"type": "reasoning", "summary": [summary], "encrypted_content": signature}
        case Call(name=name, arguments=arguments, call_id=call_id):
            return {
                "type": "function_call",
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }


def _item_events(
    step: Text | Thinking | Call, place: int, item: dict[str, Any], event: Callable[..., bytes]
) -> Iterator[bytes]:
    """The events that make an output item grow."""
    kinds = {
        Text: "response.output_text.delta",
        Thinking: "response.reasoning_summary_text.delta",
        Call: "response.function_call_arguments.delta",
    }
    if isinstance(step, Call):
        parts = split(step.arguments, step.pieces)
    else:
        parts = split(step.text, step.chunks)
    yield event("response.output_item.added", item={"type": item["type"]}, output_index=place)
    for words in parts:
        yield event(kinds[type(step)], delta=words, item_id=item["id"], output_index=place)
    yield event("response.output_item.done", item=item, output_index=place)

"""Steps as the bytes of the three wires: what OpenAI and Anthropic would stream."""

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

Frame = bytes | Stall  # the bytes of one event, or a step that only the server can act on
Item = dict[str, Any]
CHAT, RESPONSES, MESSAGES = "chat", "responses", "messages"
_REASONS = {
    CHAT: {"filtered": "content_filter", "refused": "refusal", "context": "model_length"},
    RESPONSES: {"length": "max_output_tokens", "filtered": "content_filter", "context": "context"},
    MESSAGES: {
        "stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refused": "refusal",
        "filtered": "refusal", "context": "model_context_window_exceeded",
    },
}  # fmt: skip


def frames(wire: str, steps: Iterable[Step], model: str = "test-model") -> list[Frame]:
    """Return the stream of these steps, terminal marker included unless `NoMarker`."""
    return list({CHAT: _chat, RESPONSES: _responses, MESSAGES: _messages}[wire](list(steps), model))


def stream_bytes(wire: str, *steps: Step) -> bytes:
    return b"".join(frame for frame in frames(wire, steps) if isinstance(frame, bytes))


def whole_reply(wire: str, *steps: Step) -> Item:
    """Return these steps as the document that a server sends without streaming."""
    ends = [json.loads(line[6:]) for line in stream_bytes(wire, *steps).decode().split("\n")
            if line.startswith("data: {")]  # fmt: skip
    if wire == RESPONSES:
        return dict(ends[-1]["response"])
    steps_list = list(steps)
    usage = _usage(steps_list) or UsageSaid(1, 1)
    texts = "".join(step.text for step in steps if isinstance(step, Text))
    if wire == CHAT:
        thoughts = "".join(step.text for step in steps if isinstance(step, Thinking))
        message: Item = {"role": "assistant", "content": texts, "reasoning_content": thoughts}
        message["tool_calls"] = [
            {"id": step.call_id, "type": "function",
             "function": {"name": step.name, "arguments": step.arguments_text}}
            for step in steps if isinstance(step, Call)
        ]  # fmt: skip
        choice = {"index": 0, "message": message, "finish_reason": _reason(wire, steps_list)}
        counts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        return {"object": "chat.completion", "choices": [choice], "usage": counts}
    content = []
    for step in steps:
        if isinstance(step, Text | Thinking | Call):
            block, _, _ = _block(step)
            match step:
                case Text():
                    block["text"] = step.text
                case Thinking():
                    block |= {"thinking": step.text, "signature": step.signature}
                case Call():
                    block["input"] = json.loads(step.arguments_text)
            content.append(block)
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    reason = _reason(wire, steps_list)
    return {"type": "message", "content": content, "stop_reason": reason, "usage": counts}


def error_body(wire: str, fields: Item) -> bytes:
    """Return the body of an HTTP error in the wire's shape."""
    if wire != MESSAGES:
        return json.dumps({"error": fields}).encode()
    inner = {"type": fields["type"] or "api_error", "message": fields["message"]}
    return json.dumps({"type": "error", "error": inner, "request_id": "req_1"}).encode()


def _split(step: Text | Thinking | Call) -> list[str]:
    """Return the content of a step in parts of nearly equal length."""
    if isinstance(step, Call):
        whole, count = step.arguments_text, step.pieces
    else:
        whole, count = step.text, step.chunks
    size = max(1, math.ceil(len(whole) / count))
    return [whole[start : start + size] for start in range(0, len(whole), size)] or [""]


def _reason(wire: str, steps: list[Step]) -> str:
    plain = "tool_calls" if any(isinstance(step, Call) for step in steps) else "stop"
    given = next((step.reason for step in steps if isinstance(step, Finish)), plain)
    return _REASONS[wire].get(given, given)


def _usage(steps: list[Step]) -> UsageSaid | None:
    return next((step for step in steps if isinstance(step, UsageSaid)), None)


def _data(value: object, event: str = "") -> bytes:
    """Compact, in UTF-8 as the vendors send it; escaped where that cannot be (lone surrogates)."""
    try:
        data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        data = json.dumps(value, separators=(",", ":")).encode()
    return (f"event: {event}\n" if event else "").encode() + b"data: " + data + b"\n\n"


def _is_complete(steps: list[Step]) -> bool:
    return not any(isinstance(step, NoMarker | ErrorEvent) for step in steps)


def _chat(steps: list[Step], model: str) -> Iterator[Frame]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: Item, finish: str | None = None) -> bytes:
        return _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    places = itertools.count()
    yield chunk({"role": "assistant", "content": ""})
    for step in steps:
        match step:
            case Text():
                yield from (chunk({"content": part}) for part in _split(step))
            case Thinking():
                yield from (chunk({"reasoning_content": part}) for part in _split(step))
            case Call():
                index = next(places)
                function: Item = {"name": step.name, "arguments": ""}
                begin = {
                    "index": index, "id": step.call_id, "type": "function", "function": function
                }  # fmt: skip
                yield chunk({"tool_calls": [begin]})
                for part in _split(step):
                    yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
            case ErrorEvent(type=kind, message=message, code=code):
                yield _data({"error": {"message": message, "type": kind, "code": code}})
            case Raw(data=data):
                yield data
            case Stall():
                yield step
    if _is_complete(steps):
        yield chunk({}, _reason(CHAT, steps))
        if usage := _usage(steps):
            counts = {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.input_tokens + usage.output_tokens,
                "prompt_tokens_details": {"cached_tokens": usage.cached},
            }
            yield _data({**head, "choices": [], "usage": counts})
        yield b"data: [DONE]\n\n"


def _messages(steps: list[Step], model: str) -> Iterator[Frame]:
    def event(kind: str, **fields: Any) -> bytes:
        return _data({"type": kind, **fields}, kind)

    usage = _usage(steps) or UsageSaid(1, 1)
    counts: Item = {
        "input_tokens": usage.input_tokens - usage.cached - usage.written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written - usage.hour,
            "ephemeral_1h_input_tokens": usage.hour,
        },
        "output_tokens": 1,
    }
    message: Item = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": model,
        "stop_reason": None, "stop_sequence": None, "usage": counts,
    }  # fmt: skip
    yield event("message_start", message=message)
    yield event("ping")
    places = itertools.count()
    for step in steps:
        match step:
            case Text() | Thinking() | Call():
                index = next(places)
                block, kind, name = _block(step)
                yield event("content_block_start", index=index, content_block=block)
                deltas = [{"type": kind, name: part} for part in _split(step)]
                if isinstance(step, Thinking):
                    deltas.append({"type": "signature_delta", "signature": step.signature})
                for delta in deltas:
                    yield event("content_block_delta", index=index, delta=delta)
                yield event("content_block_stop", index=index)
            case ErrorEvent(type=kind, message=words):
                yield event("error", error={"type": kind, "message": words})
            case Raw(data=data):
                yield data
            case Stall():
                yield step
    if _is_complete(steps):
        delta = {"stop_reason": _reason(MESSAGES, steps), "stop_sequence": None}  # type: ignore[dict-item]
        yield event("message_delta", delta=delta, usage={"output_tokens": usage.output_tokens})
        yield event("message_stop")


def _block(step: Text | Thinking | Call) -> tuple[Item, str, str]:
    """Return a block as it begins, and the type of its deltas and the name of their content."""
    match step:
        case Text():
            return {"type": "text", "text": ""}, "text_delta", "text"
        case Thinking():
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            return empty, "thinking_delta", "thinking"
        case Call():
            block = {"type": "tool_use", "id": step.call_id, "name": step.name, "input": {}}
            return block, "input_json_delta", "partial_json"


_DELTAS = {
    Text: "response.output_text.delta",
    Thinking: "response.reasoning_summary_text.delta",
    Call: "response.function_call_arguments.delta",
}


def _responses(steps: list[Step], model: str) -> Iterator[Frame]:
    numbers = itertools.count()
    output: list[Item] = []
    response: Item = {
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
                place = len(output)
                item = {"id": f"item_{place}", **_item(step)}
                output.append(item)
                begin = {"type": item["type"]}
                yield event("response.output_item.added", item=begin, output_index=place)
                for part in _split(step):
                    yield event(
                        _DELTAS[type(step)], delta=part, item_id=item["id"], output_index=place
                    )
                yield event("response.output_item.done", item=item, output_index=place)
            case ErrorEvent(type=kind, message=words, code=code):
                yield event("error", code=code or kind, message=words, param=None)
            case Raw(data=data):
                yield data
            case Stall():
                yield step
    if _is_complete(steps):
        yield _responses_end(steps, response | {"output": output}, event)


def _responses_end(steps: list[Step], response: Item, event: Callable[..., bytes]) -> bytes:
    if usage := _usage(steps):
        response["usage"] = {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
    reason = _reason(RESPONSES, steps)
    if reason in _REASONS[RESPONSES].values():
        cause = {"status": "incomplete", "incomplete_details": {"reason": reason}}
        return event("response.incomplete", response=response | cause)
    return event("response.completed", response=response | {"status": "completed"})


def _item(step: Text | Thinking | Call) -> Item:
    """Return an output item as it ends up."""
    match step:
        case Text():
            part = {"type": "output_text", "text": step.text, "annotations": []}
            message = {"type": "message", "role": "assistant", "status": "completed"}
            return message | {"content": [part]}
        case Thinking():
            item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": step.text}]}
            return item | {"encrypted_content": step.signature}
        case Call():
            return {
                "type": "function_call", "call_id": step.call_id, "name": step.name,
                "arguments": step.arguments_text, "status": "completed",
            }  # fmt: skip

"""Unscripted replies of the loopback server: enough Markdown to look at a window with."""

import re
from typing import Any

from tests.fakes.loopback_script import Step, text, thinking, tool_call, usage

_CODE = '''Here is a small function:

```python
def greet(name: str) -> str:
    """Return a friendly line."""
    return f"Hello, {name}!"
```

Call it with a name, as in `greet("Ada")`.'''
_TABLE = "| language | year | typed |\n|---|---:|:---:|\n| Lisp | 1958 | no |\n| ML | 1973 | yes |"
_LIST = """1. First, *look* at what is there.
2. Then, **decide** what matters:
   - what changes,
   - what stays.

- [x] read
- [ ] write

> A commonplace book is where readers kept what was worth finding again."""
_MATH = "The area is $A = \\pi r^2$, and\n\n$$\\int_0^1 x^2\\,dx = \\tfrac13$$"
_PARAGRAPH = "A commonplace book gathers what its reader wants to find again: a phrase, a proof. "
_TOPICS = {
    r"code|python|function": _CODE, r"table|compare": _TABLE, r"list|steps|plan": _LIST,
    r"math|formula": _MATH,
    r"all|everything|markdown": f"{_CODE}\n\n{_TABLE}\n\n{_LIST}\n\n{_MATH}",
    r"emoji|unicode": "Ça va? 你好, привет, こんにちは, 👩‍🔬🏴\U000e0067\U000e0062\U000e007f é.",
    r"long|essay": "\n\n".join([_PARAGRAPH * 8] * 20),
}  # fmt: skip


def answer(body: dict[str, Any]) -> list[Step]:
    """Return a reply to a request's JSON, by the words in its last user message."""
    messages = body.get("messages") or body.get("input") or [{}]
    question = _last_question(messages)

    def mentions(pattern: str) -> bool:
        return re.search(rf"\b(?:{pattern})", question, re.IGNORECASE) is not None

    found = [markdown for pattern, markdown in _TOPICS.items() if mentions(pattern)]
    reply = "\n\n".join(found) or f"You said: *{question[:120]}*\n\n{_PARAGRAPH}"
    steps: list[Step] = []
    if mentions("think|why"):
        steps.append(thinking(f"The user asks: {question[:120]}", chunks=12))
    names = [
        str(tool.get("name") or tool.get("function", {}).get("name"))
        for tool in body.get("tools") or ()
    ]
    if names and mentions("tool|search|look up") and not _is_result(messages[-1]):
        name = next((name for name in names if name.endswith("search")), names[0])
        steps.append(tool_call(name, {"query": question[:120]}, pieces=4))
    else:
        steps.append(text(reply, chunks=max(1, len(reply) // 6)))
    return [*steps, usage(len(str(body)) // 4, len(reply) // 4)]


def _is_result(message: dict[str, Any]) -> bool:
    """Whether a message is the result of a tool, in any of the three wires."""
    kinds = f"{message.get('role')} {message.get('type')}"
    return "tool" in kinds or "output" in kinds or "tool_result" in str(message.get("content"))


def _last_question(messages: list[dict[str, Any]]) -> str:
    """Return the last user message, in any of the three wires."""
    for message in reversed(messages):
        content = message.get("content") if message.get("role") == "user" else None
        if isinstance(content, str):
            return content
        if content:
            return str(content[-1].get("text", ""))
    return ""

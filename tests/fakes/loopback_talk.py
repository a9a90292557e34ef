"""What the loopback server says when nobody told it: enough Markdown to look at a window with."""

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
_TABLE = """| language | year | typed |
|---|---:|:---:|
| Lisp | 1958 | no |
| ML | 1973 | yes |
| Python | 1991 | gradually |"""
_LIST = """1. First, *look* at what is there.
2. Then, **decide** what matters:
   - what changes,
   - what stays.
3. Only then begin.

- [x] read
- [ ] write

> A commonplace book is where readers kept what was worth finding again."""
_MATH = "The area is $A = \\pi r^2$, and\n\n$$\\int_0^1 x^2\\,dx = \\tfrac13$$"
_PARAGRAPH = (
    "A commonplace book gathers what its reader wants to find again: a phrase, a recipe, a proof. "
    "Its worth lies less in what is written down than in how it is found, years later, by someone "
    "who has forgotten the words but not the thing. "
)
_TOPICS = (
    (r"code|python|function", _CODE),
    (r"table|compare", _TABLE),
    (r"list|steps|plan", _LIST),
    (r"math|formula", _MATH),
    (r"all|everything|markdown", f"{_CODE}\n\n{_TABLE}\n\n{_LIST}\n\n{_MATH}"),
    (
        r"emoji|unicode",
        "Ça va? 你好, привет, こんにちは, 👩‍🔬🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f é.",
    ),
)


def answer(body: dict[str, Any]) -> list[Step]:
    """Return a reply to a request's JSON, by the words in its last user message."""
    question = _last_words(body)
    said = [
        words
        for pattern, words in _TOPICS
        if re.search(rf"\b(?:{pattern})", question, re.IGNORECASE)
    ]
    if re.search(r"\b(?:long|essay)", question, re.IGNORECASE):
        said.append("\n\n".join(_PARAGRAPH * 4 for _ in range(20)))
    shown = question if len(question) < 120 else question[:117] + "..."
    words = "\n\n".join(said) or f"You said: *{shown}*\n\n{_PARAGRAPH}"
    steps: list[Step] = []
    if re.search(r"\bthink|why\b", question, re.IGNORECASE):
        steps.append(thinking(f"The user asks: {shown} I should answer plainly.", chunks=12))
    if (name := _wanted_tool(body, question)) is not None:
        steps.append(tool_call(name, {"query": shown}, pieces=4))
        return [*steps, usage(len(str(body)) // 4, 20)]
    return [
        *steps,
        text(words, chunks=max(1, len(words) // 6)),
        usage(len(str(body)) // 4, len(words) // 4),
    ]


def _last_words(body: dict[str, Any]) -> str:
    """The last user message, in any of the three wires."""
    spoken = body.get("messages") or body.get("input") or []
    for message in reversed(spoken if isinstance(spoken, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            parts = [part.get("text", "") for part in content or () if isinstance(part, dict)]
            return parts[-1] if parts else ""
    return ""


def _wanted_tool(body: dict[str, Any], question: str) -> str | None:
    """A tool that searches, else the first, if the user asks for one and has no answer yet."""
    tools = body.get("tools") or []
    last = (body.get("messages") or body.get("input") or [{}])[-1]
    answered = (
        "tool" in str(last.get("role"))
        or "output" in str(last.get("type"))
        or ("tool_result" in str(last.get("content")))
    )
    if (
        not tools
        or answered
        or not re.search(r"\b(?:tool|search|look up)", question, re.IGNORECASE)
    ):
        return None
    names = [str(tool.get("name") or tool.get("function", {}).get("name")) for tool in tools]
    return next((name for name in names if name.endswith("search")), names[0])

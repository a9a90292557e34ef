"""A kept prompt as it went out, part by part: words, messages, tokens, what a cache could hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.chat.tools.cutting import with_cut_results
from app.domain.conversations import (
    Attachment,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from app.domain.ids import MessageId
from app.domain.recalls import KeptPrompt, PlanPart, PlanPartKind
from app.memory.context_plan import sent_recalled, sent_system
from app.storage.prompts import FORGOTTEN

_SYSTEM = (PlanPartKind.SYSTEM_PROMPT, PlanPartKind.CORE_MEMORY, PlanPartKind.SUMMARY)


@dataclass(frozen=True, slots=True)
class SentPart:
    """One part of a prompt. `messages` is how many it holds; `share` its part of all tokens, 0-1."""

    kind: PlanPartKind
    text: str
    tokens: int
    share: float
    cacheable: bool
    messages: int


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """What went out. `system` and `recalled` are as the provider got them, in their marks.

    `cacheable_share` (0-1) is what of it stood before the provider's cache breakpoint.
    """

    parts: tuple[SentPart, ...]
    system: str
    recalled: str
    tokens: int
    cacheable_share: float


def sent_prompt(prompt: KeptPrompt, messages: Mapping[MessageId, Message]) -> SentPrompt:
    """Return a kept prompt with its messages filled in; those that are gone say so."""
    tokens = sum(part.tokens for part in prompt.parts)
    cacheable = sum(part.tokens for part in prompt.parts if part.cacheable)
    return SentPrompt(
        parts=tuple(
            SentPart(
                part.kind, _text(part, prompt.result_chars, messages), part.tokens,
                part.tokens / max(1, tokens), part.cacheable, len(part.message_ids),
            )
            for part in prompt.parts
        ),
        system=sent_system(part for part in prompt.parts if part.kind in _SYSTEM),
        recalled=sent_recalled(prompt.parts),
        tokens=tokens,
        cacheable_share=cacheable / max(1, tokens),
    )  # fmt: skip


def _text(part: PlanPart, result_chars: int, messages: Mapping[MessageId, Message]) -> str:
    known = [messages[each] for each in part.message_ids if each in messages]
    cut = {each.id: each for each in with_cut_results(known, result_chars)}
    spoken = [_spoken(cut[each]) if each in cut else FORGOTTEN for each in part.message_ids]
    return "\n\n".join(text for text in (*spoken, part.text) if text)


def _spoken(message: Message) -> str:
    return f"{message.role.value}: " + "\n".join(_blocks(message))


def _blocks(message: Message) -> Sequence[str]:
    lines = []
    for block in message.blocks:
        match block:
            case Text(text=text):
                lines.append(text)
            case ToolCall(name=name, arguments=arguments):
                lines.append(f"[call: {name} {arguments}]")
            case ToolResult(name=name, text=text):
                lines.append(f"[result: {name}]\n{text}")
            case Image(name=name):
                lines.append(f"[image: {name}]")
            case Attachment(name=name, text=text):
                lines.append(f"[attachment: {name}]\n{text}".rstrip())
            case _:
                pass  # thinking goes back only in the provider's own form
    return lines

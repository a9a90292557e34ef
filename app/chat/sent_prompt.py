"""Stored prompts as they were sent, by part; and how two prompts differ."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.domain.conversations import (
    FORGOTTEN,
    Attachment,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from app.domain.ids import MessageId
from app.domain.recall import PlanPart, PlanPartKind, StoredPrompt
from app.memory.context.plan import compaction_block, recalled_block, system_text

_CONTEXT_LINES = 1
_MOST_LINES = 6_000  # of both together: beyond it, comparing takes seconds


@dataclass(frozen=True, slots=True)
class SentPart:
    """One part of a prompt; `share` is its share of all tokens (0-1), `messages` their number."""

    kind: PlanPartKind
    text: str
    tokens: int
    share: float
    cacheable: bool
    messages: int


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A prompt as it was sent; `system`, `compaction` and `recalled` include their tags.

    `cacheable_share` (0-1) is the share of tokens before the provider's cache breakpoint.
    """

    parts: tuple[SentPart, ...]
    system: str
    compaction: str
    recalled: str
    tokens: int
    cacheable_share: float


def sent_prompt(prompt: StoredPrompt, sent: Mapping[MessageId, Sequence[Message]]) -> SentPrompt:
    """Return a stored prompt with its messages as `sent`; deleted ones are marked as forgotten.

    More than one message stands under an id where the program asked for something after it.
    """
    tokens = sum(part.tokens for part in prompt.parts)
    cacheable = sum(part.tokens for part in prompt.parts if part.cacheable)
    return SentPrompt(
        parts=tuple(
            SentPart(
                part.kind, _text(part, sent), part.tokens, part.tokens / max(1, tokens),
                part.cacheable, 0 if part.kind is PlanPartKind.NOTE else len(part.message_ids),
            )
            for part in prompt.parts
        ),
        system=system_text(prompt.parts),
        compaction=compaction_block(prompt.part(PlanPartKind.COMPACTION)),
        recalled=recalled_block(prompt.parts),
        tokens=tokens,
        cacheable_share=cacheable / max(1, tokens),
    )  # fmt: skip


def by_id(messages: Iterable[Message]) -> dict[MessageId, list[Message]]:
    """Return messages under their ids, in order."""
    found: dict[MessageId, list[Message]] = {}
    for message in messages:
        found.setdefault(message.id, []).append(message)
    return found


def _text(part: PlanPart, sent: Mapping[MessageId, Sequence[Message]]) -> str:
    if part.kind is PlanPartKind.NOTE:
        return part.text
    texts = [
        FORGOTTEN if each is None else f"{each.role.value}: " + "\n".join(_blocks(each))
        for id_ in part.message_ids
        for each in sent.get(id_, (None,))
    ]
    return "\n\n".join(text for text in (*texts, part.text) if text)


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
                pass  # thinking is sent only in the provider's own form
    return lines


class PartState(StrEnum):
    """How a part differs from the previous prompt."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "new"
    REMOVED = "removed"


class LineMark(StrEnum):
    """How a line differs; `SKIPPED` stands for unchanged lines that are left out."""

    SAME = " "
    ADDED = "+"
    REMOVED = "-"
    SKIPPED = "\N{MIDLINE HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class PartDifference:
    """A part of either prompt; `lines` are (mark, text), none for an unchanged part."""

    kind: PlanPartKind
    state: PartState
    lines: tuple[tuple[LineMark, str], ...] = ()


def difference(before: SentPrompt, now: SentPrompt) -> tuple[PartDifference, ...]:
    """Return the differences, in the order of a prompt's parts."""
    old = {part.kind: part for part in before.parts}
    new = {part.kind: part for part in now.parts}
    kinds = (kind for kind in PlanPartKind if kind in old or kind in new)
    return tuple(_part(kind, old.get(kind), new.get(kind)) for kind in kinds)


def _part(kind: PlanPartKind, old: SentPart | None, new: SentPart | None) -> PartDifference:
    if old is None or new is None:
        if new is not None:
            return PartDifference(kind, PartState.ADDED, _all(LineMark.ADDED, new.text))
        removed = _all(LineMark.REMOVED, old.text if old else "")
        return PartDifference(kind, PartState.REMOVED, removed)
    if old.text == new.text:
        return PartDifference(kind, PartState.SAME)
    return PartDifference(kind, PartState.CHANGED, tuple(_compared(old.text, new.text)))


def _compared(old: str, new: str) -> Iterator[tuple[LineMark, str]]:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _MOST_LINES:
        yield from _all(LineMark.REMOVED, old)
        yield from _all(LineMark.ADDED, new)
        return
    compared = difflib.unified_diff(before, after, lineterm="", n=_CONTEXT_LINES)
    for number, line in enumerate(compared):
        if number < 2:  # the header of the diff
            continue
        if line.startswith("@@"):
            yield LineMark.SKIPPED, ""
        else:
            yield LineMark(line[0]), line[1:]


def _all(mark: LineMark, text: str) -> tuple[tuple[LineMark, str], ...]:
    return tuple((mark, line) for line in text.splitlines())

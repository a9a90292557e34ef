"""Indexable text of turns: which blocks of which messages are embedded and searched."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.conversations import (
    Attachment,
    Block,
    Exchange,
    ExchangeStatus,
    Message,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId, part_id
from app.domain.passages import Passage, PassageKind, PassagePart
from app.domain.wording import count_words, is_question

# Recall answers with quotes of other turns: if they were indexed or summarized, it would find itself.
RECALL_MODEL = "recall:"

_ARGUMENT_LIMIT_CHARS = 250
_BYTES_PER_TOKEN = 4  # a common average for English under byte-pair encodings


@dataclass(frozen=True, slots=True)
class TurnText:
    """The text of a turn by side. `calls` are tool names with truncated arguments, `results` tool results."""

    user: str
    assistant: str
    calls: str
    results: str

    @property
    def embedded(self) -> str:
        """The text to embed: both sides and the calls, without reasoning and tool results."""
        return "\n\n".join(part for part in (self.user, self.assistant, self.calls) if part)


@dataclass(frozen=True, slots=True)
class TurnMarkdown:
    """The question and the answer of a turn as Markdown; either may be empty."""

    asked: str
    answered: str


def turn_text(messages: Iterable[tuple[Role, Sequence[Block]]]) -> TurnText:
    """Return the text of a turn from its messages in path order."""
    sides: dict[str, list[str]] = {"user": [], "assistant": [], "calls": [], "results": []}
    for role, blocks in messages:
        speaker = "user" if role is Role.USER else "assistant"
        for block in blocks:
            match block:
                case Text(text=text) if text.strip():
                    sides[speaker].append(text)
                case Attachment(name=name, text=text):
                    sides[speaker].append(f"{name}\n{text}".strip())
                case ToolCall(name=name, arguments=arguments):
                    sides["calls"].append(f"{name}({_cut_arguments(arguments)})")
                case ToolResult(text=text) if text.strip():
                    sides["results"].append(text)
                case _:
                    pass
    return TurnText(**{side: "\n\n".join(parts) for side, parts in sides.items()})


def turn_parts(
    passage_id: PassageId,
    messages: Iterable[tuple[MessageId, int, Role, str | None, Sequence[Block]]],
) -> tuple[PassagePart, ...]:
    """Return the parts of a turn's passage in path order: one for each message with text.

    `messages` are (id, position in the exchange, role, model, blocks) in path order. Tool calls and
    results without text are added to the message before them; replies of Recall are left out.
    """
    parts: list[PassagePart] = []
    for message_id, place, role, model, blocks in messages:
        if is_recall_reply(role, model):
            continue
        words = turn_text([(role, blocks)])
        text = words.user or words.assistant
        if parts and not text:
            last = parts.pop()
            calls, results = _joined(last.calls, words.calls), _joined(last.results, words.results)
            parts.append(replace(last, calls=calls, results=results))
        elif text or words.calls or words.results:
            side = Role.USER if role is Role.USER else Role.ASSISTANT
            own = part_id(passage_id, place)
            parts.append(PassagePart(own, side, text, words.calls, words.results, message_id))
    return tuple(parts)


def is_recall_reply(role: Role, model: str | None) -> bool:
    """Return whether a message is a reply of Recall, which quotes other turns."""
    return role is Role.ASSISTANT and model == RECALL_MODEL


def _joined(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


def turn_passage(
    passage_id: PassageId, exchange: Exchange, messages: Sequence[Message]
) -> Passage | None:
    """Return the passage of an exchange, or None when it has no text.

    `messages` are those of the exchange in path order. A turn without a complete reply of a model has 0
    tokens, unless the user's message is a statement: that can be recalled like any other.
    """
    own = [each for each in messages if not is_recall_reply(each.role, each.model)]
    words = turn_text((message.role, message.blocks) for message in own)
    text = words.embedded
    if not text and not words.results:
        return None
    is_echo = len(own) < len(messages) and not (words.assistant or words.calls)
    is_answered = exchange.status is ExchangeStatus.COMPLETED and not is_echo
    counts = is_answered or (exchange.status is not ExchangeStatus.RUNNING and is_statement(words))
    return Passage(
        id=passage_id,
        kind=PassageKind.TURN,
        source_id=exchange.id,
        conversation_id=exchange.conversation_id,
        exchange_id=exchange.id,
        content_hash=content_hash(text),
        created_at=exchange.started_at,
        tokens=estimate_tokens(text) if counts else 0,
    )


def text_passage(
    passage_id: PassageId,
    kind: PassageKind,
    source_id: int,
    conversation_id: ConversationId | None,
    exchange_id: ExchangeId | None,
    text: str,
    created_at: datetime,
) -> Passage:
    """Return the passage of a text that is embedded whole."""
    return Passage(
        passage_id, kind, source_id, conversation_id, exchange_id, content_hash(text), created_at,
        estimate_tokens(text),
    )  # fmt: skip


def is_statement(words: TurnText) -> bool:
    """Return whether the user's side of a turn has words and asks nothing."""
    return count_words(words.user) > 0 and not is_question(words.user)


def content_hash(text: str) -> str:
    """Return the first 32 hex digits of the text's SHA-256; equal texts are embedded once."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def estimate_tokens(text: str) -> int:
    """Return an estimated token count, at least 1; the provider's own count is authoritative."""
    return max(1, len(text.encode("utf-8")) // _BYTES_PER_TOKEN)


def _cut_arguments(arguments: str) -> str:
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments[:_ARGUMENT_LIMIT_CHARS]
    if not isinstance(parsed, dict):
        return str(parsed)[:_ARGUMENT_LIMIT_CHARS]
    return ", ".join(
        f"{key}: {str(value)[:_ARGUMENT_LIMIT_CHARS]}" for key, value in parsed.items()
    )

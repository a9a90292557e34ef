"""Turn calculation: from a tree of messages to exchanges, as pure functions.

A turn begins with a real user message once the turn before it has a reply; a user message without a reply
is grouped with the next one, and messages before the first user message belong to turn 0. A message's
turn depends only on the path that leads to it, and an exchange is the part of one path from the first
message of a turn to its end: a leaf, or a message before the next turn. Where the tree branches inside a
turn (a regenerated reply), the branches are sibling exchanges that share their first messages.

The indexable text of a turn is here too: which blocks of which messages are embedded and searched.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.conversations import (
    Attachment,
    Block,
    Exchange,
    ExchangeStatus,
    Forgotten,
    Image,
    Message,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from app.domain.ids import (
    ConversationId,
    ExchangeId,
    MessageId,
    PassageId,
    derived_uid,
    milliseconds,
    part_id,
)
from app.domain.passages import Passage, PassageKind, PassagePart
from app.domain.text import content_hash, count_words, is_question


@dataclass(frozen=True, slots=True)
class _Node:
    """A message with the state of the path that leads to it.

    `turn` is the turn number; `begins_turn` is true for the first message of the turn. `has_question`
    and `has_reply` describe the turn up to and including this message.
    """

    message: Message
    parent: "_Node | None"
    turn: int
    begins_turn: bool
    has_question: bool
    has_reply: bool


def is_reply(message: Message) -> bool:
    """Return whether a message is a reply: from the assistant, with text, an image or a tool call.

    A forgotten one remains a reply.
    """
    return message.role is Role.ASSISTANT and any(
        isinstance(block, ToolCall | Image | Forgotten)
        or (isinstance(block, Text) and block.text and not block.text.isspace())
        for block in message.blocks
    )


def calculate_exchanges(
    messages: Sequence[Message], new_id: Callable[[], ExchangeId], known: Sequence[Exchange] = ()
) -> tuple[Exchange, ...]:
    """Return the exchanges of a conversation's whole tree, parents first.

    `messages` are all messages of the conversation, each after its parent. An exchange that equals or
    extends one of the `known` exchanges keeps its id; the others get ids from `new_id`. A turn without
    a reply is `interrupted`.
    """
    nodes: dict[MessageId, _Node] = {}
    for message in messages:
        parent = nodes.get(message.parent_id) if message.parent_id is not None else None
        nodes[message.id] = _node(message, parent)
    turns = [_turn(end) for end in _ends(nodes)]
    ids = _identities(turns, known, new_id)
    by_end = {turn[-1].message.id: chosen for turn, chosen in zip(turns, ids, strict=True)}
    before = {exchange.id: exchange for exchange in known}
    return tuple(
        _exchange(turn, chosen, by_end, before.get(chosen))
        for turn, chosen in zip(turns, ids, strict=True)
    )


def _node(message: Message, parent: _Node | None) -> _Node:
    opens_turn = message.opens_turn
    if parent is None or (opens_turn and parent.has_reply):
        turn = 0 if parent is None else parent.turn + 1
        return _Node(message, parent, turn, True, opens_turn, False)
    has_question = parent.has_question or opens_turn
    has_reply = parent.has_reply or (parent.has_question and is_reply(message))
    return _Node(message, parent, parent.turn, False, has_question, has_reply)


def _ends(nodes: dict[MessageId, _Node]) -> list[_Node]:
    """Return the last messages of all turns in message order, so parents first."""
    has_children: set[MessageId] = set()
    before_a_turn: set[MessageId] = set()
    for node in nodes.values():
        if node.parent is not None:
            has_children.add(node.parent.message.id)
            if node.begins_turn:
                before_a_turn.add(node.parent.message.id)
    return [
        node
        for message_id, node in nodes.items()
        if message_id not in has_children or message_id in before_a_turn
    ]


def _turn(end: _Node) -> list[_Node]:
    """Return the path from the first message of the turn to its last."""
    path = [end]
    while not path[-1].begins_turn and path[-1].parent is not None:
        path.append(path[-1].parent)
    return path[::-1]


def _identities(
    turns: Sequence[Sequence[_Node]], known: Sequence[Exchange], new_id: Callable[[], ExchangeId]
) -> list[ExchangeId]:
    """Return an id for each turn: of the known exchange that it equals or extends, else a new one."""
    by_first: dict[MessageId, list[Exchange]] = {}
    for exchange in known:
        if exchange.message_ids:
            by_first.setdefault(exchange.message_ids[0], []).append(exchange)
    owns = [tuple(node.message.id for node in turn) for turn in turns]
    chosen: dict[tuple[MessageId, ...], ExchangeId] = {}
    for extends in (False, True):
        for own in owns:
            candidates = [
                each
                for each in by_first.get(own[0], ())
                if each.message_ids == (own[: len(each.message_ids)] if extends else own)
            ]
            if own not in chosen and candidates:
                best = max(candidates, key=lambda exchange: len(exchange.message_ids))
                by_first[own[0]].remove(best)
                chosen[own] = best.id
    return [chosen[own] if own in chosen else new_id() for own in owns]


def _exchange(
    turn: Sequence[_Node],
    exchange_id: ExchangeId,
    by_end: dict[MessageId, ExchangeId],
    same: Exchange | None,
) -> Exchange:
    first, last = turn[0], turn[-1]
    done = last.has_reply or not last.has_question
    models = [node.message.model for node in turn if node.message.model]
    exchange = Exchange(
        id=exchange_id,
        conversation_id=first.message.conversation_id,
        parent_id=None if first.parent is None else by_end[first.parent.message.id],
        turn_number=first.turn,
        segment_number=0,
        status=ExchangeStatus.COMPLETED if done else ExchangeStatus.INTERRUPTED,
        message_ids=tuple(node.message.id for node in turn),
        started_at=first.message.created_at,
        completed_at=last.message.created_at,
        model=models[-1] if models else None,
        uid=derived_uid(f"turn/{last.message.uid}", milliseconds(first.message.created_at)),
    )
    if same is None:
        return exchange
    if same.message_ids == exchange.message_ids:
        return replace(same, parent_id=exchange.parent_id, turn_number=exchange.turn_number)
    return replace(exchange, segment_number=same.segment_number, usage=same.usage, uid=same.uid)


# Recall answers with quotes of other turns: if they were indexed or summarized, it would find itself.
RECALL_MODEL = "recall:"
NAMELESS = "attachment"  # the name of a file without one, where it is quoted

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
    """The question and the answer of a turn as Markdown; either may be empty.

    `files` are the names and texts of attached files, whose words are not those of either side. `day` is
    the one it was asked on, as for a model; "" where it does not matter. An answer that is cut off ends
    with an ellipsis.
    """

    asked: str
    answered: str
    files: tuple[tuple[str, str], ...] = ()
    day: str = ""
    is_cut_off: bool = False


def turn_markdown(messages: Iterable[tuple[Role, Sequence[Block]]]) -> TurnMarkdown:
    """Return both sides of a turn; without own words the question is the names of its files."""
    said = list(messages)
    own = turn_text(
        (role, [each for each in blocks if not isinstance(each, Attachment)])
        for role, blocks in said
    )
    files = tuple(
        (each.name.strip() or NAMELESS, each.text)
        for _, blocks in said
        for each in blocks
        if isinstance(each, Attachment)
    )
    asked = own.user or ", ".join(name for name, _ in files)
    return TurnMarkdown(asked, own.assistant or own.calls, files)


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
            side = Role.ASSISTANT if role is Role.TOOL else role
            own = part_id(passage_id, place)
            parts.append(
                PassagePart(
                    own, side, text, words.calls, words.results, message_id, tuple(_pieces(blocks))
                )
            )
    return tuple(parts)


def _pieces(blocks: Sequence[Block]) -> Iterator[tuple[str, str]]:
    """Yield the own words and the texts of files, with their names; nothing without files."""
    if any(isinstance(each, Attachment) and each.text.strip() for each in blocks):
        for block in blocks:
            match block:
                case Text(text=text) if text.strip():
                    yield "", text
                case Attachment(name=name, text=text) if text.strip():
                    yield name.strip() or NAMELESS, text
                case _:
                    pass


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

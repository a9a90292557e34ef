"""`ask`: send a message and stream the answer."""

import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.chat.exchange_loop import ExchangeLoop
from app.chat.models import ModelDirectory
from app.chat.planner import NewConversation
from app.chat.presets import Presets
from app.chat.projects import Projects
from app.chat.reply import Reply
from app.cli.arguments import UsageError
from app.cli.commands.providers import unlock_keys
from app.cli.terminal import Terminal, members
from app.domain.chat import ModelRef, RecallCompleted, Retrying, TextWasThinking
from app.domain.conversations import (
    Exchange,
    ExchangeStatus,
    File,
    Image,
    Text,
    ToolCall,
    ToolResult,
)
from app.domain.ids import ConversationId
from app.domain.text import one_line, sentences, translate_lines
from app.index.text_sync import TextIndexSync
from app.memory.search.vector_search import VectorSearch
from app.providers.vendors.recall import RECALL, RecallModel
from app.storage.safety.attachments import AttachmentFiles
from app.storage.tables.prompts import Prompts
from app.transfer.attaching import attach_path

_POLL_S = 0.2
_SLOW_TOOL_S = 3.0
_TITLES, _TITLE_CHARS, _NAME_CHARS = 3, 60, 60


@dataclass(frozen=True, slots=True)
class _Recalled:
    """An item of `recalled`; `title` is the title of its conversation."""

    kind: str
    id: int
    conversation_id: int | None
    turn_number: int | None
    relevance: float
    injected: bool
    title: str

    @property
    def plain(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "title"}


def ask(
    chat: ExchangeLoop,
    models: ModelDirectory,
    presets: Presets,
    projects: Projects,
    prompts: Prompts,
    files: AttachmentFiles,
    sync: TextIndexSync,
    meaning: VectorSearch,
    given: Namespace,
    terminal: Terminal,
) -> int:
    """Ask, stream the answer, print where it is stored."""
    if given.private and given.conversation is not None:
        raise UsageError("--private starts a new conversation", "Leave out --conversation.")
    if given.project is not None and given.conversation is not None:
        raise UsageError("--project is of a new conversation", "Move it with 'project move'.")
    text = terminal.read_input() if given.text == "-" else given.text
    conversation_id = None if given.conversation is None else ConversationId(given.conversation)
    model = None if given.model is None else models.check_name(given.model)
    unlock_keys(models, model or "", terminal)
    preset = None if given.preset is None else presets.named(given.preset).uid
    project = None if given.project is None else projects.named(given.project).uid
    attached = _attached(files, given.attach, terminal)
    sync.catch_up_a_little(terminal.cancelled)
    meaning.query_vector(text)  # loads the embedder: recall would not wait for that
    blocks = (Text(text), *attached)
    new = NewConversation(model, given.private, preset=preset, project=project)
    reply = chat.start(lambda planner: planner.send(conversation_id, blocks, new)).result()
    ref = ModelRef.parse(reply.plan.exchange.model or "")
    if any(isinstance(each, Image) for each in attached) and models.sees_images(ref) is False:
        terminal.err(f"{ref} does not read images: it gets their names only.")
    try:
        answer = _follow(reply, terminal)
    except BaseException:
        reply.stop()  # nobody reads the answer; what arrived is stored
        raise
    exchange = reply.done.result()
    recalled = _recalled(models, prompts, exchange)
    if terminal.as_json:
        terminal.document(_asked(exchange, answer, recalled))
    elif answer and not answer.endswith("\n"):
        terminal.line()
    if reply.prompt is not None and (text := _recalled_text(recalled)):
        terminal.err(text)
    terminal.err(_outcome(exchange))
    return 0 if exchange.status is ExchangeStatus.COMPLETED else 1


def _attached(files: AttachmentFiles, names: Sequence[str], terminal: Terminal) -> list[File]:
    """Store the files named and return them; print what models will not get of them."""
    attached = [attach_path(files, terminal.path(each), terminal.cancelled) for each in names]
    for each in attached:
        if each.notice:
            terminal.err(each.notice)
    return [each.file for each in attached]


def _follow(reply: Reply, terminal: Terminal) -> str:
    """Print the answer as it arrives, and the tools called; return the whole answer."""
    parts: list[str] = []
    in_text, waits_for = False, ""
    called, called_s = "", 0.0
    while True:
        ended = reply.done.done()
        for event in reply.drain():
            if isinstance(event, Text):
                # Text before and after a tool call are separate paragraphs.
                text = event.text if in_text or not parts else f"\n\n{event.text}"
                in_text = True
                parts.append(text)
                if not terminal.as_json:
                    terminal.out(text)
            elif isinstance(event, TextWasThinking):
                in_text = False
                parts.clear()
                terminal.err("\nThe text so far was the model's thinking; its answer follows.")
            elif isinstance(event, ToolCall):
                in_text, called, called_s = False, event.name, time.monotonic()
            elif isinstance(event, ToolResult):
                called = ""
                terminal.err(_tool_line(event))
            elif isinstance(event, RecallCompleted):
                if event.notice:
                    terminal.err(translate_lines(event.notice))
            elif isinstance(event, Retrying) and event.reason != waits_for:
                waits_for = event.reason
                terminal.err(f"{waits_for}; trying again")
        if ended:
            return "".join(parts)
        if called and time.monotonic() - called_s > _SLOW_TOOL_S:
            terminal.err(f"{called} has not answered; an open window may ask whether it may run.")
            called = ""
        if terminal.cancelled():
            reply.stop()
        reply.wait(_POLL_S)


def _tool_line(result: ToolResult) -> str:
    took = "" if result.duration_ms is None else f" in {result.duration_ms:,} ms"
    size = "failed" if result.is_error else f"{len(result.text):,} characters"
    return f"{one_line(result.name, _NAME_CHARS)}: {size}{took}"


def _outcome(exchange: Exchange) -> str:
    """Return the outcome and the place of an exchange in one line."""
    place = f"{exchange.conversation_id}:{exchange.turn_number}"
    if exchange.problem is None:
        return f"[{place}]"
    problem = exchange.problem
    return sentences(problem.title, problem.hint, f"The conversation is stored in [{place}]")


def _recalled(models: ModelDirectory, prompts: Prompts, exchange: Exchange) -> list[_Recalled]:
    """Return the items retrieved, or quoted by Recall."""
    if ModelRef.parse(exchange.model or "").provider != RECALL:
        return [
            _Recalled(
                place.item.kind.value, place.item.passage_id, place.item.conversation_id,
                place.turn_number, round(place.item.relevance, 4), place.item.injected, place.title,
            )
            for place in prompts.places(exchange.id)
        ]  # fmt: skip
    model = models.chat_model(ModelRef(RECALL, ""))
    quoted = model.last_quoted(exchange.conversation_id) if isinstance(model, RecallModel) else ()
    return [
        _Recalled(
            each.kind.value, each.passage_id, each.conversation_id, each.turn_number,
            round(each.relevance, 4), injected=True, title=each.conversation_title,
        )
        for each in quoted
    ]  # fmt: skip


def _recalled_text(recalled: Sequence[_Recalled]) -> str:
    """Return what was recalled in one line; "" for nothing."""
    titles = [
        f"'{one_line(each.title, _TITLE_CHARS)}'" if each.title else each.kind
        for each in recalled
        if each.injected
    ]
    names = list(dict.fromkeys(titles))
    more = f" and {len(names) - _TITLES:,} more" if len(names) > _TITLES else ""
    return f"Recalled from {', '.join(names[:_TITLES])}{more}." if names else ""


def _asked(exchange: Exchange, answer: str, recalled: Sequence[_Recalled]) -> dict[str, Any]:
    usage = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "cost_usd")
    return {
        "exchange_id": exchange.id,
        **members(exchange, "conversation_id", "turn_number", "model", "status"),
        "answer": answer,
        "usage": members(exchange.usage, *usage),
        "recalled": [each.plain for each in recalled],
    }

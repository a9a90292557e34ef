"""`memory` and `profile`: the core memory and the profile of every prompt, and saved texts."""

from argparse import Namespace
from collections.abc import Iterable

from app.cli.arguments import wrong_arguments
from app.cli.terminal import Terminal, members
from app.domain.records.facts import MemoryWrite, WriteState
from app.domain.records.profile import ProfileLine
from app.domain.text import parse_whole_number
from app.domain.turns import estimate_tokens
from app.index.text_sync import TextIndexSync
from app.memory.core_memory import ArchivalMemoryService, CoreMemoryService
from app.memory.memory_writes import MemoryWriteService
from app.memory.profile import ProfileService, ProfileState
from app.storage.tables.settings import Settings


def memory(
    core: CoreMemoryService,
    memories: ArchivalMemoryService,
    writes: MemoryWriteService,
    settings: Settings,
    sync: TextIndexSync,
    given: Namespace,
    terminal: Terminal,
) -> None:
    word = given.words[0] if given.words else ""
    takes_text = given.action in ("set", "append", "save")
    text = terminal.read_input() if takes_text and word == "-" else word
    match given.action:
        case "save":
            saved = memories.save(text)
            return terminal.show({"saved": saved.id}, f"Saved as memory {saved.id}.")
        case "list":
            return _list(memories, terminal)
        case "written":
            return _list_written(writes, terminal)
        case "keep" | "undo":
            write = writes.keep(word) if given.action == "keep" else writes.undo(word)
            return terminal.show(_written(write), f"{_STATES[write.state]}: {write.text}")
        case "forget":
            return _forget(memories, sync, given, terminal)
        case "forget-earlier":
            about = "All earlier texts of core memory will be deleted for good."
            terminal.confirm_deletion(given.yes, about)
            times, remains = core.forget_earlier()
            terminal.show_forgotten([each.isoformat() for each in times], remains)
        case "set":
            text = core.set(text)
        case "append":
            text = core.append(text)
        case _:
            text = core.text()
    tokens = estimate_tokens(text) if text else 0
    most = settings.number("core_memory_max_tokens")
    document = {"core_memory": text, "tokens": tokens, "max_tokens": most}
    terminal.show(document, *([text] if text else []))
    return terminal.note(f"Core memory: about {tokens:,} of {most:,} tokens.")


def _list(memories: ArchivalMemoryService, terminal: Terminal) -> None:
    saved = memories.listed()
    rows = [
        members(each, "id", "text", "saved_at", "conversation_id")
        | {"worded_by": "model" if each.is_written_by_model else "user"}
        for each in saved
    ]
    lines = [
        f"{each.id}  {each.saved_at.astimezone():%Y-%m-%d}  {each.text}"
        f"{'  (written by a model)' if each.is_written_by_model else ''}"
        for each in saved
    ]
    terminal.show({"memories": rows}, *lines)
    if not saved:
        terminal.note(
            "There are no saved texts. 'memory save TEXT' saves one, and models can with a tool."
        )


_ID_CHARS = 8  # the last ones, which are random
_STATES = {
    WriteState.IN_FORCE: "Saved",
    WriteState.PROPOSED: "Proposed, not in force",
    WriteState.REMOVED: "Removed",
}


def _list_written(writes: MemoryWriteService, terminal: Terminal) -> None:
    found = writes.listed()
    lines = [
        f"{each.uid[-_ID_CHARS:]}  {each.written_at.astimezone():%Y-%m-%d}  {_STATES[each.state]}"
        f"{f' (the model had read {each.outside})' if each.outside else ''}: {each.text}"
        for each in found
    ]
    terminal.show({"written": [_written(each) for each in found]}, *lines)
    if not found:
        terminal.note("No model has written anything to memory.")


def _written(write: MemoryWrite) -> dict[str, object]:
    return {
        "id": write.uid,
        "target": "core_memory" if write.memory_id is None else "saved_memory",
        "text": write.new,
        "replaces": write.old,
        "had_read": write.outside,
        "at": write.written_at,
        **members(write, "state", "model", "conversation_id"),
    }


def _forget(
    memories: ArchivalMemoryService, sync: TextIndexSync, given: Namespace, terminal: Terminal
) -> None:
    (word,) = given.words
    number = parse_whole_number(word)
    if number is None:
        raise wrong_arguments(given, "ID, a number that 'memory list' shows")
    about = f"Memory {word} will be deleted for good, also from backups."
    terminal.confirm_deletion(given.yes, about)
    left = (*memories.forget(number), *sync.catch_up_soon())
    terminal.show_forgotten([number], left)


def profile(service: ProfileService, given: Namespace, terminal: Terminal) -> None:
    match given.action:
        case "accept":
            service.accept()
        case "reject":
            service.reject()
        case "edit":
            waiting = service.state().proposal
            (word,) = given.words
            text = terminal.read_input() if word == "-" else word
            service.set(text, None if waiting is None else waiting.made_at)
        case "on" | "off":
            service.turn(given.action == "on")
    _show(service.state(), terminal)


def _show(state: ProfileState, terminal: Terminal) -> None:
    proposal = state.proposal
    document = {
        "enabled": state.is_on,
        "profile": _plain(state.lines),
        **members(state, "tokens", "max_tokens"),
        "proposal": proposal
        and {
            "added": _plain(state.diff.added),
            "removed": _plain(state.diff.removed),
            **members(proposal, "author", "made_at"),
        },
    }
    terminal.show(document, *(line.text for line in state.lines))
    if terminal.as_json:
        return
    terminal.err(f"Profile: about {state.tokens:,} of {state.max_tokens:,} tokens.")
    if not state.is_on:
        terminal.err("It is off: prompts do not contain it, and nothing is proposed for it.")
    if proposal is not None:
        terminal.err("Proposed; 'profile accept', 'profile reject' or 'profile edit' decides:")
        for sign, lines in (("-", state.diff.removed), ("+", state.diff.added)):
            for line in lines:
                facts = ", ".join(str(each.fact_id) for each in line.sources)
                terminal.err(f"{sign} {line.text}{f'  (facts {facts})' if facts else ''}")


def _plain(lines: Iterable[ProfileLine]) -> list[dict[str, object]]:
    return [{"text": line.text, "facts": [each.fact_id for each in line.sources]} for line in lines]

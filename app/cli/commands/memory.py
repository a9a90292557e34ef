"""`memory`: the core memory of every prompt, and saved texts."""

from argparse import Namespace

from app.cli.arguments import wrong_arguments
from app.cli.terminal import Terminal
from app.domain.text import parse_whole_number
from app.domain.turn_text import estimate_tokens
from app.index.text_sync import TextIndexSync
from app.memory.core_memory import ArchivalMemoryService, CoreMemoryService
from app.storage.tables.settings import Settings


def memory(
    core: CoreMemoryService,
    memories: ArchivalMemoryService,
    settings: Settings,
    sync: TextIndexSync,
    given: Namespace,
    terminal: Terminal,
) -> int:
    """Run an action on memory."""
    takes_text = given.action in ("set", "append", "save")
    if takes_text and len(given.words) != 1:
        raise wrong_arguments(given, "one TEXT, or - for standard input")
    if not takes_text and len(given.words) != (given.action == "forget"):
        raise wrong_arguments(given, "ID" if given.action == "forget" else "nothing more")
    word = given.words[0] if given.words else ""
    text = terminal.read_input() if takes_text and word == "-" else word
    match given.action:
        case "save":
            saved = memories.save(text)
            terminal.show({"saved": saved.id}, f"Saved as memory {saved.id}.")
            return 0
        case "list":
            _list(memories, terminal)
            return 0
        case "forget":
            _forget(memories, sync, given, terminal)
            return 0
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
    if not terminal.as_json:
        terminal.err(f"Core memory: about {tokens:,} of {most:,} tokens.")
    return 0


def _list(memories: ArchivalMemoryService, terminal: Terminal) -> None:
    saved = memories.listed()
    rows = [
        {
            "id": each.id,
            "text": each.text,
            "saved_at": each.saved_at,
            "conversation_id": each.conversation_id,
            "worded_by": "model" if each.is_written_by_model else "user",
        }
        for each in saved
    ]
    lines = [
        f"{each.id}  {each.saved_at.astimezone():%Y-%m-%d}  {each.text}"
        f"{'  (written by a model)' if each.is_written_by_model else ''}"
        for each in saved
    ]
    terminal.show({"memories": rows}, *lines)
    if not saved and not terminal.as_json:
        terminal.err(
            "There are no saved texts. 'memory save TEXT' saves one, and models can with a tool."
        )


def _forget(
    memories: ArchivalMemoryService, sync: TextIndexSync, given: Namespace, terminal: Terminal
) -> None:
    (word,) = given.words
    number = parse_whole_number(word)
    if number is None:
        raise wrong_arguments(given, "ID, a number that 'memory list' shows")
    if not given.yes:
        terminal.err(f"Memory {word} will be deleted for good, also from backups.")
    terminal.require_confirmation(given.yes, "Nothing was forgotten")
    left = memories.forget(number)
    sync.catch_up_soon()
    terminal.show_forgotten([number], left)

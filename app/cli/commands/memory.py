"""`memory`: the core memory that goes into every prompt, and the texts saved on purpose."""

from argparse import Namespace
from collections.abc import Callable, Mapping

from app.bootstrap import Services
from app.cli.arguments import WrongUsage
from app.cli.terminal import NotAgreed, Terminal
from app.domain.text import whole_number
from app.domain.turn_text import estimate_tokens

_Deed = Callable[[Services, Namespace, Terminal], None]


def memory(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Do with memory what the first word says."""
    takes_text = given.action in ("set", "append", "save")
    if takes_text and len(given.words) != 1:
        raise _wrong(given, "one TEXT, or - for standard input")
    if not takes_text and len(given.words) != (given.action == "forget"):
        raise _wrong(given, "ID" if given.action == "forget" else "nothing more")
    _DEEDS[given.action](services, given, terminal)
    return 0


def _wrong(given: Namespace, takes: str) -> WrongUsage:
    return WrongUsage(f"'memory {given.action}' takes {takes}", "See 'commonplace memory --help'.")


def _show(services: Services, _given: Namespace, terminal: Terminal) -> None:
    _tell(services, services.core_memory.text(), terminal)


def _set(services: Services, given: Namespace, terminal: Terminal) -> None:
    _tell(services, services.core_memory.set(_words(given, terminal)), terminal)


def _append(services: Services, given: Namespace, terminal: Terminal) -> None:
    _tell(services, services.core_memory.append(_words(given, terminal)), terminal)


def _save(services: Services, given: Namespace, terminal: Terminal) -> None:
    saved = services.memories.save(_words(given, terminal))
    if terminal.as_json:
        terminal.document({"saved": saved.id})
    else:
        terminal.line(f"Saved as memory {saved.id}.")


def _list(services: Services, _given: Namespace, terminal: Terminal) -> None:
    saved = services.memories.listed()
    if terminal.as_json:
        rows = [
            {
                "id": each.id,
                "text": each.text,
                "saved_at": each.saved_at.isoformat(),
                "conversation_id": each.conversation_id,
                "worded_by": "model" if each.is_worded_by_model else "user",
            }
            for each in saved
        ]
        terminal.document({"memories": rows})
        return
    for each in saved:
        day = f"{each.saved_at.astimezone():%Y-%m-%d}"
        mark = "  (a model's words)" if each.is_worded_by_model else ""
        terminal.line(f"{each.id}  {day}  {each.text}{mark}")
    if not saved:
        terminal.err("Nothing is saved. 'memory save TEXT' does that, and models may with a tool.")


def _forget(services: Services, given: Namespace, terminal: Terminal) -> None:
    (word,) = given.words
    number = whole_number(word)
    if number is None:
        raise _wrong(given, "ID, a number that 'memory list' shows")
    if not given.yes:
        terminal.err(f"Memory {word} would be gone for ever, out of the backups too.")
        if not terminal.says_yes():
            raise NotAgreed("Nothing was forgotten: nobody agreed to it", "Add --yes to agree.")
    left = services.memories.forget(number)
    services.index_sync.catch_up_soon()
    if terminal.as_json:
        terminal.document({"forgotten": [number], "remains": list(left)})
    for remark in left:
        terminal.err(remark)


def _words(given: Namespace, terminal: Terminal) -> str:
    (words,) = given.words
    return terminal.read_input() if words == "-" else str(words)


def _tell(services: Services, text: str, terminal: Terminal) -> None:
    tokens = estimate_tokens(text) if text else 0
    most = services.settings.number("core_memory_max_tokens")
    if terminal.as_json:
        terminal.document({"core_memory": text, "tokens": tokens, "max_tokens": most})
        return
    if text:
        terminal.line(text)
    terminal.err(f"Core memory: about {tokens:,} of {most:,} tokens.")


_DEEDS: Mapping[str, _Deed] = {
    "show": _show,
    "set": _set,
    "append": _append,
    "save": _save,
    "list": _list,
    "forget": _forget,
}

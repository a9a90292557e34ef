"""All commands by name: run one, complete what is typed so far, help, suggest the nearest."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from app.chat.commands.values import (
    Candidate,
    Command,
    CommandOutput,
    Completion,
    Form,
    Given,
    WrongForm,
)
from app.domain.errors import NotFound
from app.domain.text import as_markdown, one_line

_SHOWN_CHARS = 40
_ESCAPE = "To send it as a message, type a space before it"


class CommandBook:
    """The commands there are, `/help` among them, in the order of the help."""

    def __init__(self, commands: Iterable[Command]) -> None:
        own = Command("help", "What can be typed here", (Form("/help", "[COMMAND]"),), self._help)
        self._commands = {command.name: command for command in (*commands, own)}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def run(self, given: Given) -> CommandOutput:
        """Carry a command out. May block; raises NotFound with the nearest name, KnownError."""
        if (command := self._commands.get(given.name)) is None:
            raise self._unknown(given.name)
        return command.run(given)

    def complete(self, text: str) -> Completion:
        """Return what could be meant by a text that begins with a slash; never blocks."""
        if not text.startswith("/") or text.startswith("//") or "\n" in text:
            return Completion()
        typed = text.casefold().split()
        stem, part = (typed, "") if text[-1].isspace() else (typed[:-1], typed[-1])
        if not stem:
            found = [each for each in self if f"/{each.name}".startswith(part)]
            is_whole = any(_is_whole(each, part) for each in found)
            return Completion(tuple(_candidate_for(each) for each in found), is_whole)
        command = self._commands.get(stem[0].removeprefix("/"))
        if command is None:
            return Completion()
        return _completion(command, stem, part)

    def _unknown(self, name: str) -> NotFound:
        shown = one_line(name, _SHOWN_CHARS)
        near = get_close_matches(name, self._commands, n=1, cutoff=0.4)
        hint = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
        return NotFound(f"There is no command '/{shown}'", f"{hint} {_ESCAPE}.")

    def _help(self, given: Given) -> CommandOutput:
        if not given.words:
            return CommandOutput(self._table())
        name = given.words[0].removeprefix("/")
        if (command := self._commands.get(name)) is None:
            raise self._unknown(name)
        if len(given.words) > 1:
            raise WrongForm(f"'{given.rest}' names several commands", "Name one, or none.")
        rows = [f"| `{_cell(str(form))}` | {_cell(form.help)} |" for form in command.forms]
        return CommandOutput("\n".join((f"{command.help}.\n", "| Form | |", "|---|---|", *rows)))

    def _table(self) -> str:
        rows = [f"| `/{command.name}` | {_cell(command.help)} |" for command in self]
        return "\n".join(
            (
                "Commands stay on this computer: nothing of them is stored or sent to a model.\n",
                "| Command | |",
                "|---|---|",
                *rows,
                f"\n`/help COMMAND` shows its forms. {_ESCAPE}.",
            )
        )


def _candidate_for(command: Command) -> Candidate:
    takes = any(form.takes or len(form.words.split()) > 1 for form in command.forms)
    text = f"/{command.name}{' ' if takes else ''}"
    return Candidate(text, f"/{command.name}", command.help)


def _is_whole(command: Command, typed: str) -> bool:
    return any(form.words == typed and form.is_whole for form in command.forms)


def _completion(command: Command, stem: list[str], part: str) -> Completion:
    """Return the next words of the forms that begin with the words `stem`."""
    forms = (*command.forms, *command.keys)
    written = " ".join((*stem, part) if part else stem)
    found: dict[str, Candidate] = {}
    for form in forms:
        *before, last = form.words.split()
        if before == stem and last != part and last.startswith(part):
            more = form.takes or _goes_on(form, forms)
            text = form.words + (" " if more else "")
            shown = f"{last} {form.takes}".rstrip()
            found.setdefault(form.words, Candidate(text, shown, form.help))
    exact = [form for form in forms if form.words == written]
    is_whole = not found or any(form.is_whole for form in exact)
    return Completion(tuple(found.values()), is_whole)


def _goes_on(form: Form, forms: Iterable[Form]) -> bool:
    return any(other.words.startswith(f"{form.words} ") for other in forms)


def _cell(text: str) -> str:
    """Return words for a table's cell; code keeps its bars with a backslash too."""
    return text.replace("|", "\\|")


def table(rows: Iterable[tuple[str, str]], head: tuple[str, str] = ("", "")) -> str:
    """Return two columns as a table; the words are shown as they are."""
    lines = [f"| {as_markdown(name)} | {as_markdown(value)} |" for name, value in rows]
    return "\n".join((f"| {head[0]} | {head[1]} |", "|---|---|", *lines))

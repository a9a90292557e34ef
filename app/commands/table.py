"""The command table: it runs commands by name, completes typed text and prints the help.

`CommandSession` adds the confirmation that a command may ask for.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

from app.commands.command import (
    Command,
    CommandCall,
    CommandContext,
    CommandUsageError,
    Form,
    Outcome,
    is_command,
    parse,
)
from app.domain.errors import NotFound
from app.domain.text import escape_markdown, one_line
from app.domain.translation import tr

_SHOWN_CHARS = 40
_ESCAPE = "To send it as a message, type a space before it"
_NOT_CONFIRMED = "Nothing was changed: it was not confirmed."
_CONFIRM = "Type **yes** to confirm; anything else cancels."
_NO = ("no", "n", "cancel")


@dataclass(frozen=True, slots=True)
class CompletionItem:
    """A line of the completion: the text that replaces the typed one, its label, its help."""

    text: str
    shown: str
    help: str


@dataclass(frozen=True, slots=True)
class Completion:
    """Completions of a typed text; `is_whole` if the text can be run as it is."""

    candidates: tuple[CompletionItem, ...] = ()
    is_whole: bool = True


class CommandTable:
    """The commands in the order of the help, which is one of them."""

    def __init__(self, commands: Iterable[Command]) -> None:
        own = Command("help", tr("List the commands"), (Form("/help", "[COMMAND]"),), self._help)
        self._commands = {command.name: command for command in (*commands, own)}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def run(self, call: CommandCall) -> Outcome:
        """Run a command. May block; raises NotFound with the nearest name, KnownError."""
        return self._find(call.name).run(call)

    def complete(self, text: str) -> Completion:
        """Return the completions of a text. Never blocks."""
        if not text.startswith("/") or text.startswith("//") or "\n" in text:
            return Completion()
        typed = text.casefold().split()
        stem, part = (typed, "") if text[-1].isspace() else (typed[:-1], typed[-1])
        if not stem:
            found = [each for each in self if f"/{each.name}".startswith(part)]
            is_whole = any(
                form.words == part and form.is_complete for each in found for form in each.forms
            )
            return Completion(tuple(map(_name_item, found)), is_whole)
        command = self._commands.get(stem[0].removeprefix("/"))
        return Completion() if command is None else _completion(command, stem, part)

    def _find(self, name: str) -> Command:
        if (command := self._commands.get(name)) is not None:
            return command
        near = get_close_matches(name, self._commands, n=1, cutoff=0.4)
        raise NotFound(
            f"There is no command '/{one_line(name, _SHOWN_CHARS)}'",
            f"Did you mean /{near[0]}? {_ESCAPE}."
            if near
            else f"/help lists the commands. {_ESCAPE}.",
        )

    def _help(self, call: CommandCall) -> Outcome:
        if len(call.words) > 1:
            raise CommandUsageError(f"'{call.rest}' is more than one command", "Name one, or none.")
        if call.words:
            command = self._find(call.words[0].removeprefix("/"))
            forms = [(str(form), tr(form.help)) for form in command.forms]
            return Outcome(f"{command.help}.\n\n{_code_table(tr('Form'), forms)}")
        commands = _code_table(tr("Command"), [(f"/{each.name}", each.help) for each in self])
        return Outcome(
            tr(
                "Commands run on this computer: they are not stored or sent to a model.\n\n{commands}\n\n`/help COMMAND` lists its forms. {escape}."
            ).format(commands=commands, escape=tr(_ESCAPE))
        )


class CommandSession:
    """One window's commands, and the confirmation that one of them waits for.

    `run` must not be called concurrently.
    """

    def __init__(self, table: CommandTable) -> None:
        self._table = table
        self._on_confirmed: Callable[[], Outcome] | None = None

    @property
    def awaits_confirmation(self) -> bool:
        """Whether the next text is the answer to a question."""
        return self._on_confirmed is not None

    def accepts(self, text: str) -> bool:
        """Return whether a text is a command or an answer, rather than a message. Never blocks."""
        return self.awaits_confirmation or is_command(text)

    def complete(self, text: str) -> Completion:
        """Return the completions of a text. Never blocks."""
        return Completion() if self.awaits_confirmation else self._table.complete(text)

    def cancel(self) -> None:
        """Stop waiting for a confirmation."""
        self._on_confirmed = None

    def run(self, text: str, context: CommandContext) -> Outcome:
        """Run a text that `accepts` returns true for. May block; raises KnownError."""
        on_confirmed, self._on_confirmed = self._on_confirmed, None
        if on_confirmed is not None:
            answer = text.strip().casefold()
            if answer == "yes":
                return self._wait_for_confirmation(on_confirmed())
            if not is_command(text):
                return Outcome(tr(_NOT_CONFIRMED), keeps_text=answer not in _NO)
        return self._wait_for_confirmation(self._table.run(parse(text, context)))

    def _wait_for_confirmation(self, outcome: Outcome) -> Outcome:
        self._on_confirmed = outcome.on_confirmed
        if outcome.on_confirmed is None:
            return outcome
        return replace(outcome, markdown=f"{outcome.markdown}\n\n{tr(_CONFIRM)}")


def _name_item(command: Command) -> CompletionItem:
    has_arguments = any(form.arguments or " " in form.words for form in command.forms)
    name = f"/{command.name}"
    return CompletionItem(f"{name} " if has_arguments else name, name, command.help)


def _completion(command: Command, stem: list[str], part: str) -> Completion:
    """Return the next words of the forms that start with the words `stem`."""
    forms = (*command.forms, *command.completions)
    typed = " ".join((*stem, part) if part else stem)
    found: dict[str, CompletionItem] = {}
    for form in forms:
        *before, last = form.words.split()
        if before == stem and last != part and last.startswith(part):
            continues = any(other.words.startswith(f"{form.words} ") for other in forms)
            text = form.words + (" " if form.arguments or continues else "")
            shown = f"{last} {form.arguments}".rstrip()
            found.setdefault(form.words, CompletionItem(text, shown, tr(form.help)))
    is_whole = any(form.is_complete for form in forms if form.words == typed)
    return Completion(tuple(found.values()), is_whole or not found)


def _code_table(head: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table whose first column is code; bars are escaped in both columns."""
    lines = [f"| `{_cell(code)}` | {_cell(text)} |" for code, text in rows]
    return "\n".join((f"| {head} | |", "|---|---|", *lines))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def markdown_table(rows: Iterable[tuple[str, str]], head: tuple[str, str] = ("", "")) -> str:
    """Return two columns of plain text as a table."""
    lines = [f"| {escape_markdown(name)} | {escape_markdown(value)} |" for name, value in rows]
    return "\n".join((f"| {head[0]} | {head[1]} |", "|---|---|", *lines))

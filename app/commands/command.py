"""Commands as values: their forms, a call, its outcome; and which texts are commands.

A command starts with one slash directly followed by a word. A text is a message if it starts with a
space or `//` (a comment in many languages), or if its first word cannot be the name of a command
(`/*`, `/usr/bin/env`) and more follows. Alone, such a word is held back: it may be a typing error.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId
from app.domain.translation import tr

_NAME = re.compile(r"/([a-z][a-z0-9_-]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The open conversation and the last exchange of its shown path; None in a new conversation.

    `project` is the uid of the project that a new conversation will belong to.
    """

    conversation_id: ConversationId | None = None
    last_exchange_id: ExchangeId | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """The front end should show a conversation, at an exchange if given."""

    conversation_id: ConversationId
    exchange_id: ExchangeId | None = None


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """The front end should show a manual page or document; `place` is man:grep.1 or document:12."""

    place: str
    title: str


@dataclass(frozen=True, slots=True)
class ImportFiles:
    """The front end should import files, with progress and a way to cancel."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class AskExport:
    """The front end should ask for the file to export a conversation to."""

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class ChoosePreset:
    """The front end should begin the new conversation with the preset of this uid."""

    uid: str


@dataclass(frozen=True, slots=True)
class ChooseProject:
    """The front end should begin the new conversation in the project of this uid; None for none."""

    uid: str | None


@dataclass(frozen=True, slots=True)
class NewRoutine:
    """The front end should show the editor of a new routine."""


@dataclass(frozen=True, slots=True)
class RunRoutine:
    """The front end should run the routine of this uid, and report its end."""

    uid: str


Action = (
    OpenTurn | OpenDocument | ImportFiles | AskExport | ChoosePreset | ChooseProject | NewRoutine
    | RunRoutine
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a command.

    Attributes:
        markdown: Text to show, with quotations escaped; "" shows nothing.
        action: What the front end should do.
        keeps_text: Whether the typed text stays in the composer.
        on_confirmed: What runs when the user confirms by typing yes; `markdown` describes it.
    """

    markdown: str = ""
    action: Action | None = None
    keeps_text: bool = False
    on_confirmed: "Callable[[], Outcome] | None" = None


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a command.

    `arguments` describes what follows the fixed words, in brackets if optional; "" for nothing.
    """

    words: str
    arguments: str = ""
    help: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the fixed words alone can be run."""
        return not self.arguments or self.arguments.startswith("[")

    def __str__(self) -> str:
        return f"{self.words} {self.arguments}".rstrip()


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command as it was typed: `rest` is the text after its name."""

    name: str
    rest: str
    context: CommandContext

    @property
    def words(self) -> tuple[str, ...]:
        """The words after the name, case folded."""
        return tuple(self.rest.casefold().split())

    def after(self, count: int) -> str:
        """Return the text after the first `count` words, as it was typed."""
        parts = self.rest.split(maxsplit=count)
        return parts[count].strip() if len(parts) > count else ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command; `name` is without the slash.

    Attributes:
        run: May block; raises KnownError, usually CommandUsageError.
        completions: Further forms to complete that the help does not list.
    """

    name: str
    help: str
    forms: tuple[Form, ...]
    run: Callable[[CommandCall], Outcome]
    completions: tuple[Form, ...] = ()


class CommandUsageError(InvalidInput):
    """The words match no form of the command."""


def wrong_form(call: CommandCall, forms: Sequence[Form]) -> CommandUsageError:
    typed = f"/{call.name} {call.rest}".strip()
    *others, last = map(str, forms)
    written = (
        tr("{others} or {last}").format(others=", ".join(others), last=last) if others else last
    )
    return CommandUsageError(f"'{typed}' is not a form of /{call.name}", f"Write {written}.")


def is_command(text: str) -> bool:
    """Return whether a text is a command, known or not, rather than a message."""
    if not text.startswith("/") or text.startswith("//"):
        return False
    words = text.split(maxsplit=1)
    return _NAME.fullmatch(words[0]) is not None or len(words) == 1


def parse(text: str, context: CommandContext) -> CommandCall:
    """Return the call that a text is, for which `is_command` is true."""
    words = text.split(maxsplit=1)
    rest = words[1].strip() if len(words) > 1 else ""
    return CommandCall(words[0].removeprefix("/").casefold(), rest, context)

"""What a command is, what it is given, and what comes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command is typed: the open conversation and the last exchange of the path shown.

    Both are None in a conversation not yet begun.
    """

    conversation_id: ConversationId | None = None
    last_exchange_id: ExchangeId | None = None


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """The front end should show a conversation, at an exchange if there is one."""

    conversation_id: ConversationId
    exchange_id: ExchangeId | None = None


@dataclass(frozen=True, slots=True)
class OpenPage:
    """The front end should show a manual page, called `source` (grep.1)."""

    source: str
    title: str


@dataclass(frozen=True, slots=True)
class ImportFiles:
    """The front end should import files, with progress and a way to stop."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class AskExport:
    """The front end should ask where to write a conversation to."""

    conversation_id: ConversationId


Action = OpenTurn | OpenPage | ImportFiles | AskExport


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What comes of a command.

    Attributes:
        markdown: Words to show, quoted text escaped; "" shows nothing.
        action: What the front end should do.
        keeps_text: Whether what was typed stays in the composer, to be used otherwise.
        after_yes: What is carried out once the user has typed yes, which is asked for below the
            words: they say what that is, costs and takes away.
    """

    markdown: str = ""
    action: Action | None = None
    keeps_text: bool = False
    after_yes: "Callable[[], CommandOutput] | None" = None


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a command: its fixed words, what may follow them, and what it does.

    `takes` is in brackets where it may be left out; "" where nothing follows.
    """

    words: str
    takes: str = ""
    help: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the fixed words alone can be run."""
        return not self.takes or self.takes.startswith("[")

    def __str__(self) -> str:
        return f"{self.words} {self.takes}".rstrip()


@dataclass(frozen=True, slots=True)
class Given:
    """A command as it was typed: `words` are those after its name, `rest` the same uncut."""

    name: str
    rest: str
    place: Place

    @property
    def words(self) -> tuple[str, ...]:
        """The words after the name, in small letters."""
        return tuple(self.rest.casefold().split())

    def after(self, count: int) -> str:
        """Return what follows the first `count` words, as it was typed."""
        parts = self.rest.split(maxsplit=count)
        return parts[count].strip() if len(parts) > count else ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its `name` without the slash, what it does in a line, its forms, the deed.

    `run` may block; it raises KnownError, WrongForm above all. `keys` are further words that may be
    completed, not listed in the help.
    """

    name: str
    help: str
    forms: tuple[Form, ...]
    run: Callable[[Given], CommandOutput]
    keys: tuple[Form, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line of the completion: what takes the place of the text, what is shown, what it does."""

    text: str
    shown: str
    help: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What could be meant by what is typed so far; `is_whole` when it can be run as it is."""

    candidates: tuple[Candidate, ...] = ()
    is_whole: bool = True


class WrongForm(InvalidInput):
    """The words make none of the forms of a command."""


def wrong_form(given: Given, forms: Sequence[Form]) -> WrongForm:
    """Return the error that says which forms there are."""
    typed = f"/{given.name} {given.rest}".strip()
    return WrongForm(f"'{typed}' is not complete, or too much", f"Write {either(forms)}.")


def either(forms: Sequence[Form]) -> str:
    """Return forms as a sentence's part: a, b or c."""
    written = [str(form) for form in forms]
    return " or ".join((", ".join(written[:-1]), written[-1]) if written[1:] else written)

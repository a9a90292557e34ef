"""`/export` and `/import`: conversations to a file, and from one."""

from pathlib import Path

from app.chat.commands.values import (
    AskExport,
    Command,
    CommandOutput,
    Form,
    Given,
    ImportFiles,
    wrong_form,
)
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId
from app.domain.text import as_markdown
from app.storage.store import Store
from app.transfer.exporting import ExportFormat, export

_EXPORT_FORMS = (
    Form("/export", "[FILE]", "This conversation; the ending of FILE, md, json or jsonl, says how"),
)
_IMPORT_FORMS = (Form("/import", "PATH", "A file or folder that another program has exported"),)
_QUOTES = ("'", '"')


def transfer_commands(store: Store) -> tuple[Command, ...]:
    """Return both; the front end asks for a place and shows how far it is."""

    def export_(given: Given) -> CommandOutput:
        conversation_id = given.place.conversation_id
        if conversation_id is None:
            raise InvalidInput("There is nothing to export here yet", "Write a message first.")
        if not given.rest:
            return CommandOutput(action=AskExport(conversation_id))
        path = path_in(given.rest)
        _format_of(path)
        if not path.exists():
            return _exported(store, path, conversation_id)
        return CommandOutput(
            f"There is a file {as_markdown(str(path))} already, which would be replaced.",
            after_yes=lambda: _exported(store, path, conversation_id),
        )

    def import_(given: Given) -> CommandOutput:
        if not given.rest:
            raise wrong_form(given, _IMPORT_FORMS)
        path = path_in(given.rest)
        if not path.exists():
            raise NotFound(f"There is no file '{path}'", "Name an export, or a folder of some.")
        return CommandOutput(action=ImportFiles((path,)))

    return (
        Command("export", "Write this conversation to a file", _EXPORT_FORMS, export_),
        Command("import", "Bring conversations in", _IMPORT_FORMS, import_),
    )


def path_in(text: str) -> Path:
    """Return the path that was typed, maybe in quotes; a relative one starts at home."""
    words = text.strip()
    if len(words) > 1 and words[0] in _QUOTES and words[-1] == words[0]:
        words = words[1:-1]
    try:
        return Path.home() / Path(words).expanduser()
    except RuntimeError as error:
        raise NotFound(f"There is no folder for '{words}'", "Write the whole path.") from error


def _exported(store: Store, path: Path, conversation_id: ConversationId) -> CommandOutput:
    export(store, path, _format_of(path), conversation_id)
    return CommandOutput(f"Written to {as_markdown(str(path))}.")


def _format_of(path: Path) -> ExportFormat:
    ending = path.suffix.removeprefix(".").casefold()
    try:
        return ExportFormat(ending)
    except ValueError as error:
        there_are = ", ".join(f".{each.value}" for each in ExportFormat)
        raise InvalidInput(
            f"'{path.name}' does not say in which format", f"Let it end in {there_are}."
        ) from error

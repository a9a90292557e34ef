"""Commands about the open conversation: `/new`, `/tag`, `/export`; and `/import`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from app.chat.library import Library
from app.chat.sent_turns import SegmentBreaks
from app.commands.command import (
    AskExport,
    Command,
    CommandCall,
    Form,
    ImportFiles,
    Outcome,
    wrong_form,
)
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId
from app.domain.text import escape_markdown
from app.domain.translation import tr
from app.storage.engine.store import Store
from app.transfer.exporting import ExportFormat, export

_NEW_FORMS = (Form("/new", help="Earlier turns stay searchable but are not sent any more"),)
_TAG_FORMS = (
    Form("/tag", help="List the tags"),
    Form("/tag list", help="List the tags"),
    Form("/tag add", "NAME", "Add tags, separated by commas"),
    Form("/tag remove", "NAME", "Remove tags, separated by commas"),
)
_EXPORT_FORMS = (
    Form("/export", "[FILE]", "Write this conversation to a .md, .json or .jsonl file"),
)
_IMPORT_FORMS = (Form("/import", "PATH", "Import a file or folder exported by another program"),)
_QUOTES = ("'", '"')


def conversation_commands(
    store: Store, library: Library, segments: SegmentBreaks
) -> tuple[Command, ...]:
    return (
        Command(
            "new",
            tr("Begin with a clean slate in this conversation"),
            _NEW_FORMS,
            partial(_new, segments),
        ),
        Command("tag", tr("Tags of this conversation"), _TAG_FORMS, partial(_tag, library)),
        Command(
            "export",
            tr("Export this conversation to a file"),
            _EXPORT_FORMS,
            partial(_export, store),
        ),
        Command("import", tr("Import conversations"), _IMPORT_FORMS, _import),
    )


def _new(segments: SegmentBreaks, call: CommandCall) -> Outcome:
    if call.rest:
        raise wrong_form(call, _NEW_FORMS)
    last = call.context.last_exchange_id
    if last is None:
        return Outcome(tr("This conversation has no messages yet."))
    if segments.is_after(last):
        return Outcome(tr("The next message already begins with a clean slate."))
    segments.begin_after(last)
    return Outcome()  # the transcript shows the break


def _export(store: Store, call: CommandCall) -> Outcome:
    conversation_id = _opened(call)
    if not call.rest:
        return Outcome(action=AskExport(conversation_id))
    path = path_in(call.rest)
    file_format = _format_of(path)

    def write() -> Outcome:
        report = export(store, path, file_format, [conversation_id], replaces=True)
        text = tr("Written to {path}. {remark}").format(path=path, remark=report.remark)
        return Outcome(escape_markdown(text.rstrip()))

    if not path.exists():
        return write()
    question = tr("The file {path} exists and would be replaced.").format(
        path=escape_markdown(str(path))
    )
    return Outcome(question, on_confirmed=write)


def _import(call: CommandCall) -> Outcome:
    if not call.rest:
        raise wrong_form(call, _IMPORT_FORMS)
    path = path_in(call.rest)
    if not path.exists():
        raise NotFound(f"There is no file '{path}'", "Name an export, or a folder of exports.")
    return Outcome(action=ImportFiles((path,)))


def _tag(library: Library, call: CommandCall) -> Outcome:
    action = call.words[0] if call.words else "list"
    names = [name.strip() for name in call.after(1).split(",") if name.strip()]
    if action not in ("list", "add", "remove") or bool(names) == (action == "list"):
        raise wrong_form(call, _TAG_FORMS)
    conversation_id = _opened(call)
    if action == "add":
        library.tag([conversation_id], names)
    elif action == "remove":
        tags = library.open(conversation_id).tags
        library.tag([conversation_id], (), _existing(tags, names))
    tags = library.open(conversation_id).tags
    text = ", ".join(map(escape_markdown, tags))
    return Outcome(
        tr("Tags: {text}").format(text=text) if tags else tr("This conversation has no tags.")
    )


def path_in(text: str) -> Path:
    """Return a typed path, which may be quoted; a relative one starts at the home folder."""
    path = text.strip()
    if len(path) > 1 and path[0] in _QUOTES and path[-1] == path[0]:
        path = path[1:-1]
    try:
        return Path.home() / Path(path).expanduser()
    except RuntimeError as error:
        raise NotFound(f"There is no folder for '{path}'", "Write the whole path.") from error


def _opened(call: CommandCall) -> ConversationId:
    if call.context.conversation_id is None:
        raise InvalidInput("This conversation has no messages yet", "Write a message first.")
    return call.context.conversation_id


def _existing(tags: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return tags as they are spelled; raise NotFound for one that does not exist."""
    spelled = {tag.casefold(): tag for tag in tags}
    for name in names:
        if name.casefold() not in spelled:
            has = ", ".join(tags) or "none"
            raise NotFound(f"This conversation has no tag '{name[:60]}'", f"Its tags: {has}.")
    return [spelled[name.casefold()] for name in names]


def _format_of(path: Path) -> ExportFormat:
    ending = path.suffix.removeprefix(".").casefold()
    try:
        return ExportFormat(ending)
    except ValueError as error:
        endings = ", ".join(f".{each.value}" for each in ExportFormat)
        raise InvalidInput(
            f"'{path.name}' does not end in a known format", f"Use one of {endings}."
        ) from error

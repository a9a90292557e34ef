"""`import`, `imports`, `export` and `sources`."""

import math
from argparse import Namespace
from dataclasses import asdict
from typing import TextIO, cast

from app.cli.arguments import wrong_arguments
from app.cli.commands.maintenance import catch_up_index
from app.cli.commands.settings_and_privacy import ask_after_import
from app.cli.terminal import OutputFile, Terminal, members
from app.domain.errors import StorageError
from app.domain.records.sources import SOURCES, SourceName
from app.domain.text import parse_whole_number
from app.domain.transfer import ImportProgress, ImportReport
from app.domain.translation import format_count, format_moment, format_percent, format_size
from app.index.text_sync import TextIndexSync
from app.storage.engine.store import Store
from app.transfer.exporting import ExportFormat, write_export
from app.transfer.exporting import export as export_to
from app.transfer.import_history import ImportHistory
from app.transfer.importing import import_files
from app.workers.followed import FollowedSources
from app.workers.model_choice import BackgroundModelChoice

_SKIPPED_SHOWN = 20
_NEW_SHOWN = 20
_PROGRESS_PARTS = 20


def import_(
    store: Store,
    sync: TextIndexSync,
    background: BackgroundModelChoice,
    given: Namespace,
    terminal: Terminal,
) -> int:
    """Import files and folders, and index them meanwhile; print what was skipped."""
    progress = _Progress(terminal)
    paths = [terminal.path(path) for path in given.paths]
    consents = ""
    if not given.dry_run:
        sync.start()
        consents = background.revoke_consents()
    try:
        report = import_files(
            store,
            paths,
            cancelled=terminal.cancelled,
            on_progress=progress,
            dry_run=given.dry_run,
            restore_forgotten=given.restore_forgotten,
            own=given.own,
            memories=given.memories,
        )
    except StorageError:
        if progress.stored:
            terminal.err(f"{progress.stored} were stored; a second import adds the rest.")
        raise
    if not given.dry_run:
        catch_up_index(sync, terminal)
    terminal.show(_plain(report, dry_run=given.dry_run), _summary(report, dry_run=given.dry_run))
    for words in _remarks(report):
        terminal.err(words)
    ask_after_import(background, consents, 0 if given.dry_run else report.turns, terminal)
    return 1 if report.cancelled or report.refused else 0


def imports(store: Store, given: Namespace, terminal: Terminal) -> None:
    """List earlier imports, or undo one."""
    history = ImportHistory(store)
    if given.action == "undo":
        number = parse_whole_number(given.words[0])
        if number is None:
            raise wrong_arguments(given, "the number of an import")
        if added := history.get(number).messages:
            if not given.yes:
                count = format_count(added, "message")
                terminal.err(f"{count} in conversations that were here before will be deleted.")
            terminal.require_confirmation(given.yes, "Nothing was undone")
        moved, removed, changed = history.undo(number)
        lines = [f"{format_count(removed, 'message')} deleted."] if removed else []
        if changed:
            count = format_count(changed, "other conversation")
            lines.append(f"Titles, dates and tags of {count} restored.")
        if moved:
            lines.append(
                f"{format_count(len(moved), 'conversation')} moved to the trash; "
                "'commonplace undelete ID...' brings them back."
            )
        document = {"number": number, "deleted": list(moved), "messages": removed}
        lines = lines or ["Nothing of this import is left."]
        terminal.show(document | {"changed": changed}, *lines)
        return
    rows = history.listed()
    if terminal.as_json:
        terminal.document({"imports": [asdict(each) for each in rows]})
    for each in () if terminal.as_json else rows:
        counts = [format_count(each.conversations, "conversation")]
        if each.messages:
            counts.append(f"{format_count(each.messages, 'message')} in other conversations")
        if each.changed:
            counts.append(f"{format_count(each.changed, 'other conversation')} changed")
        shown = (str(each.number), format_moment(each.at), ", ".join(counts), ", ".join(each.names))
        terminal.line("  ".join(shown))


def export(store: Store, given: Namespace, terminal: Terminal) -> int:
    """Write conversations to a file, or to standard output."""
    chosen = ExportFormat(given.format)
    ids = given.conversation or ()
    if given.out == "-":
        with OutputFile(terminal) as out:
            write_export(store, cast(TextIO, out), chosen, ids)
        return 0
    path = terminal.path(given.out)
    report = export_to(store, path, chosen, ids, replaces=given.force)
    if terminal.as_json:
        terminal.document({**asdict(report), "out": str(path)})
    else:
        terminal.err(f"{format_count(report.conversations, 'conversation')} written to {path}")
    if report.remark:
        terminal.err(report.remark)
    return 1 if report.missing_files else 0


class _Progress:
    """Prints progress, a line for each twentieth that was read.

    Attributes:
        stored: What is stored so far, as text; "" at first.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._printed = 0
        self.stored = ""

    def __call__(self, progress: ImportProgress) -> None:
        conversations = format_count(progress.conversations, "conversation")
        self.stored = f"{conversations}, {format_count(progress.messages, 'message')}"
        share = progress.bytes_read / (progress.bytes_total or math.inf)
        part = int(_PROGRESS_PARTS * share)
        if self._terminal.is_watched and part > self._printed:
            self._printed = part
            self._terminal.err(f"{format_percent(share)} read; {self.stored} are new")


def _plain(report: ImportReport, *, dry_run: bool) -> dict[str, object]:
    plain = asdict(report)
    plain["new"] = [
        {"conversation_id": None if dry_run else each.id} | members(each, "title", "created_at")
        for each in report.new
    ]
    return plain


def _summary(report: ImportReport, *, dry_run: bool) -> str:
    verb = "would be" if dry_run else "were"
    counts = (
        f"{format_count(report.conversations, 'conversation')}, {format_count(report.turns, 'turn')} "
        f"and {format_count(report.messages, 'message')} {verb} imported; "
        f"{format_count(report.duplicates, 'message')} already known."
    )
    lines = [counts]
    if dry_run:
        lines += [f"{each.created_at:%Y-%m-%d}  {each.title}" for each in report.new[:_NEW_SHOWN]]
        if len(report.new) > _NEW_SHOWN:
            lines.append(f"and {len(report.new) - _NEW_SHOWN:,} more")
    return "\n".join(lines)


def _remarks(report: ImportReport) -> list[str]:
    remarks = [f"skipped {each.where}: {each.why}" for each in report.skipped[:_SKIPPED_SHOWN]]
    if len(report.skipped) > _SKIPPED_SHOWN:
        remarks.append(f"and {len(report.skipped) - _SKIPPED_SHOWN:,} more were skipped")
    if report.presets:
        remarks.append(
            f"{format_count(report.presets, 'new preset')}, not used by imported conversations"
        )
    if report.forgotten:
        remarks.append(
            f"{format_count(report.forgotten, 'conversation')} left out because forgotten here; "
            "--restore-forgotten brings them back"
        )
    if report.restored:
        remarks.append(
            f"{format_count(report.restored, 'conversation')} of an import that was undone taken out of "
            "the trash"
        )
    if report.in_trash:
        remarks.append(
            f"{format_count(report.in_trash, 'conversation')} known here stay in the trash; "
            "'commonplace undelete ID' takes one out"
        )
    if report.left_out:
        remarks.append(f"not taken without --own: {', '.join(report.left_out)}")
    if report.offered:
        remarks.append(
            f"{format_count(report.offered, 'statement')} about you can be taken as facts: import with "
            "--memories"
        )
    if report.cancelled:
        remarks.append("The import was stopped; what was stored by then stays.")
    return remarks


def sources(
    followed: FollowedSources,
    background: BackgroundModelChoice,
    given: Namespace,
    terminal: Terminal,
) -> None:
    """List the sources, or switch one."""
    if given.action == "list":
        _list_sources(followed, terminal)
        return
    if given.words[0] not in list(SourceName):
        raise wrong_arguments(given, f"one of {', '.join(SourceName)}")
    name, is_on = SourceName(given.words[0]), given.action == "on"
    consents = followed.switch(name, is_on=is_on)
    state = "followed" if is_on else "no longer followed"
    terminal.show({"source": name.value, "on": is_on}, f"{SOURCES[name].title} is {state}.")
    if is_on:
        files = sum(each.files for each in followed.states() if each.name is name)
        ask_after_import(background, consents, files, terminal)


def _list_sources(followed: FollowedSources, terminal: Terminal) -> None:
    states = followed.states()
    if terminal.as_json:
        names = {"name": "source", "is_on": "on"}  # as they are documented
        rows = [
            {names.get(key, key): value for key, value in asdict(state).items()} for state in states
        ]
        terminal.document({"sources": rows})
        return
    for state in states:
        kept = f", {state.kept_only_here:,} kept only here" if state.kept_only_here else ""
        terminal.line(
            f"{state.name:<12} {'on ' if state.is_on else 'off'}  {format_count(state.files, 'file')}, "
            f"{format_size(state.size_bytes)} in {state.folder}, {state.read:,} read{kept}"
        )
        if SOURCES[state.name].deletes:
            terminal.line(f"{'':<12}      {SOURCES[state.name].deletes}")
    if not states:
        terminal.line("No program with sessions was found on this computer.")

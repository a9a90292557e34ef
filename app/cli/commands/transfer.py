"""`import` and `export`."""

from argparse import Namespace
from dataclasses import asdict
from typing import TextIO, cast

from app.bootstrap import Services
from app.cli.commands.background import ask_after_import
from app.cli.commands.upkeep import bring_in_step
from app.cli.terminal import OutputFile, Terminal
from app.domain.errors import StorageError
from app.domain.transfer import ImportProgress, ImportReport
from app.transfer.exporting import ExportFormat, write_export
from app.transfer.exporting import export as export_to
from app.transfer.importing import import_files

_SKIPPED_SHOWN = 20
_TOLD_EVERY_MESSAGES = 1000


def import_(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Import files and folders; name what was skipped. Indexing goes on beside it."""
    progress = _Progress(terminal)
    paths = [terminal.path(path) for path in given.paths]
    consents = ""
    if not given.dry_run:
        services.index_sync.start()
        consents = services.background.take_consents_back()
    try:
        report = import_files(
            services.store,
            paths,
            cancelled=terminal.cancelled,
            on_progress=progress,
            dry_run=given.dry_run,
        )
    except StorageError:
        if progress.stored:
            terminal.err(f"{progress.stored} were stored; a second import adds the rest.")
        raise
    if not given.dry_run:
        bring_in_step(services, terminal)
    if terminal.as_json:
        terminal.document(_plain(report))
    else:
        terminal.line(_summary(report, dry_run=given.dry_run))
    for words in _remarks(report):
        terminal.err(words)
    ask_after_import(services, consents, 0 if given.dry_run else report.turns, terminal)
    return 1 if report.cancelled or report.refused else 0


def export(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Write conversations to a file, or to standard output."""
    chosen = ExportFormat(given.format)
    if given.out == "-":
        with OutputFile(terminal) as out:
            write_export(services.store, cast(TextIO, out), chosen, given.conversation)
        return 0
    path = terminal.path(given.out)
    count = export_to(services.store, path, chosen, given.conversation)
    if terminal.as_json:
        terminal.document({"conversations": count, "out": str(path)})
    else:
        terminal.err(f"{_counted(count, 'conversation')} written to {path}")
    return 0


class _Progress:
    """Tells people how far it is, a line for each thousand messages.

    Attributes:
        stored: What is stored so far, in words; empty at first.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._told = 0
        self.stored = ""

    def __call__(self, progress: ImportProgress) -> None:
        conversations = _counted(progress.conversations, "conversation")
        self.stored = f"{conversations}, {_counted(progress.messages, 'message')}"
        thousands = progress.messages // _TOLD_EVERY_MESSAGES
        if self._terminal.is_watched and thousands > self._told:
            self._told = thousands
            self._terminal.err(self.stored)


def _plain(report: ImportReport) -> dict[str, object]:
    plain = asdict(report)
    plain["skipped"] = [{"where": each.where, "why": each.why} for each in report.skipped]
    return plain


def _summary(report: ImportReport, *, dry_run: bool) -> str:
    verb = "would be" if dry_run else "were"
    return (
        f"{_counted(report.conversations, 'conversation')}, {_counted(report.turns, 'turn')} and "
        f"{_counted(report.messages, 'message')} {verb} imported; "
        f"{_counted(report.duplicates, 'message')} here already."
    )


def _remarks(report: ImportReport) -> list[str]:
    remarks = [f"skipped {each.where}: {each.why}" for each in report.skipped[:_SKIPPED_SHOWN]]
    if len(report.skipped) > _SKIPPED_SHOWN:
        remarks.append(f"and {len(report.skipped) - _SKIPPED_SHOWN:,} more were skipped")
    if report.cancelled:
        remarks.append("The import was stopped; what was stored by then stays.")
    return remarks


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

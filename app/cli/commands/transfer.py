"""`import` and `export`."""

import sys
from argparse import Namespace
from dataclasses import asdict

from app.bootstrap import Services
from app.cli.terminal import Terminal
from app.domain.transfer import ImportProgress, ImportReport
from app.transfer.exporting import ExportFormat, write_export
from app.transfer.exporting import export as export_to
from app.transfer.importing import import_files

_SKIPPED_SHOWN = 20


def import_(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Import files and folders; name what was skipped."""
    paths = [terminal.path(path) for path in given.paths]
    report = import_files(
        services.store,
        paths,
        cancelled=terminal.cancelled,
        on_progress=_Progress(terminal),
        dry_run=given.dry_run,
    )
    if not given.dry_run:
        services.index_sync.catch_up()
    if terminal.as_json:
        terminal.document(_plain(report))
    else:
        _print(report, terminal, dry_run=given.dry_run)
    return 1 if report.cancelled else 0


def export(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Write conversations to a file, or to standard output."""
    chosen = ExportFormat(given.format)
    if given.out == "-":
        import io

        text = io.StringIO()
        write_export(services.store, text, chosen, given.conversation)
        terminal.out(text.getvalue())
        return 0
    path = terminal.path(given.out)
    count = export_to(services.store, path, chosen, given.conversation)
    if terminal.as_json:
        terminal.document({"conversations": count, "out": str(path)})
    else:
        terminal.err(f"{count:,} conversations written to {path}")
    return 0


class _Progress:
    """Tells how far it is, on a terminal only, a line for each thousand messages."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._told = 0
        self._wanted = sys.stderr.isatty()

    def __call__(self, progress: ImportProgress) -> None:
        thousands = progress.messages // 1000
        if self._wanted and thousands > self._told:
            self._told = thousands
            self._terminal.err(
                f"{progress.conversations:,} conversations, {progress.messages:,} messages"
            )


def _plain(report: ImportReport) -> dict[str, object]:
    plain = asdict(report)
    plain["skipped"] = [{"where": each.where, "why": each.why} for each in report.skipped]
    return plain


def _print(report: ImportReport, terminal: Terminal, *, dry_run: bool) -> None:
    verb = "would be" if dry_run else "were"
    terminal.line(
        f"{report.conversations:,} conversations, {report.turns:,} turns and "
        f"{report.messages:,} messages {verb} imported; {report.duplicates:,} were here already."
    )
    for each in report.skipped[:_SKIPPED_SHOWN]:
        terminal.err(f"skipped {each.where}: {each.why}")
    if len(report.skipped) > _SKIPPED_SHOWN:
        terminal.err(f"and {len(report.skipped) - _SKIPPED_SHOWN:,} more were skipped")
    if report.cancelled:
        terminal.err("The import was stopped; what was stored by then stays.")

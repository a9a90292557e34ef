"""`privacy`: every connection that the program can make, and whether it is on."""

from argparse import Namespace
from dataclasses import asdict

from app.cli.terminal import Terminal
from app.privacy import ConnectionRow, PrivacyService


def privacy(service: PrivacyService, _given: Namespace, terminal: Terminal) -> None:
    """Print the connections; the document is {"connections": [...]}."""
    rows = service.connections()
    terminal.show({"connections": [asdict(each) for each in rows]}, *map(_lines, rows))
    terminal.err("There are no others: no telemetry and no search for updates.")


def _lines(row: ConnectionRow) -> str:
    where = "another computer" if row.leaves_computer else "this computer"
    state = row.state.value.replace("_", " ")
    head = f"{row.title} [{state}, {where}] {row.address}".rstrip()
    return f"{head}\n    {row.when}\n    {row.what}"

"""`check`, `backup`, `restore`, `rebuild`."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from threading import TIMEOUT_MAX, Timer
from typing import TYPE_CHECKING

from app.bootstrap import locked
from app.cli.terminal import Terminal
from app.domain.errors import IndexUnavailable, NotFound
from app.domain.translation import format_moment, format_percent, format_size
from app.domain.workers import WorkerName
from app.index.text_sync import TextIndexSync
from app.storage.safety.backup import Backup, copy_backup, list_backups
from app.storage.safety.restore import restore_backup
from app.system.logs import configure_logging
from app.system.paths import DataPaths
from app.workers.board import WorkerBoard
from app.workers.regeneration import EmbeddingRegeneration, ModelRegeneration

if TYPE_CHECKING:
    from app.check import CheckReport

_LONG_S = 2.0


def catch_up_index(sync: TextIndexSync, terminal: Terminal) -> None:
    """Index everything that is stored, and say so if it takes long; print an error if that fails."""
    words = ("The text index is being brought up to date.",)
    timer = Timer(_LONG_S if terminal.is_watched else TIMEOUT_MAX, terminal.err, words)
    timer.start()
    try:
        sync.catch_up(terminal.cancelled)
    except IndexUnavailable as error:
        terminal.err(f"Search does not find all of it yet: {error}")
    finally:
        timer.cancel()
        timer.join()


def catch_up_a_little(sync: TextIndexSync, terminal: Terminal) -> None:
    """Index a little of what is not indexed yet, and say how much search finds of all."""
    sync.catch_up_a_little(terminal.cancelled)
    if (share := sync.covered_share) < 1:
        terminal.err(
            f"{format_percent(share)} of your history can be searched so far; the window and 'commonplace work' "
            "index the rest."
        )


def check_(
    check: Callable[..., "CheckReport"], sync: TextIndexSync, given: Namespace, terminal: Terminal
) -> int:
    """Verify every reference, count and index."""
    shown = 0

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if terminal.is_watched and (tenth := done * 10 // total) > shown:
            shown = tenth
            terminal.err(f"{tenth * 10} % of the turns checked")

    report = check(repair=given.repair, is_cancelled=terminal.cancelled, progress=progress)
    if terminal.as_json:
        terminal.document(asdict(report) | {"ok": not report.problems})
    elif report.problems:
        for problem in report.problems:
            terminal.line(problem)
        if report.repairable:
            terminal.err("'commonplace check --repair' repairs what can be derived again.")
    else:
        terminal.line("Everything is in order.")
    (catch_up_index if given.repair else catch_up_a_little)(sync, terminal)
    return 1 if report.problems else 0


def backup(back_up: Callable[[], Backup], given: Namespace, terminal: Terminal) -> int:
    """Make a verified backup unless the newest has everything, and copy it to OUT."""
    made = back_up()
    where, missing = made.path, 0
    if given.out is not None:
        where = terminal.path(given.out)
        where = where / made.path.name if where.is_dir() else where
        missing = copy_backup(made, where)
    terminal.show({"backup": str(where), "made_at": made.made_at}, str(where))
    if missing:
        terminal.err(f"Attached files missing from the copy: {missing:,}. `check` names them.")
    return 1 if missing else 0


def restore(paths: DataPaths, given: Namespace, terminal: Terminal) -> int:
    """Replace the database with a backup, or list the backups. The replaced one is kept.

    No window may be open for it.
    """
    if given.file is None:
        listed = list_backups(paths.backups)
        document = [
            {"backup": str(each.path), "made_at": each.made_at, "bytes": each.size_bytes}
            for each in listed
        ]
        lines = [
            f"{format_moment(each.made_at)}  {format_size(each.size_bytes)}  {each.path}"
            for each in listed
        ]
        terminal.show({"backups": document}, *(lines or ["There are no backups yet."]))
        return 0
    chosen = terminal.path(given.file)
    if not chosen.is_file():
        raise NotFound(f"There is no file '{chosen}'", "'commonplace restore' lists the backups.")
    with locked(paths):
        configure_logging(paths)
        replaced = restore_backup(paths, chosen)
    terminal.show({"restored": str(chosen), "replaced": str(replaced) if replaced else None})
    if replaced is not None:
        terminal.note(f"The backup was restored; the database it replaced is kept in {replaced}")
    return 0


def rebuild_embeddings(
    regeneration: EmbeddingRegeneration, workers: WorkerBoard, given: Namespace, terminal: Terminal
) -> int:
    """Delete vectors and embed again, once the user has confirmed the cost."""
    plan = regeneration.plan()
    terminal.err(plan.text)
    terminal.require_confirmation(given.yes, "Nothing was deleted")
    regeneration.begin()
    name = WorkerName.EMBEDDING_PIPELINE
    (status,) = workers.run_until_idle([name], is_cancelled=terminal.cancelled)
    document = {"rebuilt": "embeddings", "space": plan.space, "deleted": plan.vectors}
    document |= {"embedded": status.done, "total": status.total}
    terminal.show(document, f"{status.done:,} of {status.total:,} passages are embedded.")
    if status.done == status.total:
        return 0
    terminal.err(status.last_error or "'commonplace work' embeds the rest.")
    return 1


def regenerate(
    regeneration: ModelRegeneration, workers: WorkerBoard, given: Namespace, terminal: Terminal
) -> int:
    """Regenerate summaries or facts, once the user has confirmed the cost."""
    is_of_facts = given.what == "facts"
    done = "exchanges were read again" if is_of_facts else "summaries were regenerated"
    plan = regeneration.plan()
    terminal.err(plan.text)
    waiting = 0
    if plan.count:
        terminal.require_confirmation(given.yes, "Nothing was changed")
        regeneration.begin()
        ran = workers.run_until_idle(regeneration.workers, is_cancelled=terminal.cancelled)
        waiting = sum(each.total - each.done for each in ran)
    lines = [f"{plan.count:,} {done}."] if plan.count and not waiting else []
    document = {"rebuilt": given.what, "asked_for": plan.count, "waiting": waiting}
    terminal.show(document, *lines)
    if waiting:
        terminal.err(f"{waiting:,} are still to be done: 'commonplace work' continues.")
    return 1 if waiting else 0

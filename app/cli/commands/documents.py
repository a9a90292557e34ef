"""`documents`: list, add and remove the files and folders that are searched and recalled."""

from argparse import Namespace

from app.chat.projects import Projects
from app.cli.arguments import UsageError
from app.cli.terminal import Terminal, members
from app.domain.records.documents import DocumentState, DocumentStatus
from app.domain.translation import format_count
from app.index.text_sync import TextIndexSync
from app.memory.search.embedders import EmbedderDirectory
from app.workers.followed import AddedDocuments


def documents(
    added: AddedDocuments,
    embedders: EmbedderDirectory,
    sync: TextIndexSync,
    projects: Projects,
    given: Namespace,
    terminal: Terminal,
) -> None:
    """List documents, or add or remove paths."""
    if bool(given.paths) is (given.action == "list"):
        expected = "no path" if given.paths else "a file or folder"
        raise UsageError(
            f"'documents {given.action}' takes {expected}", "See 'commonplace documents --help'."
        )
    match given.action:
        case "add":
            _add(added, embedders, projects, given, terminal)
        case "remove":
            _remove(added, sync, given, terminal)
        case _:
            _list(added, projects, terminal)


def _add(
    added: AddedDocuments,
    embedders: EmbedderDirectory,
    projects: Projects,
    given: Namespace,
    terminal: Terminal,
) -> None:
    project = projects.named(given.project) if given.project else None
    if embedders.is_remote and (server := embedders.estimate(0, 0).sent_to):
        terminal.err(f"The text of these files will be sent to {server}, which embeds your texts.")
        terminal.require_confirmation(given.yes, "Nothing was added")
    uid, name = (project.uid, project.name) if project else (None, None)
    paths = [added.add(terminal.path(each), uid) for each in given.paths]
    terminal.show({"added": paths, "project": name}, *(f"Added {each}" for each in paths))
    terminal.note("'commonplace work' or the open window reads them and follows their changes.")


def _remove(
    added: AddedDocuments, sync: TextIndexSync, given: Namespace, terminal: Terminal
) -> None:
    paths = [terminal.path(each) for each in given.paths]
    affected = {each.name for path in paths for each in added.affected(path)}
    if not given.yes:
        count = format_count(len(affected), "document")
        terminal.err(
            f"{count} will be removed from the library, also from its backups. The files themselves are "
            "not changed."
        )
    terminal.require_confirmation(given.yes, "Nothing was removed")
    left = (*added.remove(paths), *sync.catch_up_soon())
    document = {"removed": [*map(str, paths)], "documents": len(affected), "remains": list(left)}
    terminal.show(document, f"Removed {format_count(len(affected), 'document')}.")
    terminal.note(*left)


def _list(added: AddedDocuments, projects: Projects, terminal: Terminal) -> None:
    names = {each.uid: each.name for each in projects.listed()}
    statuses = added.statuses()
    if terminal.as_json:
        rows = [
            {"path": each.name, "why": each.why or None, "project": names.get(each.project or "")}
            | members(each, "state", "pages", "passages")
            for each in statuses
        ]
        terminal.document({"folders": list(added.folders()), "documents": rows})
        return
    for each in statuses:
        terminal.line(f"{each.state:<8} {each.name}{_details(each)}")
    if not statuses:
        terminal.line(
            "No document was read yet."
            if added.folders()
            else "Nothing was added: documents add PATH"
        )


def _details(status: DocumentStatus) -> str:
    details = [status.why] if status.why else []
    if status.state is DocumentState.READ:
        details.insert(0, format_count(status.passages, "passage"))
    return f"  ({'; '.join(details)})" if details else ""

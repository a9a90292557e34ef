"""`project`: list, add, change and remove projects, and move conversations."""

from argparse import Namespace
from dataclasses import replace

from app.chat.projects import Projects
from app.cli.arguments import UsageError, wrong_arguments
from app.cli.terminal import Terminal, members
from app.domain.ids import ConversationId
from app.domain.projects import NO_PROJECT, Project, RecallRule

_OPTIONS = ("recall", "instructions", "color", "folder")


def project(projects: Projects, given: Namespace, terminal: Terminal) -> None:
    """List, add, change and remove projects, and move conversations to one."""
    options = [each for each in _OPTIONS if getattr(given, each) is not None]
    if options and given.action not in ("add", "edit"):
        raise wrong_arguments(given)
    if given.action == "list":
        return _list(projects, terminal)
    name, *ids = given.words
    match given.action:
        case "add" | "edit":
            is_new = given.action == "add"
            known = Project("", name) if is_new else projects.named(name)
            saved = projects.save(_changed(known, given, terminal))
            done = "added" if is_new else "changed"
            return terminal.show({done: saved.name, "project_id": saved.uid})
        case "move":
            target = None if name.casefold() == NO_PROJECT else projects.named(name)
            moved = [ConversationId(_number(each)) for each in ids]
            projects.move(moved, target.uid if target else None)
            return terminal.show({"moved": moved, "project": target.name if target else None})
        case _:
            removed = projects.named(name)
            projects.remove(removed.uid)
            return terminal.show({"removed": removed.name, "project_id": removed.uid})


def _list(projects: Projects, terminal: Terminal) -> None:
    counts = projects.counts()
    rows = [
        {"project_id": each.uid, "conversations": counts.get(each.uid, 0)}
        | members(each, "name", "recall", "instructions", "color", "folder")
        for each in projects.listed()
    ]
    lines = (
        f"{each['name']}  (recall: {each['recall']}, conversations: {each['conversations']:,})"
        for each in rows
    )
    terminal.show({"projects": rows}, *lines)


def _changed(project: Project, given: Namespace, terminal: Terminal) -> Project:
    """Return a project with the given options; an empty color or folder means none."""
    values = {each: getattr(given, each) for each in _OPTIONS if getattr(given, each) is not None}
    if values.get("instructions") == "-":
        values["instructions"] = terminal.read_input()
    if "recall" in values:
        values["recall"] = RecallRule(values["recall"])
    return replace(project, **values)


def _number(word: str) -> int:
    if not word.isdecimal():
        raise UsageError(f"'{word}' is not the number of a conversation", "See 'commonplace list'.")
    return int(word)

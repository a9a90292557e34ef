"""`project` and `preset`: list, add, change and remove them; `project move` moves conversations."""

from argparse import Namespace
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from typing import Any, TypeVar

from app.chat.models import ModelDirectory
from app.chat.presets import Presets
from app.chat.projects import Projects
from app.cli.arguments import UsageError, wrong_arguments
from app.cli.terminal import Terminal, members
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId
from app.domain.records.presets import (
    MAX_OUTPUT_TOKENS,
    MAX_TEMPERATURE,
    Effort,
    Preset,
    options_text,
)
from app.domain.records.projects import NO_PROJECT, Project, RecallRule

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


T = TypeVar("T")
_PRESET_OPTIONS = ("prompt", "model", "temperature", "effort", "max_output", "tool")


def preset(
    presets: Presets,
    models: ModelDirectory,
    tool_names: Collection[str],
    given: Namespace,
    terminal: Terminal,
) -> None:
    """List, add, change and remove presets, and choose the default."""
    if given.action == "list":
        return _list_presets(presets, terminal)
    (name,) = given.words
    changes = [each for each in _PRESET_OPTIONS if getattr(given, each) is not None]
    if changes and given.action not in ("add", "edit"):
        raise wrong_arguments(given, "NAME alone")
    if given.action == "add":
        changed = presets.save(
            _changed_preset(Preset("", name), models, tool_names, given, terminal)
        )
    elif given.action == "edit":
        known = presets.named(name)
        changed = presets.save(_changed_preset(known, models, tool_names, given, terminal))
    else:
        changed = presets.named(name)
        (presets.choose_default if given.action == "default" else presets.remove)(changed.uid)
    done = {"add": "added", "edit": "changed", "default": "default", "remove": "removed"}
    return terminal.show({done[given.action]: changed.name, "preset_id": changed.uid})


def _list_presets(presets: Presets, terminal: Terminal) -> None:
    default, listed = presets.default().uid, presets.listed()
    rows = [
        {"preset_id": each.uid, "is_default": each.uid == default}
        | {name: value for name, value in asdict(each).items() if name != "uid"}
        for each in listed
    ]
    lines = (
        f"{each.name}{'  (default)' if each.uid == default else ''}  {options_text(each)}".rstrip()
        for each in listed
    )
    terminal.show({"presets": rows}, *lines)


def _changed_preset(
    preset: Preset,
    models: ModelDirectory,
    tool_names: Collection[str],
    given: Namespace,
    terminal: Terminal,
) -> Preset:
    """Return a preset with the given options; "default" restores the model's."""
    values: dict[str, Any] = {}
    if given.prompt is not None:
        values["system_prompt"] = terminal.read_input() if given.prompt == "-" else given.prompt
    if given.model is not None:
        values["model"] = _optional(given.model, models.check_name)
    if given.temperature is not None:
        values["temperature"] = _optional(given.temperature, _temperature)
    if given.effort is not None:
        values["reasoning_effort"] = _optional(given.effort, _effort)
    if given.max_output is not None:
        values["max_output_tokens"] = _optional(given.max_output, _tokens)
    if given.tool is not None:
        values["tools"] = _tools(given.tool, tool_names)
    return replace(preset, **values)


def _optional(text: str, read: Callable[[str], T]) -> T | None:
    return None if text.casefold() in ("default", "") else read(text)


def _temperature(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(
            f"'{text}' is not a temperature",
            f"A temperature is a number from 0 to {MAX_TEMPERATURE:g}.",
        ) from error


def _effort(text: str) -> Effort:
    try:
        return Effort(text.casefold())
    except ValueError as error:
        raise UsageError(
            f"'{text}' is not a reasoning effort", f"Use one of {', '.join(Effort)}."
        ) from error


def _tokens(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidInput(
            f"'{text}' is not a number of tokens", f"Use 1 to {MAX_OUTPUT_TOKENS}."
        ) from error


def _tools(names: Collection[str], known: Collection[str]) -> tuple[str, ...] | None:
    """Return the tools of a preset; "all" and "none" stand alone."""
    if [*names] == ["all"]:
        return None
    if [*names] == ["none"]:
        return ()
    for name in names:
        if name not in known:
            raise InvalidInput(
                f"There is no tool '{name}'", f"Use all, none, or {', '.join(known)}."
            )
    return tuple(names)

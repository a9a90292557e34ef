"""`sources`: list the programs whose sessions can be followed, and switch them on and off."""

from argparse import Namespace
from dataclasses import asdict

from app.cli.arguments import wrong_arguments
from app.cli.commands.settings import ask_after_import
from app.cli.terminal import Terminal
from app.domain.sources import SOURCES, SourceName
from app.domain.translation import format_count, format_size
from app.workers.followed import FollowedSources
from app.workers.model_choice import BackgroundModelChoice


def sources(
    followed: FollowedSources,
    background: BackgroundModelChoice,
    given: Namespace,
    terminal: Terminal,
) -> int:
    """List the sources, or switch one."""
    if given.action == "list":
        return _list(followed, terminal)
    if given.words[0] not in list(SourceName):
        raise wrong_arguments(given, f"one of {', '.join(SourceName)}")
    name, is_on = SourceName(given.words[0]), given.action == "on"
    consents = followed.switch(name, is_on=is_on)
    state = "followed" if is_on else "no longer followed"
    terminal.show({"source": name.value, "on": is_on}, f"{SOURCES[name].title} is {state}.")
    if is_on:
        files = sum(each.files for each in followed.states() if each.name is name)
        ask_after_import(background, consents, files, terminal)
    return 0


def _list(followed: FollowedSources, terminal: Terminal) -> int:
    states = followed.states()
    if terminal.as_json:
        names = {"name": "source", "is_on": "on"}  # as they are documented
        rows = [
            {names.get(key, key): value for key, value in asdict(state).items()} for state in states
        ]
        terminal.document({"sources": rows})
        return 0
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
    return 0

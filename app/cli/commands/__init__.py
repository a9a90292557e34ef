"""The commands by name. Each takes (services, arguments, terminal) and returns the exit code."""

from argparse import Namespace
from collections.abc import Callable, Mapping

from app.bootstrap import Services
from app.cli.commands import (
    background,
    conversations,
    facts,
    memory,
    prompts,
    recalling,
    searching,
    settings,
    talk,
    transfer,
    upkeep,
)
from app.cli.terminal import Terminal

Command = Callable[[Services, Namespace, Terminal], int]

COMMANDS: Mapping[str, Command] = {
    "ask": talk.ask,
    "search": searching.search,
    "probes": searching.probes,
    "list": conversations.listed,
    "show": conversations.show,
    "archive": conversations.archive,
    "unarchive": conversations.unarchive,
    "delete": conversations.delete,
    "undelete": conversations.undelete,
    "forget": conversations.forget,
    "tag": conversations.tag,
    "facts": facts.facts,
    "memory": memory.memory,
    "prompt": prompts.prompt,
    "recall": recalling.recall,
    "import": transfer.import_,
    "export": transfer.export,
    "work": upkeep.work,
    "status": upkeep.status,
    "check": upkeep.check_,
    "backup": upkeep.backup,
    "rebuild": upkeep.rebuild,
    "config": settings.config,
    "provider": settings.provider,
    "price": background.price,
}

"""The grammar of the command line; the commands are in `app.cli.commands`."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from app.domain.errors import InvalidInput
from app.domain.facts import FactCategory
from app.domain.passages import PassageKind
from app.domain.text import clean, parse_whole_number
from app.domain.workers import WorkerName
from app.providers.vendors import vendors

_Adder = Callable[[str, str], argparse.ArgumentParser]
_PATHS = frozenset(("data_dir", "paths", "out", "file"))  # file names need not be valid text


class UsageError(InvalidInput):
    """The arguments are wrong; exit code 2."""


def wrong_arguments(given: argparse.Namespace, expected: str) -> UsageError:
    """Return the error of an action with the wrong number of arguments."""
    command = given.command
    return UsageError(
        f"'{command} {given.action}' takes {expected}", f"See 'commonplace {command} --help'."
    )


class HelpRequested(Exception):
    """The user asked for help or the version, which is `text`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting: a window parses commands too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message[:1].upper() + message[1:], f"See '{self.prog} --help'.")

    def print_help(self, _file: object = None) -> None:
        raise HelpRequested(self.format_help())


class _Version(argparse.Action):
    def __call__(self, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("commonplace")
        except PackageNotFoundError:
            number = "of a source tree"
        raise HelpRequested(f"commonplace {number}\n")


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the arguments, cleaned except for paths; raise UsageError or HelpRequested.

    `command` is None for the window.
    """
    given = _parser().parse_args(argv)
    for name, value in vars(given).items():
        if name not in _PATHS:
            setattr(given, name, _cleaned(value))
    return given


def _cleaned(value: object) -> object:
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return clean(value) if isinstance(value, str) else value


def _number(text: str) -> int:
    number = parse_whole_number(text.removeprefix("-"))
    if number is None:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}")
    return -number if text.startswith("-") else number


def _parser() -> _Parser:
    shared = _Parser(add_help=False)
    shared.add_argument("--json", action="store_true", default=argparse.SUPPRESS,
                        help="print one JSON document")  # fmt: skip
    shared.add_argument("--data-dir", metavar="DIR", default=argparse.SUPPRESS,
                        help="the data directory")  # fmt: skip
    parser = _Parser(
        prog="commonplace",
        parents=[shared],
        description="A chat program that remembers. Without a command it opens the window.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, help_text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[shared], help=help_text, description=help_text)

    _add_talk(command)
    _add_conversations(command)
    _add_facts(command)
    _add_memory(command)
    _add_transfer(command)
    _add_upkeep(command)
    return parser


def _add_talk(command: _Adder) -> None:
    ask = command("ask", "ask a model, by default in a new conversation")
    ask.add_argument("text", metavar="TEXT", help="the question; - reads standard input")
    ask.add_argument("--conversation", type=_number, metavar="ID")
    ask.add_argument("--model", metavar="PROVIDER:MODEL")
    ask.add_argument(
        "--private", action="store_true", help="never index or recall the conversation"
    )
    search = command("search", "search all conversations")
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--limit", type=_number, default=10, metavar="N", help="1 to 50 (10)")
    search.add_argument(
        "--kind",
        choices=[kind.value for kind in PassageKind],
        action="append",
        help="only this kind of passage; may be repeated",
    )
    search.add_argument("--why", metavar="ID:TURN", help="explain why this turn is or is not found")
    probes = command("probes", "saved questions that should find a turn, and their ranks")
    probes.add_argument(
        "action", nargs="?", default="list", choices=("list", "run", "add", "remove")
    )
    probes.add_argument("words", nargs="*", metavar="WORD", help="add QUERY ID:TURN, or remove N")


def _add_conversations(command: _Adder) -> None:
    listed = command("list", "list conversations")
    listed.add_argument("--tag", metavar="T")
    listed.add_argument("--archived", action="store_true", help="the archived ones")
    listed.add_argument("--trash", action="store_true", help="those in the trash")
    show = command("show", "print a conversation")
    show.add_argument("id", metavar="ID", help="a conversation, ID:TURN, or man:PAGE.SECTION")
    show.add_argument("--turn", type=_number, metavar="N", help="only this turn")
    show.add_argument(
        "--branches", action="store_true", help="all branches, not only the shown one"
    )
    for name, help_text in (
        ("archive", "hide conversations from list and search"),
        ("unarchive", "show archived conversations again"),
        ("delete", "move conversations to the trash"),
        ("undelete", "take conversations out of the trash"),
        ("forget", "delete conversations for good, also from backups"),
    ):
        each = command(name, help_text)
        each.add_argument("ids", type=_number, nargs="+", metavar="ID")
        if name == "forget":
            each.add_argument("--yes", action="store_true", help="confirm the deletion")
    tag = command("tag", "tag a conversation")
    tag.add_argument("id", type=_number, metavar="ID")
    tag.add_argument("names", nargs="*", metavar="TAG", help="tags to add; none lists them")
    tag.add_argument("--remove", action="append", default=[], metavar="TAG")


def _add_facts(command: _Adder) -> None:
    facts = command("facts", "list, search and change the facts extracted from conversations")
    facts.add_argument(
        "action", choices=("list", "search", "history", "add", "edit", "pin", "unpin", "forget")
    )
    facts.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="search QUERY; history, pin, unpin or forget ID; edit ID TEXT; add TEXT",
    )
    facts.add_argument(
        "--category",
        choices=[category.value for category in FactCategory],
        help="only this category; with add and edit, the new category",
    )
    facts.add_argument(
        "--conversation", type=_number, metavar="ID", help="only facts from this conversation"
    )
    facts.add_argument("--all", action="store_true", help="past facts too")
    facts.add_argument("--limit", type=_number, default=20, metavar="N", help="1 to 50 (20)")
    facts.add_argument("--offset", type=_number, default=0, metavar="N", help="skip the first N")
    facts.add_argument("--yes", action="store_true", help="confirm the deletion")


def _add_memory(command: _Adder) -> None:
    prompt = command("prompt", "the prompt of an answer, and what memory contributed")
    prompt.add_argument("place", metavar="ID:TURN")
    recall = command(
        "recall", "what would be recalled for a question, and why the rest would not be"
    )
    recall.add_argument("question", metavar="QUESTION")
    recall.add_argument(
        "--conversation", type=_number, metavar="ID", help="as the next question there"
    )
    recall.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="try a value of a setting without saving it; may be repeated")  # fmt: skip
    memory = command("memory", "the core memory of every prompt, and saved texts")
    memory.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=("show", "set", "append", "save", "list", "forget"),
    )
    memory.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="set, append or save TEXT (- reads standard input); forget ID of a saved text",
    )
    memory.add_argument("--yes", action="store_true", help="confirm the deletion")


def _add_transfer(command: _Adder) -> None:
    coming = command("import", "import conversations from another program's export")
    coming.add_argument("paths", nargs="+", metavar="PATH")
    coming.add_argument("--dry-run", action="store_true", help="read everything, store nothing")
    export = command("export", "write conversations to a file")
    export.add_argument("--conversation", type=_number, metavar="ID", help="only this one")
    export.add_argument("--format", choices=("md", "json", "jsonl"), default="json")
    export.add_argument("out", metavar="OUT", help="a file; - is standard output")


def _add_upkeep(command: _Adder) -> None:
    work = command("work", "run the background workers here")
    work.add_argument("--until-idle", action="store_true", help="end when nothing is left to do")
    work.add_argument("--only", choices=[name.value for name in WorkerName], action="append")
    command("status", "print what the dashboard shows")
    config = command("config", "list, get and set settings")
    config.add_argument("action", choices=("list", "get", "set", "reset"))
    config.add_argument("key", nargs="?", metavar="KEY")
    config.add_argument("value", nargs="?", metavar="VALUE")
    config.add_argument("--all", action="store_true", help="list internal settings too")
    config.add_argument("--yes", action="store_true", help="confirm what would be asked")
    command("check", "verify every reference, count and index").add_argument(
        "--repair", action="store_true", help="repair what can be rebuilt"
    )
    backup = command("backup", "make a verified backup")
    backup.add_argument("out", nargs="?", metavar="OUT", help="copy the backup to this place")
    command("restore", "replace the database with a backup").add_argument("file", metavar="FILE")
    rebuild = command(
        "rebuild", "rebuild the index, the vectors of the current embedder, summaries or facts"
    )
    rebuild.add_argument("what", choices=("index", "embeddings", "summaries", "facts"))
    rebuild.add_argument("--yes", action="store_true", help="confirm what it deletes and costs")
    provider = command("provider", "list, add, test and remove providers")
    price = command("price", "list, set and remove your own prices, in USD per million tokens")
    price.add_argument("action", choices=("list", "set", "remove"))
    price.add_argument("words", nargs="*", metavar="WORD",
                       help="set MODEL INPUT OUTPUT [CACHED], remove MODEL, list [MODEL]")  # fmt: skip
    provider.add_argument("action", choices=("list", "add", "test", "remove"))
    provider.add_argument("name", nargs="?", metavar="NAME")
    provider.add_argument("--kind", choices=tuple(vendors()))
    provider.add_argument("--base-url", metavar="URL")
    provider.add_argument(
        "--key-env", metavar="VAR", help="the environment variable that holds the key"
    )
    provider.add_argument(
        "--insecure", action="store_true", help="allow plain http beyond this machine"
    )

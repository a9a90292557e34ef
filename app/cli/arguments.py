"""The grammar of the command line. What a command does is in `app.cli.commands`."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from app.domain.errors import InvalidInput
from app.domain.facts import FactCategory
from app.domain.passages import PassageKind
from app.domain.text import clean, whole_number
from app.domain.workers import WorkerName

_Adder = Callable[[str, str], argparse.ArgumentParser]
_PATHS = frozenset(("data_dir", "paths", "out", "file"))  # a file's name need be no text


class WrongUsage(InvalidInput):
    """The words of the command line make no command; exit code 2."""


class HelpAsked(Exception):
    """The user asked for help or the version; `text` is the answer."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Parser(argparse.ArgumentParser):
    """Raises instead of leaving the process: a window parses commands too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(message[:1].upper() + message[1:], f"See '{self.prog} --help'.")

    def print_help(self, _file: object = None) -> None:
        raise HelpAsked(self.format_help())


class _Version(argparse.Action):
    def __call__(self, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("commonplace")
        except PackageNotFoundError:
            number = "of a source tree"
        raise HelpAsked(f"commonplace {number}\n")


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the parsed words, clean but for paths; raise WrongUsage or HelpAsked.

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
    number = whole_number(text.removeprefix("-"))
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
    ask = command("ask", "ask a model; without --conversation in a new conversation")
    ask.add_argument("text", metavar="TEXT", help="what to ask; - reads standard input")
    ask.add_argument("--conversation", type=_number, metavar="ID")
    ask.add_argument("--model", metavar="PROVIDER:MODEL")
    ask.add_argument("--private", action="store_true", help="never index or recall it")
    search = command("search", "search everything that was said")
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--limit", type=_number, default=10, metavar="N", help="1 to 50 (10)")
    search.add_argument(
        "--kind",
        choices=[kind.value for kind in PassageKind],
        action="append",
        help="only this kind of passage; may be repeated",
    )
    search.add_argument("--why", metavar="ID:TURN", help="say why this turn is found or is not")
    probes = command("probes", "questions that should find a turn, and whether they do")
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
    show.add_argument("--branches", action="store_true", help="all branches, not only the shown")
    for name, help_text in (
        ("archive", "take conversations out of list and search"),
        ("unarchive", "bring archived conversations back"),
        ("delete", "move conversations to the trash"),
        ("undelete", "take conversations out of the trash"),
        ("forget", "erase conversations, really"),
    ):
        each = command(name, help_text)
        each.add_argument("ids", type=_number, nargs="+", metavar="ID")
        if name == "forget":
            each.add_argument("--yes", action="store_true", help="agree to what would be gone")
    tag = command("tag", "tag a conversation")
    tag.add_argument("id", type=_number, metavar="ID")
    tag.add_argument("names", nargs="*", metavar="TAG", help="tags to add; none lists them")
    tag.add_argument("--remove", action="append", default=[], metavar="TAG")


def _add_facts(command: _Adder) -> None:
    facts = command("facts", "list, search and change what was learned from conversations")
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
        help="only this category; of add and edit, the one to give",
    )
    facts.add_argument("--conversation", type=_number, metavar="ID", help="only what it taught")
    facts.add_argument("--all", action="store_true", help="those too that hold no more")
    facts.add_argument("--limit", type=_number, default=20, metavar="N", help="1 to 50 (20)")
    facts.add_argument("--offset", type=_number, default=0, metavar="N", help="leave out the first")
    facts.add_argument("--yes", action="store_true", help="agree to what would be gone")


def _add_memory(command: _Adder) -> None:
    prompt = command("prompt", "what an answer was asked with, and what memory contributed")
    prompt.add_argument("place", metavar="ID:TURN")
    recall = command("recall", "what would be recalled for a question, and why the rest would not")
    recall.add_argument("question", metavar="QUESTION")
    recall.add_argument("--conversation", type=_number, metavar="ID", help="asked there next")
    recall.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="try another value of a setting, saving nothing; may be repeated")  # fmt: skip
    memory = command("memory", "the text that goes into every prompt, and texts saved on purpose")
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
    memory.add_argument("--yes", action="store_true", help="agree to what would be gone")


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
    work.add_argument("--until-idle", action="store_true", help="end when nothing is left")
    work.add_argument("--only", choices=[name.value for name in WorkerName], action="append")
    command("status", "say what the dashboard shows")
    config = command("config", "list, get and set settings")
    config.add_argument("action", choices=("list", "get", "set", "reset"))
    config.add_argument("key", nargs="?", metavar="KEY")
    config.add_argument("value", nargs="?", metavar="VALUE")
    config.add_argument("--all", action="store_true", help="list what the program keeps there too")
    config.add_argument("--yes", action="store_true", help="agree to what would be asked")
    command("check", "verify every reference, count and index").add_argument(
        "--repair", action="store_true", help="mend what can be made again"
    )
    backup = command("backup", "make a verified backup")
    backup.add_argument("out", nargs="?", metavar="OUT", help="a copy of it at this place")
    command("restore", "put a backup in the database's place").add_argument("file", metavar="FILE")
    rebuild = command(
        "rebuild", "make an index, all vectors of the embedder in force, summaries or facts anew"
    )
    rebuild.add_argument("what", choices=("index", "embeddings", "summaries", "facts"))
    rebuild.add_argument("--yes", action="store_true", help="agree to what it deletes and costs")
    provider = command("provider", "list, add, test and remove providers")
    price = command("price", "list, set and remove your own prices, in USD for a million tokens")
    price.add_argument("action", choices=("list", "set", "remove"))
    price.add_argument("words", nargs="*", metavar="WORD",
                       help="set MODEL INPUT OUTPUT [CACHED], remove MODEL, list [MODEL]")  # fmt: skip
    provider.add_argument("action", choices=("list", "add", "test", "remove"))
    provider.add_argument("name", nargs="?", metavar="NAME")
    provider.add_argument("--kind", choices=("openai", "anthropic", "compatible"))
    provider.add_argument("--base-url", metavar="URL")
    provider.add_argument("--key-env", metavar="VAR", help="the variable that holds the key")
    provider.add_argument("--insecure", action="store_true", help="plain http beyond this machine")

"""The grammar of the command line; the commands are in `app.cli.commands`."""

import argparse
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from app.domain.errors import InvalidInput
from app.domain.passages import PassageKind
from app.domain.records.facts import FactCategory
from app.domain.records.presets import Effort
from app.domain.records.projects import RecallRule
from app.domain.text import clean, parse_whole_number
from app.domain.workers import WorkerName
from app.providers.vendors import vendors

# File names need not be valid text.
_PATHS = frozenset(("data_dir", "paths", "out", "file", "attach", "usage"))
_UNKNOWN_COMMAND = re.compile(r"argument COMMAND: invalid choice: '(.*)' \(choose from (.*)\)")
_STDIN = " (- reads standard input)"


class UsageError(InvalidInput):
    """The arguments are wrong; exit code 2."""


def wrong_arguments(given: argparse.Namespace, expected: str = "") -> UsageError:
    """Return the error of an action with wrong arguments; by default it names those of its usage."""
    command = given.command
    expected = expected or given.usage[given.action].removesuffix(_STDIN) or "nothing more"
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
        found, hint = message[:1].upper() + message[1:], f"See '{self.prog} --help'."
        if unknown := _UNKNOWN_COMMAND.match(message):
            near = get_close_matches(unknown[1], re.findall(r"'([a-z]+)'", unknown[2]), n=1)
            found = f"There is no command '{unknown[1]}'"
            hint = f"Did you mean {near[0]}? {hint}" if near else hint
        raise UsageError(found, hint)

    def print_help(self, _file: object = None) -> None:
        raise HelpRequested(self.format_help())

    def text(self, name: str, metavar: str, help_text: str | None = None, **options: Any) -> None:
        """Add an argument or option that takes text."""
        self.add_argument(name, metavar=metavar, help=help_text, **options)

    def number(self, name: str, metavar: str, help_text: str | None = None, **options: Any) -> None:
        """Add an argument or option that takes a whole number."""
        self.text(name, metavar, help_text, type=_number, **options)

    def flag(self, name: str, help_text: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=help_text)

    def actions(self, usage: Mapping[str, str]) -> None:
        """Add `action`, the first of them where it is left out, and the `words` that follow it.

        `usage` names the words of each action: those in brackets are optional, after "..." more may
        follow.
        """
        self.add_argument("action", nargs="?", default=next(iter(usage)), choices=tuple(usage))
        forms = (f"{action} {words}" for action, words in usage.items() if words)
        self.text("words", "WORD", "; ".join(forms), nargs="*")
        self.set_defaults(usage=usage)


class _PrintVersion(argparse.Action):
    def __call__(self, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("commonplace")
        except PackageNotFoundError:
            number = "of a source tree"
        raise HelpRequested(f"commonplace {number}\n")


_Adder = Callable[[str, str], _Parser]


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the arguments, cleaned except for paths; raise UsageError or HelpRequested.

    `command` is None for the window.
    """
    given = _parser().parse_args(argv)
    for name, value in vars(given).items():
        if name not in _PATHS:
            setattr(given, name, _cleaned(value))
    if "usage" in given:
        _check_words(given)
    return given


def _check_words(given: argparse.Namespace) -> None:
    words = given.usage[given.action].removesuffix(_STDIN).split()
    least = sum(word[0] not in "[." for word in words)
    if len(given.words) < least or ("..." not in words and len(given.words) > len(words)):
        raise wrong_arguments(given)


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
    hidden = argparse.SUPPRESS  # else the default of the command would replace what comes before it
    shared.add_argument(
        "--json", action="store_true", default=hidden, help="print one JSON document"
    )
    shared.text("--data-dir", "DIR", "the data directory", default=hidden)
    parser = _Parser(
        prog="commonplace",
        parents=[shared],
        description="A chat program that remembers. Without a command it opens the window.",
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, help_text: str) -> _Parser:
        return commands.add_parser(name, parents=[shared], help=help_text, description=help_text)

    _add_conversations(command)
    _add_memory(command)
    _add_transfer(command)
    _add_upkeep(command)
    _add_models(command)
    _add_work(command)
    return parser


def _add_conversations(command: _Adder) -> None:
    ask = command("ask", "ask a model, by default in a new conversation")
    ask.text("text", "TEXT", "the question; - reads standard input")
    ask.number("--conversation", "ID")
    ask.text("--model", "PROVIDER:MODEL")
    ask.text("--project", "NAME", "start the new conversation in this project")
    ask.text("--preset", "NAME", "answer with this preset's instructions and options")
    attach_help = "attach an image, a PDF or a text file; may be repeated"
    ask.text("--attach", "FILE", attach_help, action="append", default=[])
    ask.flag("--private", "never index or recall the conversation")
    search = command("search", "search all conversations")
    search.text("query", "QUERY")
    search.number("--limit", "N", "1 to 50 (10)", default=10)
    kind_help = "only this kind of passage; may be repeated"
    search.add_argument("--kind", choices=[*map(str, PassageKind)], action="append", help=kind_help)
    search.text("--why", "ID:TURN", "explain why this turn is or is not found")
    probes = command("probes", "saved questions that should find a turn, and their ranks")
    probes.actions({"list": "", "run": "", "add": "QUERY ID:TURN", "remove": "N"})
    listed = command("list", "list conversations")
    listed.text("--tag", "T")
    listed.flag("--archived", "the archived ones")
    listed.flag("--trash", "those in the trash")
    show = command("show", "print a conversation")
    show.text("id", "ID", "a conversation, ID:TURN, man:PAGE.SECTION, or document:N of a result")
    show.number("--turn", "N", "only this turn")
    show.flag("--branches", "all branches, not only the shown one")
    for name, help_text in (
        ("archive", "hide conversations from list and search"),
        ("unarchive", "show archived conversations again"),
        ("delete", "move conversations to the trash"),
        ("undelete", "take conversations out of the trash"),
    ):
        command(name, help_text).number("ids", "ID", nargs="+")
    forget = command(
        "forget", "delete conversations, turns, messages or facts for good, also from backups"
    )
    forget_help = (
        "conversations; or 'turn' ID:TURN, 'message' ID, 'fact' ID, or 'secret' ID: the keys and passwords in a "
        "message, wherever they are; one or more of a kind"
    )
    forget.text("ids", "ID", forget_help, nargs="*")
    forget.text("--value", "TEXT", "a text, such as a key, wherever it is; - reads standard input")
    forget.flag("--yes", "confirm the deletion")
    forget.flag("--now", "remove the bytes from all files now, not at a quiet time")
    tag = command("tag", "tag a conversation")
    tag.number("id", "ID")
    tag.text("names", "TAG", "tags to add; none lists them", nargs="*")
    tag.text("--remove", "TAG", action="append", default=[])


def _add_memory(command: _Adder) -> None:
    facts = command("facts", "list, search and change the facts extracted from conversations")
    changes = {
        "add": "TEXT ...",
        "edit": "ID [TEXT] ...",
        "pin": "ID",
        "unpin": "ID",
        "forget": "ID",
    }
    facts.actions({"list": "", "search": "QUERY ...", "history": "ID"} | changes)
    category_help = "only this category; with add and edit, the new category"
    facts.add_argument("--category", choices=[*map(str, FactCategory)], help=category_help)
    facts.number("--conversation", "ID", "only facts from this conversation")
    facts.flag("--all", "past facts too")
    facts.number("--limit", "N", "1 to 50 (20)", default=20)
    facts.number("--offset", "N", "skip the first N", default=0)
    facts.flag("--yes", "confirm the deletion")
    prompt = command("prompt", "the prompt of an answer, and what memory contributed")
    prompt.text("place", "ID:TURN")
    recall = command(
        "recall", "what would be recalled for a question, and why the rest would not be"
    )
    recall.text("question", "QUESTION")
    recall.number("--conversation", "ID", "as the next question there")
    set_help = "try a value of a setting without saving it; may be repeated"
    recall.text("--set", "KEY=VALUE", set_help, action="append", default=[])
    memory = command("memory", "the core memory of every prompt, and saved texts")
    text = f"TEXT{_STDIN}"
    memory.actions(
        {"show": "", "set": text, "append": text, "save": text, "list": "", "forget": "ID",
         "forget-earlier": "", "written": "", "keep": "ID", "undo": "ID"},
    )  # fmt: skip
    memory.flag("--yes", "confirm the deletion")
    profile_help = (
        "what every prompt says about you, a line for each statement, and what is proposed"
    )
    profile = command("profile", profile_help)
    profile.actions({"show": "", "accept": "", "reject": "", "edit": text, "on": "", "off": ""})

    topics = command("topics", "list, name, merge and hide the subjects of your conversations")
    topics.actions(
        {"list": "", "show": "TOPIC", "rename": "TOPIC [NAME] ...", "merge": "TOPIC ... INTO",
         "split": "TOPIC", "hide": "TOPIC", "unhide": "TOPIC"},
    )  # fmt: skip
    topics.flag("--all", "list hidden ones too")


def _add_transfer(command: _Adder) -> None:
    import_ = command("import", "import conversations from another program's export")
    import_.text("paths", "PATH", nargs="+")
    import_.flag("--dry-run", "read everything, store nothing")
    own_help = "it is of your own library: take core memory, settings, providers and spend too"
    import_.flag("--own", own_help)
    import_.flag("--memories", "take what another program remembers of you as facts")
    import_.flag("--restore-forgotten", "bring back what was forgotten here")
    imports = command("imports", "what earlier imports added, and undoing one")
    imports.actions({"list": "", "undo": "N"})
    imports.flag("--yes", "confirm the deletion of messages")
    export = command("export", "write conversations to a file")
    export.number("--conversation", "ID", "only this one; may be repeated", action="append")
    export.add_argument("--format", choices=("md", "json", "jsonl"), default="json")
    export.flag("--force", "replace an existing file")
    export.text("out", "OUT", "a file; - is standard output")


def _add_upkeep(command: _Adder) -> None:
    work = command("work", "run the background workers here")
    work.flag("--until-idle", "end when nothing is left to do")
    work.add_argument("--only", choices=[*map(str, WorkerName)], action="append")
    command("status", "print what the dashboard shows")
    config = command("config", "list, get and set settings")
    config.actions({"list": "", "get": "KEY", "set": "KEY VALUE", "reset": "KEY"})
    config.flag("--all", "list internal settings too")
    config.flag("--yes", "confirm what would be asked")
    check = command("check", "verify every reference, count and index")
    check.flag("--repair", "repair what can be rebuilt")
    backup = command("backup", "make a verified backup")
    backup.text("out", "OUT", "copy the backup to this place", nargs="?")
    restore = command("restore", "list the backups, or replace the database with one")
    restore.text("file", "FILE", "a backup; without it they are listed", nargs="?")
    rebuild = command(
        "rebuild", "rebuild the index, the vectors of the current embedder, summaries or facts"
    )
    rebuild.add_argument("what", choices=("index", "embeddings", "summaries", "facts"))
    rebuild.flag("--yes", "confirm what it deletes and costs")


def _add_models(command: _Adder) -> None:
    provider = command("provider", "list, add, test and remove providers, and save their keys")
    provider.actions({"list": "", "add": "NAME", "test": "NAME", "key": "NAME", "remove": "NAME"})
    provider.add_argument("--kind", choices=tuple(vendors()))
    provider.text("--base-url", "URL")
    provider.text("--key-env", "VAR", "the environment variable that holds the key")
    provider.number("--timeout", "SECONDS", "the longest wait for the first part of a reply")
    provider.flag("--insecure", "allow plain http beyond this machine")
    preset = command("preset", "list, add, change and remove presets of instructions and options")
    preset.actions({"list": "", "add": "NAME", "edit": "NAME", "default": "NAME", "remove": "NAME"})
    preset.text("--prompt", "TEXT", "the instructions; - reads standard input")
    preset.text("--model", "PROVIDER:MODEL", "of its conversations; 'default' for theirs")
    preset.text("--temperature", "N", "0 to 2, or 'default'")
    preset.text("--effort", "LEVEL", f"reasoning: {', '.join(Effort)}, or 'default'")
    preset.text("--max-output", "TOKENS", "of an answer, or 'default'")
    tool_help = "a tool it may call; may be repeated; 'all' or 'none'"
    preset.text("--tool", "NAME", tool_help, action="append")
    price = command("price", "list, set and remove your own prices, in USD per million tokens")
    price.actions({"list": "[MODEL]", "set": "MODEL INPUT OUTPUT [CACHED]", "remove": "MODEL"})
    window = command("window", "list, set and remove your own context windows of models, in tokens")
    window.actions({"list": "[MODEL]", "set": "MODEL TOKENS", "remove": "MODEL"})


def _add_work(command: _Adder) -> None:
    project = command("project", "list, add, change and remove projects, and move conversations")
    project.actions(
        {"list": "", "add": "NAME", "edit": "NAME", "move": "NAME ID ...", "remove": "NAME"}
    )
    project.epilog = "'move none ID' takes conversations out of their projects."
    recall_help = "what its conversations recall: only its own, its own first, or all"
    project.add_argument("--recall", choices=[*map(str, RecallRule)], help=recall_help)
    project.text("--instructions", "TEXT", "added to its prompts; - reads standard input")
    project.text("--color", "#RRGGBB", "'' for none")
    project.text("--folder", "PATH", "the folder it belongs to; '' for none")
    routine = command("routine", "prompts that run on a schedule, and the history of their runs")
    names = {"add": "NAME", "edit": "NAME", "on": "NAME", "off": "NAME", "run": "NAME"}
    routine.actions({"list": ""} | names | {"history": "NAME", "remove": "NAME"})
    schedule_help = "such as 'every weekday at 9', 'on the 1st at 8', or five fields of cron"
    routine.text("--schedule", "TEXT", schedule_help)
    routine.text("--prompt", "TEXT", "the prompt; - reads standard input")
    routine.text("--model", "PROVIDER:MODEL", "'default' for that of new conversations")
    routine.text("--preset", "NAME", "instructions, options and tools; 'default' for the default")
    routine.text("--project", "NAME", "the project of its conversation, or 'none'")
    routine.text("--limit-usd", "N", "the most it may cost in a month, or 'none'")
    routine.add_argument(
        "--private", choices=("on", "off"), help="whether its answers stay out of search and memory"
    )
    routine.text("--name", "NAME", "with edit: a new name")
    routine.flag("--yes", "agree to what is sent to a model elsewhere")
    command("quick", "show the quick search of the open window")
    command("privacy", "list every connection the program can make, why, and whether it is on")
    command("secrets", "list the messages that hold keys, tokens or passwords")
    mcp = command("mcp", "serve memory to another program over MCP; list, allow and deny programs")
    mcp.add_argument("action", choices=("list", "log", "allow", "deny"), nargs="?")
    mcp.text("name", "NAME", nargs="?")
    mcp.flag("--serve", "hold the library open for programs that run 'mcp'")
    brief = command(
        "brief", "write what memory holds on a question, quoted and linked, as Markdown"
    )
    brief.text("question", "QUESTION", "- reads standard input")
    brief.text("--project", "NAME", "ask as in a conversation of this project")
    brief.number("--tokens", "N", "its most tokens, 2000 without", default=2000)
    sources = command("sources", "list and switch the programs whose sessions are followed")
    sources.actions({"list": "", "on": "NAME", "off": "NAME"})
    documents = command(
        "documents", "list, add and remove files and folders that are searched and recalled"
    )
    documents.add_argument("action", choices=("list", "add", "remove"), nargs="?", default="list")
    documents.text("paths", "PATH", "files and folders", nargs="*")
    documents.text("--project", "NAME", "add to this project, not to the whole library")
    documents.flag("--yes", "confirm what would be asked")
    documents.flag("--now", "remove the bytes from all files now, not at a quiet time")

"""The syntax of commands: what is a command, how it is parsed, completed and confirmed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.commands.command import (
    Command,
    CommandCall,
    CommandContext,
    Form,
    Outcome,
    is_command,
    parse,
)
from app.commands.table import CommandSession, CommandTable

NOWHERE = CommandContext()
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def echo(call: CommandCall) -> Outcome:
    return Outcome(f"{call.name}|{call.rest}")


LIGHT_FORMS = (
    Form("/light", help="Whether it is on"), Form("/light on", help="Switch it on"),
    Form("/light dim", "PERCENT", "Less of it"), Form("/light lamp", "[left|right]", "One of them"),
)  # fmt: skip
LAMPS = (Form("/light lamp left"), Form("/light lamp right"))
TABLE = CommandTable(
    (
        Command("light", "Light in the room", LIGHT_FORMS, echo, LAMPS),
        Command("list", "What there is", (Form("/list", "WHAT"),), echo),
    )
)


@given(WORDS)
def test_messages_start_without_a_slash_or_with_an_escape(text: str) -> None:
    if not text.startswith("/"):
        assert not is_command(text)
    for escape in (" /", "//", "\n/"):
        assert not is_command(escape + text)
    command = f"/{text}"
    if is_command(command):
        assert parse(command, NOWHERE).rest in command
    for candidate in TABLE.complete(command).candidates:
        assert candidate.text.startswith("/")
        assert is_command(candidate.text)


@given(NAMES, WORDS, st.integers(0, 3))
def test_a_command_is_a_name_and_the_rest_as_typed(name: str, rest: str, count: int) -> None:
    assert is_command(f"/{name} {rest}")
    call = parse(f"/{name} {rest}", NOWHERE)
    assert (call.name, call.rest) == (name, rest.strip())
    assert " ".join(call.words) == " ".join(rest.casefold().split())
    words = " ".join((*("W" * (n + 1) for n in range(count)), "An  Old   Hat"))
    assert parse(f"/{name} {words}", NOWHERE).after(count) == "An  Old   Hat"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/", True),
        ("/New", True),
        ("/serch tea", True),
        ("/home is full", True),
        ("/usr/bin/env", True),  # an error or a path: it is not sent either way
        ("/usr/bin/env does not start, why?", False),
        ("/* a comment */ int main", False),
        ("/2 of them", False),
        ("and/or", False),
        ("", False),
    ],
)
def test_what_is_a_command(text: str, expected: bool) -> None:
    assert is_command(text) is expected


@pytest.mark.parametrize(
    ("typed", "shown", "is_whole"),
    [("/", ["/light", "/list", "/help"], False), ("/LI", ["/light", "/list"], False),
     ("/light", ["/light"], True), ("/list", ["/list"], False),
     ("/light ", ["on", "dim PERCENT", "lamp [left|right]"], True),
     ("/light d", ["dim PERCENT"], False), ("/light dim ", [], True),
     ("/light lamp ", ["left", "right"], True), ("/light lamp l", ["left"], False),
     ("/light lamp left", [], True), ("/dark", [], True), ("/usr/bin", [], True), ("//", [], True),
     ("light", [], True), ("/light\n", [], True)],
)  # fmt: skip
def test_completions(typed: str, shown: list[str], is_whole: bool) -> None:
    found = TABLE.complete(typed)
    assert [each.shown for each in found.candidates] == shown
    assert found.is_whole is is_whole or not shown


def test_completions_that_take_more_end_with_a_space() -> None:
    texts = [each.text for each in TABLE.complete("/light ").candidates]
    assert texts == ["/light on", "/light dim ", "/light lamp "]
    assert [each.text for each in TABLE.complete("/li").candidates] == ["/light ", "/list "]


def asking(done: list[str]) -> CommandSession:
    def ask(call: CommandCall) -> Outcome:
        def confirmed() -> Outcome:
            done.append(call.rest)
            return Outcome("Done.")

        return Outcome("Sure?", on_confirmed=confirmed)

    return CommandSession(CommandTable((Command("burn", "", (Form("/burn"),), ask),)))


def test_a_confirmation_runs_the_last_command_once() -> None:
    done: list[str] = []
    session = asking(done)
    for answer in ("yes", " YES \n"):
        session.run("/burn one", NOWHERE)
        session.run("/burn two", NOWHERE)
        assert session.complete("/").candidates == ()
        assert session.accepts(answer)
        assert session.run(answer, NOWHERE).markdown == "Done."
        assert not session.accepts("yes")
    assert done == ["two", "two"]


@given(WORDS.filter(lambda text: text.strip().casefold() != "yes"))
def test_nothing_but_yes_confirms(answer: str) -> None:
    done: list[str] = []
    session = asking(done)
    session.run("/burn all", NOWHERE)
    assert session.accepts(answer)
    if not is_command(answer):
        output = session.run(answer, NOWHERE)
        assert output.keeps_text is (answer.strip().casefold() not in ("no", "n", "cancel"))
    session.cancel()
    assert (done, session.awaits_confirmation, session.accepts("yes")) == ([], False, False)

"""What of a text is a command: properties that hold for any text, and the edges by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.commands.book import CommandBook
from app.chat.commands.parser import is_command, parse
from app.chat.commands.session import CommandSession
from app.chat.commands.values import Command, CommandOutput, Form, Given, Place

NOWHERE = Place()
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def echo(given_: Given) -> CommandOutput:
    return CommandOutput(f"{given_.name}|{given_.rest}")


BOOK = CommandBook(
    (
        Command(
            "light",
            "Light in the room",
            (
                Form("/light", help="Whether it is on"),
                Form("/light on", help="Switch it on"),
                Form("/light dim", "PERCENT", "Less of it"),
                Form("/light lamp", "[left|right]", "One of them"),
            ),
            echo,
            (Form("/light lamp left"), Form("/light lamp right")),
        ),
        Command("list", "What there is", (Form("/list", "WHAT"),), echo),
    )
)


@given(WORDS)
def test_a_text_without_a_slash_in_front_is_a_message(text: str) -> None:
    if not text.startswith("/"):
        assert not is_command(text)


@given(WORDS)
def test_a_space_or_a_second_slash_in_front_makes_any_text_a_message(text: str) -> None:
    for escape in (" /", "//", "\n/"):
        assert not is_command(escape + text)


@given(NAMES, WORDS)
def test_a_slash_and_a_word_are_a_command_with_all_that_follows_it(name: str, rest: str) -> None:
    text = f"/{name} {rest}"
    assert is_command(text)
    typed = parse(text, NOWHERE)
    assert typed.name == name
    assert typed.rest == rest.strip()
    assert " ".join(typed.words) == " ".join(rest.casefold().split())


@given(WORDS)
def test_what_is_a_command_can_be_parsed_and_what_is_completed_begins_with_a_slash(
    text: str,
) -> None:
    typed = f"/{text}"
    if is_command(typed):
        assert parse(typed, NOWHERE).rest in typed
    for candidate in BOOK.complete(typed).candidates:
        assert candidate.text.startswith("/")
        assert is_command(candidate.text)


@given(NAMES, st.integers(0, 3))
def test_what_follows_some_words_is_kept_as_it_was_typed(name: str, count: int) -> None:
    rest = " ".join((*("W" * (n + 1) for n in range(count)), "An  Old   Hat"))
    assert parse(f"/{name} {rest}", NOWHERE).after(count) == "An  Old   Hat"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("/", True),
        ("/new", True),
        ("/New", True),
        ("/serch tea", True),
        ("/home is full", True),
        ("/usr/bin/env", True),  # a slip or a path: held back either way
        ("/usr/bin/env does not start, why?", False),
        ("/* a comment */ int main", False),
        ("/2 of them", False),
        ("// a comment", False),
        (" /new", False),
        ("and/or", False),
        ("", False),
    ],
)
def test_the_edges(text: str, is_one: bool) -> None:
    assert is_command(text) is is_one


# -- completion


@pytest.mark.parametrize(
    ("typed", "shown", "is_whole"),
    [
        ("/", ["/light", "/list", "/help"], False),
        ("/LI", ["/light", "/list"], False),
        ("/light", ["/light"], True),
        ("/list", ["/list"], False),
        ("/light ", ["on", "dim PERCENT", "lamp [left|right]"], True),
        ("/light d", ["dim PERCENT"], False),
        ("/light dim ", [], True),
        ("/light lamp", [], True),
        ("/light lamp ", ["left", "right"], True),
        ("/light lamp l", ["left"], False),
        ("/light lamp left", [], True),
        ("/dark", [], True),
        ("/usr/bin", [], True),
        ("//", [], True),
        ("light", [], True),
        ("/light\n", [], True),
    ],
)
def test_what_may_come_next_is_listed(typed: str, shown: list[str], is_whole: bool) -> None:
    found = BOOK.complete(typed)
    assert [each.shown for each in found.candidates] == shown
    if shown:
        assert found.is_whole is is_whole


def test_what_takes_more_is_completed_with_a_space_behind_it() -> None:
    texts = [each.text for each in BOOK.complete("/light ").candidates]
    assert texts == ["/light on", "/light dim ", "/light lamp "]
    assert [each.text for each in BOOK.complete("/li").candidates] == ["/light ", "/list "]


# -- a yes


def asking(carried_out: list[str]) -> CommandSession:
    def ask(given_: Given) -> CommandOutput:
        def go() -> CommandOutput:
            carried_out.append(given_.rest)
            return CommandOutput("Done.")

        return CommandOutput("Sure?", after_yes=go)

    return CommandSession(CommandBook((Command("burn", "", (Form("/burn"),), ask),)))


@pytest.mark.parametrize("answer", ["yes", " YES \n"])
def test_a_yes_carries_out_what_was_asked_once(answer: str) -> None:
    carried_out: list[str] = []
    session = asking(carried_out)
    session.run("/burn all", NOWHERE)
    assert session.takes(answer)
    assert session.run(answer, NOWHERE).markdown == "Done."
    assert carried_out == ["all"]
    assert not session.takes("yes")


@given(WORDS.filter(lambda text: text.strip().casefold() != "yes"))
def test_nothing_but_a_yes_is_one(answer: str) -> None:
    carried_out: list[str] = []
    session = asking(carried_out)
    session.run("/burn all", NOWHERE)
    assert session.takes(answer)
    if not is_command(answer):
        output = session.run(answer, NOWHERE)
        assert output.keeps_text is (answer.strip().casefold() not in ("no", "n", "cancel"))
    session.give_up()
    assert carried_out == []
    assert not session.waits_for_yes


def test_a_question_given_up_leaves_the_next_text_to_the_model() -> None:
    session = asking([])
    session.run("/burn all", NOWHERE)
    assert session.complete("/").candidates == ()
    session.give_up()
    assert not session.takes("yes")


def test_another_command_takes_the_place_of_a_question() -> None:
    carried_out: list[str] = []
    session = asking(carried_out)
    session.run("/burn one", NOWHERE)
    session.run("/burn two", NOWHERE)
    session.run("yes", NOWHERE)
    assert carried_out == ["two"]

"""First start: a welcome, the sample archive by its button and by dropping it, nothing twice."""

from pathlib import Path

from app.bootstrap import Services
from app.domain.passages import PassageKind
from tests.fakes.user import User
from ui.controllers.importing import SAMPLE

LISTED, ARCHIVED = 18, 1


def count_turns(services: Services) -> int:
    return services.overview.read().passages[PassageKind.TURN]


async def test_a_newcomer_is_welcomed_and_looks_at_the_sample_archive(user: User) -> None:
    await user.start()
    await user.sees("A chat that remembers", "No conversations yet.")

    user.click("Look at a sample archive")
    await user.sees("Import finished", f"{LISTED + ARCHIVED} conversations")
    await user.dismiss()
    await user.until(lambda: len(user.titles()) == LISTED, "the list")

    user.choose(user.window.sidebar.shelves, "Archived")
    await user.until(lambda: len(user.titles()) == ARCHIVED, "the archived ones")


async def test_an_archive_is_dropped_on_the_window_and_a_second_time_adds_nothing(
    user: User,
) -> None:
    await user.start()
    user.drop(user.window.chat.welcome.drop_zone, [SAMPLE])
    await user.sees("Import finished", f"{LISTED + ARCHIVED} conversations")
    user.press("Esc")
    await user.until(lambda: len(user.titles()) == LISTED)
    turns = await user.ask(count_turns)

    user.drop(user.window, [SAMPLE])
    await user.sees("Import finished", "Nothing is new.", "were here already")
    user.press("Esc")

    assert await user.ask(count_turns) == turns
    assert len(user.titles()) == LISTED


async def test_a_file_that_is_no_export_is_refused_with_its_name(
    user: User, tmp_path: Path
) -> None:
    letter = tmp_path / "letter.json"
    letter.write_text('{"dear": "Ada"}', encoding="utf-8")
    await user.start()

    user.drop(user.window, [letter])

    await user.sees("letter.json", "Close")
    await user.dismiss()
    await user.sees_no_more("letter.json")
    assert user.titles() == []


async def test_who_has_conversations_is_greeted_in_fewer_words(user: User) -> None:
    await user.start()
    user.click("Look at a sample archive")
    await user.sees("Import finished")
    await user.dismiss()

    await user.sees("What is on your mind?")
    assert "A chat that remembers" not in user.screen()
    user.click("Import conversations\N{HORIZONTAL ELLIPSIS}")
    await user.sees("Exports (*.zip *.json *.jsonl)")
    user.press("Esc")

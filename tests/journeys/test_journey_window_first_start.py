"""First start: a welcome, a file that is refused, the sample archive by its button and by a drop."""

from pathlib import Path

from app.bootstrap import Services
from app.domain.passages import PassageKind
from tests.fakes.user import User
from ui.presenters.imports import SAMPLE

LISTED, ARCHIVED = 18, 1


def count_turns(services: Services) -> int:
    return services.overview.read().passages[PassageKind.TURN]


async def test_a_newcomer_imports_the_sample_archive_once(user: User, tmp_path: Path) -> None:
    letter = tmp_path / "letter.json"
    letter.write_text('{"dear": "Ada"}', encoding="utf-8")
    user.prepare = lambda _: None  # the program makes the library itself
    await user.start()
    await user.sees("A chat that remembers", "There are no conversations yet.")
    user.drop(user.window.chat.welcome.drop_zone, [letter])
    await user.sees("letter.json", "Close")
    await user.dismiss()
    assert user.titles() == []

    user.click("Open a sample archive")
    await user.sees(
        "Import finished", f"{LISTED + ARCHIVED} conversations", "Ask something about it"
    )
    await user.dismiss()
    for stop in range(5):  # the tour
        await user.sees(f"{stop + 1} of 5")
        user.click("Done" if stop == 4 else "Next")
    assert user.window.memory_dock.isHidden()
    await user.until(lambda: len(user.titles()) == LISTED, "the list")
    await user.sees("What is on your mind?")
    user.choose(user.window.sidebar.folders, "Archived")
    await user.until(lambda: len(user.titles()) == ARCHIVED, "the archived ones")
    user.choose(user.window.sidebar.folders, "Conversations")

    turns = await user.ask(count_turns)
    user.drop(user.window, [SAMPLE])
    await user.sees("Import finished", "Nothing new was found.", "already known")
    user.press("Esc")
    assert await user.ask(count_turns) == turns
    await user.until(lambda: len(user.titles()) == LISTED)
    user.click("Import conversations\N{HORIZONTAL ELLIPSIS}")
    await user.sees("Exports (*.zip *.json *.jsonl)")
    user.press("Esc")

"""A fact in the whole window: extracted, found, followed to its turn, edited, forgotten."""

import json
from pathlib import Path

from PySide6.QtWidgets import QLineEdit, QListView, QPlainTextEdit

from app.bootstrap import Services
from app.cli.remote import forward_command
from app.cli.terminal import Terminal
from app.storage.tables.facts import FactFilter, Facts
from app.transfer.exporting import ExportFormat, export
from app.transfer.importing import import_files
from tests.fakes.stored import opened
from tests.fakes.user import User
from ui.widgets.transcript.heights import Centered

EDITED = "The user prefers white tea to coffee."
OWN = "I was born in Graz."


def listed_by_command(services: Services) -> list[str]:
    """Return the facts of `commonplace facts list` while the window answers for it."""
    out: list[str] = []
    terminal = Terminal(out.append, out.append, lambda: "", Path("/"), lambda: False)
    assert forward_command(services.paths, ["facts", "list", "--json"], terminal, False) == 0
    return [each["text"] for each in json.loads("".join(out))["facts"]]


def facts_of(services: Services) -> list[str]:
    return [each.fact.text for each in services.facts.listed(FactFilter())]


async def open_facts(user: User) -> QListView:
    await user.in_front()
    user.press("Ctrl+Shift+F")
    await user.sees("Add")
    return user.find(QListView, "Facts")


async def test_a_fact_is_found_followed_edited_and_forgotten(user: User, tmp_path: Path) -> None:
    await user.start()
    await user.say("My favourite drink is green tea.")
    await user.sees("Regenerate")
    user.press("Ctrl+N")  # the open conversation is left alone
    await user.until_so(lambda services: len(facts_of(services)) == 1)
    (extracted,) = await user.ask(facts_of)
    listed = await open_facts(user)
    user.find(QLineEdit, "Add a fact of your own").setText(OWN)
    user.click("Add")
    await user.sees("2 facts", "You wrote it on")
    user.find(QLineEdit, "Search facts").setText("tea")
    await user.until(lambda: listed.model().index(0, 0).data() == extracted)
    user.click_row(listed, extracted)
    await user.sees("written by rules without a model")
    user.click("Open the turn")
    await user.until(lambda: isinstance(user.transcript.anchor, Centered))
    user.find(QLineEdit, "Search facts").setText("")
    await user.sees("2 facts")
    user.click_row(listed, extracted)
    wording = user.find(QPlainTextEdit, "Text of the fact")
    await user.until(lambda: wording.toPlainText() == extracted)
    wording.setPlainText(EDITED)
    user.click("Save")
    await user.sees("1 earlier version", "written by you")
    await user.until_so(lambda services: EDITED in facts_of(services))
    user.click("Pinned")
    await user.until(lambda: listed.model().index(0, 0).data() == "Pinned")
    user.click("Restore this version")
    await user.until(lambda: wording.toPlainText() == extracted)
    user.click("Forget\u2026")
    await user.sees("This cannot be undone.")
    user.click("Forget")
    await user.until_so(lambda services: facts_of(services) == [OWN])

    await user.restart()
    await user.sees("1 fact", OWN)  # the page that was open is open again
    assert await user.ask(listed_by_command) == [OWN]
    out = tmp_path / "all.json"
    await user.ask(lambda services: export(services.store, out, ExportFormat.JSON))
    with opened(tmp_path / "other") as other:
        import_files(other, [out])
        assert [each.fact.text for each in Facts(other).listed(FactFilter())] == [OWN]


async def test_the_page_that_was_open_is_filled_at_the_next_start(user: User) -> None:
    await user.start()
    user.action("core").trigger()
    await user.sees("About 0 of")
    await user.restart()
    await user.sees("About 0 of")
    assert user.window.memory.page == "core"

"""A fact is learned, found, followed to its turn, worded anew, pinned, forgotten; summaries too."""

import json
from pathlib import Path

from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QListView, QPlainTextEdit

from app.bootstrap import Services
from app.cli.remote import ask_window
from app.cli.terminal import Terminal
from app.domain.facts import BY_PATTERNS, Fact, FactCategory
from app.domain.ids import new_uid
from app.domain.passages import PassageKind, SearchResult
from app.storage.facts import FactFilter, Facts, fact_changes
from app.storage.times import now
from app.transfer.exporting import ExportFormat, export
from app.transfer.importing import import_files
from tests.fakes.stored import opened
from tests.fakes.user import User
from ui.widgets.transcript.anchor import Centred

TEA = "The user prefers green tea to coffee."
BOAT = "The user's boat is called Kestrel."


def learn(services: Services, text: str, subject: str = "") -> Fact:
    """Store a fact of the last turn there is, as the extractor does."""
    conversation = services.conversations.listed()[-1]
    exchange = services.exchanges.of(conversation.id)[0]
    at = now()
    fact = Fact(
        services.store.ids.passage(), new_uid(), text, FactCategory.PREFERENCE, subject,
        conversation.id, exchange.id, exchange.message_ids[0], at, BY_PATTERNS, at,
    )  # fmt: skip
    services.store.save(*fact_changes(fact))
    services.index_sync.catch_up()
    return fact


def typed(services: Services, *words: str) -> str:
    """Return what `commonplace facts` prints while the window answers for it."""
    heard: list[str] = []
    terminal = Terminal(heard.append, heard.append, lambda: "", Path("/"), lambda: False)
    assert ask_window(services.paths, ["facts", *words], terminal, False) == 0
    return "".join(heard)


def facts_of(services: Services) -> list[str]:
    """Return the facts that hold."""
    return [each.fact.text for each in services.facts.listed(FactFilter())]


async def talk(user: User) -> None:
    """Have a conversation about tea, and go elsewhere."""
    await user.start()
    await user.ask(lambda services: services.settings.set("knowledge_extractor_enabled", False))
    await user.say("Tell me about the harbour, please. I prefer green tea to coffee.")
    await user.until_so(
        lambda services: any(
            each.completed_at
            for talk in services.conversations.listed()
            for each in services.exchanges.of(talk.id)
        )
    )
    user.press("Ctrl+N")
    await user.until(lambda: bool(user.titles()))


def facts_found(user: User) -> list[str]:
    """Return the facts among the results in the sidebar."""
    model = user.window.sidebar.results
    rows = (model.value_at(model.index(number, 0)) for number in range(model.rowCount()))
    return [
        row.snippet
        for row in rows
        if isinstance(row, SearchResult) and row.kind is PassageKind.FACT
    ]


def compared_with(user: User) -> str:
    """Return the earlier version that the newest is compared with, "" for none."""
    found = user.window.findChildren(QComboBox)
    return next(
        (each.currentText() for each in found if each.accessibleName() == "Earlier versions"), ""
    )


async def open_facts(user: User) -> QListView:
    """Open the window of facts."""
    await user.in_front()
    user.press("Ctrl+Shift+F")
    await user.sees("Add")
    return user.find(QListView, "Facts")


async def test_a_fact_is_found_followed_edited_pinned_and_forgotten(
    user: User, tmp_path: Path
) -> None:
    await talk(user)
    await user.ask(lambda services: learn(services, TEA))
    await user.ask(lambda services: learn(services, BOAT))

    user.press("Ctrl+K")
    user.type("kestrel boat")
    await user.until(lambda: facts_found(user) == [BOAT])

    listed = await open_facts(user)
    await user.sees(TEA, BOAT, "2 facts")
    user.find(QLineEdit, "Search facts").setText("tea")
    await user.until(lambda: listed.model().index(0, 0).data() == TEA)
    user.click("Open the turn")
    await user.until(lambda: isinstance(user.transcript.anchor, Centred))
    await user.sees_no_more("Add a fact of your own")

    await open_facts(user)
    user.find(QLineEdit, "Search facts").setText("")
    await user.sees("2 facts")
    user.click_row(listed, TEA)
    wording = user.find(QPlainTextEdit, "Wording of the fact")
    await user.until(lambda: wording.toPlainText() == TEA)
    wording.setPlainText("The user prefers white tea to coffee.")
    user.click("Save")
    await user.sees("1 earlier version", "worded by you")
    await user.until_so(
        lambda services: "The user prefers white tea to coffee." in facts_of(services)
    )
    user.click("Pinned: preferred, never superseded by itself")
    await user.until_so(lambda services: services.facts.listed(FactFilter())[0].fact.pinned)
    await user.until(lambda: user.find(QListView, "Facts").model().index(0, 0).data() == "Pinned")
    user.click("Restore this version")
    await user.sees("2 earlier versions")
    await user.until(lambda: wording.toPlainText() == TEA)

    user.click("Forget\u2026")
    await user.sees("This cannot be undone.")
    user.click("Forget")
    await user.until_so(lambda services: facts_of(services) == [BOAT])
    await user.sees("1 fact", "The fact is forgotten.")

    await user.restart()
    await open_facts(user)
    await user.sees("1 fact", BOAT)
    listed_there = json.loads(await user.ask(lambda services: typed(services, "list", "--json")))
    assert [each["text"] for each in listed_there["facts"]] == [BOAT]
    out = tmp_path / "book.json"
    await user.ask(lambda services: export(services.store, out, ExportFormat.JSON))
    with opened(tmp_path / "other") as other:
        import_files(other, [out])
        assert [each.fact.text for each in Facts(other).listed(FactFilter())] == [BOAT]


async def test_what_is_said_becomes_a_fact_by_itself(user: User) -> None:
    await user.start()
    await user.say("I prefer green tea to coffee.")
    await user.until_so(lambda services: bool(services.conversations.listed()))
    await user.sees("Regenerate")
    user.press("Ctrl+N")
    await user.until_so(lambda services: len(facts_of(services)) == 1)
    await open_facts(user)
    await user.sees("1 fact", "green tea", "worded by a pattern")


async def test_a_fact_of_the_users_own_is_added_filtered_and_found(user: User) -> None:
    await talk(user)
    await open_facts(user)
    await user.sees("No facts are known yet.")
    user.find(QLineEdit, "Add a fact of your own").setText("I was born in Graz.")
    user.click("Add")
    await user.sees("1 fact", "You wrote it on")
    user.choose(user.find(QComboBox, "Category"), "Plan")
    await user.sees("Nothing was found.")
    user.choose(user.find(QComboBox, "Category"), "All categories")
    await user.sees("1 fact")
    assert not user.find(QCheckBox, "").isChecked()


async def test_a_summary_is_written_compared_and_brought_back(user: User) -> None:
    await talk(user)
    await user.ask(lambda services: services.settings.set("summarizer_quiet_minutes", 0))
    user.click_row(user.window.sidebar.conversation_list, user.titles()[0])
    await user.until(lambda: user.action("summaries").isEnabled())
    user.click("Summary")
    await user.sees("The whole conversation")
    text = user.find(QPlainTextEdit, "Summary")
    text.setPlainText("Of harbours, and of tea.")
    user.click("Save")
    await user.sees("A summary of your own stays")
    text.setPlainText("Of harbours, and of green tea.")
    user.click("Save")
    await user.until(lambda: compared_with(user).endswith("you"))
    user.click("Restore this version")
    await user.until(lambda: text.toPlainText() == "Of harbours, and of tea.")
    user.choose(
        user.find(QComboBox, "What is summarised"),
        user.find(QComboBox, "What is summarised").itemText(1),
    )
    await user.until(lambda: text.toPlainText() != "Of harbours, and of tea.")
    await user.dismiss()

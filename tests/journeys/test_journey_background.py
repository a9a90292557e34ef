"""Background work by a model, in the window: chosen, agreed to, seen, capped, taken back."""

import asyncio
import os
import time
from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox

from app.bootstrap import Services
from app.domain.workers import WorkerName
from app.storage.facts import FactFilter
from app.storage.settings import ProviderRow
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text, usage
from tests.fakes.user import User
from ui.controllers.importing import SAMPLE
from ui.views.background_page import BackgroundPage

LOCAL = "local:test-model"
SAMPLE_EXCHANGES = 56
AWAY = "openai:gpt-4o-mini"  # without a key nothing can be sent there
REPLY = '{"summary": "They spoke of tea.", "title": "Tea", "tags": ["tea"]}'


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.always(text(REPLY), usage(200, 30))
        yield running


def shown(name: str) -> None:
    """Leave a picture of all windows where SCREENSHOTS says, for whoever wants to look."""
    if folder := os.environ.get("SCREENSHOTS"):
        for number, window in enumerate(QApplication.topLevelWidgets()):
            if window.isVisible():
                window.grab().save(f"{folder}/{name}-{number}.png")


async def until_model(user: User, model: str, wanted: int) -> None:
    def made(services: Services) -> int:
        rows = services.store.read(
            lambda cursor: cursor.execute(
                "SELECT count(*) FROM summary WHERE model = ?", [model]
            ).fetchone()
        )
        return int(rows[0]) if rows else 0

    deadline = time.monotonic() + 60
    while await user.ask(made) < wanted:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def opened_page(user: User) -> BackgroundPage:
    user.press("Ctrl+,")
    dialog = user.program.settings.open("Background work")
    await user.until(dialog.isActiveWindow, "the settings")
    await user.until(lambda: dialog.background.chooser.box.findText(LOCAL) >= 0, "the models")
    return dialog.background


def box(user: User) -> QMessageBox | None:
    return next((w for w in QApplication.topLevelWidgets()
                 if isinstance(w, QMessageBox) and w.isVisible()), None)  # fmt: skip


def pressed(question: QMessageBox, words: str) -> None:
    next(each for each in question.buttons() if each.text() == words).click()


async def test_a_model_is_chosen_seen_and_taken_back(user: User, server: Loopback) -> None:
    await user.start()
    row = ProviderRow("local", "compatible", server.v1, None)
    await user.ask(lambda services: services.settings.put_provider(row))
    page = await opened_page(user)
    chooser = page.chooser
    assert "extractive, on this computer" in chooser.state.text()

    # A server of this machine needs no consent.
    chooser.box.setCurrentIndex(chooser.box.findText(LOCAL))
    chooser.box.activated.emit(chooser.box.currentIndex())
    await user.until(lambda: "Nothing leaves this computer" in chooser.words.text(), "the plan")
    chooser.use.click()
    await user.until(lambda: LOCAL in chooser.state.text(), "in force")

    # A price of one's own is kept, shown and used.
    for field, words in zip(page.prices.fields, (LOCAL, "1000", "2000", ""), strict=True):
        field.setText(words)
    page.prices.save.click()
    await user.until(lambda: not page.prices.fields[0].text(), "the price is kept")
    assert (await user.ask(lambda services: services.own_prices.all()))[LOCAL].output_usd == 2000
    shown("page")
    user.program.settings.open().reject()

    await user.bring(SAMPLE)
    await until_model(user, LOCAL, 10)
    spent = await user.ask(lambda services: services.spending.today())
    assert spent.known_usd > 0
    assert not spent.unknown
    page = await opened_page(user)
    await user.until(lambda: page.spent.grid.rowCount() > 2, "what was spent")
    shown("spent")

    # One elsewhere waits for the one question.
    chooser = page.chooser
    line = chooser.box.lineEdit()
    assert line is not None
    line.setText(AWAY)
    line.editingFinished.emit()
    await user.until(lambda: "api.openai.com" in chooser.words.text(), "the plan")
    chooser.use.click()
    await user.until(lambda: box(user) is not None, "the question")
    question = box(user)
    assert question is not None
    assert "turns of your history" in question.informativeText()
    assert "No cap on spending is set." in question.informativeText()
    shown("question")
    pressed(question, "Set a cap\u2026")
    await user.until(lambda: box(user) is None, "no question")
    assert await user.ask(lambda services: services.settings.text("background_model")) == LOCAL
    cap = page.caps[0].control
    await user.until(lambda: page.window().focusWidget() is cap, "the cap")

    chooser.box.setCurrentIndex(0)
    chooser.box.activated.emit(0)
    chooser.use.click()
    await user.until(lambda: "extractive" in chooser.state.text(), "extractive again")

    # What the model made can be made again that way, after a question.
    chooser.redo.click()
    await user.until(lambda: box(user) is not None, "the question")
    again = box(user)
    assert again is not None
    assert "at no cost. Earlier versions stay" in again.informativeText()
    shown("again")
    pressed(again, "Make them again")
    await until_model(user, "extractive", 10)

    # What changed while the page was out of sight is told when it is back.
    dialog = user.program.settings.open("General")
    await user.ask(lambda services: services.background.choose(LOCAL))
    dialog.show_page("Background work")
    await user.until(lambda: LOCAL in chooser.state.text(), "who does it now")
    dialog.reject()
    await user.leave()


def waits_to_be_allowed(services: Services) -> bool:
    return any("nobody has agreed" in words for words in services.workers.warnings())


async def test_a_model_elsewhere_waits_for_the_one_question(user: User) -> None:
    await user.start()
    await user.ask(lambda services: services.background.choose(AWAY))
    user.drop(user.window, [SAMPLE])
    await user.until(lambda: box(user) is not None, "the question after the import")
    question = box(user)
    assert question is not None
    assert "read 56 turns" in question.informativeText()
    shown("import")
    question.reject()
    await user.until(lambda: box(user) is None, "no question")
    await user.dismiss()
    user.window.dock.show()
    dashboard = user.window.dashboard
    await user.until(dashboard.allow.isVisible, "the button on the dashboard")
    await user.until_so(waits_to_be_allowed)
    shown("waits")
    dashboard.allow.click()
    await user.until(lambda: box(user) is not None, "the question")
    question = box(user)
    assert question is not None
    pressed(question, "Allow")
    await user.until(lambda: not dashboard.allow.isVisible(), "allowed")
    await user.until_so(lambda services: not waits_to_be_allowed(services))
    await user.leave()


def all_read(services: Services) -> bool:
    """Whether all of the sample was read: a worker may be done with what had come by then."""
    status = {each.name: each for each in services.workers.refresh()}
    extractor = status[WorkerName.KNOWLEDGE_EXTRACTOR]
    return extractor.done == extractor.total == SAMPLE_EXCHANGES


async def test_facts_are_learned_again_from_their_card_after_a_question(
    user: User, server: Loopback
) -> None:
    await user.start()
    row = ProviderRow("local", "compatible", server.v1, None)
    await user.ask(lambda services: services.settings.put_provider(row))
    await user.bring(SAMPLE)
    await user.until_so(all_read)
    server.always(text('{"facts": []}'), usage(200, 30))
    await user.ask(lambda services: services.background.choose(LOCAL))
    user.window.dock.show()
    card = user.window.dashboard.card(WorkerName.KNOWLEDGE_EXTRACTOR)
    await user.until(card.redo.isVisible, "the button on the card of facts")
    assert not user.window.dashboard.card(WorkerName.EMBEDDING_PIPELINE).redo.isVisible()
    card.redo.click()
    await user.until(lambda: box(user) is not None, "the question")
    question = box(user)
    assert question is not None
    again = f"{LOCAL} would read {SAMPLE_EXCHANGES} exchanges again"
    assert again in question.informativeText()
    assert "What you wrote, edited, pinned or forgot stays as it is." in question.informativeText()
    shown("facts-again")
    pressed(question, "Learn again")
    await user.until_so(lambda services: services.facts.count(FactFilter()) == 0)
    await user.until_so(lambda services: services.fact_redo.plan().count == 0)
    assert await user.ask(lambda services: services.facts.count(FactFilter(ended=True))) > 0
    await user.leave()

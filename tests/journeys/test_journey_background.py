"""Background work by a model, in the window: chosen, agreed to, priced, limited, taken back."""

import json

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox

from app.bootstrap import Services
from app.domain.chat import StoredProvider
from tests.fakes.background import part_answer
from tests.fakes.jobs import count_rows
from tests.fakes.libraries import SAMPLE
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text, usage
from tests.fakes.stored import add_conversation
from tests.fakes.user import User
from ui.views.settings.background_page import BackgroundPage

LOCAL = "local:test-model"
AWAY = "openai:gpt-4o-mini"  # without a key nothing can be sent there
REPLY = json.dumps(part_answer())


@pytest.fixture
def server(server: Loopback) -> Loopback:
    server.always(text(REPLY), usage(200, 30))
    return server


async def started(user: User, server: Loopback) -> None:
    """Start with two turns and the server as provider `local`."""
    await user.start()
    row = StoredProvider("local", "compatible", server.v1, None)
    await user.ask(lambda services: services.settings.put_provider(row))
    await user.ask(lambda services: services.settings.set("knowledge_extractor_enabled", False))
    await user.ask(lambda services: add_conversation(services.store, "I live in Oslo", "Why tea?"))


async def summarized(user: User, model: str) -> None:
    """Wait until both turns and the conversation have a latest summary by a model."""
    condition = f"model = '{model}' AND latest"
    await user.until_so(lambda services: count_rows(services.store, "summary", condition) == 3)


async def opened_page(user: User) -> BackgroundPage:
    user.press("Ctrl+,")
    dialog = user.presenters.settings.open("Background work")
    await user.until(dialog.isActiveWindow, "the settings")
    await user.until(lambda: dialog.background.chooser.box.findText(LOCAL) >= 0, "the models")
    return dialog.background


def box() -> QMessageBox | None:
    return next((w for w in QApplication.topLevelWidgets()
                 if isinstance(w, QMessageBox) and w.isVisible()), None)  # fmt: skip


async def answer(user: User, button: str, *texts: str) -> None:
    """Wait for the question, check its text, and click a button."""
    await user.until(lambda: box() is not None, f"the question to answer with {button!r}")
    question = box()
    for each in texts:
        assert each in question.informativeText()
    next(each for each in question.buttons() if each.text() == button).click()
    await user.until(lambda: box() is None, "no question")


async def test_a_model_is_chosen_priced_and_taken_back(user: User, server: Loopback) -> None:
    await started(user, server)
    await summarized(user, "extractive")
    page = await opened_page(user)
    chooser = page.chooser
    assert "key sentences only" in chooser.state.text()

    # A price of the user's is kept and used.
    for field, value in zip(page.prices.fields, (LOCAL, "1000", "2000", ""), strict=True):
        field.setText(value)
    page.prices.save.click()
    await user.until(lambda: not page.prices.fields[0].text(), "the price is kept")
    assert (await user.ask(lambda services: services.own_prices.all()))[LOCAL].output_usd == 2000

    # A server on this computer needs no consent.
    user.choose(chooser.box, LOCAL)
    await user.until(lambda: "Nothing leaves this computer" in chooser.text.text(), "the plan")
    chooser.use.click()
    await user.until(lambda: LOCAL in chooser.state.text(), "in force")
    chooser.regenerate.click()
    await answer(user, "Regenerate", "2 turn summaries and 1 conversation summary")
    await summarized(user, LOCAL)
    spent = await user.ask(lambda services: services.spending.today())
    assert (spent.known_usd > 0, spent.unknown) == (True, 0)
    await user.until(lambda: page.spent.grid.rowCount() > 1, "what was spent")

    # A remote one is not used before a yes; the question leads to the limits.
    line = chooser.box.lineEdit()
    line.setText(AWAY)
    line.editingFinished.emit()
    await user.until(lambda: "api.openai.com" in chooser.text.text(), "the plan")
    chooser.use.click()
    await answer(user, "Set a spend limit\N{HORIZONTAL ELLIPSIS}", "No spend limit is set.")
    assert await user.ask(lambda services: services.settings.text("background_model")) == LOCAL
    limit = page.limits[0].control
    await user.until(lambda: page.window().focusWidget() is limit, "the limit")

    chooser.box.setCurrentIndex(0)
    chooser.box.activated.emit(0)
    chooser.use.click()
    await user.until(lambda: "key sentences only" in chooser.state.text(), "extractive again")
    chooser.regenerate.click()
    await answer(user, "Regenerate", "at no cost")
    await summarized(user, "extractive")

    # Changes while the page was hidden are shown when it is back.
    dialog = user.presenters.settings.open("General")
    await user.ask(lambda services: services.background.choose(LOCAL))
    dialog.show_page("Background work")
    await user.until(lambda: LOCAL in chooser.state.text(), "the model in use now")
    dialog.reject()
    await user.leave()


def waits_for_consent(services: Services) -> bool:
    return any(AWAY in warning for warning in services.workers.warnings())


async def test_a_remote_model_waits_for_one_question(user: User) -> None:
    await user.start()
    await user.ask(lambda services: services.background.choose(AWAY))
    user.drop(user.window, [SAMPLE])
    await answer(user, "Not now", "read 56 turns")
    await user.dismiss()
    user.window.memory.open_page("activity")
    dashboard = user.window.memory.dashboard
    await user.until(dashboard.allow.isVisible, "the button on the dashboard")
    await user.until_so(waits_for_consent)
    dashboard.allow.click()
    await answer(user, "Allow")
    await user.until(lambda: not dashboard.allow.isVisible(), "allowed")
    await user.until_so(lambda services: not waits_for_consent(services))
    await user.leave()

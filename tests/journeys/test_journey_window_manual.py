"""The manual in the window: switched on, found beside what was said, opened, off at the next start."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPlainTextEdit

from app.domain.passages import PassageKind
from app.domain.workers import WorkerName
from tests.fakes.manual import FakeManual
from tests.fakes.user import User
from ui.views.page_dialog import PageDialog

TITLE = "tar(1) – an archiving utility"


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManual:
    made = FakeManual(tmp_path / "manual", monkeypatch)
    made.add("tar.1", "an archiving utility", "Puts many files into one archive.")
    made.add("du.1", "estimate file space usage", "Summarizes how much room files take.")
    return made


async def test_the_manual_is_switched_on_searched_and_read(user: User, manual: FakeManual) -> None:
    await user.start()
    assert manual.calls() == []
    user.press("Ctrl+Shift+W")
    running = user.window.dashboard.card(WorkerName.EMBEDDING_PIPELINE)
    await user.until(lambda: running.state.text() == "idle", "workers that have started")
    card = user.window.dashboard.card(WorkerName.MAN_INDEXER)
    assert not card.switch.isChecked()
    card.switch.click()
    await user.until(lambda: card.counts.text().startswith("2 of 2"), "both pages")
    await user.until_so(
        lambda services: services.overview.read().passages.get(PassageKind.MAN_PAGE) == 2
    )
    await user.until_so(lambda services: services.search.search("archiving").results)
    user.press("Ctrl+K")
    user.type("archiving")
    await user.until(lambda: TITLE in user.results())
    user.click_row(user.window.sidebar.result_list, TITLE)
    dialog = await opened(user)
    assert dialog.windowTitle() == TITLE
    text = dialog.findChild(QPlainTextEdit)
    assert text is not None
    await user.until(lambda: text.toPlainText() == "Puts many files into one archive.")
    assert text.isReadOnly()
    await user.dismiss()

    await user.restart()
    card = user.window.dashboard.card(WorkerName.MAN_INDEXER)
    await user.until(lambda: card.state.text() == "off")
    await user.until(lambda: card.counts.text().startswith("2 of 2"), "they stay")
    assert not card.switch.isChecked()


async def test_a_page_that_was_dropped_meanwhile_is_said_to_be_gone(
    user: User, manual: FakeManual
) -> None:
    await user.start()
    user.program.pages.open("gone.1", "gone(1)")
    await opened(user)
    await user.sees("No manual page 'gone.1' is kept")
    await user.dismiss()


async def opened(user: User) -> PageDialog:
    def dialogs() -> list[PageDialog]:
        return [each for each in user.window.findChildren(PageDialog) if each.isVisible()]

    await user.until(lambda: bool(dialogs()))
    return dialogs()[0]

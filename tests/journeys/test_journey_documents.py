"""Documents through the window: added, read, searched, recalled, opened at the passage, and removed."""

from pathlib import Path

from PySide6.QtWidgets import QApplication, QToolButton

from app.bootstrap import Services
from app.domain.passages import PassageKind
from app.domain.records.documents import DocumentState
from tests.fakes.document_folder import make_broken, make_document
from tests.fakes.files import pdf
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text, usage
from tests.fakes.user import User
from ui.views.dialogs.documents_dialog import DocumentsDialog
from ui.views.dialogs.page_dialog import PageDialog

QUESTION = "Which bolt torque does the manual of the windmill name for the rotor hub?"
ANSWER = "The bolts of the rotor hub are tightened with a torque of 74 newton meters."


def make_folder(folder: Path) -> int:
    """Write mixed files, one of which answers the question on its second page; return their number."""
    for number in range(10):
        make_document(folder, number)
    broken = make_broken(folder / "broken", large_bytes=30 << 20, pages=20, bomb_bytes=70 << 20)
    manual = pdf("Windmill manual.\nSafety comes first.", f"Assembly of the windmill.\n{ANSWER}")
    (folder / "windmill.pdf").write_bytes(manual)
    return 10 + len(broken) + 1


def viewer() -> PageDialog | None:
    tops = QApplication.topLevelWidgets()
    return next((each for each in tops if isinstance(each, PageDialog) and each.isVisible()), None)


async def sees_the_passage(user: User) -> None:
    """Wait until the viewer shows the answer, marked, with the image of its page; close it."""
    await user.until(lambda: viewer() is not None, "the viewer")
    shown = viewer()
    await user.until(shown.text.extraSelections, "the marked passage")
    assert ANSWER in shown.text.extraSelections()[0].cursor.selectedText().replace("\u2029", "\n")
    assert "windmill.pdf" in shown.place.text()
    await user.until(lambda: shown.page.text() == "page 2 of 2")
    await user.until(lambda: shown.image.image is not None, "the image of the page")
    user.press("Alt+Left")
    await user.until(lambda: viewer() is None, "the viewer to close")


def chips(user: User) -> list[QToolButton]:
    widget = user.transcript.turn_widget(0)
    found = [] if widget is None else widget.findChildren(QToolButton)
    return [each for each in found if "windmill.pdf" in each.text() and each.isVisible()]


def is_read(services: Services, count: int) -> bool:
    states = [each.state for each in services.documents.statuses()]
    return len(states) == count and {*states} <= {DocumentState.READ, DocumentState.SKIPPED}


async def test_a_folder_is_added_found_quoted_opened_at_the_passage_and_removed(
    user: User, server: Loopback, tmp_path: Path
) -> None:
    folder = tmp_path / "papers"
    count = make_folder(folder)
    await user.start_with_model(server.v1)
    user.action("documents").trigger()
    await user.sees("Nothing was added yet.")
    (dialog,) = user.window.findChildren(DocumentsDialog)
    user.drop(dialog, [folder])
    await user.until_so(lambda services: is_read(services, count))
    await user.sees(f"{count} documents: ")
    user.press("Ctrl+F")
    user.type("password")
    await user.until(lambda: dialog.model.rowCount() == 1, "the filtered list")
    assert "password" in dialog.model.index(0, 1).data()
    dialog.filter.clear()
    await user.dismiss()
    await user.until_so(
        lambda services: (
            services.search.search("rotor hub torque").results[0].conversation_title
            == "windmill.pdf, p. 2"
        )
    )

    user.press("Ctrl+K")
    user.type("torque rotor hub")
    await user.until(lambda: "windmill.pdf, p. 2" in user.results()[:1], "the result")
    user.click_row(user.window.sidebar.result_list, "windmill.pdf")
    await sees_the_passage(user)
    assert "windmill.pdf, p. 2" in user.results()

    server.reply(text("It is 74 newton meters."), usage(900, 20))
    await user.say(QUESTION)
    await user.answered(0, "74 newton meters")
    assert ANSWER in str(server.posts[-1].body)
    await user.until(lambda: chips(user), "the source")
    chips(user)[0].click()
    await sees_the_passage(user)

    user.action("documents").trigger()
    await user.sees(f"{count} documents: ")
    (dialog,) = (each for each in user.window.findChildren(DocumentsDialog) if each.isVisible())
    dialog.table.setCurrentIndex(dialog.model.index_of(str(folder)))
    user.click("Remove\u2026")
    await user.sees(f"Remove {count} documents?", str(folder))
    user.press("Escape")
    assert await user.ask(lambda services: is_read(services, count))
    user.click("Remove\u2026")
    await user.sees(f"Remove {count} documents?")
    user.click("Remove")
    await user.sees(f"{count} documents were removed.", "Nothing was added yet.")
    await user.dismiss()
    assert not await user.ask(lambda services: services.passages.of_kind(PassageKind.DOCUMENT))
    assert await user.ask(lambda services: services.documents.statuses()) == ()
    assert (folder / "windmill.pdf").exists()
    assert all(
        each.kind is not PassageKind.DOCUMENT
        for each in await user.ask(lambda services: services.search.search(ANSWER).results)
    )
    user.press("Ctrl+K")
    user.press("Ctrl+A")
    user.type("rotor hub torque")
    await user.until(lambda: user.results() and "windmill.pdf, p. 2" not in user.results())

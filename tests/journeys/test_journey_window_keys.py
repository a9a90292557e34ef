"""The window by keyboard and menu: renaming, tab order, and what every action opens."""

from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDialog,
    QFileDialog,
    QInputDialog,
    QListWidget,
    QMessageBox,
    QWidget,
)

from tests.fakes.user import User
from tests.fakes.window_walk import dialogs
from ui.views.dialogs.help_dialogs import AboutDialog, PrivacyDialog, ShortcutsDialog
from ui.views.dialogs.why_dialog import WhyDialog
from ui.views.palette import CommandPalette
from ui.views.settings.settings_dialog import SettingsDialog

NEW = "Bees behind the barn"
OPENED: dict[str, type[QDialog]] = {
    "why": WhyDialog, "settings": SettingsDialog, "palette": CommandPalette, "tag": QInputDialog,
    "open_link": QInputDialog, "import": QFileDialog, "export": QFileDialog,
    "export_all": QFileDialog, "forget": QMessageBox, "about": AboutDialog,
    "privacy": PrivacyDialog, "shortcuts": ShortcutsDialog, "check": QMessageBox,
}  # fmt: skip


async def talk(user: User) -> None:
    await user.start()
    await user.say("Our hives stand behind the barn.")
    await user.until(lambda: user.titles() and not user.window.chat.title.isReadOnly())


async def test_a_title_is_renamed_by_keyboard_and_tab_follows_the_reading_order(user: User) -> None:
    await talk(user)
    chat, before = user.window.chat, user.window.chat.title.text()
    await user.until(lambda: user.window.windowTitle() == before)
    user.press("F2")
    await user.until(chat.title.hasFocus)
    assert chat.title.selectedText() == before  # what is typed replaces it
    user.type("No, not that")
    user.press("Esc")
    assert (chat.title.text(), chat.composer.box.hasFocus()) == (before, True)
    user.press("F2")
    user.type(NEW)
    user.press("Return")
    assert chat.composer.box.hasFocus()
    await user.until(lambda: user.titles() == [NEW] and user.window.windowTitle() == NEW)
    user.press("F2")
    user.press("Backspace")
    user.press("Return")
    assert chat.title.text() == NEW  # an empty title is not stored
    user.window.sidebar.conversation_list.setFocus()
    user.press("F2")
    user.type("In the list")
    user.press("Return")
    await user.until(lambda: user.titles() == ["In the list"])
    await check_tab_order(user)


async def test_every_action_opens_its_dialog(user: User) -> None:
    await talk(user)
    await user.until(lambda: not user.transcript.is_streaming)
    async for name, dialog in dialogs(user, {each: user.action(each).trigger for each in OPENED}):
        assert isinstance(dialog, OPENED[name]), name
    user.action("backup").trigger()
    await user.sees("has everything and was verified")
    user.action("slash_commands").trigger()
    await user.until(lambda: "`/search" in user.presenters.command_panel.markdown)
    user.action("copy_link").trigger()
    opened = user.presenters.conversation.conversation_id
    assert QApplication.clipboard().text() == f"commonplace://{opened}/0"
    user.action("new_private").trigger()
    await user.sees("A private conversation")
    await user.in_front()
    user.press("Ctrl+B")
    assert user.window.sidebar.isHidden()
    user.press("Ctrl+K")
    await user.until(user.window.sidebar.box.hasFocus)


async def check_tab_order(user: User) -> None:
    """Tab goes through the window and the settings."""
    window = user.window
    user.press("Ctrl+K")
    seen = stops(user, window.sidebar.box, window.chat.composer.memory)
    head = ["Search everything", "Filter", "Which conversations are listed", "New", "Conversations"]
    assert seen[:5] == head
    order = ["Title of the conversation", "Message", "Model", "Memory"]
    assert [name for name in seen[5:] if name in order] == order

    user.press("Ctrl+,")
    await user.sees("Other server")
    pages = user.find(QListWidget, "Pages of settings")
    await user.until(pages.hasFocus)
    seen = stops(user, pages, user.button("Close", pages.window()))
    tiles = [name.partition(":")[0] for name in seen if ":" in name]
    assert (tiles[:2], tiles[-1], seen[-1]) == (["OpenAI", "Anthropic"], "Other server", "Close")
    await user.dismiss()
    assert not pages.window().isVisible()


def stops(user: User, first: QWidget, last: QWidget) -> list[str]:
    """Press Tab from one widget to another; return what has had the focus, by accessible name."""
    first.setFocus()
    seen = [first]
    while seen[-1] is not last and len(seen) < 60:
        user.press("Tab")
        now = QApplication.focusWidget()
        assert isinstance(now, QWidget)
        seen.append(now)
    return [
        each.accessibleName() or (each.text() if isinstance(each, QAbstractButton) else "")
        for each in seen
    ]

"""The window by keyboard alone: where Tab goes, what is renamed, where the focus is afterwards."""

from PySide6.QtWidgets import QAbstractButton, QApplication, QListWidget, QWidget

from tests.fakes.user import User

TOLD = "Our hives stand behind the barn."
NEW = "Bees behind the barn"
_MOST_STOPS = 60


async def test_a_title_is_renamed_by_keyboard_and_the_window_says_so(user: User) -> None:
    await user.start()
    await user.say(TOLD)
    await user.until(lambda: user.titles() and not user.window.chat.title.isReadOnly())
    chat, before = user.window.chat, user.window.chat.title.text()
    await user.until(lambda: user.window.windowTitle() == before)

    user.press("F2")
    await user.until(chat.title.hasFocus)
    assert chat.title.selectedText() == before, "what is typed takes its place"
    user.type("No, not that")
    user.press("Esc")
    assert chat.title.text() == before
    assert chat.composer.box.hasFocus()

    user.press("F2")
    user.type(NEW)
    user.press("Return")
    assert chat.composer.box.hasFocus()
    await user.until(lambda: user.titles() == [NEW])
    await user.until(lambda: user.window.windowTitle() == NEW)

    user.press("F2")
    user.press("Backspace")
    user.press("Return")
    assert chat.title.text() == NEW, "a title that was emptied is as it was"


async def test_tab_goes_through_the_window_as_the_eye_does(user: User) -> None:
    await user.start()
    await user.say(TOLD)
    window = user.window
    await user.until(lambda: user.titles() and not window.chat.title.isReadOnly())
    user.press("Ctrl+K")
    seen = [*stops(user, window.sidebar.box, window.recall_status)]
    assert seen[:4] == [
        "Search everything",
        "Which conversations are listed",
        "New",
        "Conversations",
    ]
    rest = [name for name in seen[4:] if name in ("Title of the conversation", "Model", "Message")]
    assert rest == ["Title of the conversation", "Model", "Message"]


async def test_the_settings_are_gone_through_from_their_list_of_pages(user: User) -> None:
    await user.start()
    user.press("Ctrl+,")
    await user.sees("Save key")
    pages = user.find(QListWidget, "Pages of settings")
    await user.until(pages.hasFocus)
    dialog = pages.window()
    close = user.button("Close", dialog)
    seen = stops(user, pages, close)
    wanted = ["API key of openai", "API key of anthropic", "Name", "Base URL", "Add", "Close"]
    assert [name for name in seen if name in wanted] == wanted
    await user.dismiss()
    assert user.window.chat.composer.box.hasFocus()


def stops(user: User, first: QWidget, last: QWidget) -> list[str]:
    """Press Tab from one widget to another; return what has had the focus, by name."""
    first.setFocus()
    seen = [first]
    while seen[-1] is not last and len(seen) < _MOST_STOPS:
        user.press("Tab")
        now = QApplication.focusWidget()
        assert isinstance(now, QWidget)
        seen.append(now)
    return [name_of(widget) for widget in seen]


def name_of(widget: QWidget) -> str:
    """Return what a screen reader calls it."""
    words = widget.text() if isinstance(widget, QAbstractButton) else ""
    return widget.accessibleName() or words


async def test_dashboard_and_inspector_share_the_height_when_both_are_open(user: User) -> None:
    await user.start()
    user.press("Ctrl+Shift+W")
    user.press("Ctrl+Shift+I")
    docks = user.window.dock, user.window.inspector_dock
    await user.until(lambda: all(each.isVisible() for each in docks))
    await user.until(lambda: min(each.height() for each in docks) > user.window.height() / 3)

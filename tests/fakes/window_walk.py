"""A walk through screens of the window, one after the other, and the texts on one."""

from collections.abc import AsyncIterator, Callable, Mapping

from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QListWidget, QWidget

from tests.fakes.user import User

_PAGES = (
    "sources", "sent", "facts", "summaries", "profile", "core", "saved", "questions", "activity",
)  # fmt: skip
_READ = ("text", "placeholderText", "toolTip", "accessibleName", "currentText")


async def memory_pages(user: User) -> AsyncIterator[tuple[str, QWidget]]:
    """Yield the pages of the memory pane, then hide it."""
    for page in _PAGES:
        user.window.memory.open_page(page)
        yield page, user.window.memory
    user.window.memory_dock.hide()


async def settings_pages(user: User) -> AsyncIterator[tuple[str, QWidget]]:
    """Yield the pages of the settings, last the form of a provider."""
    dialog = user.presenters.settings.open()
    names = dialog.findChild(QListWidget)
    for row in range(names.count()):
        names.setCurrentRow(row)
        yield names.item(row).text(), dialog
    names.setCurrentRow(0)
    dialog.models.opened.emit("openai")
    yield "provider", dialog
    dialog.reject()


async def dialogs(
    user: User, openers: Mapping[str, Callable[[], object]]
) -> AsyncIterator[tuple[str, QWidget]]:
    """Yield the dialogs that are opened so, each closed before the next."""
    for name, open_dialog in openers.items():
        open_dialog()
        await user.until(lambda: _opened() is not None, name)
        shown = _opened()
        assert shown is not None
        yield name, shown
        shown.reject()
        await user.until(lambda: _opened() is None, f"{name} closed")


def _opened() -> QDialog | None:
    tops = QApplication.topLevelWidgets()
    return next((each for each in tops if isinstance(each, QDialog) and each.isVisible()), None)


def texts_of(top: QWidget) -> dict[str, list[str]]:
    """Return the texts on a screen: `shown`, and of those the ones that are `cut`."""
    shown, cut = [], []
    for part in [top, *top.findChildren(QWidget)]:
        if not part.isVisibleTo(top) or part.visibleRegion().isEmpty():
            continue
        for read in _READ:
            value = getattr(part, read, None)
            if callable(value) and isinstance(text := value(), str) and text.strip():
                shown.append(text)
        if isinstance(part, QLabel | QAbstractButton) and part.text().strip():
            needed = part.minimumSizeHint() if isinstance(part, QLabel) else part.sizeHint()
            is_wrapped = isinstance(part, QLabel) and part.wordWrap()
            lacks_height = is_wrapped and part.heightForWidth(part.width()) > part.height() + 1
            if (not is_wrapped and part.width() + 1 < needed.width()) or lacks_height:
                cut.append(part.text())
    return {"shown": shown, "cut": cut}

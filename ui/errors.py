"""Presentation of errors: text for expected ones, a report dialog and the log for bugs."""

import logging
import platform
import sys
import traceback
from collections.abc import Callable
from types import TracebackType

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.domain.errors import KnownError
from app.domain.translation import tr

_log = logging.getLogger(__name__)


def error_text(error: BaseException) -> tuple[str, str]:
    """Return a title and a hint: what happened, and what the user can do next."""
    if isinstance(error, KnownError):
        return error.title, error.hint
    return (
        tr("The program failed: {name}").format(name=type(error).__name__),
        tr("Your conversations are safe. The log in the data folder has the details."),
    )


class ReportDialog(QDialog):
    """The report of a bug, to be copied; it contains no conversation text and no key."""

    def __init__(self, report: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Something went wrong"))
        self.resize(640, 420)
        explanation = QLabel(
            tr(
                "The program met an error it did not expect. Your conversations are safe, and you can "
                "continue. The report below stays on this computer; copy it to send it to us."
            ),
            self,
        )
        explanation.setWordWrap(True)
        text = QPlainTextEdit(report, self, readOnly=True)
        text.setAccessibleName(tr("Report"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        copy = buttons.addButton(tr("Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(report))
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.addWidget(explanation)
        column.addWidget(text, 1)
        column.addWidget(buttons)


def crash_report(error: BaseException) -> str:
    """Return versions and traceback of a bug, without the values of variables."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return f"Python {platform.python_version()} on {platform.platform()}\n\n{''.join(lines)}"


def install_exception_hook(show: Callable[[BaseException], None]) -> Callable[[], None]:
    """Log every uncaught exception and pass it to `show`; return a function that undoes this.

    Exceptions in Qt slots and overrides arrive here too.
    """
    previous = sys.excepthook
    listeners = [show]

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            previous(kind, error, trace)
            return
        _log.critical("uncaught exception", exc_info=(kind, error, trace))
        for listener in listeners:
            listener(error)

    def restore() -> None:
        sys.excepthook = previous
        listeners.clear()  # every thread keeps the hook that was installed when it started

    sys.excepthook = hook
    return restore

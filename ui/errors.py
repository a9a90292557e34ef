"""How a failure is shown: the world's fault where it happened, ours in a report and the log."""

import logging
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

_log = logging.getLogger(__name__)


def words_for(error: BaseException) -> tuple[str, str]:
    """Return what to show of an error: what happened, and what to do next."""
    if isinstance(error, KnownError):
        return error.title, error.hint
    return (
        f"The program failed: {type(error).__name__}",
        "Your conversations are safe. The report in the Help menu tells more.",
    )


class ReportDialog(QDialog):
    """A bug of ours, with what is needed to find it; it holds no conversation and no key."""

    def __init__(self, report: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Something went wrong")
        self.resize(640, 420)
        words = QLabel(
            "The program met an error it did not expect. Your conversations are safe, and you can "
            "go on. The report below stays on this computer; copy it if you want to tell us.",
            self,
        )
        words.setWordWrap(True)
        self._report = QPlainTextEdit(report, self)
        self._report.setReadOnly(True)
        self._report.setAccessibleName("Report")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(self._on_copy_clicked)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.addWidget(words)
        column.addWidget(self._report, 1)
        column.addWidget(buttons)

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._report.toPlainText())


def report_of(error: BaseException) -> str:
    """Return a bug's report: where it came from, without the values that were at hand."""
    import platform

    lines = traceback.format_exception(type(error), error, error.__traceback__)
    head = f"Python {platform.python_version()} on {platform.platform()}\n\n"
    return head + "".join(lines)


def catch_the_rest(show: Callable[[BaseException], None]) -> Callable[[], None]:
    """Log and show every exception that nobody caught; return what ends that.

    Exceptions in Qt slots and overrides come here too.
    """
    earlier = sys.excepthook
    listeners = [show]

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            earlier(kind, error, trace)
            return
        _log.critical("an error nobody caught", exc_info=(kind, error, trace))
        for listener in listeners:
            listener(error)

    sys.excepthook = hook

    def restore() -> None:
        sys.excepthook = earlier
        listeners.clear()  # threads remember the hook they were born under, for ever

    return restore

"""Presentation of errors: text, the report dialog, the hook for uncaught exceptions."""

import sys

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QPushButton

from app.domain.errors import InvalidInput
from ui.errors import ReportDialog, crash_report, error_text, install_exception_hook


def test_expected_errors_bring_their_text_and_bugs_name_something_that_exists() -> None:
    assert error_text(InvalidInput("No title", "Type one.")) == ("No title", "Type one.")
    title, hint = error_text(ZeroDivisionError("secret"))
    assert "ZeroDivisionError" in title
    assert "secret" not in title + hint
    assert "data folder" in hint


def test_the_report_can_be_copied_and_tells_where_the_error_came_from() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # noqa: B018
    report = crash_report(caught.value)
    assert "test_errors.py" in report
    assert "division by zero" in report
    dialog = ReportDialog(report)
    assert [each.toPlainText() for each in dialog.findChildren(QPlainTextEdit)] == [report]
    next(each for each in dialog.findChildren(QPushButton) if each.text() == "Copy").click()
    assert QGuiApplication.clipboard().text() == report


def test_uncaught_exceptions_are_logged_and_shown_until_the_hook_is_removed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    interrupts: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *given: interrupts.append(given[1]))
    shown: list[BaseException] = []
    restore = install_exception_hook(shown.append)
    hook, error, interrupt = sys.excepthook, ValueError("x"), KeyboardInterrupt()
    hook(ValueError, error, None)
    hook(KeyboardInterrupt, interrupt, None)
    assert (shown, interrupts) == ([error], [interrupt])
    assert len(caplog.records) == 1
    restore()
    hook(ValueError, error, None)
    assert shown == [error]

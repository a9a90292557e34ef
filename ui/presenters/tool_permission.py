"""The question whether a model may call a tool of another program now."""

from collections import deque

from PySide6.QtWidgets import QMessageBox, QWidget

from app.domain.text import one_line
from app.domain.translation import tr
from app.mcp.tool_servers import Permission, PermissionQuestion, ToolServers
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import Confirmation, confirm

_SHOWN_CHARS = 2000


class ToolPermissionPresenter(Presenter):
    """Asks for one call after the other; a question ends by itself when its reply was stopped."""

    _servers: ToolServers
    _window: QWidget

    def _set_up(self) -> None:
        self._waiting: deque[PermissionQuestion] = deque()
        self._shown: tuple[PermissionQuestion, QMessageBox] | None = None
        self._show_next = self._bridge.on_gui(self._on_next)
        self._servers.ask = self._ask

    def _ask(self, question: PermissionQuestion) -> None:
        """Add a question; called on the thread of a tool."""
        question.on_decided = self._show_next
        self._waiting.append(question)
        self._show_next()

    def _on_next(self) -> None:
        """Close the box of a question that was withdrawn, and show the next question."""
        if self._shown is not None:
            question, box = self._shown
            if question.answer is None:
                return
            box.done(0)
        while self._waiting:
            question = self._waiting.popleft()
            if question.answer is None:
                box = self._box(question)
                box.finished.connect(self._on_closed)
                self._shown = question, box
                return

    def _on_closed(self) -> None:
        self._shown = None
        self._show_next()

    def _box(self, question: PermissionQuestion) -> QMessageBox:
        arguments = question.arguments
        if len(arguments) > _SHOWN_CHARS:
            arguments = tr("{text}\n\u2026 {count} characters in all").format(
                text=arguments[:_SHOWN_CHARS], count=len(arguments)
            )
        tool = one_line(question.tool, 80)
        texts = Confirmation(
            tr("A tool is called"),
            tr("Let the model call “{tool}” of “{server}”?").format(
                tool=tool, server=question.server
            ),
            tr("It passes this:\n{arguments}").format(arguments=arguments),
            tr("Allow once"),
            tr("Refuse"),
            tr("Always allow"),
        )
        return confirm(
            self._window,
            texts,
            lambda: question.decide(allowed=True),
            lambda: question.decide(allowed=False),
            lambda: self._allow_always(question),
        )

    def _allow_always(self, question: PermissionQuestion) -> None:
        question.decide(allowed=True)
        self._bridge.save(
            lambda: self._servers.permit(question.server, question.tool, Permission.ALWAYS)
        )

"""Regeneration of summaries, facts and vectors: shown with its price, begun after a yes."""

from collections.abc import Callable
from typing import Protocol

from PySide6.QtWidgets import QApplication, QWidget

from app.workers.regeneration import RegenerationPlan
from ui.bridge import Bridge
from ui.views.dialogs.confirm import Confirmation, confirm


class Regeneration(Protocol):
    """A kind of work that can be done again. Blocking."""

    def plan(self) -> RegenerationPlan:
        """Return what would be done; raises KnownError if it cannot be."""
        ...

    def begin(self) -> None:
        """Start it; workers do the work."""
        ...


async def offer(
    regeneration: Regeneration,
    bridge: Bridge,
    parent: QWidget,
    title: str,
    question: str,
    button: str,
    show_text: Callable[[str], None],
) -> None:
    """Ask whether to begin; call `show_text` instead if there is nothing to do."""
    plan = await bridge.run(regeneration.plan)
    if not plan.count:
        show_text(plan.text)
        return
    asked = Confirmation(title, question, plan.text, button)
    confirm(
        QApplication.activeWindow() or parent,
        asked,
        lambda: bridge.submit(bridge.write(regeneration.begin)),
    )

"""Regeneration of summaries, facts and vectors: shown with its price, begun after a yes."""

from collections.abc import Callable

from PySide6.QtWidgets import QApplication, QWidget

from app.workers.regeneration import EmbeddingRegeneration, ModelRegeneration, RegenerationPlan
from ui.bridge import Bridge, OnError
from ui.views.dialogs.confirm import Confirmation, confirm

Regeneration = ModelRegeneration | EmbeddingRegeneration


def offer(
    bridge: Bridge,
    regeneration: Regeneration,
    parent: QWidget,
    texts: tuple[str, str, str],
    show_text: Callable[[str], object],
    on_error: OnError | None = None,
) -> None:
    """Ask whether to begin, with the title, question and button of `texts`.

    Calls `show_text` instead if there is nothing to do.
    """

    def ask(plan: RegenerationPlan) -> None:
        if not plan.count:
            show_text(plan.text)
            return
        title, question, button = texts
        confirm(
            QApplication.activeWindow() or parent,
            Confirmation(title, question, plan.text, button),
            lambda: bridge.save(regeneration.begin, on_error=on_error),
        )

    bridge.load(f"regenerate: {texts[0]}", regeneration.plan, ask, on_error)

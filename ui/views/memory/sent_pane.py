"""The prompt of an answer, part by part, and how it differs from the previous one."""

from collections.abc import Sequence

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.chat.inspector import Inspection, requests_text
from app.chat.sent_prompt import PartDifference, PartState, SentPart, SentPrompt
from app.domain.conversations import Usage
from app.domain.recall import PlanPartKind
from ui.theme import Theme
from ui.widgets.controls import button, column_in, filled, scroll_area
from ui.widgets.plain_label import plain_label
from ui.widgets.prompt_part import PromptPartPanel

_DOT = "  \N{MIDDLE DOT}  "
PART_NAMES = {
    PlanPartKind.SYSTEM_PROMPT: "System prompt",
    PlanPartKind.PROFILE: "Profile",
    PlanPartKind.CORE_MEMORY: "Core memory",
    PlanPartKind.TOOLS: "Tools",
    PlanPartKind.COMPACTION: "Summary of older messages",
    PlanPartKind.SHORTENED: "Older messages, tool results left out",
    PlanPartKind.HISTORY: "Messages of this conversation",
    PlanPartKind.DATE: "Date and time",
    PlanPartKind.FACTS: "Facts",
    PlanPartKind.RELATED: "Related past",
    PlanPartKind.EARLIER: "Earlier in this conversation",
    PlanPartKind.QUESTION: "Your message",
    PlanPartKind.NOTE: "Added by Commonplace",
}


class SentPane(QWidget):
    """The parts of one prompt."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown: Inspection | None = None
        self._summary = plain_label(self, "small")
        what, before = (
            "Copy everything that was sent",
            "Compare with the prompt of the previous answer",
        )
        self.copy = button(self, "Copy", self._on_copy_clicked, tip=what)
        self.compare = button(self, "What changed", tip=before)
        self.compare.setCheckable(True)
        self.compare.toggled.connect(self._on_compare_toggled)
        self._body = QWidget(self)
        self._parts = column_in(self._body, margins=(0, 0, 6, 0), spacing=6)
        self._scroll = scroll_area(self, self._body)
        self._scroll.setAccessibleName("What was sent")
        self._buttons = QWidget(self)
        row = QHBoxLayout(self._buttons)
        filled(row, self.compare, self.copy, None, margins=(0, 0, 0, 0))
        parts = (self._summary, self._buttons, (self._scroll, 1))
        filled(QVBoxLayout(self), *parts, margins=(0, 8, 0, 0)).addStretch(0)

    def show_inspection(self, inspection: Inspection, absence: str) -> None:
        """Show what was sent, or `absence`, the reason why no prompt is stored."""
        if inspection == self._shown:
            return
        self._shown = inspection
        sent = inspection.sent
        self._summary.setText(absence if sent is None else summary_text(inspection, sent))
        self._buttons.setVisible(sent is not None)
        self._scroll.setVisible(sent is not None)
        self.compare.setEnabled(inspection.compared is not None)
        if inspection.compared is None:
            self.compare.setChecked(False)
            self.compare.setToolTip("There is no earlier prompt to compare with")
        self._draw()

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme."""
        self._theme = theme
        self._draw()

    def _draw(self) -> None:
        while (item := self._parts.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        shown = self._shown
        if shown is None or shown.sent is None:
            return
        if self.compare.isChecked() and shown.compared is not None:
            self._draw_differences(shown.compared)
        else:
            self._draw_parts(shown.sent.parts)
        self._parts.addStretch(1)

    def _draw_parts(self, parts: Sequence[SentPart]) -> None:
        for part in parts:
            self._panel(part.kind, part_figures(part)).show_words(part.text)

    def _draw_differences(self, differences: Sequence[PartDifference]) -> None:
        for each in differences:
            words = "the same" if each.state is PartState.SAME else each.state.value
            self._panel(each.kind, words).show_lines(each.lines)

    def _panel(self, kind: PlanPartKind, figures: str) -> PromptPartPanel:
        panel = PromptPartPanel(PART_NAMES[kind], figures, self._theme, self._body)
        self._parts.addWidget(panel)
        return panel

    def _on_compare_toggled(self, _on: bool) -> None:
        self._draw()

    def _on_copy_clicked(self) -> None:
        if self._shown is not None and self._shown.sent is not None:
            QGuiApplication.clipboard().setText(copied(self._shown.sent))


def part_figures(part: SentPart) -> str:
    """Return what a part takes: tokens, its share, messages, and whether a cache may hold it."""
    words = [f"{part.tokens:,} tokens ({part.share:.0%})"]
    if part.messages and part.kind is not PlanPartKind.QUESTION:
        words.append(f"{part.messages:,} {'message' if part.messages == 1 else 'messages'}")
    words.append("cacheable" if part.cacheable else "new each time")
    return _DOT.join(words)


def summary_text(inspection: Inspection, sent: SentPrompt) -> str:
    """Return the model, the share of its context used, and the provider's token counts."""
    prompt = inspection.prompt
    assert prompt is not None
    used = sent.tokens / max(1, prompt.limit_tokens)
    size = f"about {sent.tokens:,} of {prompt.limit_tokens:,} tokens ({used:.0%})"
    lines = [f"{prompt.model}{_DOT}{size}{_DOT}{sent.cacheable_share:.0%} cacheable"]
    if words := requests_text(inspection):
        lines.append(words)
    if inspection.run == 0 and inspection.exchange.usage is not None:
        lines.append(usage_text(inspection.exchange.usage))
    if prompt.notice:
        lines.append(f"Recall: {prompt.notice}")
    return "\n".join(lines)


def usage_text(usage: Usage) -> str:
    """Return the provider's token counts for all requests of an answer, and the cost."""
    if usage.estimated:
        said = f"The provider counted nothing; about {usage.input_tokens:,} in"
    else:
        said = f"The provider counted {usage.input_tokens:,} in"
    if usage.cached_tokens:
        share = usage.cached_tokens / max(1, usage.input_tokens)
        said += f", {usage.cached_tokens:,} of them from its cache ({share:.0%})"
    if usage.cache_write_tokens:
        said += f", {usage.cache_write_tokens:,} written to it"
    said += f", {usage.output_tokens:,} out"
    if usage.cost_usd is None:
        return f"{said}{_DOT}cost unknown"
    price = f" ({usage.price})" if usage.price else ""
    cost = "no cost" if usage.cost_usd == 0 else f"${usage.cost_usd:.4f}"
    return f"{said}{_DOT}{cost}{price}"


def copied(sent: SentPrompt) -> str:
    """Return the whole prompt as text, each part under its name."""
    return "\n\n".join(
        f"[{PART_NAMES[part.kind]}, about {part.tokens:,} tokens]\n{part.text}"
        for part in sent.parts
    )

"""The prompt of an answer, part by part, and how it differs from the previous one."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.chat.inspector import Inspection, requests_text
from app.chat.sent_prompt import PartDifference, PartState, SentPart, SentPrompt
from app.domain.conversations import Usage
from app.domain.recall import PlanPartKind
from app.domain.text import translate_lines
from app.domain.translation import format_number, format_percent, money, tr, trn
from ui.widgets.controls import button, clear, column_in, filled, scroll_area
from ui.widgets.plain_label import plain_label
from ui.widgets.prompt_part import PromptPartPanel

_DOT = "  \N{MIDDLE DOT}  "
PART_NAMES = {
    PlanPartKind.SYSTEM_PROMPT: tr("System prompt"),
    PlanPartKind.PROFILE: tr("Profile"),
    PlanPartKind.CORE_MEMORY: tr("Core memory"),
    PlanPartKind.TOOLS: tr("Tools"),
    PlanPartKind.COMPACTION: tr("Summary of older messages"),
    PlanPartKind.SHORTENED: tr("Older messages, tool results left out"),
    PlanPartKind.HISTORY: tr("Messages of this conversation"),
    PlanPartKind.DATE: tr("Date and time"),
    PlanPartKind.FACTS: tr("Facts"),
    PlanPartKind.RELATED: tr("Related past"),
    PlanPartKind.DOCUMENTS: tr("Documents"),
    PlanPartKind.EARLIER: tr("Earlier in this conversation"),
    PlanPartKind.QUESTION: tr("Your message"),
    PlanPartKind.NOTE: tr("Added by Commonplace"),
}


class SentPane(QWidget):
    """The parts of one prompt."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: Inspection | None = None
        self._summary = plain_label(self, "small")
        what, before = (
            tr("Copy everything that was sent"),
            tr("Compare with the prompt of the previous answer"),
        )
        self.copy = button(self, tr("Copy"), self._on_copy_clicked, tip=what)
        self.compare = button(self, tr("What changed"), tip=before)
        self.compare.setCheckable(True)
        self.compare.toggled.connect(lambda _on: self._draw())
        self._body = QWidget(self)
        self._parts = column_in(self._body, margins=(0, 0, 6, 0), spacing=6)
        self._scroll = scroll_area(self, self._body)
        self._scroll.setAccessibleName(tr("What was sent"))
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
            self.compare.setToolTip(tr("There is no earlier prompt to compare with"))
        self._draw()

    def _draw(self) -> None:
        clear(self._parts)
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
            words = tr("the same") if each.state is PartState.SAME else each.state.value
            self._panel(each.kind, words).show_lines(each.lines)

    def _panel(self, kind: PlanPartKind, figures: str) -> PromptPartPanel:
        panel = PromptPartPanel(PART_NAMES[kind], figures, self._body)
        self._parts.addWidget(panel)
        return panel

    def _on_copy_clicked(self) -> None:
        if self._shown is not None and self._shown.sent is not None:
            QGuiApplication.clipboard().setText(copied(self._shown.sent))

    # Qt overrides

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()


def part_figures(part: SentPart) -> str:
    """Return what a part takes: tokens, its share, messages, and whether a cache may hold it."""
    words = [
        tr("{tokens} tokens ({share})").format(
            tokens=format_number(part.tokens), share=format_percent(part.share)
        )
    ]
    if part.messages and part.kind is not PlanPartKind.QUESTION:
        words.append(trn("{count} message", "{count} messages", part.messages))
    words.append(tr("cacheable") if part.cacheable else tr("new each time"))
    return _DOT.join(words)


def summary_text(inspection: Inspection, sent: SentPrompt) -> str:
    """Return the model, the share of its context used, and the provider's token counts."""
    prompt = inspection.prompt
    assert prompt is not None
    used = sent.tokens / max(1, prompt.limit_tokens)
    size = tr("about {tokens} of {limit_tokens} tokens ({used})").format(
        tokens=format_number(sent.tokens),
        limit_tokens=format_number(prompt.limit_tokens),
        used=format_percent(used),
    )
    lines = [
        _DOT.join((
            prompt.model, size,
            tr("{share} cacheable").format(share=format_percent(sent.cacheable_share)),
        ))
    ]  # fmt: skip
    if words := requests_text(inspection):
        lines.append(words)
    if inspection.run == 0 and inspection.exchange.usage is not None:
        lines.append(usage_text(inspection.exchange.usage))
    if prompt.notice:
        lines.append(translate_lines(prompt.notice))
    return "\n".join(lines)


def usage_text(usage: Usage) -> str:
    """Return the provider's token counts for all requests of an answer, and the cost."""
    if usage.estimated:
        said = tr("The provider counted nothing; about {input_tokens} in").format(
            input_tokens=format_number(usage.input_tokens)
        )
    else:
        said = tr("The provider counted {input_tokens} in").format(
            input_tokens=format_number(usage.input_tokens)
        )
    if usage.cached_tokens:
        share = usage.cached_tokens / max(1, usage.input_tokens)
        said += tr(", {cached_tokens} of them from its cache ({share})").format(
            cached_tokens=format_number(usage.cached_tokens), share=format_percent(share)
        )
    if usage.cache_write_tokens:
        said += tr(", {cache_write_tokens} written to it").format(
            cache_write_tokens=format_number(usage.cache_write_tokens)
        )
    said += tr(", {output_tokens} out").format(output_tokens=format_number(usage.output_tokens))
    if usage.cost_usd is None:
        return f"{said}{_DOT}{tr('cost unknown')}"
    price = f" ({usage.price})" if usage.price else ""
    cost = tr("no cost") if usage.cost_usd == 0 else money(usage.cost_usd, 4)
    return f"{said}{_DOT}{cost}{price}"


def copied(sent: SentPrompt) -> str:
    """Return the whole prompt as text, each part under its name."""
    return "\n\n".join(
        tr("[{part}, about {tokens} tokens]\n{text}").format(
            part=PART_NAMES[part.kind], tokens=format_number(part.tokens), text=part.text
        )
        for part in sent.parts
    )

"""The footer of a message: its figures, branches and buttons, and the menu of its turn."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app.domain.conversations import Message
from app.domain.ids import MessageId
from app.domain.translation import format_milliseconds, format_number, model_label, money, tr
from app.domain.turns import RECALL_MODEL
from ui.rendering.inline import tooltip_text
from ui.theme import Theme
from ui.widgets.controls import action_button
from ui.widgets.plain_label import PlainLabel
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.layout import FlowRow, remeasure
from ui.widgets.transcript.values import Branch, Footer
from ui.widgets.transcript.wide_areas import copy_text

_ACTIONS = {  # the signal of `TurnEvents`: label and tool tip
    "regenerate_requested": (tr("Regenerate"), tr("Answer again; this answer stays as a branch")),
    "fork_requested": (
        tr("Fork from here"),
        tr("Begin a new conversation with everything up to here"),
    ),
    "link_requested": (tr("Copy link"), tr("Copy a link to this turn")),
    "brief_requested": (
        tr("Copy brief from here"),
        tr(
            "Copy this turn and those after it for another agent or a person: dated, linked, secrets hidden"
        ),
    ),
    "inspect_requested": (
        tr("Inspect"),
        tr("Show what was recalled for this answer, and exactly what was sent"),
    ),
    "other_model_requested": (
        tr("Regenerate with another model\N{HORIZONTAL ELLIPSIS}"),
        tr("Choose a model that answers this once; this answer stays as a branch"),
    ),
    "coverage_requested": (
        tr("Is this found by search?"),
        tr("Show whether search finds this turn by its text and by meaning, and if not, why"),
    ),
    "why_requested": (
        tr("Why wasn't this recalled?\N{HORIZONTAL ELLIPSIS}"),
        tr("Ask a question, and see this turn's rank and what excluded it"),
    ),
    "forget_requested": (
        tr("Forget this turn\N{HORIZONTAL ELLIPSIS}"),
        tr("Delete what was said here for good, and everything derived from it"),
    ),
}
_OF_ANSWERS = {
    "regenerate_requested",
    "other_model_requested",
    "fork_requested",
    "inspect_requested",
}
_IN_FOOTER = {"regenerate_requested", "fork_requested", "link_requested", "inspect_requested"}
# Not offered in a read-only conversation.
_CHANGES = {
    "regenerate_requested", "other_model_requested", "fork_requested", "forget_requested",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Action:
    """An action on a message; rare ones are `only_in_menu`, without a button in the footer."""

    label: str
    tip: str
    run: Callable[[], None]
    only_in_menu: bool = False


_MORE = "\u2026"

_button_widths: dict[tuple[Theme, str], int] = {}
"""The width of a button by its label, measured once per theme."""


class MessageFooter(QWidget):
    """Branches and figures on one side, actions on the other; actions show on request.

    Nothing moves when they appear: where there is no room for both, they cover the end of the
    figures. Where the actions always show, the figures get a line of their own. Rare actions and those
    without room are in the menu of a last button. `switch(message_id, position)` shows a sibling,
    counted from 1.

    Attributes:
        always_shows_actions: As under the last answer.
        margin: Space left and right of the message, which buttons reach into. In pixels.
    """

    def __init__(
        self,
        context: RenderContext,
        actions: Sequence[Action],
        switch: Callable[[MessageId, int], None],
        *,
        right: bool = False,
    ) -> None:
        super().__init__()
        self._context, self._switch_to, self._right = context, switch, right
        self._actions = [each for each in actions if not each.only_in_menu]
        self._all_actions = actions
        self._bar: FlowRow | None = None
        self.buttons: tuple[QToolButton, ...] = ()
        self._more = self._button(_MORE, tr("More actions"))
        self._more.setAccessibleName(tr("More actions"))
        self._more.clicked.connect(self._on_more_clicked)
        self._more.hide()
        self._branches: list[FlowRow] = []
        self._figures = PlainLabel("", tone="small")
        self._figures.setParent(self)
        self._figures.hide()
        self._text = ""
        self.always_shows_actions = False
        self._gap, self.margin = context.px(0.55), context.px(0.3)
        self._widths = [self._width_of(each.label) for each in self._actions]
        # known before there are buttons, so that nothing moves when they appear
        self._has_rare = len(self._actions) < len(actions)
        self._bar_width = self._width_of_first(len(self._actions), more=self._has_rare)

    def show_figures(self, text: str) -> None:
        """Show model and cost; "" hides them."""
        self._text = text
        self._figures.setVisible(bool(text))
        self._figures.setToolTip(tooltip_text(text))
        self._figures.setAccessibleName(text)
        remeasure(self)

    def show_branches(self, branches: Sequence[Branch]) -> None:
        for row in self._branches:
            row.deleteLater()
        self._branches = [self._switch(each) for each in branches if each.count > 1]
        remeasure(self)

    def show_actions(self, shown: bool) -> None:
        """Show or hide the actions; they are created the first time."""
        if shown and self._bar is None:
            self._bar = FlowRow(self, gap=self._gap)
            self.buttons = tuple(self._button(each.label, each.tip) for each in self._actions)
            for action, button in zip(self._actions, self.buttons, strict=True):
                button.clicked.connect(action.run)
            for button in (*self.buttons, self._more):
                self._bar.add(button)
            self._more.setVisible(self._has_rare)
        if self._bar is not None:
            self._bar.setVisible(shown)
            self.height_for(self.width() - 2 * self.margin)

    def fill_menu(self, menu: QMenu) -> None:
        for action in self._all_actions:
            menu.addAction(action.label, action.run)

    def height_for(self, width: int) -> int:
        """Place switches, figures and actions in a width without the margins.

        Return the height of one or two lines.
        """
        self._more.ensurePolished()
        line = self._more.sizeHint().height()
        gap, bar = self._context.px(0.5), min(width, self._bar_width)
        switches = [row.natural_width() + gap for row in self._branches]
        left = max(0, width - sum(switches)) if self._right else 0
        for row, taken in zip(self._branches, switches, strict=True):
            row.height_for(taken - gap)
            row.setGeometry(self.margin + left, 0, taken - gap, line)
            left += taken
        self._figures.ensurePolished()
        metrics = QFontMetrics(self._figures.font())
        fits = (
            not self._text or left + metrics.horizontalAdvance(self._text) + 2 + gap + bar <= width
        )
        two_lines = self.always_shows_actions and not fits
        covers = self._bar is not None and not self._bar.isHidden() and not two_lines
        if self._text:
            room = max(1, width - left - (bar + gap if covers else 0))
            self._figures.setText(metrics.elidedText(self._text, Qt.TextElideMode.ElideRight, room))
            self._figures.setGeometry(self.margin + left, 0, room, line)
        if self._bar is not None:
            bar = min(bar, self._fold_actions(width - (0 if two_lines else sum(switches))))
            self._bar.height_for(bar)
            after = width - bar if self._text else left
            x = width - sum(switches) - bar if self._right else 0 if two_lines else after
            # The labels, not their buttons, are in line with the text of the message.
            inset = (self._width_of(_MORE) - self._more.fontMetrics().horizontalAdvance(_MORE)) // 2
            x = max(0, x) + self.margin + (inset if x > 0 else -inset)
            self._bar.setGeometry(x, line if two_lines else 0, bar, line)
        return 2 * line if two_lines else line

    def _fold_actions(self, room: int) -> int:
        """Show as many actions as there is room for, first to last; return their width."""
        taken, count = self._bar_width, len(self._actions)
        while count and taken > room:
            count -= 1
            taken = self._width_of_first(count, more=True)
        for number, button in enumerate(self.buttons):
            button.setVisible(number < count)
        self._more.setVisible(self._has_rare or count < len(self._actions))
        return taken

    def _width_of_first(self, count: int, *, more: bool) -> int:
        """Return the width of the first buttons, with that of the menu or without."""
        widths = self._widths[:count] + ([self._width_of(_MORE)] if more else [])
        return sum(widths) + self._gap * max(0, len(widths) - 1)

    def _on_more_clicked(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        shown = [each.text() for each in self.buttons if not each.isHidden()]
        for action in self._all_actions:
            if action.label not in shown:
                menu.addAction(action.label, action.run)
        menu.popup(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    def _width_of(self, label: str) -> int:
        key = (self._context.theme, label)
        if key not in _button_widths:
            self._more.setText(label)
            self._more.ensurePolished()
            _button_widths[key] = self._more.sizeHint().width()
            self._more.setText(_MORE)
        return _button_widths[key]

    def _switch(self, branch: Branch) -> FlowRow:
        row = FlowRow(self, gap=0)
        place = PlainLabel(f"{branch.position}/{branch.count}", tone="small")
        place.setAccessibleName(
            tr("Branch {position} of {count}").format(position=branch.position, count=branch.count)
        )
        back = self._button("‹", tr("Show the previous branch"))
        forward = self._button("›", tr("Show the next branch"))
        for button, position in ((back, branch.position - 1), (forward, branch.position + 1)):
            button.setEnabled(1 <= position <= branch.count)
            request = partial(self._switch_to, branch.message_id, position)
            button.clicked.connect(request)
        for member in (back, place, forward):
            row.add(member)
        row.show()
        return row

    def _button(self, label: str, tip: str) -> QToolButton:
        button = action_button(self, label, tip)
        button.setAccessibleDescription(tip)
        return button


def footer_text(footer: Footer) -> str:
    """Return one line: model, tokens in (cached ones apart) and out, cost, first token, duration.

    An unknown price is "cost unknown", never 0; estimated counts are marked "about". Recall has no tokens
    that cost, and of a request that was refused none were counted.
    """
    parts = [model_label(footer.model)] if footer.model else []
    usage = footer.usage
    is_refused = usage is not None and usage.estimated and not usage.output_tokens
    if usage is not None and footer.model != RECALL_MODEL and not is_refused:
        about = tr("about ") if usage.estimated else ""
        cached = (
            tr(" ({cached_tokens} cached)").format(cached_tokens=format_number(usage.cached_tokens))
            if usage.cached_tokens
            else ""
        )
        parts.append(
            tr("{about}{input_tokens} in{cached}, {output_tokens} out").format(
                about=about,
                input_tokens=format_number(usage.input_tokens),
                cached=cached,
                output_tokens=format_number(usage.output_tokens),
            )
        )
        parts.append(_cost_text(usage.cost_usd))
        if usage.first_token_ms is not None:
            parts.append(
                tr("{format_milliseconds} to first token").format(
                    format_milliseconds=format_milliseconds(usage.first_token_ms)
                )
            )
    if usage is not None and usage.duration_ms is not None:
        parts.append(
            tr("{format_milliseconds} in total").format(
                format_milliseconds=format_milliseconds(usage.duration_ms)
            )
        )
    return "  ·  ".join(parts)


def _cost_text(cost_usd: float | None) -> str:
    if cost_usd is None:
        return tr("cost unknown")
    if cost_usd == 0:
        return tr("no cost")
    if cost_usd >= 1:
        return money(cost_usd)
    return (
        money(cost_usd, 4)
        if cost_usd >= 0.0001
        else tr("under {amount}").format(amount=money(0.0001, 4))
    )


def answer_actions(
    context: RenderContext,
    index: int,
    text: Callable[[], str],
    ids: Callable[[], tuple[MessageId, ...]],
    *,
    can_forget: bool,
) -> list[Action]:
    """Return the actions of the answer of turn `index`; `ids` are the messages to forget."""
    tip = tr("Copy the answer as Markdown")
    actions = [Action(tr("Copy"), tip, lambda: copy_text(text()))]
    actions += _turn_actions(context, index, _ACTIONS, text)
    if can_forget:
        label = tr("Forget only this answer\N{HORIZONTAL ELLIPSIS}")
        actions += _forgetting(context, index, label, ids)
    return actions


def question_actions(context: RenderContext, index: int, message: Message) -> list[Action]:
    """Return the actions of the user's message of turn `index`."""
    actions = [Action(tr("Copy"), tr("Copy the message"), partial(copy_text, message.text))]
    if not context.is_read_only:
        edit = partial(context.events.edit_requested.emit, index, message.id)
        tip = tr("Change the message; what follows stays as a branch")
        actions.append(Action(tr("Edit"), tip, edit))
    names = [name for name in _ACTIONS if name not in _OF_ANSWERS]
    actions += _turn_actions(context, index, names, lambda: message.text)
    if not message.is_forgotten:
        label = tr("Forget only this message\N{HORIZONTAL ELLIPSIS}")
        actions += _forgetting(context, index, label, lambda: (message.id,))
    return actions


def _turn_actions(
    context: RenderContext, index: int, names: Iterable[str], text: Callable[[], str]
) -> Iterator[Action]:
    """Yield actions by their signals, and one that quotes a text in the composer."""
    events, is_read_only = context.events, context.is_read_only
    if not is_read_only:
        tip = tr("Put the text into your message as a quotation")
        quote = tr("Quote in my message")
        yield Action(quote, tip, lambda: events.quote_requested.emit(text()), only_in_menu=True)
    for name in names:
        if name not in _CHANGES or not is_read_only:
            run = partial(getattr(events, name).emit, index)
            yield Action(*_ACTIONS[name], run, only_in_menu=name not in _IN_FOOTER)


def _forgetting(
    context: RenderContext, index: int, label: str, ids: Callable[[], tuple[MessageId, ...]]
) -> Iterator[Action]:
    """Yield what deletes a part of the turn, unless the conversation is read-only."""
    if not context.is_read_only:
        requested = context.events.forget_messages_requested
        tip = tr("Delete its text for good, and everything derived from this turn")
        yield Action(label, tip, lambda: requested.emit(index, ids()), only_in_menu=True)

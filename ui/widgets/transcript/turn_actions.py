"""Actions of a question and of an answer: buttons below it, and entries of its menu."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from app.domain.conversations import Message
from app.domain.ids import MessageId
from app.domain.translation import tr
from ui.widgets.transcript.code_controls import copy_text
from ui.widgets.transcript.context import RenderContext
from ui.widgets.transcript.message_footer import Action

_ACTIONS = {  # the signal of `TurnEvents`: label and tool tip
    "regenerate_requested": (tr("Regenerate"), tr("Answer again; this answer stays as a branch")),
    "fork_requested": (
        tr("Fork from here"),
        tr("Begin a new conversation with everything up to here"),
    ),
    "link_requested": (tr("Copy link"), tr("Copy a link to this turn")),
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
_CHANGES = {  # not offered in a read-only conversation
    "regenerate_requested",
    "other_model_requested",
    "fork_requested",
    "forget_requested",
}


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

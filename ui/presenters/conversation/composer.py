"""The composer while a message is written: what memory would bring, mentions, its cost, and one that waits."""

import threading
from collections.abc import Callable, Sequence

from PySide6.QtCore import QTimer
from PySide6.QtGui import QTextDocumentFragment

from app.chat.message_cost import SHOWN_FROM_USD, MessageCosts
from app.chat.reply import Reply
from app.chat.typed_recall import TypedContribution, TypedItem, TypedRecall
from app.commands.table import CompletionItem
from app.domain.change_set import ChangeSet
from app.domain.conversations import Draft, Exchange, ExchangeStatus, Text
from app.domain.ids import ConversationId
from app.domain.passages import PassageKind
from app.domain.text import one_line
from app.domain.translation import format_day, money, tr
from app.memory.recall.mentions import Mentionable, Mentions
from ui.models.labels import kind_text, source_text
from ui.presenters.conversation.compose import ComposePresenter
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.widgets.composer.composer import Composer
from ui.widgets.composer.memory_switch import MemoryItem

_RECALL_PAUSE_MS = 300
_RECALL = "recall while typing"
_TITLE_CHARS, _SENTENCE_CHARS = 34, 220  # as much as the list is wide
_TEXT_KINDS = (PassageKind.FACT, PassageKind.MEMORY)
_MENTIONS_SHOWN = 8
_COST_PAUSE_MS = 700
_COST = "message cost"
_SHOWN_CHARS = 120


class TypedRecallPresenter(Presenter):
    """Has what is typed searched for; the result is shown, and kept for sending the same text.

    `is_on` is the setting of recall.
    """

    _typed: TypedRecall
    _composer: Composer
    _conversation: ConversationPresenter
    _is_on: Callable[[], bool]

    def _set_up(self) -> None:
        self._pause = QTimer(self, singleShot=True, interval=_RECALL_PAUSE_MS)
        self._pause.timeout.connect(self._search)
        self._is_changed = threading.Event()  # of the last text that was searched for
        self._composer.box.textChanged.connect(self._on_text_changed)
        self._composer.memory.choice_changed.connect(self._search)
        self._conversation.opened.connect(self.show_use)
        self._conversation.updated.connect(self.show_use)
        self._conversation.project_chosen.connect(self._search)
        self._bridge.subscribe(self.show_use, "rag_enabled")

    def show_use(self, *_: object) -> None:
        """Show whether memory is used here, and what it brings."""
        view = self._conversation.view
        is_on_here = self._conversation.new.recalls if view is None else view.conversation.recalls
        self._composer.memory.show_use(is_on=self._is_on(), is_on_here=is_on_here)
        self._pause.start()

    def _on_text_changed(self) -> None:
        """Cancel the search for another text; sending, which takes the text out, waits for it."""
        if self._composer.text.strip():
            self._is_changed.set()
        self._pause.start()

    def _search(self) -> None:
        draft, here = self._composer.draft, self._conversation.conversation_id
        if not draft.text.strip():
            self._composer.memory.show_items(None)
            self._composer.box.mark_mentions(())
            return
        changed = self._is_changed = threading.Event()
        project = self._conversation.new.project
        # A failure concerns nobody here: sending the message meets and reports it.
        self._bridge.load(
            _RECALL,
            lambda: self._typed.prepare(draft, here, changed.is_set, project),
            lambda found: self._show(found, draft.text),
            lambda _: None,
        )

    def _show(self, found: TypedContribution, text: str) -> None:
        if self._composer.text == text:
            items = found.items
            self._composer.memory.show_items(None if items is None else [*map(_item, items)])
            self._composer.box.mark_mentions([(each.start, each.end) for each in found.mentions])


def _item(found: TypedItem) -> MemoryItem:
    place = found.place
    is_text = place.item.kind in _TEXT_KINDS
    title = source_text(place, _TITLE_CHARS)
    if is_text:  # the label of a fact is its text
        title = ", ".join(filter(None, (kind_text(place), one_line(place.title, _TITLE_CHARS))))
    if place.said_at is not None:
        title = f"{title} \N{MIDDLE DOT} {format_day(place.said_at)}"
    words = QTextDocumentFragment.fromMarkdown(found.sentence).toPlainText()
    if words.startswith("|"):  # a row of a table
        words = ", ".join(filter(None, map(str.strip, words.split("|"))))
    return MemoryItem(
        place.item.passage_id, title, kind_text(place),
        one_line(words, _SENTENCE_CHARS), is_left_out=found.is_left_out,
    )  # fmt: skip


class MentionPresenter(Presenter):
    """Completes what is typed after an @, and remembers which conversation was chosen."""

    _mentions: Mentions
    _composer: Composer
    _conversation: ConversationPresenter

    def _set_up(self) -> None:
        self._shown: dict[str, ConversationId] = {}  # by the text of the completion
        self._composer.completer.mention_typed.connect(self._on_typed)
        self._composer.completer.mention_chosen.connect(self._on_chosen)

    def _on_typed(self, typed: str) -> None:
        here = self._conversation.conversation_id
        self._bridge.load(
            "mentions",
            lambda: self._mentions.matching(typed, _MENTIONS_SHOWN, here),
            lambda found: self._show(typed, found),
            lambda _: None,
        )

    def _show(self, typed: str, found: Sequence[Mentionable]) -> None:
        items = [
            CompletionItem(each.title, each.title, format_day(each.updated_at)) for each in found
        ]
        self._shown = {each.title: each.id for each in reversed(found)}
        self._composer.completer.show_mentions(typed, items)

    def _on_chosen(self, title: str) -> None:
        if (chosen := self._shown.get(title)) is not None:
            self._mentions.choose(title, chosen)


class MessageCostPresenter(Presenter):
    """Shows what sending the typed text costs, from one cent on."""

    _costs: MessageCosts
    _composer: Composer
    _conversation: ConversationPresenter

    def _set_up(self) -> None:
        self._pause = QTimer(self, singleShot=True, interval=_COST_PAUSE_MS)
        self._pause.timeout.connect(self._estimate)
        self._composer.box.textChanged.connect(self._on_draft_changed)
        self._composer.files.changed.connect(self._on_draft_changed)
        self._conversation.opened.connect(self.refresh)
        self._conversation.updated.connect(self.refresh)
        self._conversation.project_chosen.connect(self.refresh)
        self._bridge.subscribe(
            self._on_changed, "messages_in", "presets", "default_preset", "default_model",
            "own_prices", "system_prompt",
        )  # fmt: skip

    def refresh(self, *_: object) -> None:
        """Estimate again after a pause, such as when another model was chosen."""
        self._bridge.cancel(_COST)
        self._pause.start()

    def _on_draft_changed(self) -> None:
        if not self._composer.text.strip() and not self._composer.draft.files:
            self._composer.show_cost("")
        self.refresh()

    def _on_changed(self, changed: ChangeSet) -> None:
        here = self._conversation.conversation_id
        if changed.settings or changed.presets or here in changed.messages_in:
            self.refresh()

    def _estimate(self) -> None:
        draft, here = self._composer.draft, self._conversation.conversation_id
        if draft.text.startswith("/") or not (draft.text.strip() or draft.files):
            self._show(None)
            return
        new = self._conversation.new
        self._bridge.load(
            _COST,
            lambda: self._costs.cost_usd((Text(draft.text), *draft.files), here, new),
            self._show,
            lambda _: self._show(None),
        )

    def _show(self, cost_usd: float | None) -> None:
        text = ""
        if cost_usd is not None and cost_usd >= SHOWN_FROM_USD:
            text = tr("About {cost} to send").format(cost=money(cost_usd))
        self._composer.show_cost(text)


class QueuePresenter(Presenter):
    """Keeps one message for each conversation; a further one is added to it.

    It is stored with the draft, so that it survives a crash. After a reply that was stopped or
    failed it goes back into the message box instead of being sent.
    """

    _compose: ComposePresenter
    _conversation: ConversationPresenter
    _composer: Composer

    def _set_up(self) -> None:
        self._compose.queued.connect(self._on_queued)
        self._compose.start_failed.connect(self._put_back)
        self._composer.queue_cancelled.connect(self._on_cancelled)
        self._conversation.reply_ended.connect(self._on_reply_ended)
        self._conversation.opened.connect(lambda _: self._show())

    def _on_queued(self, draft: Draft) -> None:
        conversation, here = self._conversation, self._conversation.target_id
        if here is None:
            return
        earlier = conversation.drafts.queued.get(here, Draft())
        conversation.drafts.queued[here] = earlier.followed_by(draft)
        conversation.drafts.save(here, Draft())
        self._show()

    def _on_cancelled(self) -> None:
        if (here := self._conversation.target_id) is not None:
            self._put_back(here)

    def _on_reply_ended(self, reply: Reply, outcome: object) -> None:
        conversation_id = reply.plan.conversation.id
        if conversation_id not in self._conversation.drafts.queued:
            return
        if isinstance(outcome, Exchange) and outcome.status is ExchangeStatus.COMPLETED:
            message = self._conversation.drafts.queued.pop(conversation_id)
            self._compose.send(conversation_id, message)
            self._show()
        else:
            self._put_back(conversation_id)

    def _put_back(self, conversation_id: ConversationId) -> None:
        """Put a queued message in front of what was typed since."""
        conversation = self._conversation
        if (message := conversation.drafts.queued.pop(conversation_id, None)) is None:
            return
        is_here = conversation.target_id == conversation_id and not self._composer.is_editing
        typed = self._composer.draft if is_here else conversation.drafts.typed(conversation_id)
        draft = message.followed_by(typed)
        conversation.drafts.save(conversation_id, draft)
        if is_here:
            self._composer.show_draft(draft)
        self._show()

    def _show(self) -> None:
        here = self._conversation.target_id
        message = self._conversation.drafts.queued.get(here) if here is not None else None
        names = ", ".join(file.name for file in message.files) if message else ""
        text = one_line(message.text or names, _SHOWN_CHARS) if message else ""
        self._composer.show_queued(text)

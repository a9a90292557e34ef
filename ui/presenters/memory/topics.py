"""Topics: the dialog that lists and changes them, and the trail above a conversation about one."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QPoint

from app.chat.projects import Projects
from app.domain.change_set import ChangeSet
from app.domain.ids import ConversationId
from app.domain.records.projects import Project
from app.domain.records.topics import Topic, Trail
from app.domain.translation import format_day, format_month, format_number, tr
from app.index.query import filter_text
from app.memory.topics.service import TopicService
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Presenter, ask_for_text, show_menu
from ui.views.chat_pane import ChatPane
from ui.views.dialogs.topics_dialog import TopicsDialog
from ui.views.memory.inspector import RelatedList
from ui.widgets.search_box import SearchBox

_TRAIL = "trail"
_MOST_EARLIER = 12


class TopicsPresenter(Presenter):
    """Opens the dialog; `show_sidebar` makes the search box visible, for the conversations of a topic."""

    _topics: TopicService
    _projects: Projects
    _chat: ChatPane
    _related: RelatedList
    _box: SearchBox
    _conversation: ConversationPresenter
    _show_sidebar: Callable[[], object]

    def _set_up(self) -> None:
        self._dialog: TopicsDialog | None = None
        self._trail: Trail | None = None
        self._shown_for: ConversationId | None = None
        self._conversation.opened.connect(lambda _: self._refresh_trail())
        self._chat.trail.clicked.connect(self._show_earlier)
        self._related.chosen.connect(self._conversation.open)
        self._related.topic_requested.connect(self._show_topic)
        self._bridge.subscribe(self._on_changed, "found_topics", "conversations")

    # -- the dialog

    def open(self) -> TopicsDialog:
        dialog = self._dialog = TopicsDialog(self._chat.window())
        topics = self._topics
        dialog.list_requested.connect(lambda _: self._load(dialog))
        dialog.open_requested.connect(lambda topic: self._show_conversations(topic, dialog))
        dialog.rename_requested.connect(lambda topic: self._ask_for_name(topic, dialog))
        dialog.merge_requested.connect(lambda chosen: self._merge(chosen, dialog))
        dialog.split_requested.connect(
            lambda topic: self._change(lambda: topics.split(topic.id), dialog)
        )
        dialog.hide_requested.connect(
            lambda topic: self._change(
                lambda: topics.hide(topic.id, hidden=not topic.is_hidden), dialog
            )
        )
        dialog.project_requested.connect(lambda topic: self._ask_for_project(topic, dialog))
        dialog.finished.connect(self._on_finished)
        self._load(dialog)
        return self._open_dialog(dialog, "topics")

    def _load(self, dialog: TopicsDialog) -> None:
        hidden = dialog.hidden.isChecked()
        self._bridge.load(
            "topics",
            lambda: self._topics.topics(hidden=hidden),
            dialog.show_topics,
            dialog.show_error,
        )

    def _change(self, change: Callable[[], object], dialog: TopicsDialog) -> None:
        self._bridge.save(change, lambda _: None, dialog.show_error)

    def _ask_for_name(self, topic: Topic, dialog: TopicsDialog) -> None:
        ask_for_text(
            dialog,
            tr("Rename the topic"),
            tr("Name; nothing for the automatic one:"),
            topic.name,
            lambda name: self._change(lambda: self._topics.rename(topic.id, name), dialog),
        )

    def _ask_for_project(self, topic: Topic, dialog: TopicsDialog) -> None:
        """Ask for the name of a project, which gets the conversations of a topic that have none."""

        def make(name: str) -> None:
            ids = [each.id for each in self._topics.conversations(topic.id) if not each.project]
            project = self._projects.save(Project("", name))
            self._projects.move(ids, project.uid)

        ask_for_text(
            dialog,
            tr("Make a project"),
            tr("Name of the project; conversations of the topic without a project move there:"),
            topic.name,
            lambda name: self._change(lambda: make(name), dialog),
        )

    def _merge(self, chosen: Sequence[Topic], dialog: TopicsDialog) -> None:
        into, *merged = chosen
        self._change(lambda: self._topics.merge([each.id for each in merged], into.id), dialog)

    def _show_conversations(self, topic: Topic, dialog: TopicsDialog) -> None:
        dialog.accept()
        self._filter_by(topic)

    def _on_finished(self) -> None:
        self._dialog = None

    # -- the trail

    def _on_changed(self, changed: ChangeSet) -> None:
        if self._dialog is not None:
            self._load(self._dialog)
        if changed.found_topics or self._trail is not None:
            self._refresh_trail()

    def _refresh_trail(self) -> None:
        here = self._conversation.conversation_id
        if here != self._shown_for:
            self._show_trail(None, here)
        if here is None:
            return
        self._bridge.load(
            _TRAIL,
            lambda: self._topics.trail(here),
            lambda trail: self._show_trail(trail, here),
            lambda _: self._show_trail(None, here),
        )

    def _show_trail(self, trail: Trail | None, here: ConversationId | None) -> None:
        if here != self._conversation.conversation_id:
            return
        self._trail, self._shown_for = trail, here
        self._chat.show_trail(trail_text(trail) if trail is not None and trail.earlier else "")
        self._related.show_trail(trail)

    def _show_topic(self) -> None:
        if self._trail is not None:
            self._filter_by(self._trail.topic)

    def _show_earlier(self) -> None:
        """List the earlier conversations, oldest first, and the topic itself."""
        if self._trail is None:
            return
        trail = self._trail
        entries: list[tuple[str, Callable[[], object]]] = [
            (
                f"{each.title or tr('Untitled')}\t{format_day(each.created_at)}".replace("&", "&&"),
                partial(self._conversation.open, each.id),
            )
            for each in trail.earlier[-_MOST_EARLIER:]
        ]
        entries.append((tr("All of this topic"), lambda: self._filter_by(trail.topic)))
        button = self._chat.trail
        show_menu(button, button.mapToGlobal(QPoint(0, button.height())), entries)

    def _filter_by(self, topic: Topic) -> None:
        self._show_sidebar()
        self._box.show_query(filter_text("topic", topic.name or str(topic.id)))


def trail_text(trail: Trail) -> str:
    """Return the line above a conversation: the how manieth it is about its topic, and since when."""
    return tr("Conversation {number} about “{topic}” since {since}").format(
        number=format_number(len(trail.earlier) + 1),
        topic=trail.name,
        since=format_month(trail.earlier[0].created_at),
    )

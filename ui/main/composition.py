"""The composition of the window: presenters connected to views, actions and each other, start and end."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

from PySide6.QtWidgets import QWidget

from app.bootstrap import Services
from app.domain.chat import ModelRef
from app.domain.conversations import Conversation
from app.domain.settings_schema import SettingPage
from app.domain.translation import tr
from app.system.paths import FIRST_SETTINGS, store_state
from ui.bridge import Bridge, Refresh
from ui.main.creation import CreatedPresenters
from ui.presenters.first_steps import TourPresenter, TourStop
from ui.presenters.imports import SAMPLE
from ui.theme import Appearance
from ui.views.main_window import MainWindow
from ui.views.palette import CommandPalette
from ui.widgets.transcript.panels import MODEL_PROBLEMS

_STORE_MS = 500  # taking the state of the window is a tenth of the work of opening a conversation
_SEARCH = (
    tr("Search everything"),
    tr(
        "Type here. Every message is found by its words and by its meaning, and a result opens at "
        "the very turn."
    ),
)
_ASK = (
    tr("Ask about your past"),
    tr(
        "Write your question here. Meanwhile this card counts what memory would add to it; click "
        "the number to see what that is. Without a language model, Recall answers from your "
        "conversations alone."
    ),
)
_SOURCES = (
    tr("See the sources"),
    tr(
        "This pane shows what was recalled for an answer and why, and exactly what was sent to "
        "the model."
    ),
)
_BACKGROUND = (
    tr("Work in the background"),
    tr(
        "Conversations are summarized and indexed on this computer. Here you see how far that "
        "is, what it costs, and can switch it off."
    ),
)
_MODEL = (
    tr("Connect a model"),
    tr(
        "Choose who answers here, or add a provider. Everything else is in the settings "
        "of the Conversation menu. Nothing leaves this computer until you choose a provider."
    ),
)


class Presenters(CreatedPresenters):
    """All presenters of an open library, connected to the views and to each other.

    Attributes:
        ready: Set when the list of conversations has been shown for the first time.
    """

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, appearance: Appearance
    ) -> None:
        super().__init__(services, bridge, window, appearance)
        self.ready = asyncio.Event()
        self._connect_window()
        self._connect_transcript()
        self._connect_actions()
        bridge.start("begin", self._begin())

    # -- connecting

    def _connect_window(self) -> None:
        window, welcome = self._window, self._window.chat.welcome
        conversation = self.conversation
        conversation.opened.connect(self.conversations.show_opened)
        conversation.opened.connect(self._on_opened)
        self._window_state = Refresh(
            window, self._bridge, "window state", _STORE_MS, self._store_window
        )
        self._bridge.subscribe(self._store_soon, *FIRST_SETTINGS)
        conversation.updated.connect(self.conversation_commands.show_opened)
        conversation.running_changed.connect(self._on_running_changed)
        conversation.scrolled_to.connect(self.inspector.select)
        self.recall.status_changed.connect(window.show_recall)
        self.recall.show_status()
        window.memory.dashboard.review_requested.connect(self._on_review_requested)
        recall_page, switch = SettingPage.RECALL.value, window.chat.composer.memory
        for signal in (window.recall_status.clicked, switch.settings_requested):
            signal.connect(lambda: self.settings.open(recall_page))
        switch.here_switched.connect(self.recall.switch)
        window.files_dropped.connect(self.attach.take_dropped)
        window.chat.restore_requested.connect(window.actions_by_name["restore"].trigger)
        window.chat.renamed.connect(self.conversation_commands.rename)
        window.chat.summaries_requested.connect(partial(window.memory.open_page, "summaries"))
        window.chat.composer.send_requested.connect(self.explain.note_message)
        window.sidebar.new_requested.connect(conversation.begin_new)
        window.sidebar.project_requested.connect(self.projects.add)
        welcome.drop_zone.files_dropped.connect(self.attach.take_dropped_to_import)
        welcome.import_requested.connect(self.imports.choose)
        self.imports.question_chosen.connect(lambda text: self.conversation.begin_new(text=text))
        self.tour = TourPresenter(
            self._bridge, self._services.settings, window, tour_stops(window),
            window.chat.composer.box.setFocus,
        )  # fmt: skip
        self.imports.sample_closed.connect(self.tour.start)
        welcome.sample_requested.connect(lambda: self.imports.start([SAMPLE]))
        self.presets.page_requested.connect(lambda: self.settings.open("Presets"))

    def _connect_transcript(self) -> None:
        transcript, compose = self._transcript, self.compose
        events = transcript.events
        for signal, slot in (
            (events.link_activated, self.links.follow),
            (self._window.memory.inspector.quoted.chosen, self.links.follow),
            (events.link_hovered, self._window.statusBar().showMessage),
            (events.retry_requested, compose.retry),
            (events.continue_requested, compose.retry),
            (events.regenerate_requested, compose.regenerate),
            (events.other_model_requested, compose.regenerate_with),
            (events.quote_requested, self._window.chat.composer.quote),
            (events.edit_requested, compose.edit),
            (events.branch_requested, compose.show_branch),
            (events.fork_requested, compose.fork),
            (events.link_requested, compose.copy_link),
            (events.brief_requested, compose.copy_brief),
            (events.file_clicked, self.files.open),
            (events.coverage_requested, self.explain.show_coverage),
            (events.forget_requested, self.forgetting.ask),
            (events.forget_messages_requested, self.forgetting.ask_messages),
            (transcript.current_turn_changed, self.explain.note_current_turn),
            (transcript.current_turn_changed, self.inspector.select),
            (events.mend_requested, self._on_mend_requested),
            (events.inspect_requested, self._on_inspect_requested),
            (
                events.why_requested,
                lambda turn: self.explain.explain_turn(turn, self._window.sidebar.query),
            ),
        ):
            signal.connect(slot)

    def _connect_actions(self) -> None:
        compose, sidebar, chat = self.compose, self._window.sidebar, self._window.chat
        commands: dict[str, Callable[[], object]] = {
            "attach": self.attach.choose,
            "stop": compose.stop,
            "regenerate": compose.on_last_turn(compose.regenerate),
            "copy_link": compose.on_last_turn(compose.copy_link),
            "new": self.conversation.begin_new,
            "new_private": lambda: self.conversation.begin_new(private=True),
            "rename": self._rename,
            "preset": self.presets.open,
            "model": chat.model.open,
            "presets": lambda: self.settings.open("Presets"),
            "import": self.imports.choose,
            "past_imports": self.imports.show_past,
            "topics": self.topics.open,
            "documents": self.documents.open,
            "secrets": self.secrets.open,
            "new_project": self.projects.add,
            "proposed_projects": self.proposals.open,
            "edit_project": self.projects.edit_here,
            "routines": self.routines.open,
            "export_all": self.conversation_commands.ask_for_export,
            "find": self.find.open,
            "search": lambda: self._in_sidebar(sidebar.focus_search),
            "back": lambda: self._in_sidebar(self.history.back),
            "forward": lambda: self._in_sidebar(self.history.forward),
            "open_link": self.links.ask_for_link,
            "why": lambda: self.explain.explain_current(sidebar.query),
            "palette": self._show_palette,
            "clean_slate": lambda: self.commands.run("/new"),
            "slash_commands": lambda: self.commands.run("/help"),
            "backup": self.maintenance.back_up,
            "restore_backup": self.maintenance.choose_backup,
            "check": self.maintenance.check,
            "open_folder": self.maintenance.open_folder,
            "privacy": self.maintenance.show_privacy,
            "about": self.maintenance.show_about,
            "tour": self.tour.show,
        }
        actions = self._window.actions_by_name
        for name, command in commands.items():
            actions[name].triggered.connect(lambda _checked=False, command=command: command())
        actions["memory_here"].triggered.connect(self.recall.switch)

    def _rename(self) -> None:
        """Let the user edit the title of the row that has the focus, else that of what is open."""
        sidebar = self._window.sidebar
        chosen = sidebar.selected_conversations if sidebar.conversation_list.hasFocus() else []
        if len(chosen) == 1:
            sidebar.edit_title(*chosen)
        else:
            self._window.chat.focus_title()

    def _in_sidebar(self, command: Callable[[], object]) -> None:
        """Show the sidebar, then run a command of it."""
        self._window.actions_by_name["sidebar"].setChecked(True)
        command()

    def _show_palette(self) -> None:
        palette = CommandPalette(list(self._window.actions_by_name.values()), self._window)
        palette.finished.connect(palette.deleteLater)
        palette.open()

    # -- starting and leaving

    async def _begin(self) -> None:
        """Show what there is, then start the workers; an error in one step does not stop the next."""
        window = self._window
        begin = partial(self.conversation.begin, window.conversation_id, window.scroll_position)
        for name, load in (
            ("begin conversation", begin),
            ("conversations", self.conversations.load),
        ):
            await asyncio.wait([self._bridge.start(name, load())])
        if notices := self._services.store.notices:
            self._banner.show_message(" ".join(notices), brief=False)
        maintenance, on_gui = self._services.maintenance, self._bridge.on_gui
        inform = partial(self._banner.show_message, brief=False)
        maintenance.notify = lambda error: on_gui(partial(self._banner.show_error, error))()
        maintenance.inform = lambda text: on_gui(partial(inform, text))()
        window.begin()
        if window.memory.knowledge.isVisible():  # shown before it could be filled
            for presenter in self._knowledge:
                presenter.refresh()
        self.dashboard.start()
        self.ready.set()

    def ask_to_leave(self, leave: Callable[[], None]) -> None:
        """Call `leave` once the user has decided about unsaved edits and private conversations."""
        for presenter in (self.privacy, self.profile, self.memories, self.summaries, self.facts):
            leave = partial(presenter.ask_before_leaving, leave)
        leave()

    def flush(self) -> None:
        """Stop an import and store what was typed, before the shutdown."""
        self._window.scroll_position = self._transcript.reading_position()
        self.imports.stop()
        self._window.chat.composer.flush_draft()

    # -- slots

    def _on_opened(self, conversation: Conversation | None) -> None:
        """Store what is open, so that a killed program opens it again."""
        window = self._window
        conversation_id = conversation.id if conversation else None
        self._services.workers.set_open_conversation(conversation_id)
        window.conversation_id, window.scroll_position = conversation_id, None
        actions = window.actions_by_name
        actions["why"].setEnabled(conversation is not None)
        writable = not self.conversation.is_read_only
        for name in ("attach", "clean_slate", "preset"):
            actions[name].setEnabled(writable)
        self._store_soon()

    def _store_soon(self, _changed: object = None) -> None:
        """Store the window's state soon, with the settings that its next first frame needs."""
        settings = self._services.settings
        self._window.settings = {key: settings.get(key) for key in FIRST_SETTINGS}
        self._window_state.request()

    def _store_window(self) -> Coroutine[object, object, None]:
        path = self._services.paths.window
        return self._bridge.run(partial(store_state, path, self._window.state_to_store()))

    def _on_running_changed(self, has_turns: bool, is_running: bool) -> None:
        actions = self._window.actions_by_name
        actions["stop"].setEnabled(is_running)
        actions["regenerate"].setEnabled(
            has_turns and not is_running and not self.conversation.is_read_only
        )
        actions["copy_link"].setEnabled(has_turns)

    def _on_mend_requested(self, kind: str) -> None:
        if kind in MODEL_PROBLEMS:
            self._window.chat.model.open()
        else:
            self.settings.open_provider(ModelRef.parse(self.models.chosen).provider)

    def _on_inspect_requested(self, turn: int) -> None:
        self._window.memory.open_page("sources")
        self.inspector.select(turn)

    def _on_review_requested(self) -> None:
        self._bridge.load(
            "review",
            self._services.profile.waiting,
            lambda count: self._window.memory.open_page("profile" if count else "core"),
        )


def tour_stops(window: MainWindow) -> Sequence[TourStop]:
    def page(name: str) -> QWidget:
        window.memory.open_page(name)
        return window.memory_dock

    def search() -> QWidget:
        window.actions_by_name["sidebar"].setChecked(True)
        return window.sidebar.box

    def settings() -> QWidget:
        window.memory_dock.hide()
        return window.chat.composer.model

    return (
        TourStop(*_SEARCH, search),
        TourStop(*_ASK, lambda: window.chat.composer),
        TourStop(*_SOURCES, lambda: page("sources")),
        TourStop(*_BACKGROUND, lambda: page("activity")),
        TourStop(*_MODEL, settings),
    )

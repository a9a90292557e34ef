"""The composition of the window: creates every presenter and connects them to the views."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QStandardPaths

from app.bootstrap import Services
from app.chat.inspector import Source
from app.commands.table import CommandSession
from app.domain.chat import ModelRef
from app.domain.conversations import Conversation, Draft
from app.domain.ids import ConversationId
from app.domain.settings_schema import SettingPage
from app.memory.secrets import secret_places
from app.memory.starter_questions import StarterQuestions
from app.system.window_state import FIRST_SETTINGS, store_state
from app.transfer.exporting import export
from app.transfer.found_exports import find_exports
from app.transfer.import_history import ImportHistory
from app.transfer.importing import import_files
from ui.bridge import Bridge
from ui.main.memory_panels import build_memory_panels
from ui.main.tour import tour_stops
from ui.presenters.attach import AttachPresenter
from ui.presenters.commands import CommandPresenter
from ui.presenters.compose import ComposePresenter
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.conversation_commands import ConversationCommands, Removal
from ui.presenters.conversation_list import ConversationListPresenter
from ui.presenters.documents import DocumentsPresenter
from ui.presenters.downloads import DownloadsPresenter
from ui.presenters.explain import ExplainPresenter
from ui.presenters.facts import FactsPresenter
from ui.presenters.files import FilesPresenter
from ui.presenters.filters import FilterPresenter
from ui.presenters.find import FindPresenter
from ui.presenters.forgetting import ForgetPresenter
from ui.presenters.history import HistoryPresenter
from ui.presenters.imports import SAMPLE, ImportPresenter
from ui.presenters.inspector import InspectorPresenter
from ui.presenters.links import LinkPresenter
from ui.presenters.maintenance import MaintenancePresenter
from ui.presenters.memories import MemoriesPresenter
from ui.presenters.memory_writes import MemoryWritePresenter
from ui.presenters.mentions import MentionPresenter
from ui.presenters.message_cost import MessageCostPresenter
from ui.presenters.message_queue import QueuePresenter
from ui.presenters.model_choice import ModelPickerPresenter, list_models
from ui.presenters.presenter import Navigation
from ui.presenters.preset_choice import PresetPickerPresenter
from ui.presenters.privacy import PrivacyPresenter
from ui.presenters.profile import ProfilePresenter
from ui.presenters.project_proposals import ProposalsPresenter
from ui.presenters.projects import ProjectsPresenter
from ui.presenters.quick_find import QuickFindPresenter
from ui.presenters.recall import RecallPresenter
from ui.presenters.replies import RunningReplies
from ui.presenters.routine_notices import RoutineNotices
from ui.presenters.routines import RoutinesPresenter
from ui.presenters.search import SearchPresenter
from ui.presenters.secrets import SecretsPresenter
from ui.presenters.suggestions import (
    McpConsentPresenter,
    SuggestionPresenter,
    embedder_suggestion,
    project_suggestion,
    source_suggestion,
)
from ui.presenters.summaries import SummariesPresenter
from ui.presenters.tool_permission import ToolPermissionPresenter
from ui.presenters.topics import TopicsPresenter
from ui.presenters.tour import TourPresenter
from ui.presenters.tray import TrayPresenter
from ui.presenters.typed_recall import TypedRecallPresenter
from ui.presenters.welcome_offers import WelcomePresenter
from ui.theme import Appearance
from ui.views.command_panel import CommandPanel
from ui.views.main_window import MainWindow
from ui.views.palette import CommandPalette
from ui.views.quick_find import QuickFind
from ui.widgets.transcript.panels import MODEL_PROBLEMS
from ui.widgets.transcript.view import TranscriptView


class Presenters(QObject):
    """All presenters of an open library, as attributes.

    Attributes:
        ready: Set when the list of conversations has been shown for the first time.
    """

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, appearance: Appearance
    ) -> None:
        super().__init__(window)
        self.ready = asyncio.Event()
        self._services = services
        self._bridge = bridge
        self._window = window
        self._appearance = appearance
        self._banner = window.chat.banner
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        # Before the settings are read, which may choose another theme than the system's.
        appearance.theme_changed.connect(transcript.set_theme)
        self._removal = Removal(services.chat, services.library, services.forget)
        self._create_conversation()
        self._create_memory()
        self._create_dialogs()
        self._create_settings()
        navigation = Navigation(
            turn=self.conversation.open,
            fact=self.facts.open,
            memory=self.memories.open,
            page=self.documents.open_page,
            explain=self.explain.explain,
            import_files=self.imports.start,
            export=self.conversation_commands.ask_for_export,
            preset=self.presets.choose,
            new_routine=self.routines.add,
            run_routine=self.routines.run,
        )
        self._create_recall(navigation)
        self._create_sidebar(navigation)
        self._create_commands(navigation)
        self._connect_window()
        self._connect_transcript()
        self._connect_actions()
        bridge.start("begin", self._begin())

    # -- creating

    def _create_conversation(self) -> None:
        services, bridge, chat = self._services, self._bridge, self._window.chat
        self.replies = RunningReplies(self)
        self.conversation = ConversationPresenter(
            bridge, services.library, services.exchanges, services.conversations, chat,
            self._transcript, self.replies,
        )  # fmt: skip
        self.presets = PresetPickerPresenter(
            bridge, services.presets, services.library, chat.preset, self.conversation,
            self._banner,
        )  # fmt: skip
        self.models = ModelPickerPresenter(
            bridge, services.models, services.settings, services.library, services.chat, chat,
            self.conversation, self.presets,
        )  # fmt: skip
        self.compose = ComposePresenter(
            bridge, services.chat, services.library, chat, self.conversation,
            self.models.model_for_new, self.presets.preset_for_new, self.replies,
            services.mentions.in_text,
        )  # fmt: skip
        self.mentions = MentionPresenter(
            bridge, services.mentions, chat.composer, self.conversation
        )
        self.queue = QueuePresenter(bridge, self.compose, self.conversation, chat.composer)
        self.costs = MessageCostPresenter(
            bridge, services.message_costs, chat.composer, self.conversation,
            self.models.model_for_new, self.presets.preset_for_new,
        )  # fmt: skip
        for chosen in (self.presets.changed, chat.model.chosen):
            chosen.connect(self.costs.refresh)
        self.typed_recall = TypedRecallPresenter(
            bridge, services.typed_recall, chat.composer, self.conversation,
            partial(services.settings.flag, "rag_enabled"),
        )  # fmt: skip
        self.privacy = PrivacyPresenter(
            bridge, self._removal.forget, self._banner, self.conversation
        )
        self.forgetting = ForgetPresenter(
            bridge, services.forget_turn, services.forget_messages, self._banner, self.conversation
        )
        places = partial(secret_places, services.store)
        self.secrets = SecretsPresenter(
            bridge, places, services.values, self._banner, self.conversation
        )
        self.find = FindPresenter(
            bridge, services.library, chat.find_bar, self._transcript, self.conversation
        )

    def _create_memory(self) -> None:
        services, bridge, banner = self._services, self._bridge, self._banner
        conversation = self.conversation
        update_index = services.index_sync.catch_up_soon
        self.explain = ExplainPresenter(
            bridge, services.explainer, services.probes, services.coverage, banner, conversation,
            self._transcript, self._window.memory.knowledge.questions,
        )  # fmt: skip
        memory = self._window.memory
        knowledge = memory.knowledge
        self.facts = FactsPresenter(
            bridge, services.facts, services.fact_service, knowledge.facts, banner, conversation,
            memory.open_page, update_index,
        )  # fmt: skip
        self.memories = MemoriesPresenter(
            bridge, services.core_memory, services.memories, services.search, knowledge, banner,
            conversation.open, memory.open_page, update_index,
        )  # fmt: skip
        self.profile = ProfilePresenter(
            bridge, services.profile, knowledge, memory.open_page, self.facts.open
        )
        self.memory_writes = MemoryWritePresenter(
            bridge, services.memory_writes, knowledge, self._transcript, conversation,
            update_index,
        )  # fmt: skip
        self._knowledge = (self.facts, self.memories, self.profile, self.memory_writes)
        for presenter in self._knowledge:
            knowledge.shown.connect(presenter.refresh)
        self.summaries = SummariesPresenter(
            bridge, services.library, services.passages, services.summaries,
            services.summary_service, knowledge.summaries, banner, conversation, memory.open_page,
        )  # fmt: skip
        self.documents = DocumentsPresenter(
            bridge, services.documents, services.document_texts, services.projects, services.workers,
            lambda: services.embedders.estimate(0, 0).sent_to, update_index, conversation, banner,
        )  # fmt: skip
        self.links = LinkPresenter(
            bridge, services.library, banner, self.documents.open_page, conversation.open
        )
        self.topics = TopicsPresenter(
            bridge, services.topics, services.projects, self._window.chat, memory.inspector.related,
            self._window.sidebar.search, conversation,
            partial(self._window.actions_by_name["sidebar"].setChecked, True),
        )  # fmt: skip

    def _create_dialogs(self) -> None:
        services, bridge, banner = self._services, self._bridge, self._banner
        conversation = self.conversation
        embedder = partial(embedder_suggestion, services.embedder_suggestions)
        SuggestionPresenter(bridge, banner, embedder, 10_000, ["passages"])
        SuggestionPresenter(
            bridge, banner, partial(source_suggestion, services.sources), 4_000,
            _invite=self._window.chat.welcome.invite,
        )  # fmt: skip
        self.quick_find = QuickFindPresenter(
            bridge, services.search, self.links.open_link, self._window.bring_to_front,
            QuickFind(self._window),
        )  # fmt: skip
        self.tray = TrayPresenter(bridge, services.settings, self._window, self.quick_find.show)
        self.routines = RoutinesPresenter(
            bridge, services.routines, services.presets, services.projects,
            partial(list_models, services.models, services.chat, bridge), banner, conversation.open,
        )  # fmt: skip
        McpConsentPresenter(bridge, services.mcp_access, banner)
        ToolPermissionPresenter(bridge, services.tool_servers, self._window)
        notify, show_routines = self.tray.notify, self.routines.open
        RoutineNotices(bridge, services.routines, banner, notify, conversation.open, show_routines)
        self.proposals = ProposalsPresenter(bridge, services.project_proposals, banner)
        SuggestionPresenter(
            bridge, banner, partial(project_suggestion, services.project_proposals), 15_000,
            ["found_topics"], self.proposals.open,
        )  # fmt: skip
        self.maintenance = MaintenancePresenter(
            bridge, services.back_up, services.check, services.paths.root, banner,
            services.privacy.connections,
        )  # fmt: skip
        self.projects = ProjectsPresenter(
            bridge, services.projects, self._window.sidebar.projects,
            self._window.chat.composer.project, conversation, banner,
        )  # fmt: skip
        self.conversation_commands = ConversationCommands(
            bridge, services.library, services.conversations, self._removal,
            partial(export, services.store, replaces=True), banner, conversation, self._window.actions_by_name,
            self.projects.ask,
        )  # fmt: skip

    def _create_settings(self) -> None:
        services, bridge = self._services, self._bridge
        self.settings, consent, self.dashboard = build_memory_panels(
            services, bridge, self._window, self._appearance, self._open_title,
            lambda place: self.recall.open(Source(place, rank=0, cited=False)), self.links.open_link,
        )  # fmt: skip
        self.files = FilesPresenter(bridge, services.attachments, self._banner)
        self.imports = ImportPresenter(
            bridge, partial(import_files, services.store), services.background, self._banner,
            consent.ask_to_allow, StarterQuestions(services.store).make, ImportHistory(services.store),
        )  # fmt: skip
        place = QStandardPaths.StandardLocation.DownloadLocation
        downloads = Path(QStandardPaths.writableLocation(place))
        find = partial(find_exports, downloads)
        WelcomePresenter(
            bridge, services.models, services.chat, services.settings, find,
            self._window.chat.welcome, self.imports.start, self.settings.connect_provider,
        )  # fmt: skip
        watch = DownloadsPresenter(
            bridge, services.settings, downloads, find,
            lambda path: import_files(services.store, [path], dry_run=True), self.imports.start,
            self._banner,
        )  # fmt: skip
        self.imports.imported.connect(watch.note_import)
        self.attach = AttachPresenter(
            bridge, services.attachments, services.models.sees_images, self.imports.start,
            self.documents.offer, self._window.chat,
        )  # fmt: skip

    def _create_recall(self, navigation: Navigation) -> None:
        services, bridge, banner = self._services, self._bridge, self._banner
        is_on = partial(services.settings.flag, "rag_enabled")
        self.recall = RecallPresenter(
            bridge, services.inspector, services.library, is_on, banner, self._transcript,
            self.conversation, navigation,
        )  # fmt: skip
        self.inspector = InspectorPresenter(
            bridge, services.inspector, is_on, self._window.memory.inspector, banner, self.conversation,
            self._transcript, self.recall.open,
        )  # fmt: skip

    def _create_sidebar(self, navigation: Navigation) -> None:
        services, bridge, window = self._services, self._bridge, self._window
        self.conversations = ConversationListPresenter(
            bridge, services.conversations, services.projects.counted,
            lambda: bool(services.overview.read().conversations),
            self.conversation_commands, window.sidebar, window.chat.welcome, self.conversation.open,
        )  # fmt: skip
        self.filters = FilterPresenter(
            bridge, services.conversations, services.topics, window.sidebar.search
        )
        self.history = HistoryPresenter(bridge, self.conversation, self._transcript, window.sidebar)
        self.replies.running_changed.connect(window.sidebar.conversations.show_running)
        self.search = SearchPresenter(
            bridge, services.search, services.passages, services.vector_search,
            partial(services.settings.flag, "embedding_pipeline_enabled"), window.sidebar,
            self._banner, navigation, self._transcript.mark_search,
        )  # fmt: skip

    def _create_commands(self, navigation: Navigation) -> None:
        services, bridge, chat = self._services, self._bridge, self._window.chat
        panel = CommandPanel(chat)
        chat.add_panel(panel)
        panel.events.link_activated.connect(self.links.follow)
        panel.events.link_hovered.connect(self._window.statusBar().showMessage)
        self.command_panel = panel
        self.commands = CommandPresenter(
            bridge, CommandSession(services.commands), services.segments, panel, chat.composer,
            self._transcript, self.conversation, navigation,
        )  # fmt: skip

    # -- connecting

    def _connect_window(self) -> None:
        window, welcome = self._window, self._window.chat.welcome
        conversation = self.conversation
        conversation.opened.connect(self.conversations.show_opened)
        conversation.opened.connect(self._on_opened)
        self._bridge.subscribe(self._store_window, *FIRST_SETTINGS)
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
        self.imports.question_chosen.connect(self._begin_with)
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
            "rename": chat.focus_title,
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

    def _in_sidebar(self, command: Callable[[], object]) -> None:
        """Show the sidebar, then run a command of it."""
        self._window.actions_by_name["sidebar"].setChecked(True)
        command()

    def _show_palette(self) -> None:
        palette = CommandPalette(list(self._window.actions_by_name.values()), self._window)
        palette.finished.connect(palette.deleteLater)
        palette.open()

    def _open_title(self) -> tuple[ConversationId | None, str | None]:
        """Return the id and the title of the open conversation."""
        view = self.conversation.view
        return self.conversation.conversation_id, None if view is None else view.conversation.title

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
        show = self._banner.show_error
        self._services.maintenance.notify = lambda error: self._bridge.on_gui(
            partial(show, error)
        )()
        if window.focusWidget() is not window.sidebar.box:
            window.chat.composer.box.setFocus()
        window.run_early_action()
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

    def _begin_with(self, text: str) -> None:
        """Begin a conversation with a text in the composer."""
        self.conversation.begin_new()
        self.conversation.save_draft(None, Draft(text))  # shown once the conversation has begun

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
        self._store_window()

    def _store_window(self, _changed: object = None) -> None:
        """Store the window's state with the settings that its next first frame needs."""
        window, settings = self._window, self._services.settings
        window.settings = {key: settings.get(key) for key in FIRST_SETTINGS}
        store = partial(store_state, self._services.paths.window, window.state_to_store())
        self._bridge.start("window state", self._bridge.run(store))

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

"""Creation of the window's presenters, each with what it uses; `composition` connects them."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QStandardPaths

from app.bootstrap import Services
from app.chat.inspector import Source
from app.commands.table import CommandSession
from app.domain.ids import ConversationId
from app.memory.recall.starter_questions import StarterQuestions
from app.memory.secrets import secret_places
from app.storage.safety.backup import backups_of
from app.transfer.exporting import export
from app.transfer.found_exports import find_exports
from app.transfer.import_history import ImportHistory
from app.transfer.importing import import_files
from ui.bridge import Bridge
from ui.main.memory_panels import build_memory_panels
from ui.presenters.conversation.attach import AttachPresenter, FilesPresenter
from ui.presenters.conversation.choices import (
    ModelPickerPresenter,
    PresetPickerPresenter,
    list_models,
)
from ui.presenters.conversation.commands import CommandPresenter
from ui.presenters.conversation.compose import ComposePresenter
from ui.presenters.conversation.composer import (
    MentionPresenter,
    MessageCostPresenter,
    QueuePresenter,
    TypedRecallPresenter,
)
from ui.presenters.conversation.inspector import ExplainPresenter, InspectorPresenter
from ui.presenters.conversation.list_commands import ConversationCommands, Removal
from ui.presenters.conversation.navigation import (
    AgentLinkPresenter,
    FindPresenter,
    HistoryPresenter,
    LinkPresenter,
)
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.conversation.recall import RecallPresenter
from ui.presenters.conversation.reply_and_draft import NEW_PRIVATE
from ui.presenters.conversation.sidebar_list import ConversationListPresenter
from ui.presenters.conversation.turns import RunningReplies
from ui.presenters.first_steps import WelcomePresenter
from ui.presenters.imports import DownloadsPresenter, ImportPresenter
from ui.presenters.maintenance import MaintenancePresenter
from ui.presenters.memory.documents import DocumentsPresenter
from ui.presenters.memory.facts import FactsPresenter, SummariesPresenter
from ui.presenters.memory.forgetting import ForgetPresenter, PrivacyPresenter, SecretsPresenter
from ui.presenters.memory.memories import MemoriesPresenter, MemoryWritePresenter, ProfilePresenter
from ui.presenters.memory.topics import TopicsPresenter
from ui.presenters.presenter import Navigation
from ui.presenters.projects import ProjectsPresenter, ProposalsPresenter
from ui.presenters.routines import RoutineNotices, RoutinesPresenter
from ui.presenters.search import FilterPresenter, SearchPresenter
from ui.presenters.suggestions import (
    McpConsentPresenter,
    SuggestionPresenter,
    embedder_suggestion,
    profile_suggestion,
    project_suggestion,
    source_suggestion,
)
from ui.presenters.tool_permission import ToolPermissionPresenter
from ui.presenters.tray import QuickFindPresenter, TrayPresenter
from ui.theme import Appearance
from ui.views.command_panel import CommandPanel
from ui.views.main_window import MainWindow
from ui.views.quick_find import QuickFind
from ui.widgets.transcript.view import TranscriptView


class CreatedPresenters(QObject):
    """All presenters of an open library, as attributes."""

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, appearance: Appearance
    ) -> None:
        super().__init__(window)
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
            self.replies,
            services.mentions.in_text, services.briefs.of_turns,
        )  # fmt: skip
        self.mentions = MentionPresenter(
            bridge, services.mentions, chat.composer, self.conversation
        )
        self.queue = QueuePresenter(bridge, self.compose, self.conversation, chat.composer)
        self.costs = MessageCostPresenter(
            bridge, services.message_costs, chat.composer, self.conversation,
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
        AgentLinkPresenter(bridge, services.library, self._window.chat, conversation)
        self.topics = TopicsPresenter(
            bridge, services.topics, services.projects, self._window.chat, memory.inspector.related,
            self._window.sidebar.search, conversation,
            partial(self._window.actions_by_name["sidebar"].setChecked, True),
        )  # fmt: skip

    def _create_dialogs(self) -> None:
        services, bridge, banner = self._services, self._bridge, self._banner
        conversation = self.conversation
        embedder = partial(embedder_suggestion, services.embedder_suggestions)
        offer = [self._window.offer.make]
        SuggestionPresenter(bridge, banner, offer, embedder, 10_000, ["passages"])
        SuggestionPresenter(
            bridge, banner, [self._window.chat.welcome.offer_sessions, *offer],
            partial(source_suggestion, services.sources), 4_000,
        )  # fmt: skip
        SuggestionPresenter(
            bridge, banner, offer, partial(profile_suggestion, services.profile), 1_000,
            ["memory", "profile_enabled"],
            partial(self._window.memory.open_page, "profile"), self._window.offer.withdraw,
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
            bridge, banner, offer, partial(project_suggestion, services.project_proposals), 15_000,
            ["found_topics"], self.proposals.open,
        )  # fmt: skip
        self.maintenance = MaintenancePresenter(
            bridge, services.back_up, services.check, services.paths.root, banner,
            services.privacy.connections,
            partial(backups_of, services.paths.backups, services.store.uid),
            self._window.restore_requested.emit,
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
            lambda place: self.recall.open(Source(place, rank=0, cited=False)), self.links,
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
            self._window.offer.make, self._banner,
        )  # fmt: skip
        self.imports.imported.connect(watch.note_import)
        self.attach = AttachPresenter(
            bridge, services.attachments, services.models.sees_images, self.imports.start,
            self.documents.offer, partial(self.conversation.drafts.typed, NEW_PRIVATE),
            self._window.chat,
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

    def _open_title(self) -> tuple[ConversationId | None, str | None]:
        view = self.conversation.view
        return self.conversation.conversation_id, None if view is None else view.conversation.title

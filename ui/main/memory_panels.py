"""Composition of the settings dialog and the worker dashboard with their presenters."""

from collections.abc import Callable, Sequence
from functools import partial

from app.bootstrap import Services
from app.domain.ids import ConversationId
from app.domain.recall import RecalledItemDetails
from app.domain.settings_schema import SettingPage
from ui.bridge import Bridge
from ui.presenters.conversation.choices import list_models
from ui.presenters.conversation.navigation import LinkPresenter
from ui.presenters.settings.background import BackgroundConsent, BackgroundPagePresenter
from ui.presenters.settings.dashboard import DashboardPresenter, read_totals
from ui.presenters.settings.dialog import SettingsPresenter, ShortcutsPresenter
from ui.presenters.settings.embedder import EmbedderPresenter
from ui.presenters.settings.presets import PresetsPresenter
from ui.presenters.settings.programs import ProgramsPresenter, ToolsPresenter
from ui.presenters.settings.providers import ProvidersPresenter
from ui.presenters.settings.recall_settings import RecallSettingsPresenter
from ui.theme import Appearance
from ui.views.main_window import MainWindow
from ui.views.settings.settings_dialog import SettingsDialog
from ui.widgets.transcript.view import TranscriptView

OpenConversation = Callable[[], tuple[ConversationId | None, str | None]]


def build_memory_panels(
    services: Services,
    bridge: Bridge,
    window: MainWindow,
    appearance: Appearance,
    open_conversation: OpenConversation,
    open_item: Callable[[RecalledItemDetails], None],
    links: LinkPresenter,
) -> tuple[SettingsPresenter, BackgroundConsent, DashboardPresenter]:
    """Return the presenters; the pages of the settings are built when the dialog first opens."""
    banner = window.chat.banner
    consent = BackgroundConsent(bridge, services.background, window)

    present_pages = partial(
        _present_pages, services, bridge, consent, open_conversation, open_item, links
    )
    settings = SettingsPresenter(
        bridge, services.settings, banner, window.actions_by_name, appearance, present_pages
    )
    ShortcutsPresenter(bridge, services.settings, banner, window.actions_by_name)
    consent.limits_requested.connect(settings.open_spend_limits)
    for requested in (window.chat.welcome.model_requested, window.chat.model.provider_requested):
        requested.connect(partial(settings.open, SettingPage.MODELS.value))
    window.memory.dashboard.allow_requested.connect(consent.ask_to_allow)
    totals = partial(
        read_totals,
        services.overview,
        services.spaces,
        services.background.needs_consent,
        lambda: services.memory_writes.waiting() + services.profile.waiting(),
    )
    dashboard = DashboardPresenter(
        bridge, services.workers, totals, services.fact_regeneration, window.memory.dashboard, window,
        banner,
    )  # fmt: skip
    _yield_to_user(services, bridge, window)
    return settings, consent, dashboard


def _present_pages(
    services: Services,
    bridge: Bridge,
    consent: BackgroundConsent,
    open_conversation: OpenConversation,
    open_item: Callable[[RecalledItemDetails], None],
    links: LinkPresenter,
    dialog: SettingsDialog,
) -> Sequence[Callable[[], object]]:
    """Create the presenters of the pages of the settings; return what shows each page."""
    models = partial(list_models, services.models, services.chat, bridge)
    ProvidersPresenter(
        bridge, services.models, services.chat, services.settings, services.workers.wake,
        links.follow, dialog.models,
    )  # fmt: skip
    embedder = EmbedderPresenter(
        bridge, services.spaces, services.embedders, services.embedding_regeneration,
        dialog.embedder,
    )  # fmt: skip
    background = BackgroundPagePresenter(
        bridge, services.background, services.own_prices, services.spending, models,
        services.summary_regeneration, consent, dialog.background,
    )  # fmt: skip
    recall = RecallSettingsPresenter(
        bridge, services.settings, services.previews, dialog.memory, open_conversation, open_item
    )
    presets = PresetsPresenter(
        bridge, services.presets, services.models, services.tools, models, dialog.presets
    )
    programs = ProgramsPresenter(
        bridge,
        services.sources,
        services.mcp_access,
        services.mcp_http,
        links.open_link,
        dialog.programs,
    )
    tools = ToolsPresenter(bridge, services.tool_servers, dialog.tools)
    return tuple(each.show for each in (presets, embedder, background, recall, programs, tools))


def _yield_to_user(services: Services, bridge: Bridge, window: MainWindow) -> None:
    """Make background work yield while the user types or scrolls, and while the window is late."""
    priority = services.workers.ui_priority
    transcript = window.chat.transcript
    assert isinstance(transcript, TranscriptView)
    for used in (
        transcript.visible_changed,
        window.chat.composer.box.textChanged,
        window.sidebar.box.textChanged,
    ):
        used.connect(lambda *_: priority.user_active())
    priority.gui_ready()
    priority.ping_gui = bridge.on_gui(priority.gui_ready)

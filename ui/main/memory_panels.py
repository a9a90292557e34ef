"""Composition of the settings dialog and the worker dashboard with their presenters."""

from collections.abc import Callable, Sequence
from functools import partial

from app.bootstrap import Services
from app.domain.ids import ConversationId
from app.domain.recall import RecalledItemDetails
from ui.bridge import Bridge
from ui.presenters.settings.background import (
    BackgroundConsent,
    BackgroundPagePresenter,
    list_models,
)
from ui.presenters.settings.dashboard import DashboardPresenter, read_totals
from ui.presenters.settings.dialog import PagePresenter, SettingsPresenter
from ui.presenters.settings.embedder import EmbedderPresenter
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
) -> tuple[SettingsPresenter, BackgroundConsent, DashboardPresenter]:
    """Return the presenters; the pages of the settings are built when the dialog first opens."""

    def notify(text: str) -> None:
        window.chat.banner.show_message(text, brief=False)

    consent = BackgroundConsent(services.background, bridge, window)

    def present_pages(dialog: SettingsDialog) -> Sequence[PagePresenter]:
        preview = dialog.memory.preview
        preview.set_theme(appearance.theme)
        appearance.theme_changed.connect(preview.set_theme)
        return (
            ProvidersPresenter(
                services.models, services.chat, services.workers.wake, bridge, dialog.providers
            ),
            EmbedderPresenter(
                services.spaces, services.embedders, services.embedding_regeneration, bridge,
                dialog.embedder,
            ),
            BackgroundPagePresenter(
                services.background, services.own_prices, services.spending,
                partial(list_models, services.models, services.chat, bridge),
                services.summary_regeneration, consent, bridge, dialog.background,
            ),
            RecallSettingsPresenter(
                services.settings, services.previews, bridge, dialog.memory, open_conversation,
                open_item,
            ),
        )  # fmt: skip

    settings = SettingsPresenter(
        services.settings, bridge, window, window.actions_by_name, appearance, present_pages, notify
    )
    consent.limits_requested.connect(settings.open_spend_limits)
    window.dashboard.allow_requested.connect(consent.ask_to_allow)
    dashboard = DashboardPresenter(
        services.workers,
        partial(read_totals, services.overview, services.spaces, services.background.needs_consent),
        services.fact_regeneration,
        bridge,
        window.dashboard,
        window,
        notify,
    )
    _yield_to_user(services, bridge, window)
    return settings, consent, dashboard


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

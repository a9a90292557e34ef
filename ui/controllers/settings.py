"""The settings dialog: values saved as they are entered, providers, keys, tests."""

from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import QObject, QTimer

from app.bootstrap import Services
from app.chat.models import ProviderState
from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.settings_schema import SETTINGS, SettingValue
from app.providers.configuration import ProviderConfig, ProviderKind
from ui.bridge import Bridge
from ui.controllers.background import BackgroundController
from ui.controllers.embedder import EmbedderController
from ui.controllers.tuning import TuningController
from ui.theme import Appearance, Choice
from ui.views.main_window import MainWindow
from ui.views.providers_page import ProviderCardContent
from ui.views.settings_dialog import SettingsDialog

_STEP_PERCENT = 10
_VENDORS = {"openai": "OpenAI", "anthropic": "Anthropic"}


class SettingsController(QObject):
    """Keeps dialog, appearance and `appconfig` in step."""

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        appearance: Appearance,
        background: BackgroundController,
        tuning: TuningController,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._appearance = appearance
        self._background = background
        self._tuning = tuning
        self._dialog: SettingsDialog | None = None
        self._embedder: EmbedderController | None = None
        bridge.changed.connect(self._on_changed)
        background.caps_wanted.connect(self._on_caps_wanted)
        actions = window.actions_by_name
        actions["settings"].triggered.connect(self._on_settings_triggered)
        actions["larger"].triggered.connect(lambda: self._zoom(_STEP_PERCENT))
        actions["smaller"].triggered.connect(lambda: self._zoom(-_STEP_PERCENT))
        actions["actual"].triggered.connect(lambda: self._save("text_size", 100))
        self._apply_appearance()

    def open(self, page: str = "") -> SettingsDialog:
        """Show the dialog, at a page by name; return it."""
        if self._dialog is None:
            self._dialog = self._make_dialog()
        self._show_values()
        self._bridge.start("providers", self._show_providers())
        if self._embedder is not None:
            self._embedder.show()
        self._background.show()
        self._tuning.show()
        if page:
            self._dialog.show_page(page)
        self._dialog.open()
        return self._dialog

    def _on_settings_triggered(self) -> None:
        self.open()

    def _on_caps_wanted(self) -> None:
        dialog = self.open("Background work")
        field = dialog.background.caps[0].control
        QTimer.singleShot(0, field, field.setFocus)  # once the question is gone

    def _make_dialog(self) -> SettingsDialog:
        dialog = SettingsDialog(self._window)
        dialog.edited.connect(self._save)
        dialog.reset_requested.connect(self._on_reset_requested)
        self._embedder = EmbedderController(self._services, self._bridge, dialog.embedder)
        self._background.attach(dialog.background)
        self._tuning.attach(dialog.memory)
        page = dialog.providers
        page.key_entered.connect(self._on_key_entered)
        page.key_removed.connect(self._on_key_removed)
        page.test_requested.connect(self._on_test_requested)
        page.removal_requested.connect(self._on_removal_requested)
        page.addition_requested.connect(self._on_addition_requested)
        return dialog

    # -- values

    def _show_values(self, keys: Iterable[str] = SETTINGS) -> None:
        if self._dialog is None:
            return
        settings = self._services.settings
        chosen = settings.chosen()
        for key in keys:
            if key in SETTINGS:
                self._dialog.show_value(
                    key,
                    settings.get(key),
                    is_default=key not in chosen,
                    ruled_by=settings.environment_variable(key),
                )

    def _save(self, key: str, value: SettingValue) -> None:
        self._bridge.carry_out(self._save_value(key, value))

    async def _save_value(self, key: str, value: SettingValue) -> None:
        try:
            await self._bridge.write(lambda: self._services.settings.set(key, value))
        except KnownError as error:
            if self._dialog is not None and self._dialog.isVisible():
                self._dialog.show_error(key, str(error))
            else:
                self._window.chat.banner.tell(str(error), brief=False)

    def _on_reset_requested(self, key: str) -> None:
        self._bridge.carry_out(self._bridge.write(lambda: self._services.settings.reset(key)))

    def _zoom(self, percent: int) -> None:
        settings, setting = self._services.settings, SETTINGS["text_size"]

        def step() -> None:
            wanted = settings.number("text_size") + percent
            low, high = int(setting.minimum or 0), int(setting.maximum or wanted)
            settings.set("text_size", max(low, min(high, wanted)))

        self._bridge.carry_out(self._bridge.write(step))

    def _on_changed(self, changed: Changed) -> None:
        if changed.settings & {"theme", "text_size"}:
            self._apply_appearance()
        self._show_values(changed.settings)
        if changed.providers and self._dialog is not None:
            self._bridge.start("providers", self._show_providers())

    def _apply_appearance(self) -> None:
        settings = self._services.settings
        self._appearance.choose(Choice(settings.text("theme")), settings.number("text_size"))

    # -- providers

    async def _show_providers(self) -> None:
        states = await self._bridge.run(self._services.models.providers)
        if self._dialog is None:
            return
        self._dialog.providers.show_providers([_card(state) for state in states])
        call = self._services.chat.call(self._services.models.local_servers)
        servers = await self._bridge.wait(call)
        known = {state.base_url for state in states}
        fresh = [server for server in servers if server.base_url not in known]
        words = "; ".join(f"{server.name} at {server.base_url}" for server in fresh)
        offer = f"Running on this computer: {words}. Add it below to use it." if fresh else ""
        self._dialog.providers.offer_local(offer)
        if fresh and not self._dialog.providers.form.name.text():
            self._dialog.providers.form.prefill(fresh[0].name, fresh[0].base_url)

    def _on_key_entered(self, name: str, key: str) -> None:
        self._bridge.carry_out(self._keep_key(name, key))

    async def _keep_key(self, name: str, key: str) -> None:
        page = self.open().providers
        try:
            await self._bridge.write(lambda: self._services.models.save_key(name, key))
            self._services.workers.wake()  # one may wait for it
        except KnownError as error:
            page.show_outcome(name, str(error), ok=False)
            return
        await self._show_providers()
        await self._test(name)

    def _on_key_removed(self, name: str) -> None:
        self._bridge.carry_out(self._then_show(
            lambda: self._services.models.forget_key(name)))  # fmt: skip

    def _on_removal_requested(self, name: str) -> None:
        self._bridge.carry_out(self._then_show(
            lambda: self._services.models.remove_provider(name)))  # fmt: skip

    async def _then_show(self, call: Any) -> None:
        await self._bridge.write(call)
        await self._show_providers()

    def _on_addition_requested(self, name: str, kind: str, base_url: str, key: str) -> None:
        self._bridge.carry_out(self._add(name, kind, base_url, key))

    async def _add(self, name: str, kind: str, base_url: str, key: str) -> None:
        form = self.open().providers.form
        models = self._services.models
        config = ProviderConfig(name, ProviderKind(kind), base_url or None)
        try:
            await self._bridge.write(lambda: models.add_provider(config))
            if key:
                await self._bridge.write(lambda: models.save_key(name, key))
        except KnownError as error:
            form.show_error(str(error))
            return
        form.clear()
        await self._show_providers()
        await self._test(name)

    def _on_test_requested(self, name: str) -> None:
        self._bridge.start(f"test {name}", self._test(name))

    async def _test(self, name: str) -> None:
        models = self._services.models
        try:
            report = await self._bridge.wait(self._services.chat.call(lambda: models.test(name)))
        except KnownError as error:
            if self._dialog is not None:
                self._dialog.providers.show_outcome(name, str(error), ok=False)
            return
        if report.problem is not None:
            words = f"{report.problem.title}. {report.problem.hint}"
        else:
            count = len(report.models)
            words = (
                f"Connected in {report.latency_ms} ms; {count:,} model{'' if count == 1 else 's'}. "
                "Choose one over the conversation."
            )
        if self._dialog is not None:
            self._dialog.providers.show_outcome(name, words, ok=report.ok)


def _card(state: ProviderState) -> ProviderCardContent:
    config = state.config
    return ProviderCardContent(
        name=config.name,
        title=_VENDORS.get(config.name, config.name),
        base_url=state.base_url,
        key_words=f"Key: {state.key_from}",
        key_editable=True,
        has_saved_key=state.has_saved_key,
        removable=config.name not in _VENDORS or not config.is_built_in,
    )

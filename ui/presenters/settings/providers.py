"""The providers page of the settings: adding, removing and testing providers, and their keys."""

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Protocol

from PySide6.QtCore import QObject

from app.chat.models import ModelDirectory, ProviderState
from app.domain.changes import ChangeSet
from app.domain.errors import KnownError
from app.domain.formatting import format_count
from app.providers.configuration import ProviderConfig
from app.providers.vendors import vendors
from ui.bridge import Bridge
from ui.views.settings.providers_page import ProviderCardContent, ProvidersPage


class NetworkLoop(Protocol):
    """The event loop that provider requests run on."""

    def call(self, work: Callable[[], Awaitable[Any]]) -> "Future[Any]":
        """Run a coroutine there."""
        ...


class ProvidersPresenter(QObject):
    """Shows the providers; `on_key_saved` wakes what waited for a key."""

    def __init__(
        self,
        models: ModelDirectory,
        network: NetworkLoop,
        on_key_saved: Callable[[], None],
        bridge: Bridge,
        page: ProvidersPage,
    ) -> None:
        super().__init__(page)
        self._models = models
        self._network = network
        self._on_key_saved = on_key_saved
        self._bridge = bridge
        self._page = page
        bridge.changed.connect(self._on_changed)
        page.key_entered.connect(lambda name, key: bridge.submit(self._save_key(name, key)))
        page.key_removed.connect(lambda name: self._write_and_show(lambda: models.forget_key(name)))
        page.removal_requested.connect(
            lambda name: self._write_and_show(lambda: models.remove_provider(name))
        )
        page.test_requested.connect(lambda name: bridge.start(f"test {name}", self._test(name)))
        page.addition_requested.connect(
            lambda name, kind, base_url, key: bridge.submit(
                self._add(ProviderConfig(name, kind, base_url or None), key)
            )
        )

    def show(self) -> None:
        """Show the providers, then look for model servers on this computer."""
        self._bridge.start("providers", self._show())

    async def _show(self) -> None:
        states = await self._bridge.run(self._models.providers)
        self._page.show_providers([_card(state) for state in states])
        servers = await self._bridge.wait(self._network.call(self._models.local_servers))
        known = {state.base_url for state in states}
        new = [server for server in servers if server.base_url not in known]
        names = "; ".join(f"{server.name} at {server.base_url}" for server in new)
        self._page.offer_local(
            f"Running on this computer: {names}. Add it below to use it." if new else ""
        )
        if new and not self._page.form.name.text():
            self._page.form.prefill(new[0].name, new[0].base_url)

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.providers:
            self.show()

    def _write_and_show(self, write: Callable[[], None]) -> None:
        async def run() -> None:
            await self._bridge.write(write)
            await self._show()

        self._bridge.submit(run())

    async def _save_key(self, name: str, key: str) -> None:
        try:
            await self._bridge.write(lambda: self._models.save_key(name, key))
        except KnownError as error:
            self._page.show_outcome(name, error.display_text, ok=False)
            return
        self._on_key_saved()
        await self._show()
        await self._test(name)

    async def _add(self, config: ProviderConfig, key: str) -> None:
        try:
            await self._bridge.write(lambda: self._models.add_provider(config))
            if key:
                await self._bridge.write(lambda: self._models.save_key(config.name, key))
        except KnownError as error:
            self._page.form.show_error(error.display_text)
            return
        self._page.form.clear()
        await self._show()
        await self._test(config.name)

    async def _test(self, name: str) -> None:
        try:
            report = await self._bridge.wait(self._network.call(lambda: self._models.test(name)))
        except KnownError as error:
            self._page.show_outcome(name, error.display_text, ok=False)
            return
        if report.problem is not None:
            text = f"{report.problem.title}. {report.problem.hint}"
        else:
            text = (
                f"Connected in {report.latency_ms} ms; {format_count(len(report.models), 'model')}. "
                "Choose one above the conversation."
            )
        self._page.show_outcome(name, text, ok=report.ok)


def _card(state: ProviderState) -> ProviderCardContent:
    config = state.config
    vendor = vendors().get(config.name)
    return ProviderCardContent(
        name=config.name,
        title=vendor.title if vendor else config.name,
        base_url=state.base_url,
        key_text=f"Key: {state.key_from}",
        has_saved_key=state.has_saved_key,
        removable=not config.is_built_in,
    )

"""The providers page of the settings: adding, removing and testing providers, and their keys."""

from collections.abc import Callable
from functools import partial

from app.chat.exchange_loop import ExchangeLoop
from app.chat.models import ModelDirectory, ProviderState
from app.domain.errors import KnownError
from app.domain.formatting import format_count
from app.providers.configuration import ProviderConfig
from app.providers.vendors import vendors
from ui.bridge import Work
from ui.presenters.presenter import Presenter
from ui.views.settings.providers_page import ProviderCardContent, ProvidersPage


class ProvidersPresenter(Presenter):
    """Shows the providers; `on_key_saved` wakes what waited for a key."""

    _models: ModelDirectory
    _network: ExchangeLoop
    _on_key_saved: Callable[[], None]
    _page: ProvidersPage

    def __post_init__(self) -> None:
        super().__post_init__()
        page, models = self._page, self._models
        self._bridge.subscribe(self.show, "providers")
        page.key_entered.connect(self._save_key)
        page.key_removed.connect(lambda name: self._write_and_show(lambda: models.forget_key(name)))
        page.removal_requested.connect(
            lambda name: self._write_and_show(lambda: models.remove_provider(name))
        )
        page.test_requested.connect(lambda name: self._start_test(name, self._test(name)))
        page.addition_requested.connect(self._add)

    def show(self, _changed: object = None) -> None:
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

    def _write_and_show(self, write: Callable[[], None]) -> None:
        self._bridge.save(write, lambda _: self.show())

    def _save_key(self, name: str, key: str) -> None:
        def test(_: object) -> None:
            self._on_key_saved()
            self._start_test(name, self._show_and_test(name))

        self._bridge.save(
            lambda: self._models.save_key(name, key), test, partial(self._show_failure, name)
        )

    def _add(self, name: str, kind: str, base_url: str, key: str) -> None:
        def add() -> None:
            self._models.add_provider(ProviderConfig(name, kind, base_url or None))
            if key:
                self._models.save_key(name, key)

        def test(_: object) -> None:
            form.clear()
            self._start_test(name, self._show_and_test(name))

        form = self._page.form
        self._bridge.save(add, test, lambda error: form.show_error(error.display_text))

    def _start_test(self, name: str, work: Work) -> None:
        self._bridge.start(f"test {name}", work, partial(self._show_failure, name))

    def _show_failure(self, name: str, error: KnownError) -> None:
        self._page.show_outcome(name, error.display_text, ok=False)

    async def _show_and_test(self, name: str) -> None:
        await self._show()
        await self._test(name)

    async def _test(self, name: str) -> None:
        report = await self._bridge.wait(self._network.call(lambda: self._models.test(name)))
        if report.problem is not None:
            text = report.problem.display_text
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

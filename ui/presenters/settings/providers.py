"""The models page of the settings: the gallery of providers, setting one up, and its models."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from app.chat.exchange_loop import ExchangeLoop
from app.chat.models import ModelCard, ModelDirectory, ProviderState
from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput, KnownError
from app.domain.text import parse_whole_number
from app.domain.translation import format_milliseconds, format_number, tr, trn
from app.domain.turns import RECALL_MODEL
from app.providers.configuration import ProviderConfig, template_of, title_of
from app.providers.http.base_url import with_scheme
from app.providers.vendors import vendors
from app.providers.vendors.local_servers import LocalServer
from app.storage.tables.settings import Settings
from ui.presenters.presenter import Presenter
from ui.presenters.settings.provider_texts import (
    WINDOW_SOURCES,
    fields_of,
    key_texts,
    origin_of,
    parse_timeout_s,
    tiles,
)
from ui.views.dialogs.confirm import confirm_removal
from ui.views.settings.models_page import ModelsPage
from ui.views.settings.provider_form import FormContent, ProviderFields
from ui.widgets.model_rows import model_name, model_rows

_ABOUT_LOCAL = tr("Runs on this computer: nothing leaves it. Start it first, then test it here.")
_ABOUT_REMOTE = tr("Messages and what recall adds to them are sent to the address below.")


class ProvidersPresenter(Presenter):
    """Shows the providers; `on_key_saved` wakes what waited for a key, `follow_link` asks and opens."""

    _models: ModelDirectory
    _network: ExchangeLoop
    _settings: Settings
    _on_key_saved: Callable[[], None]
    _follow_link: Callable[[str], object]
    _page: ModelsPage

    def _set_up(self) -> None:
        self._states: Mapping[str, ProviderState] = {}
        self._running: Mapping[str, LocalServer] = {}
        self._loaded = ProviderFields()
        page, form = self._page, self._page.form
        page.show_tiles(tiles({}, {}))
        self._bridge.subscribe(lambda _: self._refresh(), "providers", "default_model")
        page.shown.connect(self._refresh)
        page.shown.connect(self._find_servers)
        page.opened.connect(self.open)
        page.connect_requested.connect(self.connect_to)
        form.closed.connect(self._leave)
        form.submitted.connect(self._submit)
        form.removal_requested.connect(self._ask_to_remove)
        form.page_requested.connect(self._follow_link)
        form.cancelled.connect(self._cancel_test)
        form.models.default_chosen.connect(self._choose_default)
        form.models.selected.connect(self._show_window)
        form.models.window_entered.connect(self._set_window)

    def open(self, name: str) -> None:
        """Show the form of a provider, "" for a server that is still to be named."""
        self._leave()
        self._bridge.start("provider form", self._open(name))

    def connect_to(self, name: str) -> None:
        """Show the form of a provider, and test and save it as it is."""

        async def connect() -> None:
            await self._open(name)
            self._submit(self._page.form.fields, tested=True)

        self._leave()
        self._bridge.start("provider form", connect())

    def _leave(self) -> None:
        """Cancel what belongs to the form that was open."""
        for name in ("provider form", "provider models", "test provider", "model window"):
            self._bridge.cancel(name)

    # -- the gallery

    def _refresh(self) -> None:
        self._bridge.start("providers", self._load())

    async def _load(self) -> None:
        states = await self._bridge.run(self._models.providers)
        self._states = {state.config.name: state for state in states}
        self._page.show_tiles(tiles(self._states, self._running))
        self._page.default.setText(
            tr("New conversations use {model_name}.").format(model_name=model_name(self._default))
        )

    @property
    def _default(self) -> str:
        return self._settings.text("default_model")

    def _find_servers(self) -> None:
        async def find() -> None:
            servers = await self._bridge.wait(self._network.call(self._models.local_servers))
            self._running = {server.name: server for server in reversed(servers)}
            self._page.show_tiles(tiles(self._states, self._running))

        self._bridge.start("local servers", find())

    # -- the form

    async def _open(self, name: str) -> None:
        await self._load()
        storage = await self._bridge.run(lambda: self._models.registry.keys.storage)
        state, template = self._states.get(name), template_of(name)
        is_set_up = state is not None and (state.is_saved or state.has_key)
        fields = fields_of(state, template, self._running.get(name), is_set_up=is_set_up)
        if not name:
            fields = replace(fields, name="")
        self._loaded = fields
        self._page.show_form(
            FormContent(
                title=title_of(name) or tr("Other server"),
                about=_ABOUT_LOCAL if template and template.is_local else _ABOUT_REMOTE,
                fields=fields,
                key=key_texts(state, template, storage),
                is_new=state is None or not state.is_saved,
                is_named=bool(name),
                is_url_locked=state is not None and state.config.url_env is not None,
            )
        )
        if state is not None and is_set_up:
            self._bridge.start("provider models", self._list(name), self._show_failure)

    async def _list(self, name: str) -> None:
        self._page.form.show_outcome(tr("Asking for its models\u2026"), "muted")
        cards = await self._bridge.wait(self._network.call(lambda: self._models.cards(name)))
        if self._page.form.name == name:
            self._page.form.show_outcome("", "muted")
            self._show_models(cards)

    def _show_models(self, cards: tuple[ModelCard, ...]) -> None:
        models = self._page.form.models
        models.list.provider = self._page.form.name
        models.show_models(model_rows(cards), self._default)
        self._show_window(models.list.wanted)

    def _submit(self, fields: ProviderFields, tested: bool) -> None:
        try:
            config, timeout_s = self._config(fields), parse_timeout_s(fields.timeout)
        except KnownError as error:
            self._show_failure(error)
            if not fields.allow_plain_http and with_scheme(fields.base_url).startswith("http:"):
                self._page.form.more.setChecked(True)  # where it is allowed
            return
        work = self._test_and_save(config, fields, timeout_s, tested=tested)
        self._bridge.start("test provider", work, self._show_failure)

    def _cancel_test(self) -> None:
        self._bridge.cancel("test provider")
        self._page.form.show_outcome(tr("The test was cancelled."), "muted", can_skip_test=True)

    async def _test_and_save(
        self, config: ProviderConfig, fields: ProviderFields, timeout_s: int | None, *, tested: bool
    ) -> None:
        form, models, key = self._page.form, self._models, fields.key
        if fields.passphrase:
            form.show_busy(tr("Opening the key file\u2026"))
            await self._bridge.run(lambda: models.registry.keys.unlock(fields.passphrase))
        connecting = tr("Connecting to {text}…").format(text=config.url().text)
        form.show_busy(connecting if tested else tr("Saving\u2026"), can_cancel=tested)
        report, text = None, tr("Saved without a test.")
        if tested:
            report = await self._bridge.wait(
                self._network.call(lambda: models.try_out(config, key))
            )
            if report.problem is not None:
                form.show_outcome(report.problem.display_text, "error", can_skip_test=True)
                return
            form.show_busy(tr("Saving\u2026"))
            text = tr("Saved. Connected in {duration}; {found}.").format(
                duration=format_milliseconds(report.latency_ms),
                found=trn("{count} model", "{count} models", len(report.models)),
            )
        await self._store(config, key, timeout_s)
        if key or fields.passphrase:
            self._on_key_saved()
        await self._load()
        storage = await self._bridge.run(lambda: models.registry.keys.storage)
        form.show_saved(config.name)
        state = self._states.get(config.name)
        form.show_key(key_texts(state, template_of(config.name), storage))
        self._loaded = replace(form.fields, name=config.name)
        form.show_outcome(text, "success")
        if report is not None:
            listed = report.models
            cards = await self._bridge.wait(self._network.call(lambda: models.cards_of(listed)))
            self._show_models(cards)
            self._choose_first(config.name)

    async def _store(self, config: ProviderConfig, key: str, timeout_s: int | None) -> None:
        models, stored = self._models, config
        if config.url_env:  # the variable's address applies as long as it is set
            stored = ProviderConfig(
                config.name, config.kind, None, config.key_env, config.allow_plain_http
            )

        def save() -> None:
            models.add_provider(stored)
            models.set_timeout(config.name, timeout_s)
            if key:
                models.registry.save_key(config.name, key)

        await self._bridge.write(save)

    def _choose_first(self, name: str) -> None:
        """Have a model chosen while there is none: of a server on this computer, the selected one."""
        part, template = self._page.form.models, template_of(name)
        if self._default != RECALL_MODEL or not part.list.model:
            return
        if template is not None and template.is_local:
            self._choose_default(part.list.model)
        else:
            part.note.show_text(
                tr("Choose the model that answers: select it and press Enter."), "muted"
            )
        part.list.search.setFocus()  # what is typed now must not be taken for a key

    def _config(self, fields: ProviderFields) -> ProviderConfig:
        """Return the configuration that was entered; raise InvalidInput for an invalid part.

        A variable that was not entered for a new address does not go there with its key.
        """
        fields = replace(fields, base_url=with_scheme(fields.base_url))
        address = urlsplit(fields.base_url).netloc.replace(":", "-")
        name = self._page.form.name or "-".join((fields.name or address).casefold().split())
        if not self._page.form.name and (name in self._states or name in vendors()):
            raise InvalidInput(f"There is a provider '{name}' already", "Choose another name")
        state = self._states.get(name)
        if state is not None and state.config.url_env:
            return replace(state.config, allow_plain_http=fields.allow_plain_http)
        vendor = vendors()[fields.kind]
        is_vendors = not fields.base_url or fields.base_url.rstrip("/") == vendor.base_url
        config = ProviderConfig(
            name,
            fields.kind,
            None if is_vendors and vendor.base_url else fields.base_url or None,
            fields.key_env or None,
            fields.allow_plain_http,
        ).checked()
        is_moved = bool(self._loaded.base_url) and origin_of(self._loaded) != config.url().origin
        if is_moved and fields.key_env == self._loaded.key_env:
            config = replace(config, key_env=None)
        return config

    def _show_failure(self, error: KnownError) -> None:
        self._page.form.show_outcome(error.display_text, "error")

    # -- removing

    def _ask_to_remove(self, name: str) -> None:
        default = tr(" New conversations will use Recall.") if self._uses(name) else ""
        details = tr(
            "Its settings and its saved key are deleted. Conversations stay; to continue one of its own, choose another model.{default}"
        ).format(default=default)
        question = tr("Remove {title_of}?").format(title_of=title_of(name))
        confirm_removal(
            self._page.window(), tr("Remove a provider"), question, details,
            lambda: self._bridge.save(
                lambda: self._models.remove_provider(name),
                lambda _: self._page.show_gallery(),
                self._show_failure,
            ),
        )  # fmt: skip

    def _uses(self, name: str) -> bool:
        return ModelRef.parse(self._default).provider == name

    # -- models

    def _choose_default(self, model: str) -> None:
        part = self._page.form.models
        text = tr("New conversations use {model_name}.").format(model_name=model_name(model))

        def show_chosen(_: object) -> None:
            part.show_default(model)
            part.note.show_text(text, "success")

        self._bridge.save(
            lambda: self._settings.set("default_model", model),
            show_chosen,
            lambda error: part.note.show_text(error.display_text, "error"),
        )

    def _show_window(self, model: str) -> None:
        def read() -> tuple[str, bool]:
            found = self._models.windows.find(ModelRef.parse(model))
            text = tr("{model_name} reads {tokens} tokens, {source}.").format(
                model_name=model_name(model),
                tokens=format_number(found.tokens),
                source=WINDOW_SOURCES[found.source],
            )
            return text, model in self._models.windows.own()

        if not model:
            self._page.form.models.show_window("", is_own=False)
            return
        self._bridge.load(
            "model window", read,
            lambda shown: self._page.form.models.show_window(shown[0], is_own=shown[1]),
        )  # fmt: skip

    def _set_window(self, model: str, typed: str) -> None:
        def write() -> None:
            if not typed:
                self._models.windows.remove(model)
                return
            if (tokens := parse_whole_number(typed.replace(",", ""))) is None:
                raise InvalidInput(f"'{typed}' is not a number of tokens")
            self._models.windows.put(model, tokens)

        part = self._page.form.models
        part.note.show_text("", "muted")
        self._bridge.save(
            write,
            lambda _: self._show_window(model),
            lambda error: part.note.show_text(error.display_text, "error"),
        )

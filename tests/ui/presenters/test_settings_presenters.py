"""The presenters of the settings and the dashboard, each alone with fakes of what it uses."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMainWindow, QMessageBox, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from app.chat.models import ModelCard, ProviderState
from app.domain import translation
from app.domain.change_set import ChangeSet
from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput, KeyRejected, KnownError, ProviderError, StorageError
from app.domain.settings_schema import SETTINGS
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.memory.search.coverage import Overview
from app.providers.configuration import ProviderConfig
from app.providers.pricing.prices import OwnPrice
from app.providers.vendors.local_servers import LocalServer
from app.storage.tables.spending import Spent
from app.system.keys import KeyStorage
from app.workers.model_choice import BackgroundPlan
from app.workers.regeneration import RegenerationPlan
from tests.fakes.screens import FakeSettings, Parts, Recorder, press
from ui.presenters.settings.background import BackgroundConsent, BackgroundPagePresenter
from ui.presenters.settings.dashboard import DashboardPresenter
from ui.presenters.settings.dialog import SettingsPresenter
from ui.presenters.settings.providers import ProvidersPresenter
from ui.presenters.settings.recall_settings import RecallSettingsPresenter
from ui.views.actions import add_actions
from ui.views.memory.dashboard import Dashboard, Totals
from ui.views.settings.background_page import BackgroundPage
from ui.views.settings.models_page import ModelsPage
from ui.views.settings.provider_form import ProviderFields, ProviderForm
from ui.views.settings.settings_dialog import SettingsDialog
from ui.widgets.plain_label import PlainLabel

MODEL = "openai:gpt-5.6-luna"
EXCHANGES = WorkerName.EXCHANGE_SUMMARIZER


class Desk(Parts):
    """What fakes share; `refusal` is what every write raises."""

    refusal: KnownError | None = None

    def check(self) -> None:
        if self.refusal is not None:
            raise self.refusal


@pytest.fixture
def desk(qtbot: QtBot) -> Iterator[Desk]:
    made = Desk(qtbot)
    yield made
    assert made.bridge.failures == []


class FakeNetwork:
    """Runs coroutines that never wait."""

    def call(self, work: Callable[[], Any]) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            work().send(None)
        except StopIteration as ended:
            future.set_result(ended.value)
        return future


class FakeModels:
    """A directory of providers; `problem` is the outcome of tests."""

    problem: ProviderError | None = None
    running: tuple[LocalServer, ...] = ()
    right = "correct horse"

    def __init__(self, desk: Desk) -> None:
        self.configs: dict[str, ProviderConfig] = {}
        self.keys: dict[str, str] = {}
        self.timeouts: dict[str, int | None] = {}
        self.tried: list[tuple[ProviderConfig, str]] = []
        self.own: dict[str, int] = {}
        found = SimpleNamespace(tokens=4_096, source="assumed")
        self.windows = SimpleNamespace(
            find=lambda _ref: found, own=lambda: self.own, remove=self.own.pop,
            put=lambda model, tokens: self.own.update({model: tokens}),
        )  # fmt: skip
        self.key_file = SimpleNamespace(storage=KeyStorage.KEYRING, unlock=self._unlock)
        self.registry = SimpleNamespace(keys=self.key_file, save_key=self.keys.__setitem__)
        self._desk = desk

    def _unlock(self, passphrase: str) -> None:
        if passphrase != self.right:
            raise InvalidInput("This is not the passphrase")
        self.key_file.storage = KeyStorage.FILE

    def providers(self) -> tuple[ProviderState, ...]:
        return tuple(
            ProviderState(
                each, each.url().text, "the keyring", has_saved_key=name in self.keys,
                has_key=name in self.keys, timeout_s=self.timeouts.get(name), is_saved=True,
            )
            for name, each in self.configs.items()
        )  # fmt: skip

    def add_provider(self, config: ProviderConfig) -> None:
        self._desk.check()
        self.configs[config.name] = config

    def set_timeout(self, name: str, seconds: int | None) -> None:
        self.timeouts[name] = seconds

    def remove_provider(self, name: str) -> None:
        del self.configs[name]

    async def try_out(self, config: ProviderConfig, key: str) -> Any:
        self.tried.append((config, key))
        return SimpleNamespace(latency_ms=7, models=("a", "b"), problem=self.problem)

    async def cards(self, name: str) -> tuple[ModelCard, ...]:
        return await self.cards_of((f"{name}-model",))

    async def cards_of(self, listed: Sequence[str]) -> tuple[ModelCard, ...]:
        return tuple(ModelCard(ModelRef("p", each), each, 8_192, (1, 2)) for each in listed)

    async def local_servers(self) -> tuple[LocalServer, ...]:
        return self.running


class FakeRegeneration:
    count = 2
    begun = 0

    def plan(self) -> RegenerationPlan:
        return RegenerationPlan(self.count, "All of it.")

    def begin(self) -> None:
        self.begun += 1


# -- the dialog
@pytest.fixture
def settings(desk: Desk) -> Any:
    """Return a settings dialog on fakes: presenter, settings, models, chosen appearances."""
    window, settings, models = QMainWindow(), FakeSettings(check=desk.check), FakeModels(desk)
    window.show()
    chosen: list[int] = []
    appearance = SimpleNamespace(choose=lambda _choice, percent, **_: chosen.append(percent))
    previews = SimpleNamespace(recent=lambda: ["Which bolt?"])

    def present(dialog: SettingsDialog) -> Sequence[Callable[[], object]]:
        desk.make(
            ProvidersPresenter, models=models, network=FakeNetwork(), settings=settings,
            on_key_saved=lambda: None, follow_link=lambda _: None, page=dialog.models,
        )  # fmt: skip
        recall = desk.make(
            RecallSettingsPresenter, settings=settings, previews=previews, page=dialog.memory,
            open_conversation=lambda: (None, None),
        )  # fmt: skip
        return (recall.show,)

    presenter = desk.make(
        SettingsPresenter, settings=settings, actions=add_actions(window), appearance=appearance,
        present_pages=present,
    )  # fmt: skip
    return SimpleNamespace(presenter=presenter, settings=settings, models=models, chosen=chosen)


def test_a_value_is_saved_and_a_refused_one_is_shown_beside_it(settings: Any, desk: Desk) -> None:
    dialog = settings.presenter.open("General")
    dialog.edited.emit("text_size", 150)
    desk.bridge.changed.emit(ChangeSet(settings=frozenset(("text_size",))))
    assert settings.settings.values == {"text_size": 150}
    assert settings.chosen[-1] == 150
    desk.refusal = StorageError("The disk is full", log_text="for the log")
    dialog.edited.emit("text_size", 160)
    assert "The disk is full" in dialog.editors["text_size"].error.text()
    dialog.close()
    dialog.edited.emit("text_size", 170)
    assert [type(each) for each in desk.banner.errors] == [StorageError]
    desk.refusal, settings.settings.values["text_size"] = None, 245
    settings.presenter._zoom(10)
    assert settings.settings.values["text_size"] == SETTINGS["text_size"].maximum


def test_undo_goes_back_to_the_values_at_the_dialogs_opening(settings: Any, desk: Desk) -> None:
    dialog = settings.presenter.open()
    undo = dialog.memory._undo
    dialog.edited.emit("rag_max_tokens", 900)
    desk.bridge.changed.emit(ChangeSet(settings=frozenset(("rag_max_tokens",))))
    assert undo.isEnabled()
    fields = ProviderFields("shed", base_url="http://localhost:1/v1", key="k")
    dialog.models.form.submitted.emit(fields, True)
    settings.presenter.open("Memory")
    assert settings.models.keys == {"shed": "k"}
    assert undo.isEnabled(), "adding a provider keeps it"
    undo.click()
    assert "rag_max_tokens" not in settings.settings.values
    settings.settings.set("rag_max_tokens", 900)
    dialog.close()
    settings.presenter.open()
    assert not undo.isEnabled()
    assert dialog.memory._defaults.isEnabled()
    dialog.memory._defaults.click()
    assert settings.settings.values == {}


def test_in_german_no_page_is_too_wide(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "_chosen", ["de"])
    dialog = SettingsDialog()
    qtbot.addWidget(dialog)
    pages = [area.widget() for area in dialog.findChildren(QScrollArea)]
    widths = {type(each).__name__: each.minimumSizeHint().width() for each in pages if each}
    assert {name: width for name, width in widths.items() if width > 500} == {}


# -- providers
@pytest.fixture
def providers(desk: Desk) -> Any:
    """Return the models page on fakes: page, form, models, settings, what woke the workers."""
    page, models, woken, followed = ModelsPage(), FakeModels(desk), list[str](), list[str]()
    settings = FakeSettings(check=desk.check)
    presenter = desk.make(
        ProvidersPresenter, models=models, network=FakeNetwork(), settings=settings, page=page,
        on_key_saved=lambda: woken.append("key"), follow_link=followed.append,
    )  # fmt: skip
    return SimpleNamespace(
        page=page, form=page.form, models=models, settings=settings, woken=woken,
        presenter=presenter, followed=followed,
    )  # fmt: skip


def test_a_local_server_that_runs_is_offered_tested_saved_and_its_model_made_the_default(
    providers: Any, desk: Desk
) -> None:
    page, form, models = providers.page, providers.form, providers.models
    places = list(page.tiles)
    models.running = (LocalServer("ollama", "http://127.0.0.1:11434/v1", ()),)
    page.shown.emit()
    assert "Running" in page.tiles["ollama"].state.text()
    assert list(page.tiles) == places, "a tile keeps its place"
    page.tiles["ollama"].click()
    assert form.base_url.text() == "http://127.0.0.1:11434/v1"
    assert models.tried == []
    form.save.click()
    config = ProviderConfig("ollama", "compatible", "http://127.0.0.1:11434/v1")
    assert (models.tried, models.configs) == ([(config, "")], {"ollama": config})
    assert "2 models" in form.outcome.text()
    assert providers.woken == []
    form.models.list.search.setText("B")
    form.models.use.click()
    assert providers.settings.text("default_model") == "p:b"
    assert not form.models.use.isEnabled(), "it is the one of new conversations"
    form.models.window_tokens.setText("16,000")
    form.models.set_window.click()
    assert models.own == {"p:b": 16_000}
    form.models.reset_window.click()
    assert models.own == {}


def test_the_first_provider_gives_new_conversations_a_model(providers: Any) -> None:
    models, settings, form = providers.models, providers.settings, providers.form
    models.running = (LocalServer("ollama", "http://127.0.0.1:11434/v1", ()),)
    providers.page.shown.emit()
    settings.values["default_model"] = "openai:gpt"
    providers.page.connect_requested.emit("ollama")
    assert "ollama" in models.configs, "the server that was offered is tested and saved at once"
    assert settings.text("default_model") == "openai:gpt", "a choice stays"
    settings.values["default_model"] = "recall:"
    providers.page.connect_requested.emit("ollama")
    assert settings.text("default_model") == form.models.list.model != ""
    settings.values["default_model"] = "recall:"
    providers.page.tiles["openrouter"].click()
    form.key.setText("sk-1")
    form.save.click()
    assert settings.text("default_model") == "recall:", "of many remote ones the user chooses"
    assert form.models.note.text()


def test_an_address_from_the_environment_is_tested_and_not_stored(providers: Any) -> None:
    models, form = providers.models, providers.form
    url = "http://127.0.0.1:18080/v1"
    ruled = ProviderConfig(
        "openai", "openai", url, "OPENAI_API_KEY", is_built_in=True, url_env="OPENAI_BASE_URL"
    )
    models.providers = lambda: (ProviderState(ruled, url, "no key"),)
    providers.page.shown.emit()
    providers.page.tiles["openai"].click()
    assert (form.base_url.text(), form.base_url.isReadOnly()) == (url, True)
    form.key.setText("sk-1")
    form.save.click()
    assert models.tried == [(ruled, "sk-1")], "the key goes nowhere else"
    assert models.configs["openai"].base_url is None
    assert models.keys == {"openai": "sk-1"}


def test_a_test_of_a_slow_server_is_cancelled_saving_nothing(providers: Any, desk: Desk) -> None:
    form, models = providers.form, providers.models
    providers.presenter.open("ollama")
    assert form.cancel.isHidden()
    desk.bridge.hold()
    form.save.click()
    assert not form.cancel.isHidden()
    form.cancel.setFocus()
    form.cancel.click()
    assert form.window().focusWidget() is form.save
    assert form.cancel.isHidden()
    assert not desk.bridge.is_running("test provider")
    desk.bridge.release()
    assert models.configs == {}


def test_a_failed_test_saves_nothing_unless_one_insists(providers: Any, desk: Desk) -> None:
    form, models = providers.form, providers.models
    models.problem = KeyRejected("OpenAI does not accept the key", "Enter a valid one")
    providers.presenter.open("openai")
    form.key.setText("wrong")
    form.timeout.setText("90")
    form.save.click()
    assert (models.configs, models.keys) == ({}, {})
    assert "does not accept" in form.outcome.text()
    form.untested.click()
    assert models.configs == {"openai": ProviderConfig("openai", "openai", None, "OPENAI_API_KEY")}
    assert (models.keys, models.timeouts) == ({"openai": "wrong"}, {"openai": 90})
    assert (providers.woken, form.key.text()) == (["key"], "")


def test_a_variable_does_not_follow_to_another_address(providers: Any) -> None:
    form, models = providers.form, providers.models
    providers.presenter.open("openai")
    form.base_url.setText("https://gate.example/v1")
    form.save.click()
    assert models.tried[-1][0] == ProviderConfig("openai", "openai", "https://gate.example/v1")
    form.variable.setText("GATE_KEY")
    form.save.click()
    assert models.tried[-1][0].key_env == "GATE_KEY"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [(ProviderFields("x", base_url="nonsense"), "“nonsense”"),
     (ProviderFields("openai", base_url="http://localhost:1/v1"), "“openai” already"),
     (ProviderFields(base_url="http://[::1]:1/v1"), "name"),
     (ProviderFields("x", base_url="http://localhost:1/v1", timeout="soon"), "“soon”"),
     (ProviderFields("x", base_url="http://far.example/v1"), "unencrypted")],
)  # fmt: skip
def test_invalid_fields_are_refused(providers: Any, fields: ProviderFields, shown: str) -> None:
    providers.presenter.open("")
    providers.form.submitted.emit(fields, True)
    assert shown in providers.form.outcome.text()
    assert providers.models.tried == []


def test_a_server_without_a_name_is_named_by_its_address(providers: Any) -> None:
    providers.presenter.open("")
    providers.form.submitted.emit(ProviderFields(base_url="LocalHost:8123"), True)
    assert [config.name for config, _ in providers.models.tried] == ["localhost-8123"]


def test_a_test_moves_the_focus_to_no_button_that_removes(qtbot: QtBot) -> None:
    form = ProviderForm()
    qtbot.addWidget(form)
    form.show()
    form.activateWindow()
    for can_cancel in (True, False):
        form.save.setFocus()
        form.show_busy("Connecting", can_cancel=can_cancel)
        assert form.focusWidget() is not form.remove
        form.show_outcome("No answer", "error", can_skip_test=True)
        assert form.focusWidget() is form.save


def test_a_provider_is_edited_and_removed_after_a_yes(providers: Any, desk: Desk) -> None:
    page, form, models = providers.page, providers.form, providers.models
    models.configs["shed"] = ProviderConfig("shed", "compatible", "http://localhost:1/v1")
    providers.presenter.open("shed")
    assert [form.base_url.text(), form.provider_name.isHidden()] == ["http://localhost:1/v1", True]
    form.base_url.setText("http://localhost:2/v1")
    form.save.click()
    assert models.configs["shed"].base_url == "http://localhost:2/v1"
    form.remove.click()
    (box,) = page.window().findChildren(QMessageBox)
    assert box.defaultButton().text().replace("&", "") == "Cancel"
    press("Cancel")
    assert list(models.configs) == ["shed"]
    form.remove.click()
    press("Remove")
    assert (models.configs, page.is_form_open) == ({}, False)
    assert "shed" not in page.tiles


@pytest.mark.parametrize(
    ("storage", "saved", "words", "takes_passphrase"),
    [(KeyStorage.KEYRING, False, "keyring", False),
     (KeyStorage.SESSION, False, "until you quit", True),
     (KeyStorage.SESSION, True, "until you quit", True),
     (KeyStorage.LOCKED, True, "passphrase", True),
     (KeyStorage.FILE, True, "encrypted file", False)],
)  # fmt: skip
def test_the_form_says_what_happens_to_a_key(
    providers: Any, storage: KeyStorage, saved: bool, words: str, takes_passphrase: bool
) -> None:
    providers.models.key_file.storage = storage
    if saved:
        url = "https://openrouter.ai/api/v1"
        providers.models.configs["openrouter"] = ProviderConfig("openrouter", "compatible", url)
        providers.models.keys["openrouter"] = "k"
    providers.presenter.open("openrouter")
    form = providers.form
    assert words in form._key_note.text()
    is_stored = saved and storage is not KeyStorage.SESSION
    assert ("Saved" in form.key.placeholderText()) is is_stored
    assert ("enter another" in form.key.placeholderText()) is saved
    assert form.passphrase.isVisibleTo(form) is takes_passphrase
    form.key_page.click()
    assert providers.followed == ["https://openrouter.ai/settings/keys"]
    providers.presenter.open("ollama")
    assert form.key_page.isHidden()


def test_the_key_file_is_opened_first_and_a_wrong_passphrase_saves_nothing(providers: Any) -> None:
    models, form = providers.models, providers.form
    models.key_file.storage = KeyStorage.LOCKED
    providers.presenter.open("openrouter")
    form.key.setText("sk-1")
    form.passphrase.setText("wrong")
    form.save.click()
    assert (models.configs, models.keys) == ({}, {})
    assert form.outcome.property("tone") == "error"
    form.passphrase.setText(FakeModels.right)
    form.save.click()
    assert models.keys == {"openrouter": "sk-1"}
    assert form.passphrase.isHidden()
    assert form.passphrase.text() == ""


def test_a_locked_key_waits_in_the_field_of_its_passphrase(providers: Any, qtbot: QtBot) -> None:
    models, form = providers.models, providers.form
    qtbot.addWidget(providers.page)
    providers.page.show()
    models.configs["openai"] = ProviderConfig("openai", "openai", None, "OPENAI_API_KEY")
    models.keys["openai"] = "sk-1"
    for storage, field in ((KeyStorage.LOCKED, form.passphrase), (KeyStorage.FILE, form.key)):
        models.key_file.storage = storage
        providers.presenter.open("openai")
        assert providers.page.focusWidget() is field


# -- the background page
class FakeChoice:
    """A choice of background models; `needs` is whether consent is missing."""

    model = ""
    has_spend_limit = False
    needs = True

    def __init__(self, desk: Desk) -> None:
        self.chosen: list[tuple[str, bool]] = []
        self._desk = desk

    def plan(self, model: str | None = None) -> BackgroundPlan | None:
        self._desk.check()
        if not (name := self.model if model is None else model):
            return None
        return BackgroundPlan(name, 3, 4, 500, 1.0, 0.2, "https://api.openai.com/v1", self.needs)

    def choose(self, model: str, *, agreed: bool = False) -> None:
        self.chosen.append((model, agreed))
        self.model = model

    def needs_consent(self) -> bool:
        return self.needs and bool(self.model)


@pytest.fixture
def background(desk: Desk) -> Any:
    """Return the page on fakes: page, choice, prices, summaries, requests for limits."""
    page, summaries, limits = BackgroundPage(), FakeRegeneration(), list[str]()
    choice: Any = FakeChoice(desk)
    table: dict[str, OwnPrice] = {}
    prices = SimpleNamespace(
        table=table, all=lambda: table, put=table.__setitem__, remove=table.__delitem__
    )
    spending = SimpleNamespace(by_day=lambda _since: ())
    consent = BackgroundConsent(desk.bridge, choice, page)
    consent.limits_requested.connect(lambda: limits.append("asked"))

    async def list_models(show: Callable[[Sequence[str]], None]) -> None:
        show([MODEL])

    desk.make(
        BackgroundPagePresenter, choice=choice, own_prices=prices, spending=spending,
        list_models=list_models, summaries=summaries, consent=consent, page=page,
    ).show()  # fmt: skip
    return SimpleNamespace(
        page=page, choice=choice, prices=prices, summaries=summaries, limits=limits
    )


@pytest.mark.parametrize(
    ("fields", "saved", "error"),
    [(("1", "2", ""), OwnPrice(1, 2, None), ""), (("1", "2", "0.5"), OwnPrice(1, 2, 0.5), ""),
     (("1", "", "0.5"), None, "missing"), (("", "2", ""), None, "missing"),
     (("1", "cheap", ""), None, "“cheap”")],
)  # fmt: skip
def test_own_prices_are_saved_or_refused_on_the_page(
    background: Any, fields: tuple[str, str, str], saved: OwnPrice | None, error: str
) -> None:
    page, table = background.page, background.prices.table
    page.prices.entered.emit(MODEL, *fields)
    assert table.get(MODEL) == saved
    assert error in page.prices.error.text()
    assert page.prices.error.isHidden() is (saved is not None)
    if saved is not None:
        page.prices.removed.emit(MODEL)
        assert table == {}


@pytest.mark.parametrize(
    ("button", "chosen", "limits"),
    [("Allow", [(MODEL, True)], 0), ("Not now", [], 0),
     ("Set a spend limit\N{HORIZONTAL ELLIPSIS}", [], 1)],
)  # fmt: skip
def test_a_remote_model_is_used_after_consent_only(
    background: Any, button: str, chosen: list[tuple[str, bool]], limits: int
) -> None:
    background.page.chooser.requested.emit(MODEL)
    assert background.choice.chosen == []
    press(button)
    assert background.choice.chosen == chosen
    assert len(background.limits) == limits


def test_a_model_that_needs_no_consent_is_used_at_once_and_an_unusable_one_refused(
    background: Any, desk: Desk
) -> None:
    background.choice.needs = False
    background.page.chooser.requested.emit(MODEL)
    assert background.choice.chosen == [(MODEL, False)]
    assert MODEL in background.page.chooser.state.text()
    desk.refusal = InvalidInput("No such provider", log_text="for the log")
    background.page.chooser.picked.emit("nobody:x")
    assert "No such provider" in background.page.chooser.error.text()


def test_summaries_are_regenerated_after_a_yes(background: Any) -> None:
    background.page.chooser.regenerate.click()
    press("Regenerate")
    assert background.summaries.begun == 1
    background.summaries.count = 0
    background.page.chooser.regenerate.click()
    assert background.page.chooser.text.text() == "All of it."
    assert background.summaries.begun == 1


# -- the dashboard
@pytest.fixture
def dashboard(desk: Desk) -> Any:
    """Return the dashboard on fakes: presenter, board, view, status bar, facts."""
    view, facts, holder = Dashboard(), FakeRegeneration(), QWidget()
    names = ("worker_status", "spend_status")
    bar = SimpleNamespace(**{name: PlainLabel(holder) for name in names})
    statuses = (WorkerStatus(EXCHANGES, True, WorkerState.IDLE),)

    def refresh() -> tuple[WorkerStatus, ...]:
        desk.check()
        return (WorkerStatus(EXCHANGES, True, WorkerState.RUNNING),)  # as it was then

    board = Recorder(
        statuses=statuses, refresh=refresh, start=lambda host: host(lambda: None),
        warnings=("Something waits.",), failures=(),
    )  # fmt: skip
    totals = Totals(Overview(0, {}, 0.5, 2048, Spent(), Spent()), needs_consent=True)
    presenter = desk.make(
        DashboardPresenter, workers=board, read_totals=lambda: totals, facts=facts, dashboard=view,
        status_bar=bar,
    )  # fmt: skip
    return SimpleNamespace(
        presenter=presenter, board=board, view=view, bar=bar, facts=facts, holder=holder
    )


def test_the_dashboard_starts_and_steers_the_workers(
    dashboard: Any, desk: Desk, qtbot: QtBot
) -> None:
    dashboard.presenter.start()
    qtbot.waitUntil(lambda: not dashboard.presenter._cards_due.isActive())
    view, bar, calls = dashboard.view, dashboard.bar, dashboard.board.calls
    assert len(desk.bridge.hosted) == 1
    assert view.card(EXCHANGES).state.text() == "idle"
    assert bar.worker_status.text() == "Background idle"
    assert not view.allow.isHidden()
    assert bar.spend_status.isHidden(), "nothing was spent"
    view.switched.emit(EXCHANGES, False)
    view.run_requested.emit(EXCHANGES)
    assert calls[-2:] == [("set_enabled", EXCHANGES, False), ("run_now", EXCHANGES)]
    view.failures_requested.emit(EXCHANGES)
    dialog = dashboard.presenter._failures
    dialog.retry_requested.emit(EXCHANGES, None)
    assert calls[-2:] == [("retry_failed", EXCHANGES, None), ("failures", EXCHANGES)]
    dialog.close()


def test_a_storage_error_does_not_keep_workers_from_starting(dashboard: Any, desk: Desk) -> None:
    desk.refusal = StorageError("The disk failed")
    dashboard.presenter.start()
    assert len(desk.bridge.hosted) == 1
    assert [str(each) for each in desk.bridge.failures] == ["The disk failed"]
    desk.bridge.failures.clear()


def test_changes_restart_no_slow_queries(dashboard: Any, background: Any, desk: Desk) -> None:
    desk.bridge.hold()
    for name, view in (("totals", dashboard.view), ("background page", background.page)):
        view.shown.emit()
        first = desk.bridge._waiting[name]
        view.shown.emit()
        assert desk.bridge._waiting[name] is first
    desk.bridge.release()


def test_facts_are_extracted_again_after_a_yes(dashboard: Any, desk: Desk) -> None:
    dashboard.view.regeneration_requested.emit()
    press("Extract again")
    assert dashboard.facts.begun == 1
    dashboard.facts.count = 0
    dashboard.view.regeneration_requested.emit()
    assert desk.banner.messages == ["All of it."]


def test_servers_and_models_are_named_as_people_type_them(providers: Any, qtbot: QtBot) -> None:
    page, form, models = providers.page, providers.form, providers.models
    qtbot.addWidget(page)
    page.show()
    page.shown.emit()
    page.tiles[""].click()
    assert page.focusWidget() is form.base_url, "its name is optional"
    form.provider_name.setText("My Box")
    form.base_url.setText("localhost:8080/v1")
    form.save.click()
    saved = ProviderConfig("my-box", "compatible", "http://localhost:8080/v1")
    assert models.configs == {"my-box": saved}
    for typed, chosen in (("qwen3:8b", "my-box:qwen3:8b"), ("my-box:x", "my-box:x")):
        form.models.list.search.setText(typed)
        assert not form.models.list.none.isHidden()
        QTest.keyClick(form.models.list.search, Qt.Key.Key_Return)
        assert providers.settings.text("default_model") == chosen

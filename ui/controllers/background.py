"""Who does background work, from the window: planned, agreed to, switched; spend and own prices."""

from collections.abc import Coroutine, Sequence
from datetime import date
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication

from app.bootstrap import Services
from app.domain.errors import InvalidInput, KnownError
from app.domain.events import Changed
from app.domain.local_days import month_start
from app.providers.prices import OwnPrice
from app.storage.spending import Spent, SpentOn
from app.storage.times import now
from app.workers.background_choice import BackgroundPlan
from app.workers.background_model import MODEL_KEYS
from app.workers.background_words import plan_words, sending_words
from app.workers.wording import CALLED, ESTIMATED, most_words, spent_words
from ui.bridge import Bridge
from ui.controllers.asking import Question, ask
from ui.views.background_page import CAPS, BackgroundPage
from ui.views.main_window import MainWindow

_SHOW_EVERY_MS = 1000


class BackgroundController(QObject):
    """Asks before history leaves the machine, and keeps the page in the settings in step.

    Signals:
        caps_wanted: The user wants to set a cap on spending first.
    """

    caps_wanted = Signal()

    def __init__(self, services: Services, bridge: Bridge, window: MainWindow) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._page: BackgroundPage | None = None
        self._due = QTimer(self, singleShot=True, interval=_SHOW_EVERY_MS)
        self._due.timeout.connect(self._on_due_timeout)
        window.dashboard.allow_requested.connect(self.ask_to_allow)
        window.dashboard.redo_requested.connect(self._on_dashboard_redo_requested)
        bridge.changed.connect(self._on_changed)

    def attach(self, page: BackgroundPage) -> None:
        """Work a page of the settings from now on."""
        self._page = page
        page.model_picked.connect(self._on_page_model_picked)
        page.model_wanted.connect(self._on_page_model_wanted)
        page.price_entered.connect(self._on_page_price_entered)
        page.price_removed.connect(self._on_page_price_removed)
        page.redo_wanted.connect(self._on_page_redo_wanted)
        page.shown.connect(self._on_due_timeout)

    def show(self) -> None:
        """Show how it stands, and ask servers what models they have."""
        self._bridge.start("background page", self._show())
        self._bridge.start("background models", self._show_models())

    def ask_to_allow(self) -> None:
        """Ask whether the model that is chosen may read the history, if that is not settled."""
        self._bridge.start("background consent", self._told(self._want(None)))

    # -- showing

    async def _show(self) -> None:
        if (page := self._page) is None:
            return
        background = self._services.background
        waits = await self._bridge.run(background.waits_for_consent)
        page.chooser.show_state(self._services.settings.text("background_model"), waits=waits)
        page.prices.show_prices(self._services.own_prices.all())
        at = now()
        rows = await self._bridge.run(lambda: self._services.spending.by_day(month_start(at)))
        page.spent.show_rows(_spent_rows(rows, at.astimezone().date()))

    async def _show_models(self) -> None:
        """Offer what the providers list that could answer; one that does not is left out."""
        if (page := self._page) is None:
            return
        page.chooser.show_models(())
        models = self._services.models
        found: list[str] = []
        for name in await self._bridge.run(self._usable_providers):
            try:
                cards = await self._bridge.wait(
                    self._services.chat.call(partial(models.models, name))
                )
            except KnownError:
                continue
            found += [str(card.ref) for card in cards if not card.is_embedding]
            page.chooser.show_models(found)

    def _usable_providers(self) -> list[str]:
        models = self._services.models
        names = [state.config.name for state in models.providers()]
        return [name for name in names if models.has_key(name)]

    def _on_changed(self, changed: Changed) -> None:
        concerns = changed.settings & MODEL_KEYS or changed.passages or changed.spend
        is_shown = self._page is not None and self._page.isVisible()
        if concerns and is_shown and not self._due.isActive():
            self._due.start()

    def _on_due_timeout(self) -> None:
        self._bridge.start("background page", self._show())

    # -- choosing

    def _on_page_model_picked(self, model: str) -> None:
        if model:
            self._bridge.start("background plan", self._told(self._plan(model)))

    async def _plan(self, model: str) -> None:
        plan = await self._bridge.run(lambda: self._services.background.plan(model))
        if plan is not None and self._page is not None:
            self._page.chooser.show_plan(plan)

    def _on_page_model_wanted(self, model: str) -> None:
        self._bridge.start("background choice", self._told(self._want(model)))

    async def _want(self, model: str | None) -> None:
        """Put a model (None: the one chosen) in force, after the question where there is one."""
        plan = await self._bridge.run(lambda: self._services.background.plan(model))
        if plan is not None and plan.needs_consent:
            agree = partial(self._begin_choosing, plan.model, agreed=True)
            question = _question(plan, has_cap=self._has_cap())
            parent = QApplication.activeWindow() or self._window
            ask(parent, question, agree, first=self.caps_wanted.emit)
        elif model is not None:
            await self._choose(model, agreed=False)

    def _begin_choosing(self, model: str, *, agreed: bool) -> None:
        self._bridge.carry_out(self._told(self._choose(model, agreed=agreed)))

    async def _choose(self, model: str, *, agreed: bool) -> None:
        await self._bridge.write(lambda: self._services.background.choose(model, agreed=agreed))
        await self._show()

    def _has_cap(self) -> bool:
        return any(self._services.settings.get(key) is not None for key in CAPS)

    # -- making again

    def _on_page_redo_wanted(self) -> None:
        self._bridge.start("summaries again", self._told(self._ask_to_redo()))

    async def _ask_to_redo(self) -> None:
        redo = self._services.redo
        plan = await self._bridge.run(redo.plan)
        if not plan.count:
            if self._page is not None:
                self._page.chooser.show_words(plan.words)
            return
        question = Question(
            "Make summaries again", "Make what was summarised otherwise again?", plan.words,
            "Make them again",
        )  # fmt: skip
        parent = QApplication.activeWindow() or self._window
        ask(parent, question, lambda: self._bridge.carry_out(self._told(self._redo())))

    async def _redo(self) -> None:
        await self._bridge.write(self._services.redo.begin)
        await self._show()

    def _on_dashboard_redo_requested(self) -> None:
        self._bridge.start("facts again", self._told(self._ask_to_learn_again()))

    async def _ask_to_learn_again(self) -> None:
        redo = self._services.fact_redo
        plan = await self._bridge.run(redo.plan)
        if not plan.count:
            self._window.chat.banner.tell(plan.words, brief=False)
            return
        question = Question(
            "Learn facts again", "Learn again what others learned?", plan.words, "Learn again"
        )
        ask(self._window, question, lambda: self._bridge.carry_out(self._told(self._learn_again())))

    async def _learn_again(self) -> None:
        await self._bridge.write(self._services.fact_redo.begin)

    # -- prices

    def _on_page_price_entered(self, model: str, given: str, made: str, cached: str) -> None:
        self._bridge.carry_out(self._keep_price(model, given, made, cached))

    async def _keep_price(self, model: str, *words: str) -> None:
        page = self._page
        assert page is not None
        try:
            given, made, *cached = [_usd(each) for each in words if each or each is not words[-1]]
            price = OwnPrice(given, made, cached[0] if cached else None)
            await self._bridge.write(lambda: self._services.own_prices.put(model, price))
        except KnownError as error:
            page.prices.show_error(str(error))
        else:
            page.prices.show_error("")
            await self._show()

    def _on_page_price_removed(self, model: str) -> None:
        self._bridge.carry_out(self._remove_price(model))

    async def _remove_price(self, model: str) -> None:
        await self._bridge.write(lambda: self._services.own_prices.remove(model))
        await self._show()

    async def _told(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something; what the world keeps from being done is told where it was asked for."""
        try:
            await work
        except KnownError as error:
            if self._page is not None and self._page.isVisible():
                self._page.chooser.show_error(str(error))
            else:
                self._window.chat.banner.tell(str(error), brief=False)


def _question(plan: BackgroundPlan, *, has_cap: bool) -> Question:
    caps = "The caps you set are never passed." if has_cap else "No cap on spending is set."
    place = plan.sent_to.partition("://")[2].partition("/")[0]
    return Question(
        "Send your history to a server",
        f"May {plan.model} read your history, at {place}?",
        f"{plan_words(plan)}\n\n{sending_words(plan)} {caps}",
        "Allow",
        "Not now",
        "" if has_cap else "Set a cap\u2026",
    )


def _usd(words: str) -> float:
    try:
        return float(words)
    except ValueError as error:
        raise InvalidInput(
            f"'{words}' is not a price", "A price is a number, in US dollars for a million tokens."
        ) from error


def _spent_rows(rows: Sequence[SpentOn], day: date) -> list[tuple[str, str, str, str]]:
    """Return (worker, model, today, this month) in words, chats among them."""
    sums: dict[tuple[str, str], tuple[Spent, Spent]] = {}
    for row in rows:
        of_day, of_month = sums.get((row.purpose, row.model), (Spent(), Spent()))
        of_day = of_day + row.spent if row.day == day else of_day
        sums[row.purpose, row.model] = (of_day, of_month + row.spent)
    told: list[tuple[str, str, str, str]] = []
    for (purpose, model), (of_day, of_month) in sorted(sums.items()):
        told.append((_purpose(purpose), model, spent_words(of_day), spent_words(of_month)))
        if of_month.estimated_usd:
            today, month = (most_words(each.estimated_usd) for each in (of_day, of_month))
            told.append((f"of it {ESTIMATED}", "", today, month))
    return told


def _purpose(purpose: str) -> str:
    titles = {name.value: called.title for name, called in CALLED.items()}
    return titles.get(purpose, "Conversations")

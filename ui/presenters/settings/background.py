"""Background work by a language model: choosing it, consent, what was spent, own prices.

`BackgroundConsent` belongs to the window, `BackgroundPagePresenter` to a page of the settings; `Regeneration` asks
before what others than the chosen model made is made again.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import date

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QApplication, QWidget

from app.domain.errors import InvalidInput, KnownError
from app.domain.translation import format_at_most, month_start, tr
from app.domain.workers import WORKERS
from app.providers.pricing.prices import OwnPrice, OwnPrices
from app.storage.engine.stamps import now
from app.storage.tables.spending import Spending, Spent, SpentOn
from app.workers.background_model import MODEL_KEYS
from app.workers.model_choice import BackgroundModelChoice, BackgroundPlan, plan_text, sending_text
from app.workers.regeneration import EmbeddingRegeneration, ModelRegeneration, RegenerationPlan
from app.workers.status_text import ESTIMATED, format_spent
from ui.bridge import Bridge, OnError, Refresh
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.views.settings.background_page import BackgroundPage

Regeneration = ModelRegeneration | EmbeddingRegeneration


def offer(
    bridge: Bridge,
    regeneration: Regeneration,
    parent: QWidget,
    texts: tuple[str, str, str],
    show_text: Callable[[str], object],
    on_error: OnError | None = None,
) -> None:
    """Ask whether to begin, with the title, question and button of `texts`.

    Calls `show_text` instead if there is nothing to do.
    """

    def ask(plan: RegenerationPlan) -> None:
        if not plan.count:
            show_text(plan.text)
            return
        title, question, button = texts
        confirm(
            QApplication.activeWindow() or parent,
            Confirmation(title, question, plan.text, button),
            lambda: bridge.save(regeneration.begin, on_error=on_error),
        )

    bridge.load(f"regenerate: {texts[0]}", regeneration.plan, ask, on_error)


_SHOW_EVERY_MS = 1000


class BackgroundConsent(Presenter):
    """Puts a model in force, after a question if the history would leave this computer.

    Signals:
        limits_requested: The user wants to set a spend limit first.
        chosen: A model was put in force.
    """

    limits_requested = Signal()
    chosen = Signal()

    _choice: BackgroundModelChoice
    _parent: QWidget

    def ask_to_allow(self) -> None:
        """Ask whether the chosen model may read the history, if nobody has agreed yet."""
        self._bridge.start("background consent", self.use(None))

    async def use(self, model: str | None) -> None:
        """Put a model (None: the chosen one) in force; raises KnownError for an unusable one."""
        plan = await self._bridge.run(lambda: self._choice.plan(model))
        if plan is not None and plan.needs_consent:
            confirm(
                QApplication.activeWindow() or self._parent,
                _question(plan, has_limit=self._choice.has_spend_limit),
                lambda: self._bridge.submit(self._choose(plan.model, agreed=True)),
                on_other=self.limits_requested.emit,
            )
        elif model is not None:
            await self._choose(model, agreed=False)

    async def _choose(self, model: str, *, agreed: bool) -> None:
        await self._bridge.write(lambda: self._choice.choose(model, agreed=agreed))
        self.chosen.emit()


class BackgroundPagePresenter(Presenter):
    """Shows the page and saves what is entered there.

    `list_models` yields more and more of the models that providers list.
    """

    _choice: BackgroundModelChoice
    _own_prices: OwnPrices
    _spending: Spending
    _list_models: Callable[[Callable[[Sequence[str]], None]], Awaitable[object]]
    _summaries: Regeneration
    _consent: BackgroundConsent
    _page: BackgroundPage

    def _set_up(self) -> None:
        self.setParent(self._page)  # its timers end with the view
        self._refresh = Refresh(self, self._bridge, "background page", _SHOW_EVERY_MS, self._show)
        self._consent.chosen.connect(self._refresh.run)
        page = self._page
        page.chooser.picked.connect(self._on_model_picked)
        page.chooser.requested.connect(
            lambda model: self._bridge.start(
                "background choice", self._consent.use(model), self._on_error
            )
        )
        page.chooser.regenerate.clicked.connect(self._on_regeneration_requested)
        page.prices.entered.connect(self._on_price_entered)
        page.prices.removed.connect(
            lambda model: self._bridge.save(
                lambda: self._own_prices.remove(model), lambda _: self._refresh.run()
            )
        )
        page.shown.connect(self._refresh.run)
        self._bridge.subscribe(
            lambda _: self._refresh.request(), *MODEL_KEYS, "passages", "spend", while_shown=page
        )

    def show(self) -> None:
        """Show the current state, and ask the providers for their models."""
        self._bridge.start("background page", self._show())
        self._bridge.start("background models", self._show_models())

    async def _show(self) -> None:
        at = now()
        waits = await self._bridge.run(self._choice.needs_consent)
        rows = await self._bridge.run(lambda: self._spending.by_day(month_start(at)))
        self._page.chooser.show_state(self._choice.model, waits=waits)
        self._page.prices.show_prices(self._own_prices.all())
        self._page.spent.show_rows(_spent_rows(rows, at.astimezone().date()))

    async def _show_models(self) -> None:
        self._page.chooser.show_models(())
        await self._list_models(self._page.chooser.show_models)

    # -- the model

    def _on_model_picked(self, model: str) -> None:
        def show(plan: BackgroundPlan | None) -> None:
            if plan is not None:
                self._page.chooser.show_plan(plan)

        if model:
            self._bridge.load(
                "background plan", lambda: self._choice.plan(model), show, self._on_error
            )

    def _on_regeneration_requested(self) -> None:
        question = tr("Regenerate summaries made by other models?")
        offer(
            self._bridge,
            self._summaries,
            self._page,
            (tr("Regenerate summaries"), question, tr("Regenerate")),
            self._page.chooser.show_text,
            self._on_error,
        )

    def _on_error(self, error: KnownError) -> None:
        self._page.chooser.show_error(error.display_text)

    # -- prices

    def _on_price_entered(self, model: str, given: str, made: str, cached: str) -> None:
        def save() -> None:
            price = OwnPrice(_usd(given), _usd(made), _usd(cached) if cached else None)
            self._own_prices.put(model, price)

        prices = self._page.prices
        self._bridge.save(
            save, self._on_price_saved, lambda error: prices.show_error(error.display_text)
        )

    def _on_price_saved(self, _: object) -> None:
        self._page.prices.show_error("")
        self._refresh.run()


def _question(plan: BackgroundPlan, *, has_limit: bool) -> Confirmation:
    limits = tr("Your spend limits apply.") if has_limit else tr("No spend limit is set.")
    host = plan.sent_to.partition("://")[2].partition("/")[0]
    return Confirmation(
        tr("Send your history to a server"),
        tr("May {model} read your history, at {host}?").format(model=plan.model, host=host),
        f"{plan_text(plan)}\n\n{sending_text(plan)} {limits}",
        tr("Allow"),
        tr("Not now"),
        "" if has_limit else tr("Set a spend limit\u2026"),
    )


def _usd(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(
            f"'{text}' is not a price" if text else "A price for input or output is missing",
            "A price is a number, in US dollars per million tokens.",
        ) from error


def _spent_rows(rows: Sequence[SpentOn], day: date) -> list[tuple[str, str, str, str]]:
    """Return (worker, model, today, this month) as text; conversations are among the workers."""
    sums: dict[tuple[str, str], tuple[Spent, Spent]] = {}
    for row in rows:
        of_day, of_month = sums.get((row.purpose, row.model), (Spent(), Spent()))
        of_day = of_day + row.spent if row.day == day else of_day
        sums[row.purpose, row.model] = (of_day, of_month + row.spent)
    titles = {name.value: spec.title for name, spec in WORKERS.items()}
    shown: list[tuple[str, str, str, str]] = []
    for (purpose, model), (of_day, of_month) in sorted(sums.items()):
        title = titles.get(purpose, tr("Conversations"))
        shown.append((title, model, format_spent(of_day), format_spent(of_month)))
        if of_month.estimated_usd:
            today, month = (format_at_most(each.estimated_usd) for each in (of_day, of_month))
            shown.append(
                (tr("of it {estimated}").format(estimated=tr(ESTIMATED)), "", today, month)
            )
    return shown

"""Who does background work, and what models cost: `config set background_model`, and `price`."""

from argparse import Namespace

from app.bootstrap import Services
from app.cli.arguments import WrongUsage
from app.cli.terminal import NotAgreed, Terminal
from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput
from app.domain.settings_schema import setting_for
from app.providers.prices import OwnPrice
from app.workers.background_words import plan_words, sending_words

_KEY = "background_model"


def choose_background_model(services: Services, given: Namespace, terminal: Terminal) -> None:
    """Set who does background work; history only leaves this machine after a yes to its price."""
    chosen = setting_for(_KEY).parse(given.value)
    if chosen is None:
        services.background.choose("")
        return
    plan = services.background.plan(str(chosen))
    if plan is None:
        return
    terminal.err(plan_words(plan))
    if plan.needs_consent:
        terminal.err(sending_words(plan))
        if not given.yes and not terminal.says_yes():
            kept = services.settings.text(_KEY) or "none (extractive)"
            raise NotAgreed(
                f"The model for background work is still {kept}: nobody agreed to send your "
                f"history to {plan.sent_to}",
                "Add --yes to agree.",
            )
    services.background.choose(plan.model, agreed=plan.needs_consent)


def ask_after_import(services: Services, consents: str, turns: int, terminal: Terminal) -> None:
    """Say what an import of so many turns takes; a model elsewhere waits until that is agreed to.

    `consents` is what the import took back; they hold again when it brought no turns.
    """
    if not turns:
        services.background.give_consents_back(consents)
    plan = services.background.plan()
    if plan is None or not plan.requests or not turns:
        return
    terminal.err(plan_words(plan))
    if plan.needs_consent:
        terminal.err(sending_words(plan))
        if terminal.says_yes():
            services.background.choose(plan.model, agreed=True)
        else:
            terminal.err(
                f"Until you agree it waits: commonplace config set {_KEY} {plan.model} --yes"
            )


def price(services: Services, given: Namespace, terminal: Terminal) -> int:
    """List, set and remove prices of the user's; the list price of a model in sight beside them."""
    wanted = {"list": (0, 1), "set": (3, 4), "remove": (1, 1)}[given.action]
    if not wanted[0] <= len(given.words) <= wanted[1]:
        takes = {"list": "at most MODEL", "set": "MODEL INPUT OUTPUT [CACHED]", "remove": "MODEL"}
        raise WrongUsage(
            f"'price {given.action}' takes {takes[given.action]}", "See 'commonplace price --help'."
        )
    if given.action == "list":
        return _list(services, given.words, terminal)
    model = given.words[0]
    if given.action == "set":
        numbers = [_usd(word) for word in given.words[1:]]
        model = services.own_prices.put(model, OwnPrice(*numbers))
    else:
        services.own_prices.remove(model)
    if terminal.as_json:
        terminal.document({"set" if given.action == "set" else "removed": model})
    return 0


def _list(services: Services, models: list[str], terminal: Terminal) -> int:
    own = services.own_prices.all()
    shown = models or [*own]
    if terminal.as_json:
        rows = [
            {"model": model, "input_usd": each.input_usd, "output_usd": each.output_usd,
             "cached_usd": each.cached_usd}
            for model, each in own.items() if model in shown
        ]  # fmt: skip
        terminal.document({"prices": rows})
        return 0
    for model in shown:
        terminal.line(f"{model}: {services.background.price_words(ModelRef.parse(model))}")
    if not shown:
        terminal.err("You have set no prices; what models cost comes from the bundled list.")
    return 0


def _usd(word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InvalidInput(
            f"'{word}' is not a price", "A price is a number, in USD for a million tokens."
        ) from error

"""`provider`, `price` and `window`: providers, and the user's own prices and context windows."""

from argparse import Namespace
from collections.abc import Mapping

from app.chat.exchange_loop import ExchangeLoop
from app.chat.models import ModelDirectory
from app.cli.arguments import wrong_arguments
from app.cli.terminal import Terminal
from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput
from app.domain.text import parse_whole_number
from app.providers.configuration import ProviderConfig
from app.providers.pricing.prices import OwnPrice, OwnPrices
from app.providers.windows import ModelWindows
from app.workers.model_choice import BackgroundModelChoice

_PRICE_WORDS = {
    "list": (0, 1, "at most MODEL"),
    "set": (3, 4, "MODEL INPUT OUTPUT [CACHED]"),
    "remove": (1, 1, "MODEL"),
}
_WINDOW_WORDS = _PRICE_WORDS | {"set": (2, 2, "MODEL TOKENS")}


def provider(
    models: ModelDirectory, chat: ExchangeLoop, given: Namespace, terminal: Terminal
) -> int:
    """List, add, test and remove providers."""
    if given.action == "list":
        if given.name is not None:
            raise wrong_arguments(given, "nothing more")
        return _list_providers(models, terminal)
    if given.name is None:
        raise wrong_arguments(given, "NAME")
    if given.action == "test":
        return _test_provider(models, chat, given.name, terminal)
    if given.action == "add":
        if given.kind is None:
            raise wrong_arguments(given, "--kind")
        models.add_provider(
            ProviderConfig(
                given.name,
                given.kind,
                given.base_url,
                given.key_env,
                given.insecure,
                first_byte_s=given.timeout,
            )
        )
    else:
        models.remove_provider(given.name)
    terminal.show({"added" if given.action == "add" else "removed": given.name})
    return 0


def _test_provider(
    models: ModelDirectory, chat: ExchangeLoop, name: str, terminal: Terminal
) -> int:
    report = chat.call(lambda: models.test(name)).result()
    found = [str(card.ref) for card in report.models]
    lines = [f"{name}: connected in {report.latency_ms} ms", *(f"  {each}" for each in found)]
    if report.ok and not found:
        lines.append("  It does not list its models.")
    document = {
        "name": name,
        "ok": report.ok,
        "base_url": report.base_url,
        "latency_ms": report.latency_ms,
        "models": found,
    }
    terminal.show(document, *(lines if report.ok else ()))
    if report.problem is not None:
        terminal.err(report.problem.display_text)
    return 0 if report.ok else 1


def _list_providers(models: ModelDirectory, terminal: Terminal) -> int:
    rows = [
        {
            "name": state.config.name,
            "kind": state.config.kind,
            "base_url": state.base_url,
            "key_from": state.key_from,
        }
        for state in models.providers()
    ]
    terminal.show(
        {"providers": rows},
        *("{name}  {kind}  {base_url}  key: {key_from}".format(**row) for row in rows),
    )
    return 0


def price(
    own_prices: OwnPrices, choice: BackgroundModelChoice, given: Namespace, terminal: Terminal
) -> int:
    """List, set and remove the user's prices; list prices are shown beside them."""
    _check_words(given, _PRICE_WORDS)
    if given.action == "list":
        return _list_prices(own_prices, choice, given.words, terminal)
    model = given.words[0]
    if given.action == "set":
        model = own_prices.put(model, OwnPrice(*map(_usd, given.words[1:])))
    else:
        own_prices.remove(model)
    terminal.show({"set" if given.action == "set" else "removed": model})
    return 0


def window(windows: ModelWindows, given: Namespace, terminal: Terminal) -> int:
    """List, set and remove the user's context windows; a model's is shown with its source."""
    _check_words(given, _WINDOW_WORDS)
    if given.action == "list":
        found = {
            model: windows.find(ModelRef.parse(model)) for model in given.words or windows.own()
        }
        rows = [
            {"model": model, "tokens": each.tokens, "source": each.source.name.lower()}
            for model, each in found.items()
        ]
        lines = (f"{model}: {each.tokens:,} tokens, {each.source}" for model, each in found.items())
        terminal.show({"windows": rows}, *lines)
        return 0
    model = given.words[0]
    if given.action == "set":
        tokens = parse_whole_number(given.words[1].replace(",", ""))
        if tokens is None:
            raise InvalidInput(f"'{given.words[1]}' is not a number of tokens")
        model = windows.put(model, tokens)
    else:
        windows.remove(model)
    terminal.show({"set" if given.action == "set" else "removed": model})
    return 0


def _check_words(given: Namespace, table: Mapping[str, tuple[int, int, str]]) -> None:
    least, most, expected = table[given.action]
    if not least <= len(given.words) <= most:
        raise wrong_arguments(given, expected)


def _list_prices(
    own_prices: OwnPrices, choice: BackgroundModelChoice, models: list[str], terminal: Terminal
) -> int:
    own = own_prices.all()
    shown = models or [*own]
    rows = [
        {"model": model, "input_usd": each.input_usd, "output_usd": each.output_usd,
         "cached_usd": each.cached_usd}
        for model, each in own.items() if model in shown
    ]  # fmt: skip
    if terminal.as_json:
        terminal.document({"prices": rows})
        return 0
    for model in shown:
        terminal.line(f"{model}: {choice.price_text(ModelRef.parse(model))}")
    if not shown:
        terminal.err("You have set no prices; what models cost comes from the bundled list.")
    return 0


def _usd(word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InvalidInput(
            f"'{word}' is not a price", "A price is a number, in USD per million tokens."
        ) from error

"""`provider`, `price` and `window`: providers, and the user's own prices and context windows."""

import os
from argparse import Namespace

from app.chat.exchange_loop import ExchangeLoop
from app.chat.models import ModelDirectory
from app.cli.arguments import wrong_arguments
from app.cli.terminal import KEY_PROMPT, Terminal, members
from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput
from app.domain.text import parse_whole_number
from app.providers.configuration import ProviderConfig
from app.providers.pricing.prices import OwnPrice, OwnPrices
from app.providers.windows import ModelWindows
from app.system.keys import KEY_FILE_VARIABLE, KeyLocation, KeyStorage
from app.workers.model_choice import BackgroundModelChoice

_UNLOCK_PROMPT = "Passphrase of the key file: "
_KEPT_IN = {
    KeyLocation.KEYRING: "the keyring",
    KeyLocation.FILE: "the encrypted key file",
    KeyLocation.SESSION: "memory, until the program ends",
}


def provider(
    models: ModelDirectory, chat: ExchangeLoop, given: Namespace, terminal: Terminal
) -> int | None:
    """List, add, test and remove providers, and save their keys."""
    if given.action == "list":
        _list_providers(models, terminal)
        return None
    (name,) = given.words
    if given.action == "key":
        return _save_key(models, name, terminal)
    if given.action == "test":
        unlock_keys(models, f"{name}:", terminal)
        return _test_provider(models, chat, name, terminal)
    if given.action == "add":
        if given.kind is None:
            raise wrong_arguments(given, "--kind")
        options = (given.kind, given.base_url, given.key_env, given.insecure)
        models.add_provider(ProviderConfig(name, *options, first_byte_s=given.timeout))
        terminal.show({"added": name})
        terminal.note(f"Try it: 'commonplace provider test {name}'.")
    else:
        models.remove_provider(name)
        terminal.show({"removed": name})
    return None


def unlock_keys(models: ModelDirectory, model: str, terminal: Terminal) -> None:
    """Ask for the passphrase of the key file if a model's key is in it and somebody can be asked."""
    if models.waits_for_passphrase(model) and (typed := terminal.ask_secret(_UNLOCK_PROMPT)):
        models.registry.keys.unlock(typed)


def _save_key(models: ModelDirectory, name: str, terminal: Terminal) -> int:
    """Save a key that is typed, or read from standard input; print where it is kept.

    Without a keyring it goes to the key file, whose passphrase is asked for, twice for a new one.
    """
    key = terminal.read_secret(KEY_PROMPT)
    storage = models.registry.keys.storage
    if storage is KeyStorage.LOCKED:
        _unlock(models, terminal.ask_secret(_UNLOCK_PROMPT))
    elif storage is KeyStorage.SESSION and not terminal.is_remote:
        terminal.err("This system has no keyring; the key is kept in an encrypted file.")
        passphrase = terminal.ask_secret("New passphrase: ")
        if passphrase and terminal.ask_secret("The same again: ") != passphrase:
            raise InvalidInput("The two passphrases differ, so nothing was saved")
        _unlock(models, passphrase)
    place = models.registry.save_key(name, key)
    line = f"{name}: the key is kept in {_KEPT_IN[place]}"
    terminal.show({"saved": name, "kept_in": place.value}, line)
    return 0


def _unlock(models: ModelDirectory, passphrase: str | None) -> None:
    passphrase = passphrase or os.environ.get(KEY_FILE_VARIABLE)  # one that is too short or wrong
    if not passphrase:
        raise InvalidInput(
            "There is no keyring, and no passphrase for the key file was given",
            f"Set {KEY_FILE_VARIABLE}, or enter it in the window, in Settings, Models.",
        )
    models.registry.keys.unlock(passphrase)


def _test_provider(
    models: ModelDirectory, chat: ExchangeLoop, name: str, terminal: Terminal
) -> int:
    report = chat.call(lambda: models.test(name)).result()
    found = [str(card.ref) for card in report.models]
    lines = [f"{name}: connected in {report.latency_ms} ms", *(f"  {each}" for each in found)]
    if report.ok and not found:
        lines.append("  It does not list its models.")
    document = {"name": name, **members(report, "ok", "base_url", "latency_ms"), "models": found}
    terminal.show(document, *(lines if report.ok else ()))
    if report.problem is not None:
        terminal.err(report.problem.display_text)
    return 0 if report.ok else 1


def _list_providers(models: ModelDirectory, terminal: Terminal) -> None:
    rows = [
        members(state.config, "name", "kind") | members(state, "base_url", "key_from")
        for state in models.providers()
    ]
    terminal.show(
        {"providers": rows},
        *("{name}  {kind}  {base_url}  key: {key_from}".format(**row) for row in rows),
    )


def price(
    own_prices: OwnPrices, choice: BackgroundModelChoice, given: Namespace, terminal: Terminal
) -> None:
    """List, set and remove the user's prices; list prices are shown beside them."""
    if given.action == "list":
        return _list_prices(own_prices, choice, given.words, terminal)
    model = given.words[0]
    if given.action == "set":
        model = own_prices.put(model, OwnPrice(*map(_usd, given.words[1:])))
    else:
        own_prices.remove(model)
    return terminal.show({"set" if given.action == "set" else "removed": model})


def window(windows: ModelWindows, given: Namespace, terminal: Terminal) -> None:
    """List, set and remove the user's context windows; a model's is shown with its source."""
    if given.action == "list":
        found = {
            model: windows.find(ModelRef.parse(model)) for model in given.words or windows.own()
        }
        rows = [
            {"model": model, "tokens": each.tokens, "source": each.source.name.lower()}
            for model, each in found.items()
        ]
        lines = (f"{model}: {each.tokens:,} tokens, {each.source}" for model, each in found.items())
        return terminal.show({"windows": rows}, *lines)
    model = given.words[0]
    if given.action == "set":
        tokens = parse_whole_number(given.words[1].replace(",", ""))
        if tokens is None:
            raise InvalidInput(f"'{given.words[1]}' is not a number of tokens")
        model = windows.put(model, tokens)
    else:
        windows.remove(model)
    return terminal.show({"set" if given.action == "set" else "removed": model})


def _list_prices(
    own_prices: OwnPrices, choice: BackgroundModelChoice, models: list[str], terminal: Terminal
) -> None:
    own = own_prices.all()
    shown = models or [*own]
    rows = [
        {"model": model} | members(each, "input_usd", "output_usd", "cached_usd")
        for model, each in own.items()
        if model in shown
    ]
    lines = (f"{model}: {choice.price_text(ModelRef.parse(model))}" for model in shown)
    terminal.show({"prices": rows}, *lines)
    if not shown:
        terminal.note("You have set no prices; what models cost comes from the bundled list.")


def _usd(word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InvalidInput(
            f"'{word}' is not a price", "A price is a number, in USD per million tokens."
        ) from error

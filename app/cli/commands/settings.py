"""`config` and `provider`."""

from argparse import Namespace

from app.bootstrap import Services
from app.cli.arguments import WrongUsage
from app.cli.commands.background import choose_background_model
from app.cli.terminal import NotAgreed, Terminal
from app.domain.settings_schema import SETTINGS, Setting, SettingPage, setting_for
from app.memory.embedders import ONNX, Estimate, amount_to_embed
from app.providers.configuration import ProviderConfig, ProviderKind


def config(services: Services, given: Namespace, terminal: Terminal) -> int:
    """List, get, set and reset settings."""
    _check_words(given)
    if given.action == "list":
        return _list(services, terminal, with_internal=given.all)
    setting = setting_for(given.key)
    if given.action == "set" and given.key == "embedder":
        _choose_embedder(services, given, terminal)
    elif given.action == "set" and given.key == "background_model":
        choose_background_model(services, given, terminal)
    elif given.action == "set":
        services.settings.set_text(given.key, given.value)
    elif given.action == "reset":
        services.settings.reset(given.key)
    value = services.settings.get(given.key)
    if terminal.as_json:
        terminal.document({"key": given.key, "value": value})
    elif given.action == "get":
        terminal.line(setting.spell(value))
    if given.action != "get":
        for remark in services.settings.remarks(given.key):
            terminal.err(remark)
    return 0


def _choose_embedder(services: Services, given: Namespace, terminal: Terminal) -> None:
    """Set the embedder; history only leaves this machine after a yes, given in sight of the price."""
    choice = str(setting_for("embedder").parse(given.value))
    if choice.startswith(ONNX):
        choice = f"{ONNX}{terminal.path(choice.removeprefix(ONNX))}"
    passages, tokens = amount_to_embed(services.store)
    estimate = services.embedders.estimate(passages, tokens, choice)
    if choice != services.settings.text("embedder"):
        terminal.err(
            f"Embedding with {services.embedders.describe(choice)}: {passages:,} passages, about "
            f"{tokens:,} tokens, {_minutes(estimate.minutes)}."
        )
    if not estimate.is_agreed:
        terminal.err(_sending_words(estimate))
        if not given.yes and not terminal.says_yes():
            raise NotAgreed(
                f"The embedder is still {services.settings.text('embedder')}: nobody agreed to "
                f"send your history to {estimate.sent_to}",
                "Add --yes to agree.",
            )
    services.embedders.choose(choice, agreed=not estimate.is_agreed)


def _sending_words(estimate: Estimate) -> str:
    cost = "at a price that is unknown"
    if estimate.cost_usd is not None:
        cost = f"for about ${max(estimate.cost_usd, 0.01):.2f}"
    return (
        f"The text of your whole history, and of every later search, would be sent to "
        f"{estimate.sent_to} {cost}."
    )


def _minutes(minutes: float) -> str:
    if minutes < 1.5:
        return "a minute or less"
    return f"about {minutes:.0f} minutes" if minutes < 120 else f"about {minutes / 60:.0f} hours"


def _check_words(given: Namespace) -> None:
    wanted = {"list": (), "set": ("KEY", "VALUE")}.get(given.action, ("KEY",))
    if sum(word is not None for word in (given.key, given.value)) != len(wanted):
        raise _wrong(given, " and ".join(wanted) or "nothing more")


def _wrong(given: Namespace, takes: str) -> WrongUsage:
    command = given.command
    return WrongUsage(
        f"'{command} {given.action}' takes {takes}", f"See 'commonplace {command} --help'."
    )


def _list(services: Services, terminal: Terminal, *, with_internal: bool) -> int:
    chosen = services.settings.chosen()
    listed = {
        key: setting
        for key, setting in SETTINGS.items()
        if with_internal or setting.page is not SettingPage.INTERNAL
    }
    if terminal.as_json:
        rows = {key: _row(services, setting) for key, setting in listed.items()}
        terminal.document({"settings": rows})
        return 0
    for key, setting in listed.items():
        mark = "*" if key in chosen else " "
        value = setting.spell(services.settings.get(key))
        terminal.line(f"{mark} {key} = {value}  ({setting.allowed}; default {_default(setting)})")
    return 0


def _row(services: Services, setting: Setting) -> dict[str, object]:
    return {
        "value": services.settings.get(setting.key),
        "default": setting.default,
        "allowed": setting.allowed,
        "unit": setting.unit,
        "help": setting.help,
    }


def _default(setting: Setting) -> str:
    return setting.spell(setting.default) or '""'


def provider(services: Services, given: Namespace, terminal: Terminal) -> int:
    """List, add, test and remove providers."""
    if given.action == "list":
        if given.name is not None:
            raise _wrong(given, "nothing more")
        return _list_providers(services, terminal)
    if given.name is None:
        raise _wrong(given, "NAME")
    if given.action == "test":
        return _test_provider(services, given.name, terminal)
    if given.action == "add":
        if given.kind is None:
            raise _wrong(given, "--kind")
        services.models.add_provider(
            ProviderConfig(
                given.name, ProviderKind(given.kind), given.base_url, given.key_env, given.insecure
            )
        )
    else:
        services.models.remove_provider(given.name)
    if terminal.as_json:
        terminal.document({"added" if given.action == "add" else "removed": given.name})
    return 0


def _test_provider(services: Services, name: str, terminal: Terminal) -> int:
    report = services.chat.call(lambda: services.models.test(name)).result()
    if terminal.as_json:
        terminal.document(
            {
                "name": name,
                "ok": report.ok,
                "base_url": report.base_url,
                "latency_ms": report.latency_ms,
                "models": [str(card.ref) for card in report.models],
            }
        )
    elif report.ok:
        terminal.line(f"{name}: connected in {report.latency_ms} ms")
        for card in report.models:
            terminal.line(f"  {card.ref}")
    if report.problem is not None:
        terminal.err(str(report.problem))
    return 0 if report.ok else 1


def _list_providers(services: Services, terminal: Terminal) -> int:
    states = services.models.providers()
    if terminal.as_json:
        rows = [
            {
                "name": state.config.name,
                "kind": state.config.kind.value,
                "base_url": state.base_url,
                "key_from": state.key_from,
            }
            for state in states
        ]
        terminal.document({"providers": rows})
        return 0
    for state in states:
        config = state.config
        terminal.line(f"{config.name}  {config.kind}  {state.base_url}  key: {state.key_from}")
    return 0

"""`config` and `provider`."""

from argparse import Namespace

from app.bootstrap import Services
from app.cli.arguments import WrongUsage
from app.cli.terminal import Terminal
from app.domain.settings_schema import SETTINGS, Setting, setting_for
from app.providers.configuration import ProviderConfig, ProviderKind


def config(services: Services, given: Namespace, terminal: Terminal) -> int:
    """List, get, set and reset settings."""
    if given.action == "list":
        return _list(services, terminal)
    if given.key is None or (given.action == "set" and given.value is None):
        raise WrongUsage(f"config {given.action} needs a key", "See 'commonplace config --help'.")
    setting = setting_for(given.key)
    if given.action == "set":
        services.settings.set_text(given.key, given.value)
    elif given.action == "reset":
        services.settings.reset(given.key)
    value = services.settings.get(given.key)
    if terminal.as_json:
        terminal.document({"key": given.key, "value": value})
    elif given.action == "get":
        terminal.line(setting.spell(value))
    variable = services.settings.environment_variable(given.key)
    if variable and given.action != "get":
        terminal.err(f"The environment variable {variable} rules {given.key} at present.")
    return 0


def _list(services: Services, terminal: Terminal) -> int:
    chosen = services.settings.chosen()
    if terminal.as_json:
        rows = {key: _row(services, setting) for key, setting in SETTINGS.items()}
        terminal.document({"settings": rows})
        return 0
    for key, setting in SETTINGS.items():
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
        return _list_providers(services, terminal)
    if given.name is None:
        raise WrongUsage(f"provider {given.action} needs a name")
    models = services.models
    if given.action == "add":
        if given.kind is None:
            raise WrongUsage("provider add needs --kind", "One of openai, anthropic, compatible.")
        models.add_provider(
            ProviderConfig(
                given.name, ProviderKind(given.kind), given.base_url, given.key_env, given.insecure
            )
        )
        return 0
    if given.action == "remove":
        models.remove_provider(given.name)
        return 0
    report = services.chat.call(lambda: models.test(given.name)).result()
    if terminal.as_json:
        terminal.document(
            {
                "name": given.name,
                "ok": report.ok,
                "base_url": report.base_url,
                "latency_ms": report.latency_ms,
                "models": [str(card.ref) for card in report.models],
            }
        )
    elif report.ok:
        terminal.line(f"{given.name}: connected in {report.latency_ms} ms")
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

"""`config` and `provider`."""

from argparse import Namespace

from app.bootstrap import Services
from app.cli.arguments import WrongUsage
from app.cli.terminal import Terminal
from app.domain.settings_schema import SETTINGS, Setting, setting_for


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
    if given.action == "add":
        if given.kind is None:
            raise WrongUsage("provider add needs --kind", "One of openai, anthropic, compatible.")
        services.add_provider(
            given.name, given.kind, given.base_url, given.key_env, insecure=given.insecure
        )
        return 0
    if given.action == "remove":
        services.remove_provider(given.name)
        return 0
    outcome = services.test_provider(given.name)
    if terminal.as_json:
        terminal.document({"name": given.name, "ok": outcome.ok, "models": outcome.models})
    else:
        terminal.line(f"{given.name}: {outcome.words}")
    return 0 if outcome.ok else 1


def _list_providers(services: Services, terminal: Terminal) -> int:
    rows = services.provider_rows()
    if terminal.as_json:
        terminal.document({"providers": [row.plain() for row in rows]})
        return 0
    for row in rows:
        terminal.line(f"{row.name}  {row.kind}  {row.base_url or ''}  key: {row.key_from}".rstrip())
    return 0

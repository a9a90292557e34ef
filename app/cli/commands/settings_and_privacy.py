"""`config`, with the choice of the embedder and of the background model, and `privacy`."""

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from app.cli.terminal import Terminal, members
from app.domain.settings_schema import SETTINGS, SettingPage, setting_for
from app.domain.translation import format_price, format_time
from app.memory.search.embedders import ONNX, EmbedderDirectory, embedding_workload
from app.privacy import ConnectionRow, PrivacyService
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.system.paths import note_setting
from app.workers.model_choice import BackgroundModelChoice, plan_text, sending_text

_BACKGROUND_MODEL = "background_model"


def config(
    store: Store,
    settings: Settings,
    embedders: EmbedderDirectory,
    background: BackgroundModelChoice,
    window: Path,
    given: Namespace,
    terminal: Terminal,
) -> None:
    """List, get, set and reset settings; `window` is the file of the window's state."""
    if given.action == "list":
        return _list(settings, terminal, with_internal=given.all)
    key = given.words[0]
    setting = setting_for(key)
    if given.action == "set" and key == "embedder":
        _choose_embedder(store, settings, embedders, given, terminal)
    elif given.action == "set" and key == _BACKGROUND_MODEL:
        _choose_background_model(settings, background, given, terminal)
    elif given.action == "set":
        settings.set_text(key, given.words[1])
    elif given.action == "reset":
        settings.reset(key)
    value = settings.get(key)
    lines = [setting.format_value(value)] if given.action == "get" else []
    terminal.show({"key": key, "value": value}, *lines)
    if not lines:
        note_setting(window, key, value)
    for remark in () if lines else settings.remarks(key):
        terminal.err(remark)
    return None


def _choose_embedder(
    store: Store,
    settings: Settings,
    embedders: EmbedderDirectory,
    given: Namespace,
    terminal: Terminal,
) -> None:
    """Set the embedder; the user confirms the price before history leaves this machine."""
    choice = str(setting_for("embedder").parse(given.words[1]))
    if choice.startswith(ONNX):
        choice = f"{ONNX}{terminal.path(choice.removeprefix(ONNX))}"
    passages, tokens = embedding_workload(store)
    estimate = embedders.estimate(passages, tokens, choice)
    if choice != settings.text("embedder"):
        terminal.err(
            f"Embedding with {embedders.describe(choice)}: {passages:,} passages, about "
            f"{tokens:,} tokens, {format_time(estimate.minutes)}."
        )
    if estimate.needs_consent:
        terminal.err(
            "The text of your whole history, and of every later search, would be sent to "
            f"{estimate.sent_to} {format_price(estimate.cost_usd)}."
        )
        terminal.require_confirmation(
            given.yes,
            f"The embedder is still {settings.text('embedder')}: sending your history to "
            f"{estimate.sent_to} needs your consent",
        )
    embedders.choose(choice, agreed=estimate.needs_consent)


def _list(settings: Settings, terminal: Terminal, *, with_internal: bool) -> None:
    chosen = settings.chosen()
    rows, lines = {}, []
    for key, setting in SETTINGS.items():
        if setting.page is SettingPage.INTERNAL and not with_internal:
            continue
        value, default = settings.get(key), setting.format_value(setting.default) or '""'
        rows[key] = {"value": value, **members(setting, "default", "allowed", "unit", "help")}
        mark, shown = "*" if key in chosen else " ", setting.format_value(value)
        lines.append(f"{mark} {key} = {shown}  ({setting.allowed}; default {default})")
    terminal.show({"settings": rows}, *lines)


def _choose_background_model(
    settings: Settings, background: BackgroundModelChoice, given: Namespace, terminal: Terminal
) -> None:
    """Set the model for background work; the user confirms before history leaves this machine."""
    chosen = setting_for(_BACKGROUND_MODEL).parse(given.words[1])
    if chosen is None:
        background.choose("")
        return
    plan = background.plan(str(chosen))
    if plan is None:
        return
    terminal.err(plan_text(plan))
    if plan.needs_consent:
        terminal.err(sending_text(plan))
        kept = settings.text(_BACKGROUND_MODEL) or "none (extractive)"
        terminal.require_confirmation(
            given.yes,
            f"The model for background work is still {kept}: sending your history to "
            f"{plan.sent_to} needs your consent",
        )
    background.choose(plan.model, agreed=plan.needs_consent)


def ask_after_import(
    background: BackgroundModelChoice, consents: str, turns: int, terminal: Terminal
) -> None:
    """Print what background work on an import of `turns` takes; a remote model needs a consent.

    `consents` were withdrawn for the import; they are restored when it added no turns.
    """
    if not turns:
        background.restore_consents(consents)
    plan = background.plan()
    if plan is None or not plan.requests or not turns:
        return
    terminal.err(plan_text(plan))
    if plan.needs_consent:
        terminal.err(sending_text(plan))
        if terminal.confirm():
            background.choose(plan.model, agreed=True)
        else:
            terminal.err(
                f"It waits until you confirm: commonplace config set {_BACKGROUND_MODEL} {plan.model} --yes"
            )


def privacy(service: PrivacyService, _given: Namespace, terminal: Terminal) -> None:
    """Print the connections; the document is {"connections": [...]}."""
    rows = service.connections()
    terminal.show({"connections": [asdict(each) for each in rows]}, *map(_connection_lines, rows))
    terminal.err("There are no others: no telemetry and no search for updates.")


def _connection_lines(row: ConnectionRow) -> str:
    where = "another computer" if row.leaves_computer else "this computer"
    state = row.state.value.replace("_", " ")
    head = f"{row.title} [{state}, {where}] {row.address}".rstrip()
    return f"{head}\n    {row.when}\n    {row.what}"

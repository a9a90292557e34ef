"""`/rag`: whether recall is on, what it draws on, its configuration."""

from collections.abc import Callable

from app.chat.commands.book import table
from app.chat.commands.values import Command, CommandOutput, Form, Given, wrong_form
from app.domain.errors import InvalidInput
from app.domain.settings_schema import SETTINGS, Setting, SettingPage, setting_for
from app.domain.text import as_markdown
from app.memory.overview import Overview
from app.storage.settings import Settings
from app.workers.wording import KIND_TITLES, percent_words

_FORMS = (
    Form("/rag", help="Whether recall is on, what it draws on, its configuration"),
    Form("/rag on", help="Bring related past into the prompt"),
    Form("/rag off", help="Bring nothing in"),
    Form("/rag config", help="Every key with its value and range"),
    Form("/rag set", "KEY VALUE", "Change one; it applies at once"),
)
_PAGES = (SettingPage.RECALL, SettingPage.CONTEXT)


def rag_command(settings: Settings, overview: Callable[[], Overview]) -> Command:
    """Return `/rag`."""

    def run(given: Given) -> CommandOutput:
        match given.words:
            case ():
                return CommandOutput(status())
            case ("on" | "off" as word,):
                settings.set("rag_enabled", word == "on")
                return CommandOutput(_switch_words(settings))
            case ("config",):
                return CommandOutput(_configuration(settings))
            case ("set", key, _, *_):
                return CommandOutput(_set(settings, key, given.after(2)))
        raise wrong_form(given, _FORMS)

    def status() -> str:
        counts = overview()
        rows = [(KIND_TITLES[kind], f"{count:,}") for kind, count in counts.passages.items()]
        rows.append(("Found by words", percent_words(counts.searchable_share)))
        by_meaning = counts.embedded
        rows.append(
            ("Found by meaning", percent_words(by_meaning.share) if by_meaning else "not now")
        )
        passages = table(rows, ("Passages", ""))
        return "\n\n".join((_switch_words(settings), passages, _configuration(settings)))

    keys = tuple(
        Form(f"/rag set {each.key}", "VALUE", f"{each.help} Allowed: {each.allowed}.")
        for each in _keys()
    )
    return Command("rag", "Recall: on, off, what it draws on, settings", _FORMS, run, keys)


def _keys() -> tuple[Setting, ...]:
    return tuple(each for each in SETTINGS.values() if each.page in _PAGES)


def _switch_words(settings: Settings) -> str:
    return f"Recall is **{'on' if settings.flag('rag_enabled') else 'off'}**."


def _configuration(settings: Settings) -> str:
    rows = [
        f"| `{each.key}` | {as_markdown(each.spell(settings.get(each.key)))} "
        f"| {as_markdown(each.allowed)}; default {each.spell(each.default)} |"
        for each in _keys()
    ]
    return "\n".join(("| Key | Value | Allowed |", "|---|---|---|", *rows))


def _set(settings: Settings, key: str, text: str) -> str:
    setting = setting_for(key)
    if setting.page is SettingPage.INTERNAL or key == "embedder":
        raise InvalidInput(f"{key} cannot be set here", "See Settings in the Conversation menu.")
    before = setting.spell(settings.get(key))
    value = setting.spell(settings.set_text(key, text))
    remarks = settings.remarks(key)
    return " ".join((f"`{key}` is {as_markdown(value)}, was {as_markdown(before)}.", *remarks))

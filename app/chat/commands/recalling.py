"""`/rag`: whether recall is on, what it draws on and found last, its configuration, trying it, votes."""

from collections.abc import Callable

from app.chat.commands.book import table
from app.chat.commands.recalled_words import last_words, preview_markdown
from app.chat.commands.values import Command, CommandOutput, Form, Given, wrong_form
from app.chat.inspecting import Inspector
from app.chat.last_recall import LastRecall
from app.chat.previewing import RecallPreviews
from app.domain.errors import InvalidInput
from app.domain.ids import PassageId
from app.domain.recalls import Verdict
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
    Form("/rag try", "QUESTION", "What would be recalled for it, and why the rest would not"),
    Form("/rag upvote", "ID", "Have recall prefer a passage, by its number"),
    Form("/rag downvote", "ID", "Have a passage rank lower, by its number"),
)
_VOTES = {"upvote": Verdict.UP, "downvote": Verdict.DOWN}
_VOTE_WORDS = {Verdict.UP: "ranks higher", Verdict.DOWN: "ranks lower"}
_PAGES = (SettingPage.RECALL, SettingPage.CONTEXT)


def rag_command(
    settings: Settings,
    overview: Callable[[], Overview],
    previews: RecallPreviews,
    inspector: Inspector,
    last_recall: LastRecall,
) -> Command:
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
            case ("try", _, *_):
                asked = previews.ask(given.after(1), given.place.conversation_id)
                return CommandOutput(preview_markdown(previews.preview(asked)))
            case ("upvote" | "downvote" as word, number):
                return CommandOutput(_voted(inspector, number, _VOTES[word]))
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
        return "\n\n".join(
            (_switch_words(settings), passages, last_words(last_recall), _configuration(settings))
        )

    keys = tuple(
        Form(f"/rag set {each.key}", "VALUE", f"{each.help} Allowed: {each.allowed}.")
        for each in _keys()
    )
    return Command("rag", "Recall: on, off, what it draws on, settings", _FORMS, run, keys)


def _keys() -> tuple[Setting, ...]:
    return tuple(each for each in SETTINGS.values() if each.page in _PAGES)


def _switch_words(settings: Settings) -> str:
    return f"Recall is **{'on' if settings.flag('rag_enabled') else 'off'}**."


def _voted(inspector: Inspector, number: str, verdict: Verdict) -> str:
    if not number.isdecimal():
        raise InvalidInput(
            f"'{number}' is no passage's number", "`/rag try QUESTION` shows passages by number."
        )
    place = inspector.judge_passage(PassageId(int(number)), verdict)
    kind = as_markdown(place.kind.value.replace("_", " "))
    title = place.conversation_title
    of = f" of \N{LEFT DOUBLE QUOTATION MARK}{as_markdown(title)}\N{RIGHT DOUBLE QUOTATION MARK}"
    return f"Passage {number} ({kind}{of if title else ''}) {_VOTE_WORDS[verdict]} from now on."


def _configuration(settings: Settings) -> str:
    return "\n".join(
        f"- `{each.key}`: **{as_markdown(each.spell(settings.get(each.key)))}** \N{MIDDLE DOT} "
        f"{as_markdown(each.allowed)}, default {each.spell(each.default)}"
        for each in _keys()
    )  # no table: its columns would break the longer keys in the middle of a word


def _set(settings: Settings, key: str, text: str) -> str:
    setting = setting_for(key)
    if setting.page is SettingPage.INTERNAL or key == "embedder":
        raise InvalidInput(f"{key} cannot be set here", "See Settings in the Conversation menu.")
    before = setting.spell(settings.get(key))
    value = setting.spell(settings.set_text(key, text))
    remarks = settings.remarks(key)
    return " ".join((f"`{key}` is {as_markdown(value)}, was {as_markdown(before)}.", *remarks))

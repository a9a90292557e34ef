"""`/rag`: the state and settings of recall, previews, and votes on passages."""

from app.chat.inspector import InspectionService
from app.chat.recall_preview import RecallPreviews
from app.chat.recall_text import last_recall_text, preview_markdown
from app.commands.command import Command, CommandCall, Form, Outcome, wrong_form
from app.commands.table import markdown_table
from app.domain.errors import InvalidInput
from app.domain.ids import PassageId
from app.domain.passages import KIND_TITLES
from app.domain.recall import Verdict
from app.domain.settings_schema import SETTINGS, Setting, SettingPage, setting_for
from app.domain.text import escape_markdown
from app.domain.translation import format_number, format_percent, tr
from app.memory.search.coverage import OverviewService
from app.storage.tables.settings import Settings

_FORMS = (
    Form("/rag", help="Show the state of recall, its sources and its settings"),
    Form("/rag on", help="Add related passages to prompts"),
    Form("/rag off", help="Add no related passages to prompts"),
    Form("/rag config", help="List every setting with its value and range"),
    Form("/rag set", "KEY VALUE", "Change a setting; it takes effect at once"),
    Form("/rag try", "QUESTION", "Show what would be recalled for a question, and what would not"),
    Form("/rag upvote", "ID", "Rank a passage higher, by its number"),
    Form("/rag downvote", "ID", "Rank a passage lower, by its number"),
)
_VOTES = {"upvote": Verdict.UP, "downvote": Verdict.DOWN}
_VOTE_TEXTS = {Verdict.UP: "ranks higher", Verdict.DOWN: "ranks lower"}
_PAGES = (SettingPage.RECALL, SettingPage.CONTEXT)


def rag_command(
    settings: Settings,
    overview: OverviewService,
    previews: RecallPreviews,
    inspector: InspectionService,
) -> Command:
    def run(call: CommandCall) -> Outcome:
        match call.words:
            case ():
                return Outcome(_status(settings, overview, inspector))
            case ("on" | "off" as word,):
                settings.set("rag_enabled", word == "on")
                return Outcome(_switch_text(settings))
            case ("config",):
                return Outcome(_configuration(settings))
            case ("set", key, _, *_):
                return Outcome(_set(settings, key, call.after(2)))
            case ("try", _, *_):
                found = previews.fetch(call.after(1), call.context.conversation_id)
                return Outcome(preview_markdown(previews.preview(found)))
            case ("upvote" | "downvote" as word, number):
                return Outcome(_vote(inspector, number, _VOTES[word]))
        raise wrong_form(call, _FORMS)

    keys = tuple(
        Form(
            f"/rag set {each.key}",
            "VALUE",
            tr("{help} Allowed: {allowed}.").format(help=each.help, allowed=each.allowed),
        )
        for each in _keys()
    )
    return Command("rag", tr("Recall: state, on, off, settings, previews"), _FORMS, run, keys)


def _keys() -> tuple[Setting, ...]:
    return tuple(each for each in SETTINGS.values() if each.page in _PAGES)


def _status(settings: Settings, overview: OverviewService, inspector: InspectionService) -> str:
    now = overview.read()
    share = format_percent(now.embedded.share) if now.embedded else tr("not now")
    rows = [
        *((KIND_TITLES[kind], format_number(count)) for kind, count in now.passages.items()),
        (tr("Found by words"), format_percent(now.searchable_share)),
        (tr("Found by meaning"), share),
    ]
    passages = markdown_table(rows, (tr("Passages"), ""))
    last = last_recall_text(inspector.last_recall())
    return "\n\n".join((_switch_text(settings), passages, last, _configuration(settings)))


def _switch_text(settings: Settings) -> str:
    return tr("Recall is **{state}**.").format(
        state="on" if settings.flag("rag_enabled") else "off"
    )


def _vote(inspector: InspectionService, number: str, verdict: Verdict) -> str:
    if not number.isdecimal():
        raise InvalidInput(
            f"'{number}' is not the number of a passage",
            "`/rag try QUESTION` shows passages by number.",
        )
    place = inspector.vote_on_passage(PassageId(int(number)), verdict)
    kind = escape_markdown(place.kind.value.replace("_", " "))
    title = place.conversation_title
    of = tr(" of “{title}”").format(title=escape_markdown(title))
    return tr("Passage {number} ({kind}{of_title}) {effect} from now on.").format(
        number=number, kind=kind, of_title=of if title else "", effect=tr(_VOTE_TEXTS[verdict])
    )


def _configuration(settings: Settings) -> str:
    return "\n".join(
        tr("- `{key}`: **{value}** · {allowed}, default {default}").format(
            key=each.key,
            value=escape_markdown(each.format_value(settings.get(each.key))),
            allowed=escape_markdown(each.allowed),
            default=each.format_value(each.default),
        )
        for each in _keys()
    )  # no table: its columns would break the longer keys in the middle of a word


def _set(settings: Settings, key: str, text: str) -> str:
    setting = setting_for(key)
    if setting.page is SettingPage.INTERNAL or key == "embedder":
        raise InvalidInput(f"{key} cannot be set here", "See Settings in the Conversation menu.")
    before = setting.format_value(settings.get(key))
    value = setting.format_value(settings.set_text(key, text))
    remarks = settings.remarks(key)
    return " ".join(
        (
            tr("`{key}` is {value}, was {before}.").format(
                key=key, value=escape_markdown(value), before=escape_markdown(before)
            ),
            *remarks,
        )
    )

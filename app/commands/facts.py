"""`/facts`: list, search, forget and regenerate facts."""

from app.commands.command import Command, CommandCall, Form, Outcome, wrong_form
from app.commands.workers import confirm_regeneration
from app.domain.links import link_to
from app.domain.text import escape_markdown
from app.domain.translation import format_number, tr
from app.memory.facts import FactService, parse_fact_id
from app.storage.tables.facts import FactFilter, Facts, KnownFact
from app.workers.board import WorkerBoard
from app.workers.regeneration import FactRegeneration

_LIMIT = 20
_FORMS = (
    Form("/facts", help="List the newest facts, pinned ones first"),
    Form("/facts list", help="List the newest facts, pinned ones first"),
    Form("/facts search", "QUERY", "Search facts"),
    Form("/facts forget", "ID", "Forget a fact for good, after confirmation"),
    Form("/facts rebuild", help="Extract facts again with the current model, after confirmation"),
)


def facts_command(
    facts: Facts, service: FactService, regeneration: FactRegeneration, workers: WorkerBoard
) -> Command:
    """Return `/facts`."""

    def run(call: CommandCall) -> Outcome:
        match call.words:
            case () | ("list",):
                return Outcome(_list(facts))
            case ("search", _, *_):
                found = service.search(call.after(1), _LIMIT)
                return Outcome("\n".join(map(_line, found)) or tr("No facts match this query."))
            case ("forget", number):
                return forget(number)
            case ("rebuild",):
                return confirm_regeneration(regeneration, workers)
        raise wrong_form(call, _FORMS)

    def forget(number: str) -> Outcome:
        known = facts.get(parse_fact_id(number))

        def begin() -> Outcome:
            remains = service.forget(known.fact.id)
            return Outcome(" ".join((tr("The fact was forgotten."), *remains)))

        question = tr(
            "This fact will be deleted for good, also from backups, and will not be extracted again."
        )
        return Outcome(f"{_line(known)}\n\n{question}", on_confirmed=begin)

    return Command("facts", tr("Facts extracted from conversations"), _FORMS, run)


def _list(facts: Facts) -> str:
    which = FactFilter(limit=_LIMIT)
    found, total = facts.listed(which), facts.count(which)
    if not found:
        return tr("There are no facts yet.")
    lines = "\n".join(map(_line, found))
    if rest := total - len(found):
        more = tr("\n\n{rest} more: see the facts window.")
        lines += more.format(rest=format_number(rest))
    return lines


def _line(known: KnownFact) -> str:
    fact = known.fact
    place = ""
    if fact.conversation_id is not None:
        title = escape_markdown(known.conversation_title)
        place = (
            f" \N{MIDDLE DOT} [{title}]({link_to(fact.conversation_id, known.turn_number or 0)})"
        )
    pinned = tr("pinned \N{MIDDLE DOT} ") if fact.pinned else ""
    return (
        f"- **{fact.id}** {escape_markdown(fact.text)} "
        f"*({pinned}{fact.category.value}, {fact.said_at.astimezone():%Y-%m-%d})*{place}"
    )

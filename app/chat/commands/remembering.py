"""`/facts`: what was learned, in the conversation; the window of facts shows more."""

from collections.abc import Sequence

from app.chat.commands.values import Command, CommandOutput, Form, Given, wrong_form
from app.chat.commands.working import status_words
from app.domain.links import link_to
from app.domain.text import as_markdown
from app.memory.facts import FactBook, fact_number
from app.storage.facts import FactFilter, Facts, KnownFact
from app.workers.board import WorkerBoard
from app.workers.redoing import EXTRACTORS, FactRedo

_LIMIT = 20
_FORMS = (
    Form("/facts", help="The newest that hold, pinned ones first"),
    Form("/facts list", help="The same"),
    Form("/facts search", "QUERY", "Those that answer a query"),
    Form("/facts forget", "ID", "Erase one for ever, after a question"),
    Form("/facts rebuild", help="Learn again what others learned, once you have agreed"),
)


def facts_command(facts: Facts, book: FactBook, redo: FactRedo, workers: WorkerBoard) -> Command:
    """Return `/facts`; alone it lists."""

    def run(given: Given) -> CommandOutput:
        deed = given.words[0] if given.words else "list"
        if deed == "list" and len(given.words) <= 1:
            return CommandOutput(_listed(facts))
        if deed == "search" and len(given.words) > 1:
            found = book.search(given.after(1), _LIMIT)
            return CommandOutput(_lines(found) or "No fact answers that.")
        if deed == "forget" and len(given.words) == 2:
            return _forget(facts, book, given.words[1])
        if given.words == ("rebuild",):
            return _ask_to_redo(redo, workers)
        raise wrong_form(given, _FORMS)

    return Command("facts", "What was learned from conversations", _FORMS, run)


def _listed(facts: Facts) -> str:
    which = FactFilter(limit=_LIMIT)
    found, total = facts.listed(which), facts.count(which)
    if not found:
        return "No facts are known yet."
    rest = total - len(found)
    more = f"\n\n{rest:,} more: the window of facts shows all." if rest else ""
    return _lines(found) + more


def _forget(facts: Facts, book: FactBook, number: str) -> CommandOutput:
    known = facts.get(fact_number(number))

    def after_yes() -> CommandOutput:
        return CommandOutput(" ".join(("It is forgotten.", *book.forget(known.fact.id))))

    question = "would be gone for ever, out of the backups too, and not be learned again."
    return CommandOutput(f"{_line(known)}\n\n{question}", after_yes=after_yes)


def _ask_to_redo(redo: FactRedo, workers: WorkerBoard) -> CommandOutput:
    def after_yes() -> CommandOutput:
        redo.begin()
        return CommandOutput(status_words(workers, EXTRACTORS))

    plan = redo.plan()
    return CommandOutput(as_markdown(plan.words), after_yes=after_yes if plan.count else None)


def _lines(found: Sequence[KnownFact]) -> str:
    return "\n".join(_line(each) for each in found)


def _line(known: KnownFact) -> str:
    fact = known.fact
    place = ""
    if fact.conversation_id is not None:
        title = as_markdown(known.conversation_title)
        place = (
            f" \N{MIDDLE DOT} [{title}]({link_to(fact.conversation_id, known.turn_number or 0)})"
        )
    pinned = "pinned \N{MIDDLE DOT} " if fact.pinned else ""
    return (
        f"- **{fact.id}** {as_markdown(fact.text)} "
        f"*({pinned}{fact.category.value}, {fact.said_at.astimezone():%Y-%m-%d})*{place}"
    )

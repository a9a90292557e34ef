"""`/topics`, `/secrets` and `/facts`: what the library holds."""

from collections.abc import Sequence
from itertools import islice

from app.commands.command import Command, CommandCall, Form, Outcome, wrong_form
from app.commands.workers import confirm_regeneration
from app.domain.ids import MessageId
from app.domain.links import link_to
from app.domain.records.topics import Topic, TopicConversation
from app.domain.text import escape_markdown, one_line, parse_whole_number
from app.domain.translation import format_day, format_number, tr, trn
from app.memory.facts import FactService, parse_fact_id
from app.memory.secrets import SecretPlace, ValueService, places_text, secret_places
from app.memory.topics.service import TopicService
from app.storage.engine.store import Store
from app.storage.tables.facts import FactFilter, Facts, KnownFact
from app.workers.board import WorkerBoard
from app.workers.regeneration import FactRegeneration

_MOST = 30
_TOPIC_FORMS = (
    Form("/topics", help="List the topics of your conversations"),
    Form("/topics", "NAME", "List the conversations of a topic"),
)
_SHOWN = 50
_TITLE_CHARS = 80
_SECRET_FORMS = (
    Form("/secrets", "", "The messages that hold keys, tokens or passwords"),
    Form("/secrets forget", "MESSAGE", "Forget what was found in a message, wherever it is stored"),
)
_LIMIT = 20
_FORMS = (
    Form("/facts", help="List the newest facts, pinned ones first"),
    Form("/facts list", help="List the newest facts, pinned ones first"),
    Form("/facts search", "QUERY", "Search facts"),
    Form("/facts forget", "ID", "Forget a fact for good, after confirmation"),
    Form("/facts rebuild", help="Extract facts again with the current model, after confirmation"),
)


def topics_command(topics: TopicService) -> Command:
    def run(call: CommandCall) -> Outcome:
        if call.rest:
            topic = topics.topic(call.rest)
            return Outcome(
                "\n".join(
                    (_topic_line(topic), "", *_conversation_rows(topics.conversations(topic.id)))
                )
            )
        lines = [
            f"{'  ' * (each.parent_id is not None)}- {_topic_line(each)}"
            for each in topics.topics()
        ]
        if len(lines) > _MOST:
            lines[_MOST:] = ["", tr("All of them are in Find \N{RIGHTWARDS ARROW} Topics.")]
        none = tr("There are no topics yet. They are found from eight conversations on.")
        return Outcome("\n".join(lines) or none)

    return Command("topics", tr("The subjects of your conversations"), _TOPIC_FORMS, run)


def _topic_line(topic: Topic) -> str:
    count = trn("{count} conversation", "{count} conversations", topic.conversations)
    line = f"**{escape_markdown(topic.name)}**, {count}, {format_day(topic.last_at)}"
    if topic.decision:
        line += ". " + tr("Decided: {text}").format(text=escape_markdown(topic.decision))
    return line


def _conversation_rows(conversations: Sequence[TopicConversation]) -> list[str]:
    newest = sorted(conversations, key=lambda each: each.updated_at, reverse=True)[:_MOST]
    titles = (escape_markdown(each.title or tr("Untitled")) for each in newest)
    return [
        f"- [{title}]({link_to(each.id, 0)}), {format_day(each.updated_at)}"
        for title, each in zip(titles, newest, strict=True)
    ]


def secrets_command(store: Store, values: ValueService) -> Command:
    def run(call: CommandCall) -> Outcome:
        match call.words:
            case ():
                return find()
            case ("forget", word) if (number := parse_whole_number(word)) is not None:
                return ask(MessageId(number))
            case _:
                raise wrong_form(call, _SECRET_FORMS)

    def ask(message_id: MessageId) -> Outcome:
        found = values.in_messages([message_id])

        def forget() -> Outcome:
            return Outcome(" ".join([tr("It was forgotten."), *values.forget(found)]))

        question = tr("What was found in message {message} is in {places}.").format(
            message=message_id, places=places_text(values.places(found))
        )
        effect = tr(
            "It is removed there for good, also from backups; facts, summaries and stored prompts "
            "with it are deleted."
        )
        return Outcome(f"{question} {effect}", on_confirmed=forget)

    def find() -> Outcome:
        found = list(islice(secret_places(store), _SHOWN + 1))
        lines = [_place_line(each) for each in found[:_SHOWN]]
        if not lines:
            return Outcome(tr("No message with a key, a token or a password was found."))
        if len(found) > _SHOWN:
            lines.append(tr("There are more: `commonplace secrets` lists all."))
        note = tr(
            "They are hidden where memory is quoted. `/secrets forget MESSAGE` forgets what was found in one "
            "wherever it is stored, a turn's menu the whole turn. A key should be replaced where it is used."
        )
        return Outcome("\n".join([*lines, "", note]))

    return Command("secrets", tr("Find keys and passwords"), _SECRET_FORMS, run)


def _place_line(place: SecretPlace) -> str:
    title = escape_markdown(one_line(place.title, _TITLE_CHARS)) or tr("Untitled")
    link = link_to(place.conversation_id, place.turn_number, place.exchange_id)
    kinds = escape_markdown(", ".join(place.kinds))
    message = tr("message {message}").format(message=place.message_id)
    return f"- [{title}]({link}), {format_day(place.said_at)}, {message}: {kinds}"


def facts_command(
    facts: Facts, service: FactService, regeneration: FactRegeneration, workers: WorkerBoard
) -> Command:
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

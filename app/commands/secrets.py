"""`/secrets`: where keys, tokens and passwords stand, never what they are."""

from itertools import islice

from app.commands.command import Command, CommandCall, Form, Outcome, wrong_form
from app.domain.formatting import format_day
from app.domain.ids import MessageId
from app.domain.links import link_to
from app.domain.text import escape_markdown, one_line, parse_whole_number
from app.domain.translation import tr
from app.memory.secrets import SecretPlace, ValueService, places_text, secret_places
from app.storage.engine.store import Store

_SHOWN = 50
_TITLE_CHARS = 80
_FORMS = (
    Form("/secrets", "", "The messages that hold keys, tokens or passwords"),
    Form("/secrets forget", "MESSAGE", "Forget what was found in a message, wherever it is stored"),
)


def secrets_command(store: Store, values: ValueService) -> Command:
    """Return the command."""

    def run(call: CommandCall) -> Outcome:
        match call.words:
            case ():
                return find()
            case ("forget", word) if (number := parse_whole_number(word)) is not None:
                return ask(MessageId(number))
            case _:
                raise wrong_form(call, _FORMS)

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
        lines = [_line(each) for each in found[:_SHOWN]]
        if not lines:
            return Outcome(tr("No message with a key, a token or a password was found."))
        if len(found) > _SHOWN:
            lines.append(tr("There are more: `commonplace secrets` lists all."))
        note = tr(
            "They are hidden where memory is quoted. `/secrets forget MESSAGE` forgets what was found in one "
            "wherever it is stored, a turn's menu the whole turn. A key should be replaced where it is used."
        )
        return Outcome("\n".join([*lines, "", note]))

    return Command("secrets", tr("Find keys and passwords"), _FORMS, run)


def _line(place: SecretPlace) -> str:
    title = escape_markdown(one_line(place.title, _TITLE_CHARS)) or tr("Untitled")
    link = link_to(place.conversation_id, place.turn_number, place.exchange_id)
    kinds = escape_markdown(", ".join(place.kinds))
    message = tr("message {message}").format(message=place.message_id)
    return f"- [{title}]({link}), {format_day(place.said_at)}, {message}: {kinds}"

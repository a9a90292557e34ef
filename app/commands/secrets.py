"""`/secrets`: where keys, tokens and passwords stand, never what they are."""

from itertools import islice

from app.commands.command import Command, CommandCall, Form, Outcome, wrong_form
from app.domain.formatting import format_day
from app.domain.links import link_to
from app.domain.text import escape_markdown, one_line
from app.domain.translation import tr
from app.memory.secret_places import SecretPlace, secret_places
from app.storage.engine.store import Store

_SHOWN = 50
_TITLE_CHARS = 80
_FORMS = (Form("/secrets", "", "The messages that hold keys, tokens or passwords"),)


def secrets_command(store: Store) -> Command:
    """Return the command."""

    def find(call: CommandCall) -> Outcome:
        if call.words:
            raise wrong_form(call, _FORMS)
        found = list(islice(secret_places(store), _SHOWN + 1))
        lines = [_line(each) for each in found[:_SHOWN]]
        if not lines:
            return Outcome(tr("No message with a key, a token or a password was found."))
        if len(found) > _SHOWN:
            lines.append(tr("There are more: `commonplace secrets` lists all."))
        note = tr(
            "They are hidden where memory is quoted. A turn's menu forgets it for good, a key should be "
            "replaced where it is used."
        )
        return Outcome("\n".join([*lines, "", note]))

    return Command("secrets", tr("Find keys and passwords"), _FORMS, find)


def _line(place: SecretPlace) -> str:
    title = escape_markdown(one_line(place.title, _TITLE_CHARS)) or tr("Untitled")
    link = link_to(place.conversation_id, place.turn_number, place.exchange_id)
    kinds = escape_markdown(", ".join(place.kinds))
    return f"- [{title}]({link}), {format_day(place.said_at)}: {kinds}"

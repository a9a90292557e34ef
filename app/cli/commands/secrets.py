"""`secrets`: list the messages that hold keys, tokens or passwords."""

from argparse import Namespace
from dataclasses import asdict

from app.cli.terminal import Terminal
from app.domain.translation import format_count, local_moment
from app.memory.secrets import SecretPlace, secret_places
from app.storage.engine.store import Store


def secrets(store: Store, _given: Namespace, terminal: Terminal) -> int:
    """Print where secrets stand and of what kind they are, never what they are."""
    found: list[SecretPlace] = []
    for place in secret_places(store, terminal.cancelled):
        found.append(place)
        if not terminal.as_json:
            turn = "" if place.turn_number is None else f":{place.turn_number}"
            terminal.line(
                f"{place.conversation_id}{turn}  message {place.message_id}  "
                f"{local_moment(place.said_at)}  {', '.join(place.kinds)}  {place.title}"
            )
    if terminal.as_json:
        rows = [{**asdict(each), "said_at": each.said_at.isoformat()} for each in found]
        terminal.document({"secrets": rows})
    else:
        terminal.err(
            f"{format_count(len(found), 'message')} with secrets. They are hidden where memory is quoted. "
            "'commonplace forget secret ID' removes what was found in a message wherever it is, "
            "'forget message ID' the message."
        )
    return 1 if terminal.cancelled() else 0

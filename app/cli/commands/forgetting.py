"""`forget`: delete conversations, turns, messages, facts or values for good, after confirmation.

The document is {"forgotten": [ID], "remains": [TEXT]}, the IDs as they were given.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence

from app.chat.exchange_loop import ExchangeLoop
from app.chat.library import Library
from app.cli.arguments import UsageError
from app.cli.commands.search import exchange_at
from app.cli.terminal import Terminal
from app.domain.conversations import Message
from app.domain.errors import NotFound
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.text import one_line, parse_whole_number
from app.domain.translation import format_count
from app.index.text_sync import TextIndexSync
from app.memory.facts import FactService, parse_fact_id
from app.memory.secrets import ValueService, places_text
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.facts import Facts

_SHOWN_CHARS = 100
OWED = (
    "Its bytes are removed from database file, journal, index and backups at a quiet time, within an hour while "
    "the program runs; the option --now does it at once."
)


def conversations(
    stored: Conversations,
    exchanges: Exchanges,
    chat: ExchangeLoop,
    erase: Callable[[Sequence[ConversationId]], Sequence[str]],
    given: Namespace,
    terminal: Terminal,
) -> None:
    """Forget conversations; their replies are stopped."""
    ids = [ConversationId(_number(word, "a conversation ID")) for word in _given(given.ids)]
    found = {each.id: each for each in map(stored.get, ids)}
    lines = (
        f"{each.id}: {each.title} ({format_count(len(exchanges.of(each.id)), 'turn')})"
        for each in found.values()
    )
    _confirm("These conversations", lines, given, terminal)
    chat.stop(list(found))
    terminal.show_forgotten(ids, erase(list(found)))


def turns(
    library: Library,
    erase: Callable[[int], Sequence[str]],
    words: Sequence[str],
    given: Namespace,
    terminal: Terminal,
) -> None:
    """Forget turns, each given as ID:TURN of a shown path."""
    found: dict[ExchangeId, str] = {}
    for word in _given(words):
        exchange = exchange_at(library, word)
        first = library.messages([exchange])[exchange.id][:1]
        found[exchange.id] = f"{word}: {_shown(first)}"
    _confirm("These turns, with every answer", found.values(), given, terminal)
    _erase(found, words, erase, terminal)


def messages(
    stored: Exchanges,
    erase: Callable[[Sequence[int]], Sequence[str]],
    words: Sequence[str],
    given: Namespace,
    terminal: Terminal,
) -> None:
    """Forget single messages, all or none."""
    ids = [MessageId(_number(word, "a message ID")) for word in _given(words)]
    known = stored.messages(ids)
    if missing := [each for each in ids if each not in known]:
        hint = "'show ID --json' shows the message IDs."
        raise NotFound(f"There is no message {missing[0]}", hint)
    lines = [f"{each}: {known[each].role}: {_shown([known[each]])}" for each in ids]
    _confirm("These messages, with the results of their tool calls,", lines, given, terminal)
    terminal.show_forgotten(ids, erase(ids))


def facts(
    stored: Facts,
    service: FactService,
    sync: TextIndexSync,
    words: Sequence[str],
    given: Namespace,
    terminal: Terminal,
) -> None:
    """Forget facts; they are not extracted again."""
    known = [stored.get(parse_fact_id(word)).fact for word in _given(words)]
    about = "These facts, which will not be extracted again,"
    _confirm(about, [f"{each.id}: {each.text}" for each in known], given, terminal)
    ids = [each.id for each in known]
    _erase(ids, ids, service.forget, terminal, sync.catch_up_soon)


def value(values: ValueService, given: Namespace, terminal: Terminal) -> None:
    """Forget a text wherever it is stored; it is never printed."""
    text = terminal.read_secret("Value: ") if given.value == "-" else given.value
    _forget_values(values, [text], [], given, terminal)


def secrets(
    values: ValueService, words: Sequence[str], given: Namespace, terminal: Terminal
) -> None:
    """Forget the keys, tokens and passwords in messages wherever they are stored."""
    ids = [MessageId(_number(word, "a message ID")) for word in _given(words)]
    _forget_values(values, values.in_messages(ids), ids, given, terminal)


def _forget_values(
    values: ValueService,
    found: Sequence[str],
    ids: Sequence[int],
    given: Namespace,
    terminal: Terminal,
) -> None:
    places = values.places(found)
    if places:
        terminal.confirm_deletion(
            given.yes,
            f"{format_count(len(found), 'value')} in {places_text(places)}.",
            "They are removed there for good, also from backups.",
        )
    terminal.show_forgotten(ids, values.forget(found))


def _given(words: Sequence[str]) -> Sequence[str]:
    if not words:
        raise UsageError("'forget' needs an ID", "See 'commonplace forget --help'.")
    return words


def _number(word: str, what: str) -> int:
    if (number := parse_whole_number(word)) is None:
        raise UsageError(f"'{word}' is not {what}", "See 'commonplace forget --help'.")
    return number


def _shown(found: Sequence[Message]) -> str:
    return one_line(" ".join(each.text for each in found), _SHOWN_CHARS)


def _confirm(what: str, lines: Iterable[str], given: Namespace, terminal: Terminal) -> None:
    about = f"{what} will be deleted for good, also from backups."
    terminal.confirm_deletion(given.yes, *(() if given.yes else lines), about)


def _erase(
    ids: Iterable[int],
    shown: Sequence[int | str],
    erase: Callable[[int], Sequence[str]],
    terminal: Terminal,
    update_index: Callable[[], Sequence[str]] = tuple,
) -> None:
    left = dict.fromkeys(sentence for each in ids for sentence in erase(each))
    terminal.show_forgotten(shown, (*left, *update_index()))

"""Everything kept is verified: references, counts, order, and what is derived from the messages.

The rules that are queries are in `app.storage.integrity`; here turns are compared with their
passages, and what can be derived again is mended. What is indexed is the index's own affair.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.domain.changes import PassagesPut
from app.domain.conversations import Exchange, ExchangeStatus, Message
from app.domain.ids import PassageId
from app.domain.turn_text import turn_passage
from app.storage.apply import read_state
from app.storage.exchanges import Exchanges
from app.storage.integrity import Integrity
from app.storage.store import Store

_ROUNDS = 4  # what goes leaves behind what named it
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was found.

    `counts` are the rows of each table. `problems` are sentences, one for each thing that is
    wrong and still is; `repaired` those that were and are no more.
    """

    counts: Mapping[str, int]
    problems: tuple[str, ...]
    repaired: tuple[str, ...] = ()


def check(store: Store, *, repair: bool = False) -> CheckReport:
    """Verify a store; with `repair`, mend what is derived from something that is whole.

    Blocking, some seconds for 100,000 messages; nobody need stop writing meanwhile. Raises
    StorageError when the database cannot be read at all.
    """
    problems = tuple(_problems(store))
    repaired: tuple[str, ...] = ()
    if repair and problems:
        _mend(store)
        left = tuple(_problems(store))
        repaired = tuple(each for each in problems if each not in left)
        problems = left
    return CheckReport(Integrity(store).counts(), problems, repaired)


def _problems(store: Store) -> Iterator[str]:
    integrity = Integrity(store)
    for broken in integrity.broken():
        yield from (broken.rule.says.format(each) for each in broken.ids)
        if broken.count > len(broken.ids):
            yield f"{broken.count - len(broken.ids)} more like this."
    for wrong in _wrong_turns(store):
        yield wrong.says
    if store.journal.last_position < int(store.read(read_state)[0]):
        yield "The journal ends before the database does."


def _mend(store: Store) -> None:
    integrity = Integrity(store)
    for _ in range(_ROUNDS):
        mended = [integrity.mend(broken.rule) for broken in integrity.broken()]
        if not any(mended):
            break
    for wrong in tuple(_wrong_turns(store)):
        passage = turn_passage(store.ids.passage(), wrong.exchange, wrong.messages)
        made = () if passage is None else (passage,)
        store.save(PassagesPut(made, replaced=wrong.passages))


@dataclass(frozen=True, slots=True)
class _WrongTurn:
    """A turn that search does not have as it is; `passages` are what it has instead."""

    exchange: Exchange
    messages: tuple[Message, ...]
    passages: tuple[PassageId, ...]

    @property
    def says(self) -> str:
        exchange = self.exchange.id
        if self.passages:
            return f"The passage {self.passages[0]} is not what exchange {exchange} says."
        return f"The exchange {exchange} is completed and has no passage."


def _wrong_turns(store: Store) -> Iterator[_WrongTurn]:
    """Yield the turns whose passage is missing or was made of something else.

    A copy, such as a fork's, needs none: search finds the original.
    """
    integrity, exchanges = Integrity(store), Exchanges(store)
    known = integrity.turn_passages()
    hashes = {content_hash for _, content_hash, _ in known.values()}
    after = 0
    while turns := integrity.turns_after(after, _AT_ONCE):
        after = turns[-1].id
        messages = exchanges.messages(each for turn in turns for each in turn.message_ids)
        for turn in turns:
            own = tuple(messages[each] for each in turn.message_ids if each in messages)
            wanted = turn_passage(PassageId(0), turn, own)
            has = known.get(turn.id)
            if has is not None:
                if wanted is None or (wanted.content_hash, wanted.tokens) != has[1:]:
                    yield _WrongTurn(turn, own, has[:1])
            elif (
                wanted is not None
                and turn.status is ExchangeStatus.COMPLETED
                and wanted.content_hash not in hashes
            ):
                yield _WrongTurn(turn, own, ())

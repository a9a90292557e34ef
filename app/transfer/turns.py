"""Records of turns in exports and imports: segments, states, problems and usage, which messages lack."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from app.domain.changes import ExtractionDone
from app.domain.conversations import Exchange, ExchangeStatus, Message
from app.domain.ids import ExchangeId, MessageId
from app.domain.transfer import PortableExtraction, PortableTurn
from app.storage.engine.aggregate import reader
from app.storage.engine.store import Store
from app.storage.work.summary_work import exchange_stamp

_extraction = reader(PortableExtraction)


def portable_turns(
    store: Store, turns: Sequence[Exchange], uids: Mapping[MessageId, str]
) -> list[PortableTurn]:
    """Return the records of a conversation's turns; `uids` are those of all its messages. Blocking."""
    columns, ids = "exchange_id, source_hash, model, facts, made_at", [each.id for each in turns]
    extractions = {
        (turn, stamp): _extraction(rest)
        for turn, stamp, *rest in store.select_in("extraction", columns, ids, "exchange_id")
    }
    uid_of = {turn.id: turn.uid for turn in turns}
    return [
        PortableTurn(
            uid=turn.uid,
            messages=tuple(uids[each] for each in turn.message_ids),
            status=turn.status,
            started_at=turn.started_at,
            parent="" if turn.parent_id is None else uid_of[turn.parent_id],
            segment_number=turn.segment_number,
            completed_at=turn.completed_at,
            model=turn.model,
            usage=turn.usage,
            problem=turn.problem,
            extraction=extractions.get((turn.id, exchange_stamp(turn))),
        )
        for turn in turns
        if turn.message_ids
    ]


def imported_exchanges(
    turns: Sequence[PortableTurn],
    messages: Sequence[Message],
    ids: Mapping[str, MessageId],
    new_id: Callable[[], ExchangeId],
) -> tuple[Exchange, ...] | None:
    """Return the exchanges that records describe; None unless they fit all messages of a new conversation."""
    by_id = {each.id: each for each in messages}
    made: dict[str, Exchange] = {}
    for turn in turns:
        own = _local_ids(turn, ids)
        parent = made.get(turn.parent)
        if not own or turn.uid in made or (turn.parent and parent is None):
            return None
        before = by_id[own[0]].parent_id
        follows = before is None if parent is None else before in parent.message_ids
        if not follows or any(by_id[after].parent_id != each for each, after in pairwise(own)):
            return None
        exchange = Exchange(
            id=new_id(),
            conversation_id=by_id[own[0]].conversation_id,
            parent_id=None if parent is None else parent.id,
            turn_number=0 if parent is None else parent.turn_number + 1,
            segment_number=turn.segment_number,
            status=turn.status,
            message_ids=own,
            started_at=turn.started_at,
        )
        made[turn.uid] = with_record(exchange, turn)
    is_whole = {each for turn in made.values() for each in turn.message_ids} == by_id.keys()
    return tuple(made.values()) if made and is_whole else None


def imported_extractions(
    turns: Sequence[PortableTurn], exchanges: Iterable[Exchange]
) -> list[ExtractionDone]:
    """Return that new exchanges were read for facts, so that no model is paid for it again."""
    by_uid = {each.uid: each for each in exchanges}
    return [
        ExtractionDone(
            here.id,
            here.conversation_id,
            exchange_stamp(here),
            done.model,
            done.facts,
            done.made_at,
        )
        for turn in turns
        if (done := turn.extraction) is not None and (here := by_uid.get(turn.uid)) is not None
    ]


def with_records(
    exchanges: Sequence[Exchange],
    turns: Sequence[PortableTurn],
    ids: Mapping[str, MessageId],
    known: Mapping[ExchangeId, object],
) -> list[Exchange]:
    """Return exchanges with the records of those that were not `known` and have the same messages."""
    records = {_local_ids(turn, ids): turn for turn in turns}
    return [
        each
        if each.id in known or (turn := records.get(each.message_ids)) is None
        else with_record(each, turn)
        for each in exchanges
    ]


def with_record(exchange: Exchange, turn: PortableTurn) -> Exchange:
    """Return an exchange with the record of a turn; what ran in the other library was interrupted."""
    is_running = turn.status is ExchangeStatus.RUNNING
    return replace(
        exchange,
        uid=turn.uid,
        status=ExchangeStatus.INTERRUPTED if is_running else turn.status,
        segment_number=max(0, turn.segment_number),
        started_at=turn.started_at,
        completed_at=turn.completed_at,
        model=turn.model,
        usage=turn.usage,
        problem=turn.problem,
    )


def _local_ids(turn: PortableTurn, ids: Mapping[str, MessageId]) -> tuple[MessageId, ...]:
    """Return the local ids of a turn's messages; () when one is missing."""
    own = tuple(ids[each] for each in turn.messages if each in ids)
    return own if len(own) == len(turn.messages) else ()

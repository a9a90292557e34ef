"""Prompts that were sent, what was recalled for them, and the user's verdicts on recalled passages.

The text of a prompt is stored once by its hash, under the conversation it quotes, so that forgetting
the conversation removes it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter, itemgetter

from app.domain.changes import FeedbackPut, PromptStored
from app.domain.conversations import FORGOTTEN, Exchange
from app.domain.ids import ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import PlanPart, RecalledItem, RecalledItemDetails, StoredPrompt, Verdict
from app.domain.records.documents import FileState
from app.domain.text import content_hash
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    Table,
    columns_of,
    reader,
    reference,
)
from app.storage.engine.connection import IGNORE, Connection, grouped
from app.storage.engine.stamps import from_db, now, to_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.documents import former_documents
from app.storage.tables.passages.texts import questions_of, shown_of

_PROMPT = Table(
    "prompt",
    "exchange_id, sent_at, conversation_id, model, limit_tokens, result_chars, notice, parts",
    "exchange_id, sent_at",
    OF_CONVERSATIONS,
)
_ORPHANED = "hash NOT IN (SELECT unnest(regexp_extract_all(parts, '[0-9a-f]{32}')) FROM prompt)"
_TEXT = Table(
    "prompt_text",
    "hash, conversation_id, text",
    "hash, conversation_id",
    f"{OF_CONVERSATIONS} OR {_ORPHANED}",
    IGNORE,
)
_RECALLED = Table(
    "recalled",
    "exchange_id, sent_at, place, asked_in, layer, kind, passage_id, conversation_id, "
    "source_exchange_id, message_id, relevance, cosine, coverage, tokens, injected, dropped_by",
    "exchange_id, sent_at, place",
    f"{OF_CONVERSATIONS} OR asked_in IN (SELECT unnest($1))",
)
_FEEDBACK = Table(
    "feedback",
    "passage_id, verdict, given_at",
    "passage_id",
    f"passage_id IN (SELECT id FROM passage WHERE {OF_CONVERSATIONS})",
)
_NO_CONVERSATION = 0  # text that quotes no conversation


# -- changes


def _put(batch: Batch, change: PromptStored) -> None:
    p = change.prompt
    _PROMPT.put(batch, p, parts=tuple(_hashed(batch, part) for part in p.parts))
    for place, item in enumerate(p.items):
        _RECALLED.put(
            batch, item, exchange_id=p.exchange_id, sent_at=p.sent_at, place=place,
            asked_in=p.conversation_id, source_exchange_id=item.exchange_id,
        )  # fmt: skip
    batch.announce("exchanges", p.exchange_id)


def _hashed(batch: Batch, part: PlanPart) -> PlanPart:
    """Return a part as it is stored: hashes in place of texts, runs in place of message ids."""
    pieces = []
    for piece in part.pieces:
        owner = piece.conversation_id or _NO_CONVERSATION
        digest = content_hash(piece.text)
        batch.rows["prompt_text"][digest, owner] = (digest, owner, piece.text)
        pieces.append(replace(piece, text=digest))
    return replace(part, pieces=tuple(pieces), message_ids=as_runs(part.message_ids))


def _feedback(batch: Batch, change: FeedbackPut) -> None:
    if change.verdict is None:
        batch.rows["feedback"][change.passage_id] = None
    else:
        _FEEDBACK.put(batch, change, given_at=change.at)
    batch.mark("memory")


def as_runs(ids: Sequence[MessageId]) -> tuple[MessageId, ...]:
    """Return (first id, length) for each run of consecutive `ids`, flattened.

    A long window is a few runs instead of a thousand ids.
    """
    runs: list[int] = []
    for each in ids:
        if runs and each == runs[-2] + runs[-1]:
            runs[-1] += 1
        else:
            runs += [each, 1]
    return tuple(map(MessageId, runs))


def from_runs(runs: Sequence[MessageId]) -> tuple[MessageId, ...]:
    """Return the ids that `as_runs` was given."""
    ids: list[int] = []
    for first, count in zip(runs[::2], runs[1::2], strict=True):
        ids += range(first, first + count)
    return tuple(map(MessageId, ids))


def delete_prompts_of_exchanges(
    connection: Connection, exchange_ids: Collection[int], forgotten: Collection[int]
) -> None:
    """Delete the prompts of some exchanges, and recalled items from `forgotten` ones.

    Inside the caller's transaction.
    """
    connection.delete_in("prompt", "exchange_id", exchange_ids)
    connection.delete_in("recalled", "exchange_id", exchange_ids)
    connection.delete_in("recalled", "source_exchange_id", forgotten)
    connection.execute(f"DELETE FROM prompt_text WHERE {_ORPHANED}")


PROMPTS = Aggregate(
    (_PROMPT, _TEXT, _RECALLED, _FEEDBACK),
    {PromptStored: _put, FeedbackPut: _feedback},
    # Verdicts and recalled items may name passages that have been replaced since.
    rules=(
        reference("prompt.exchange_id", "exchange", "delete"),
        Rule(
            "recalled.exchange_id",
            "A recalled item belongs to turn {}, which has no stored prompt.",
            "SELECT DISTINCT r.exchange_id FROM recalled r ANTI JOIN prompt p "
            "ON p.exchange_id = r.exchange_id AND p.sent_at = r.sent_at",
            "DELETE FROM recalled WHERE exchange_id IN (SELECT unnest($1)) AND NOT EXISTS "
            "(SELECT 1 FROM prompt p WHERE p.exchange_id = recalled.exchange_id "
            "AND p.sent_at = recalled.sent_at)",
        ),
        reference("recalled.conversation_id", "conversation", "delete", label="recalled item"),
        Rule(
            "prompt_text.hash",
            "The text {} belongs to no stored prompt.",
            f"SELECT hash FROM prompt_text WHERE {_ORPHANED}",
            "DELETE FROM prompt_text WHERE hash IN (SELECT unnest($1))",
        ),
        reference(
            "prompt_text.conversation_id", "conversation", "delete", where="conversation_id <> 0"
        ),
    ),
)


# -- queries


class Prompts(StoreReader):
    """Reads prompts and recalled items. Blocking: for worker threads and the command line."""

    def of(self, exchange_id: ExchangeId) -> StoredPrompt | None:
        """Return the last prompt of an exchange, with a placeholder for forgotten text.

        None for an imported exchange, or one from before prompts were stored.
        """
        found = self.history(exchange_id)
        return found[0] if found else None

    @in_snapshot
    def history(
        self, cursor: Connection, exchange_id: ExchangeId, forgotten: str = FORGOTTEN
    ) -> tuple[StoredPrompt, ...]:
        """Return all prompts of an exchange, newest first; `forgotten` stands for deleted texts.

        There is one for each time it ran, and on a branch one for each earlier question that it shares.
        """
        items = _items(cursor, exchange_id)
        runs = _stored(cursor, [exchange_id], forgotten).get(exchange_id, [])
        return tuple(
            replace(run, items=tuple(items.get(to_db(run.sent_at), ()))) for run in reversed(runs)
        )

    @in_snapshot
    def places(
        self, cursor: Connection, exchange_id: ExchangeId
    ) -> tuple[RecalledItemDetails, ...]:
        """Return the items of an exchange's newest prompt with their details, in order."""
        newest = "SELECT max(sent_at) FROM prompt WHERE exchange_id = ?"
        (sent_at,) = cursor.column(newest, [exchange_id])
        return _details(cursor, _items(cursor, exchange_id).get(sent_at, []))

    def placed(self, items: Sequence[RecalledItem]) -> tuple[RecalledItemDetails, ...]:
        """Return items with their details, in order."""
        return self._store.read(_details, items)

    def newest_exchange(self) -> ExchangeId | None:
        """Return the exchange with the newest prompt of all."""
        row = self._store.row("SELECT exchange_id FROM prompt ORDER BY sent_at DESC LIMIT 1")
        return None if row is None else ExchangeId(row[0])

    def notices(self, exchange_ids: Iterable[ExchangeId]) -> Mapping[ExchangeId, str]:
        """Return `StoredPrompt.notice` of the newest prompt of each exchange that has one."""
        columns, rest = "exchange_id, arg_max(notice, sent_at)", "GROUP BY exchange_id"
        return dict(self._store.select_in("prompt", columns, exchange_ids, "exchange_id", rest))

    def runs(self, exchange_ids: Iterable[ExchangeId]) -> Mapping[ExchangeId, list[StoredPrompt]]:
        """Return the prompts of exchanges, oldest first, without their items and forgotten texts."""
        return self._store.read(_stored, exchange_ids, "")

    def recalled_beyond(
        self, exchange_ids: Iterable[ExchangeId], project: str | None
    ) -> frozenset[PassageId]:
        """Return what exchanges recalled and the recall rules of projects now keep from a project's conversations.

        `project` is a uid, None for none. A bounded project keeps out all from elsewhere but manual pages, and
        what is in one is kept from all others. Only places at the time of recall count.
        """
        is_bounded = "(SELECT recall = 'only' FROM project WHERE uid = $2)"
        own = "coalesce(c.project, d.project, f.project)"
        ids = self._store.column(
            "SELECT DISTINCT r.passage_id FROM recalled r "
            "LEFT JOIN conversation c ON c.id = r.conversation_id "
            "LEFT JOIN passage s ON s.id = r.passage_id AND s.kind = 'document' "
            "LEFT JOIN document_chunk k ON k.id = s.source_id LEFT JOIN former_passage f ON f.id = r.passage_id "
            "LEFT JOIN document d ON d.id = coalesce(k.document_id, f.document_id) "
            f"LEFT JOIN project p ON p.uid = {own} "
            f"WHERE r.exchange_id IN (SELECT unnest($1)) AND {own} IS DISTINCT FROM $2 "
            f"AND (p.recall = 'only' OR ({is_bounded} AND r.kind <> $3))",
            [list(exchange_ids), project, PassageKind.MAN_PAGE.value],
        )
        return frozenset(ids)

    def last_with_prompt(self, exchanges: Sequence[Exchange]) -> Exchange | None:
        """Return the last of some exchanges that has a prompt."""
        ids, key = [each.id for each in exchanges], "exchange_id"
        known = self._store.column_in("prompt", key, ids, key)
        return next((each for each in reversed(exchanges) if each.id in known), None)


def _stored(
    cursor: Connection, exchange_ids: Iterable[int], forgotten: str
) -> Mapping[ExchangeId, list[StoredPrompt]]:
    """Return the prompts of exchanges without items, oldest first; `forgotten` replaces deleted texts."""
    columns, rest = columns_of(StoredPrompt).replace("items", "NULL"), "ORDER BY sent_at"
    rows = cursor.select_in("prompt", columns, exchange_ids, "exchange_id", rest)
    runs = list(map(reader(StoredPrompt), rows))
    hashes = {piece.text for run in runs for part in run.parts for piece in part.pieces}
    rows = cursor.select_in("prompt_text", "hash, conversation_id, text", hashes, "hash")
    texts = {(digest, owner): text for digest, owner, text in rows}

    def restored(part: PlanPart) -> PlanPart:
        owners = [each.conversation_id or _NO_CONVERSATION for each in part.pieces]
        pieces = tuple(
            replace(each, text=texts.get((each.text, owner), forgotten))
            for each, owner in zip(part.pieces, owners, strict=True)
        )
        return replace(part, pieces=pieces, message_ids=from_runs(part.message_ids))

    whole = (replace(run, parts=tuple(map(restored, run.parts)), items=()) for run in runs)
    return grouped(whole, attrgetter("exchange_id"))


def _items(cursor: Connection, exchange_id: int) -> dict[object, list[RecalledItem]]:
    """Return the items of an exchange by the time of its prompt, in order."""
    rows = cursor.rows(
        f"SELECT {_RECALLED.columns} FROM recalled WHERE exchange_id = ? ORDER BY sent_at, place",
        [exchange_id],
    )
    by_prompt = grouped(rows, itemgetter(1))
    return {sent_at: [_item(row[4:]) for row in own] for sent_at, own in by_prompt.items()}


def _details(cursor: Connection, items: Sequence[RecalledItem]) -> tuple[RecalledItemDetails, ...]:
    """Return items with what is shown of them: titles, turn numbers, texts, times."""
    shown = shown_of(cursor, [item.passage_id for item in items])
    turns = [
        shown[item.passage_id][0].exchange_id
        if item.exchange_id is None and item.passage_id in shown
        else item.exchange_id
        for item in items
    ]
    wanted = set(turns) - {None}
    questions = questions_of(cursor, wanted)
    begun = {
        row[0]: row for row in cursor.select_in("exchange", "id, turn_number, started_at", wanted)
    }
    conversations = {item.conversation_id for item in items} - {None}
    titles: dict[int, str] = dict(cursor.select_in("conversation", "id, title", conversations))
    former = former_documents(cursor, {each.passage_id for each in items} - {*shown})
    details = []
    for item, turn in zip(items, turns, strict=True):
        of_turn = item.kind in (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY)
        text = questions.get(turn or 0, "") if of_turn else ""
        if not text and item.passage_id in shown:
            text = " ".join(part.text for part in shown[item.passage_id][1].parts)
        title, file = titles.get(item.conversation_id or 0, ""), FileState.SAME
        if item.kind is PassageKind.DOCUMENT and item.passage_id in shown:
            title = shown[item.passage_id][0].conversation_title
        elif item.kind is PassageKind.DOCUMENT:
            title, file = former.get(item.passage_id, ("", FileState.GONE))
        _, number, said_at = begun.get(turn, (None, None, None))
        details.append(RecalledItemDetails(item, title, number, text, turn, from_db(said_at), file))
    return tuple(details)


_item = reader(RecalledItem)


class Feedback(StoreReader):
    """Reads and writes verdicts. Blocking."""

    def verdicts(self) -> Mapping[PassageId, Verdict]:
        """Return all verdicts; there are few."""
        rows = self._store.rows("SELECT passage_id, verdict FROM feedback")
        return {passage: Verdict(verdict) for passage, verdict in rows}

    def rejected(self, until: datetime) -> frozenset[PassageId]:
        """Return the passages that were never to be used again at some time."""
        ids = self._store.column(
            "SELECT passage_id FROM feedback WHERE verdict = ? AND given_at <= ?",
            [Verdict.NEVER.value, to_db(until)],
        )
        return frozenset(ids)

    def give(self, passage_id: PassageId, verdict: Verdict | None) -> None:
        """Replace a verdict; None removes it. Raises StorageError."""
        self._store.save(FeedbackPut(passage_id, verdict, now()))

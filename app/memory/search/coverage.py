"""Search coverage of turns: found by words, found by meaning, or the reason why not; and the totals of memory."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from app.domain.conversations import ExchangeStatus
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind, Space
from app.domain.translation import tr
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.index.text_index import TantivyTextIndex
from app.index.text_sync import TextIndexSync
from app.storage.deletion.erasure import deletions_owed
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.recall_reads import CoveredTurn, covered_turns
from app.storage.tables.settings import Settings
from app.storage.tables.spending import Spending, Spent


@dataclass(frozen=True, slots=True)
class TurnSearchStatus:
    """Whether a turn is found by its `words` and by its `meaning`; `why` not, "" when by both."""

    words: bool
    meaning: bool
    why: str = ""

    @property
    def sentence(self) -> str:
        found = {
            (True, True): tr("Found by its words and by its meaning."),
            (True, False): tr("Found by its words, but not by its meaning."),
            (False, True): tr("Found by its meaning, but not by its words."),
            (False, False): tr("Not found by search."),
        }[self.words, self.meaning]
        return f"{found} {self.why}".rstrip()


@dataclass(frozen=True, slots=True)
class TurnCoverage:
    """Reports how turns are found. Blocking.

    `answering` returns the space that answers, `statuses` those of the workers.
    """

    store: Store
    settings: Settings
    index: TantivyTextIndex
    answering: Callable[[], Space | None]
    statuses: Callable[[], Collection[WorkerStatus]]

    def of_turns(
        self, exchange_ids: Collection[ExchangeId]
    ) -> Mapping[ExchangeId, TurnSearchStatus]:
        """Return the status of each turn; turns that do not exist are absent."""
        space = self.answering()
        turns = self.store.read(covered_turns, exchange_ids, space.name if space else None)
        return {turn.exchange_id: self._searchable(turn, space) for turn in turns}

    def _searchable(self, turn: CoveredTurn, space: Space | None) -> TurnSearchStatus:
        if (never := _never(turn)) or turn.passage_id is None:
            return TurnSearchStatus(words=False, meaning=False, why=never)
        in_index = turn.position <= self.index.position and self.index.needs_rebuild is None
        if turn.has_vectors:
            why = "" if in_index else tr("The text index is not up to date yet.")
            return TurnSearchStatus(in_index, meaning=True, why=why)
        status = next((s for s in self.statuses() if s.name == _PIPELINE), None)
        why = why_no_vector(turn, self.settings)
        if not why and status is not None and status.state is WorkerState.BLOCKED:
            why = tr("The search model has not read it yet: {reason}").format(
                reason=_as_sentence(status.blocked_by)
            )
        if not why and space is None:
            why = tr("No search model is available now.")
        why = why or tr("The search model has not read it yet.")
        return TurnSearchStatus(in_index, meaning=False, why=why)


def why_no_vector(turn: CoveredTurn, settings: Settings) -> str:
    """Return why a turn that may be indexed has no vector, "" when it only has to be embedded."""
    least = settings.number("min_message_tokens")
    if not turn.tokens:
        return _incomplete_text(turn)
    if turn.tokens < least:
        return tr(
            "It has about {tokens} tokens; turns with fewer than {least} are found by words only."
        ).format(tokens=turn.tokens, least=least)
    if turn.is_empty:
        return tr("It has no text.")
    if turn.error and turn.next_at is None:
        tries = tr("once") if turn.tries == 1 else tr("{tries} times").format(tries=turn.tries)
        return tr("It was skipped after the search model failed {tries}: {reason}").format(
            tries=tries, reason=_as_sentence(turn.error)
        )
    if turn.error and turn.next_at is not None:
        at = f"{turn.next_at.astimezone():%H:%M}"
        return tr("The search model could not read it and tries again at {at}: {reason}").format(
            at=at, reason=_as_sentence(turn.error)
        )
    if not settings.flag("embedding_pipeline_enabled"):
        return tr("The search model has not read it yet, and search by meaning is off.")
    return ""


_PIPELINE = WorkerName.EMBEDDING_PIPELINE


def _never(turn: CoveredTurn) -> str:
    """Return why a turn is in no index at all, "" if it may be."""
    if turn.is_private:
        return tr("Private conversations are excluded from search and recall.")
    if turn.is_in_trash:
        return tr("Its conversation is in the trash.")
    return _incomplete_text(turn) if turn.passage_id is None else ""


def _incomplete_text(turn: CoveredTurn) -> str:
    reason = {
        ExchangeStatus.RUNNING: tr("its reply is still being written"),
        ExchangeStatus.INTERRUPTED: tr("its reply was stopped before any text arrived"),
        ExchangeStatus.FAILED: tr("its reply failed"),
        ExchangeStatus.COMPLETED: tr("it has no reply, or only one from Recall"),
    }[turn.status]
    return tr("The turn is incomplete: {reason}.").format(reason=reason)


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


_CONVERSATIONS = "SELECT count(*) FROM conversation WHERE deleted_at IS NULL"


@dataclass(frozen=True, slots=True)
class EmbeddingCoverage:
    """The share (0-1) of passages with vectors in a space, of those to be embedded."""

    space: str
    share: float


@dataclass(frozen=True, slots=True)
class Overview:
    """Totals at one moment.

    `searchable_share` (0-1) is the share found by words; `embedded` that found by meaning, None
    without an embedder. `deletions_owed` are those whose bytes are still in the files. Spend is
    since local midnight and since the first of the month.
    """

    conversations: int
    passages: Mapping[PassageKind, int]
    searchable_share: float
    database_bytes: int
    spent_today: Spent
    spent_month: Spent
    embedded: EmbeddingCoverage | None = None
    deletions_owed: int = 0


class OverviewService:
    """Counts the totals. Blocking."""

    def __init__(
        self,
        store: Store,
        sync: TextIndexSync,
        embedded: Callable[[], EmbeddingCoverage | None] = lambda: None,
    ) -> None:
        self._store = store
        self._sync = sync
        self._embedded = embedded
        self._passages = Passages(store)
        self._spending = Spending(store)

    def read(self) -> Overview:
        at = now()
        files = (self._store.paths.database, self._store.paths.wal)
        return Overview(
            conversations=self._store.read(
                lambda cursor: int((cursor.execute(_CONVERSATIONS).fetchone() or (0,))[0])
            ),
            passages=self._passages.count_by_kind(),
            searchable_share=self._sync.covered_share,
            database_bytes=sum(each.stat().st_size for each in files if each.exists()),
            spent_today=self._spending.today(at),
            spent_month=self._spending.this_month(at),
            embedded=self._embedded(),
            deletions_owed=max(deletions_owed(self._store), int(self._sync.owes_erasure)),
        )

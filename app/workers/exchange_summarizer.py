"""The exchange summariser: one or two sentences for each completed exchange, newest first."""

from collections.abc import Sequence
from datetime import datetime

from app.domain.changes import Change
from app.domain.events import Changed
from app.domain.ids import PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.providers.extractive import Turn
from app.storage.remaking import SUMMARIES
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summary_work import SummaryWork, WaitingExchange
from app.storage.tally import Tally
from app.workers.background_model import MODEL_KEYS
from app.workers.found_ahead import FoundAhead
from app.workers.job import PAID, IsCancelled, Pace, Saved
from app.workers.open_conversation import OpenConversation
from app.workers.summariser import Summariser
from app.workers.summary_records import Summarised, records_of, saved_of

_AT_ONCE = 100
_AHEAD = 1_000  # finding them takes 10 ms in a library of 10,000
_MINIMUM = "min_messages_for_exchange_summary"
_CONCERNED = frozenset((_MINIMUM, "summarizer_quiet_minutes", SUMMARIES.key)) | MODEL_KEYS


class ExchangeSummarizer:
    """A `Job`: summaries of exchanges, each with its passage, many in one commit."""

    name = WorkerName.EXCHANGE_SUMMARIZER

    def __init__(
        self,
        store: Store,
        settings: Settings,
        summariser: Summariser,
        opened: OpenConversation,
        pace: Pace | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._summariser = summariser
        self._opened = opened
        self._work = SummaryWork(store)
        self._pace = pace or Pace()
        self._ahead = FoundAhead(_CONCERNED)

    @property
    def pace(self) -> Pace:
        """One by one when each is paid for."""
        return PAID if self._summariser.is_paid else self._pace

    def find(self, at: datetime) -> Sequence[WaitingExchange]:
        """Return the newest completed exchanges without a current summary, with their words.

        A list made a moment ago is read on, unless an exchange has ended since; saving looks again
        whether each may have a summary.
        """
        left_alone = self._opened.left_alone(at)
        minimum = self._settings.number(_MINIMUM)
        self._ahead.renew(lambda: self._work.exchange_ids(_AHEAD, minimum, left_alone, at))
        while self._ahead.left:
            waiting = self._work.exchanges(self._ahead.take(_AT_ONCE))
            if items := [each for each in waiting if each.conversation_id != left_alone]:
                return items
        return ()

    def item_id(self, item: WaitingExchange) -> int:
        """Return the exchange's id."""
        return item.id

    def describe(self, item: WaitingExchange) -> str:
        """Return the beginning of what was asked."""
        return one_line(item.words.asked or item.words.answered, 60) or f"exchange {item.id}"

    def make(self, items: Sequence[WaitingExchange], is_cancelled: IsCancelled) -> Summarised:
        """Return the summary of the one exchange given."""
        (item,) = items
        turn = Turn(item.words.asked, item.words.answered)
        place = Passage(
            id=PassageId(0),
            kind=PassageKind.EXCHANGE_SUMMARY,
            source_id=item.id,
            conversation_id=item.conversation_id,
            exchange_id=item.id,
            content_hash="",
            created_at=item.said_at,
        )
        return Summarised(place, item.stamp, self._summariser.exchange(turn, is_cancelled))

    def save(self, results: Sequence[Summarised]) -> Saved:
        """Store summaries and passages; drop those whose exchange may no longer have one."""

        def commit() -> Saved:
            standing = self._work.standing_exchanges([each.place.source_id for each in results])
            kept = [each for each in results if each.place.source_id in standing.ids]
            changes: list[Change] = [spent for each in results for spent in each.digest.spent]
            for each in kept:
                replaced = standing.passages.get(each.place.source_id, ())
                passage_id = self._store.ids.passage()
                changes += records_of(each, passage_id, replaced)
            if changes:
                self._store.commit_now(*changes)
            return saved_of(results, kept)

        return self._store.on_writer(commit).result()

    def tally(self) -> Tally:
        """Return how many exchanges should have a summary and how many do."""
        return self._work.exchange_tally(self._settings.number(_MINIMUM))

    def poll_interval_s(self) -> float:
        """Return `summarizer_idle_timeout`."""
        return float(self._settings.number("summarizer_idle_timeout"))

    def wakes_for(self, changed: Changed) -> bool:
        """Return whether an exchange ended, or a conversation left the trash or changed."""
        return self._ahead.wakes_for(changed)

    def waiting_words(self, count: int) -> str:
        """Return how many exchanges wait, in words."""
        if count == 1:
            return "1 exchange waits for its summary"
        return f"{count:,} exchanges wait for summaries"

"""The conversation summariser: two or three sentences, and a title and tags where missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import Change, ConversationEdited, TagsChanged
from app.domain.conversations import TitleOrigin
from app.domain.events import Changed
from app.domain.ids import PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.providers.extractive import Turn
from app.storage.remaking import SUMMARIES
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summary_work import Standing, SummaryWork, WaitingConversation
from app.storage.tally import Tally
from app.workers.background_model import MODEL_KEYS
from app.workers.job import PAID, IsCancelled, Pace, Saved
from app.workers.open_conversation import OpenConversation
from app.workers.summariser import Summariser
from app.workers.summary_records import Summarised, records_of, saved_of

_AT_ONCE = 25  # a title and tags are statements of their own: more would hold up the writer
_MINIMUM = "min_exchanges_for_conversation_summary"
_CONCERNED = frozenset((_MINIMUM, "summarizer_quiet_minutes", SUMMARIES.key)) | MODEL_KEYS


@dataclass(frozen=True, slots=True)
class _Made:
    source: WaitingConversation
    summarised: Summarised


class ConversationSummarizer:
    """A `Job`: summaries of conversations, with what else was missing, in one commit.

    A title takes the place of the first words only; storage keeps one that the user or an import
    gave, however late. Tags are given once, with the first summary, and only where there are none:
    who removes them does not get them again.
    """

    name = WorkerName.CONVERSATION_SUMMARIZER

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
        self._pace = pace or Pace(save_items=_AT_ONCE)

    @property
    def pace(self) -> Pace:
        """One by one when each is paid for."""
        return PAID if self._summariser.is_paid else self._pace

    def find(self, at: datetime) -> Sequence[WaitingConversation]:
        """Return conversations whose summary is missing or old, latest changed first."""
        minimum = self._settings.number(_MINIMUM)
        return self._work.conversations(_AT_ONCE, minimum, self._opened.left_alone(at), at)

    def item_id(self, item: WaitingConversation) -> int:
        """Return the conversation's id."""
        return item.id

    def describe(self, item: WaitingConversation) -> str:
        """Return the title."""
        return one_line(item.title, 60) or f"conversation {item.id}"

    def make(self, items: Sequence[WaitingConversation], is_cancelled: IsCancelled) -> _Made:
        """Return the summary of the one conversation given."""
        (item,) = items
        turns = [Turn(words.asked, words.answered) for words in item.words]
        place = Passage(
            id=PassageId(0),
            kind=PassageKind.CONVERSATION_SUMMARY,
            source_id=item.id,
            conversation_id=item.id,
            exchange_id=None,
            content_hash="",
            created_at=item.said_at,
        )
        digest = self._summariser.conversation(item.id, turns, is_cancelled)
        return _Made(item, Summarised(place, item.stamp, digest))

    def save(self, results: Sequence[_Made]) -> Saved:
        """Store summaries, passages, titles and tags, as far as they are still wanted."""

        def commit() -> Saved:
            standing = self._work.standing_conversations([each.source.id for each in results])
            kept = [each for each in results if each.source.id in standing.ids]
            spent = [paid for each in results for paid in each.summarised.digest.spent]
            changes: list[Change] = [*spent]
            for each in kept:
                changes += self._changes(each, standing)
            if changes:
                self._store.commit_now(*changes)
            return saved_of(
                [each.summarised for each in results], [each.summarised for each in kept]
            )

        return self._store.on_writer(commit).result()

    def tally(self) -> Tally:
        """Return how many conversations should have a summary and how many have a current one."""
        return self._work.conversation_tally(self._settings.number(_MINIMUM))

    def poll_interval_s(self) -> float:
        """Return `summarizer_idle_timeout`."""
        return float(self._settings.number("summarizer_idle_timeout"))

    def wakes_for(self, changed: Changed) -> bool:
        """Return whether an exchange ended, or a conversation left the trash or changed."""
        return bool(
            changed.turns_completed
            or changed.conversations
            or changed.providers
            or changed.settings & _CONCERNED
        )

    def waiting_words(self, count: int) -> str:
        """Return how many conversations wait, in words."""
        if count == 1:
            return "1 conversation waits for its summary"
        return f"{count:,} conversations wait for summaries"

    def _changes(self, made: _Made, standing: Standing) -> list[Change]:
        source, digest = made.source, made.summarised.digest
        replaced = standing.passages.get(source.id, ())
        passage_id = self._store.ids.passage()
        changes = records_of(made.summarised, passage_id, replaced)
        if digest.title and source.title_origin is TitleOrigin.FIRST_WORDS:
            title = ConversationEdited(
                source.id, title=digest.title, title_origin=TitleOrigin.SUMMARISER
            )
            changes.append(title)
        if digest.tags and source.is_first and source.id not in standing.tagged:
            changes.append(TagsChanged(source.id, digest.tags, automatic=True))
        return changes

"""Whether a turn is found by its words and by its meaning, and if not, why not: in plain words."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from app.domain.conversations import ExchangeStatus
from app.domain.ids import ExchangeId
from app.domain.passages import Space
from app.domain.ports import TextIndex
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.storage.coverage import CoveredTurn, covered_turns
from app.storage.settings import Settings
from app.storage.store import Store


@dataclass(frozen=True, slots=True)
class Searchable:
    """How a turn is found: by its `words`, by its `meaning`; `why` not, "" when by both."""

    words: bool
    meaning: bool
    why: str = ""

    @property
    def sentence(self) -> str:
        """All of it, for the screen."""
        found = {
            (True, True): "Found by its words and by its meaning.",
            (True, False): "Found by its words, not yet by its meaning.",
            (False, True): "Found by its meaning, not yet by its words.",
            (False, False): "Not found by search.",
        }[self.words, self.meaning]
        return f"{found} {self.why}".rstrip()


class Coverage:
    """Says of turns how they are found. Blocking.

    `answering` gives the space that answers; `statuses` those of the workers.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        index: TextIndex,
        answering: Callable[[], Space | None],
        statuses: Callable[[], Collection[WorkerStatus]],
    ) -> None:
        self._store = store
        self._settings = settings
        self._index = index
        self._answering = answering
        self._statuses = statuses

    def of_turns(self, exchange_ids: Collection[ExchangeId]) -> Mapping[ExchangeId, Searchable]:
        """Return by exchange how it is found; those that do not exist are absent."""
        space = self._answering()
        turns = covered_turns(self._store, exchange_ids, space.name if space else None)
        return {turn.exchange_id: self._searchable(turn, space) for turn in turns}

    def _searchable(self, turn: CoveredTurn, space: Space | None) -> Searchable:
        if (never := _never(turn)) or turn.passage_id is None:
            return Searchable(words=False, meaning=False, why=never)
        in_index = turn.position <= self._index.position and self._index.needs_rebuild is None
        if turn.has_vectors:
            why = "" if in_index else "The text index is still catching up."
            return Searchable(in_index, meaning=True, why=why)
        return Searchable(in_index, meaning=False, why=self._why_no_vectors(turn, space))

    def _why_no_vectors(self, turn: CoveredTurn, space: Space | None) -> str:
        least = self._settings.number("min_message_tokens")
        if not turn.tokens:
            return f"The turn is incomplete: {_STATUS_WORDS[turn.status]}."
        if turn.tokens < least:
            return f"It is short: about {turn.tokens} tokens, and shorter ones than {least} are not embedded."
        if turn.is_empty:
            return "There are no words in it to embed."
        if turn.error and turn.next_at is None:
            tried = "once" if turn.tries == 1 else f"{turn.tries} times"
            return f"It was set aside after it failed {tried}: {_stop(turn.error)}"
        if turn.error and turn.next_at is not None:
            return f"It failed and is tried again {turn.next_at.astimezone():%H:%M}: {_stop(turn.error)}"
        status = next((s for s in self._statuses() if s.name == _PIPELINE), None)
        if not self._settings.flag("embedding_pipeline_enabled"):
            return "It waits for its embedding, and the embedding pipeline is off."
        if status is not None and status.state is WorkerState.BLOCKED:
            return f"It waits for its embedding: {_stop(status.blocked_by)}"
        if space is None:
            return "There is no embedder that answers now."
        return "It waits for its embedding."


_PIPELINE = WorkerName.EMBEDDING_PIPELINE
_STATUS_WORDS = {
    ExchangeStatus.RUNNING: "its reply is still being written",
    ExchangeStatus.INTERRUPTED: "its reply was stopped before it said anything",
    ExchangeStatus.FAILED: "its reply failed",
    ExchangeStatus.COMPLETED: "it has no reply, or none but Recall's",
}


def _never(turn: CoveredTurn) -> str:
    """Why a turn is in no index at all, "" when it may be."""
    if turn.is_private:
        return "Private conversations are kept out of search and recall."
    if turn.is_in_trash:
        return "Its conversation is in the trash."
    if turn.passage_id is None:
        return f"The turn is incomplete: {_STATUS_WORDS[turn.status]}."
    return ""


def _stop(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."

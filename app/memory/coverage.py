"""Search coverage of turns: found by words, found by meaning, or the reason why not."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from app.domain.conversations import ExchangeStatus
from app.domain.ids import ExchangeId
from app.domain.passages import Space
from app.domain.translation import tr
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.index.text_index import TantivyTextIndex
from app.storage.engine.store import Store
from app.storage.tables.recall_reads import CoveredTurn, covered_turns
from app.storage.tables.settings import Settings


@dataclass(frozen=True, slots=True)
class TurnSearchStatus:
    """Whether a turn is found by its `words` and by its `meaning`; `why` not, "" when by both."""

    words: bool
    meaning: bool
    why: str = ""

    @property
    def sentence(self) -> str:
        """The description for the screen."""
        found = {
            (True, True): tr("Found by its words and by its meaning."),
            (True, False): tr("Found by its words, but not by its meaning."),
            (False, True): tr("Found by its meaning, but not by its words."),
            (False, False): tr("Not found by search."),
        }[self.words, self.meaning]
        return f"{found} {self.why}".rstrip()


class TurnCoverage:
    """Reports how turns are found. Blocking.

    `answering` returns the space that answers, `statuses` those of the workers.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        index: TantivyTextIndex,
        answering: Callable[[], Space | None],
        statuses: Callable[[], Collection[WorkerStatus]],
    ) -> None:
        self._store = store
        self._settings = settings
        self._index = index
        self._answering = answering
        self._statuses = statuses

    def of_turns(
        self, exchange_ids: Collection[ExchangeId]
    ) -> Mapping[ExchangeId, TurnSearchStatus]:
        """Return the status of each turn; turns that do not exist are absent."""
        space = self._answering()
        turns = self._store.read(covered_turns, exchange_ids, space.name if space else None)
        return {turn.exchange_id: self._searchable(turn, space) for turn in turns}

    def _searchable(self, turn: CoveredTurn, space: Space | None) -> TurnSearchStatus:
        if (never := _never(turn)) or turn.passage_id is None:
            return TurnSearchStatus(words=False, meaning=False, why=never)
        in_index = turn.position <= self._index.position and self._index.needs_rebuild is None
        if turn.has_vectors:
            why = "" if in_index else tr("The text index is not up to date yet.")
            return TurnSearchStatus(in_index, meaning=True, why=why)
        status = next((s for s in self._statuses() if s.name == _PIPELINE), None)
        why = why_no_vector(turn, self._settings)
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

"""Who writes summaries: extractive by default, a language model where one is chosen.

How a model is asked for one is `model_summariser`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.domain.changes import SpendAdded
from app.domain.errors import Cancelled
from app.domain.ids import ConversationId
from app.providers.extractive import (
    MODEL,
    Turn,
    sentences_of_conversation,
    summarise_conversation,
    summarise_exchange,
)
from app.providers.extractive_labels import tags_of, title_of
from app.workers.job import IsCancelled


@dataclass(frozen=True, slots=True)
class Digest:
    """What was made of an exchange or a conversation; "" and () where there was nothing to say.

    `spent` are the requests whose cost is to be stored with it, `model` who made it ("extractive" or
    PROVIDER:MODEL); for an exchange, `title` and `tags` are empty.
    """

    summary: str
    title: str = ""
    tags: tuple[str, ...] = ()
    spent: tuple[SpendAdded, ...] = ()
    model: str = MODEL


class Summariser(Protocol):
    """Writes summaries in the language of what it reads. Blocking."""

    @property
    def is_paid(self) -> bool:
        """Whether each summary is to be stored before the next one is asked for."""
        ...

    def exchange(self, turn: Turn, is_cancelled: IsCancelled) -> Digest:
        """Return one or two sentences: what was asked, what was done, how it ended.

        Raises `Cancelled` within a second of `is_cancelled`, `Blocked`, `ProviderError`, and
        `UnusableAnswer`.
        """
        ...

    def conversation(
        self,
        conversation_id: ConversationId,
        turns: Sequence[Turn],
        is_cancelled: IsCancelled,
    ) -> Digest:
        """Return two or three sentences, a title and tags; raises as above."""
        ...


class ExtractiveSummariser:
    """Central sentences, on this machine and at once: a summary takes milliseconds."""

    is_paid = False

    def exchange(self, turn: Turn, is_cancelled: IsCancelled) -> Digest:
        """Return the question and the heart of the answer."""
        _stop_if(is_cancelled)
        return Digest(summarise_exchange(turn))

    def conversation(
        self,
        _conversation_id: ConversationId,
        turns: Sequence[Turn],
        is_cancelled: IsCancelled,
    ) -> Digest:
        """Return the most telling sentences, what the first question was about, frequent words."""
        _stop_if(is_cancelled)
        sentences = sentences_of_conversation(turns)
        summary = summarise_conversation(turns, sentences)
        return Digest(summary, title_of(sentences), tags_of(sentences))


class ChosenSummariser:
    """The model's while one is chosen, the extractive one otherwise; asked anew for each summary."""

    def __init__(self, is_model_chosen: Callable[[], bool], by_model: Summariser) -> None:
        self._is_model_chosen = is_model_chosen
        self._by_model = by_model
        self._extractive = ExtractiveSummariser()

    @property
    def is_paid(self) -> bool:
        """Whether it is the model's turn."""
        return self._now().is_paid

    def exchange(self, turn: Turn, is_cancelled: IsCancelled) -> Digest:
        """Return one or two sentences; see `Summariser`."""
        return self._now().exchange(turn, is_cancelled)

    def conversation(
        self,
        conversation_id: ConversationId,
        turns: Sequence[Turn],
        is_cancelled: IsCancelled,
    ) -> Digest:
        """Return two or three sentences, a title and tags; see `Summariser`."""
        return self._now().conversation(conversation_id, turns, is_cancelled)

    def _now(self) -> Summariser:
        return self._by_model if self._is_model_chosen() else self._extractive


def _stop_if(is_cancelled: IsCancelled) -> None:
    if is_cancelled():
        raise Cancelled("The worker was stopped")

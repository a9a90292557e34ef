"""Who writes summaries: extractive by default, a language model where one is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.domain.changes import SpendAdded
from app.domain.errors import Cancelled
from app.providers.extractive import (
    MODEL,
    Turn,
    sentences_of_conversation,
    summarise_conversation,
    summarise_exchange,
)
from app.providers.extractive_labels import tags_of, title_of
from app.providers.extractive_space import TfIdfSpace
from app.workers.job import IsCancelled


@dataclass(frozen=True, slots=True)
class Digest:
    """What was made of an exchange or a conversation; "" and () where there was nothing to say.

    `spent` are the requests it took; for an exchange, `title` and `tags` are empty.
    """

    summary: str
    title: str = ""
    tags: tuple[str, ...] = ()
    spent: tuple[SpendAdded, ...] = ()


class Summariser(Protocol):
    """Writes summaries in the language of what it reads. Blocking."""

    @property
    def model(self) -> str:
        """What a record says about who made it: "extractive" or PROVIDER:MODEL."""
        ...

    def exchange(self, turn: Turn, is_cancelled: IsCancelled) -> Digest:
        """Return one or two sentences: what was asked, what was done, how it ended.

        Raises `Cancelled` within a second of `is_cancelled`, and `ProviderError`.
        """
        ...

    def conversation(self, turns: Sequence[Turn], is_cancelled: IsCancelled) -> Digest:
        """Return two or three sentences, a title and tags; raises as above."""
        ...


class ExtractiveSummariser:
    """Central sentences, on this machine and at once: a summary takes milliseconds."""

    model = MODEL

    def exchange(self, turn: Turn, is_cancelled: IsCancelled) -> Digest:
        """Return the question and the heart of the answer."""
        _stop_if(is_cancelled)
        return Digest(summarise_exchange(turn))

    def conversation(self, turns: Sequence[Turn], is_cancelled: IsCancelled) -> Digest:
        """Return the most telling sentences, what the first question was about, frequent words."""
        _stop_if(is_cancelled)
        sentences = sentences_of_conversation(turns)
        space = TfIdfSpace(sentences)
        summary = summarise_conversation(turns, sentences, lambda _: space)
        return Digest(summary, title_of(sentences, space), tags_of(sentences))


def _stop_if(is_cancelled: IsCancelled) -> None:
    if is_cancelled():
        raise Cancelled("The worker was stopped")

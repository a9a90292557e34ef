"""The rolling summary: rarely, much at once, never the last messages, never a private conversation."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.rolling import RollingSummaries, Stretch, extract, window_tokens
from app.domain.changes import ExchangePut, PromptKept
from app.domain.conversations import Exchange, ExchangeStatus
from app.domain.errors import Cancelled, KnownError
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.recalls import KeptPrompt, PlanPart, PlanPartKind
from app.providers.extractive import Turn
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summaries import Summaries
from app.workers.job import IsCancelled
from app.workers.summariser import Digest
from tests.fakes.stored import AT, Told, opened, tables, told


def prompt_of(talk: Told, limit_tokens: int) -> KeptPrompt:
    parts = (
        PlanPart(PlanPartKind.SYSTEM_PROMPT, 100, True),
        PlanPart(PlanPartKind.WINDOW, 900, True, message_ids=(talk.messages[0].id,)),
    )
    return KeptPrompt(
        talk.exchanges[-1].id, talk.conversation.id, AT, "m", limit_tokens, 2000, parts, ()
    )


def long_talk(store: Store, *, private: bool = False) -> Told:
    """Tell sixty turns of about 100 tokens each."""
    return told(
        store,
        *((f"What of walk {each}? " * 9, f"Walk {each} went by the river. " * 7) for each in range(60)),
        private=private,
    )  # fmt: skip


class Summing:
    """A summariser that a model stands behind."""

    is_paid = True

    def __init__(self, error: KnownError | None = None) -> None:
        self._error = error

    def exchange(self, turn: Turn, is_cancelled: IsCancelled) -> Digest:
        raise NotImplementedError

    def conversation(
        self, conversation_id: ConversationId, turns: Sequence[Turn], is_cancelled: IsCancelled
    ) -> Digest:
        if self._error is not None:
            raise type(self._error)(*self._error.args)
        return Digest(f"{len(turns)} walks.", model="friend:m")


def test_a_full_window_is_summed_up_to_half_and_then_left_alone(data_dir: Path) -> None:
    with opened(data_dir) as store:
        talk = long_talk(store)
        rolling = RollingSummaries(store, Settings(store))
        store.save(PromptKept(prompt_of(talk, 5_000)))
        assert rolling.sum_up(talk.exchanges[-1].id)
        assert not rolling.sum_up(talk.exchanges[-1].id)
        ids = [each.id for each in talk.exchanges]
        (summary,) = Summaries(store).latest("context", ids).values()
        assert 25 < ids.index(ExchangeId(summary.source_id)) < 45
        assert summary.model == "extractive"
        assert "walk" in summary.text.casefold()


def test_a_window_with_room_is_left_alone(data_dir: Path) -> None:
    with opened(data_dir) as store:
        talk = long_talk(store)
        store.save(PromptKept(prompt_of(talk, 50_000)))
        assert not RollingSummaries(store, Settings(store)).sum_up(talk.exchanges[-1].id)
        assert tables(store)["summary"] == []


def test_a_private_conversation_is_never_summed_up(data_dir: Path) -> None:
    with opened(data_dir) as store:
        talk = long_talk(store, private=True)
        store.save(PromptKept(prompt_of(talk, 5_000)))
        assert not RollingSummaries(store, Settings(store)).sum_up(talk.exchanges[-1].id)


@pytest.mark.parametrize(
    ("error", "model"), [(None, "friend:m"), (Cancelled("Stopped"), "extractive")]
)
def test_a_chosen_model_sums_up_and_where_it_fails_sentences_do(
    data_dir: Path, error: KnownError | None, model: str
) -> None:
    with opened(data_dir) as store:
        talk = long_talk(store)
        store.save(PromptKept(prompt_of(talk, 5_000)))
        RollingSummaries(store, Settings(store), Summing(error)).sum_up(talk.exchanges[-1].id)
        (row,) = tables(store)["summary"]
        assert model in row


def test_a_turn_that_ends_is_followed(data_dir: Path) -> None:
    with opened(data_dir) as store:
        talk = long_talk(store)
        rolling = RollingSummaries(store, Settings(store))
        rolling.start()
        store.save(PromptKept(prompt_of(talk, 5_000)))
        store.save(ExchangePut(talk.exchanges[-1]))
        assert tables(store)["summary"] == [], "nobody asked to wait for it"
        rolling.await_end(talk.exchanges[-1].id)
        store.save(ExchangePut(talk.exchanges[-1]))
        rolling.stop()
        assert len(tables(store)["summary"]) == 1


def test_the_window_is_what_nothing_else_takes(data_dir: Path) -> None:
    with opened(data_dir) as store:
        assert window_tokens(prompt_of(told(store, "tea"), 5_000)) == 4_900


def test_sentences_come_from_all_of_it_in_order() -> None:
    turns = [Turn(f"Where is place {each}?", f"Place {each} is by the river.") for each in range(9)]
    words = extract(turns)
    assert 0 <= words.find("lace") < len(words) <= 3 * 541
    assert extract([]) == ""


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 6)), max_size=30),
    st.integers(0, 30),
    st.integers(0, 4000),
    st.integers(1, 40),
)
def test_what_is_summed_up_only_grows_and_leaves_the_last_messages(
    shape: list[tuple[int, int]], covered: int, window: int, least: int
) -> None:
    exchanges = tuple(
        Exchange(
            ExchangeId(place), ConversationId(1), None, place, 0, ExchangeStatus.COMPLETED,
            tuple(MessageId(each) for each in range(count)), AT,
        )
        for place, (_, count) in enumerate(shape)
    )  # fmt: skip
    stretch = Stretch(exchanges, tuple(weight for weight, _ in shape))
    covered = min(covered, len(shape))
    wanted = stretch.covered_after(covered, window, least)
    assert covered <= wanted <= len(shape)
    if wanted > covered:
        assert sum(count for _, count in shape[wanted:]) >= least
        assert sum(weight for weight, _ in shape[covered:]) > window * 0.85
        assert stretch.covered_after(wanted, window, least) in (
            wanted,
            *range(wanted, len(shape) + 1),
        )

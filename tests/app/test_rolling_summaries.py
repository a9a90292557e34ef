"""Rolling summaries: rare, never of the last messages, never of private conversations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.rolling_summaries import RollingSummaries, covered_after, extract, window_tokens
from app.domain.changes import ExchangePut, PromptStored
from app.domain.errors import Cancelled, KnownError
from app.domain.ids import ExchangeId
from app.domain.recall import PlanPart, PlanPartKind, StoredPrompt
from app.language.extractive.summaries import TurnMarkdown
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.tables.summaries import Summaries
from app.workers.jobs.summarizers import GeneratedSummary
from tests.fakes.stored import AT, ConversationRecord, add_conversation, tables


def long_conversation(
    store: Store, limit_tokens: int, *, private: bool = False
) -> ConversationRecord:
    """Write sixty turns of about 100 tokens each, and the prompt of the last one."""
    turns = (
        (f"What of walk {each}? " * 9, f"Walk {each} went by the river. " * 7) for each in range(60)
    )
    conversation = add_conversation(store, *turns, private=private)
    store.save(PromptStored(prompt_of(conversation, limit_tokens)))
    return conversation


def prompt_of(conversation: ConversationRecord, limit_tokens: int) -> StoredPrompt:
    first = conversation.messages[0].id
    parts = (
        PlanPart(PlanPartKind.SYSTEM_PROMPT, 100, True),
        PlanPart(PlanPartKind.WINDOW, 900, True, message_ids=(first,)),
    )
    last = conversation.exchanges[-1].id
    own = conversation.conversation.id
    return StoredPrompt(last, own, AT, "m", limit_tokens, 2000, parts, ())


class FakeSummarizer:
    """A summarizer that a model stands behind; it fails with `error`."""

    is_paid = True

    def __init__(self, error: KnownError | None) -> None:
        self._error = error

    def exchange(self, *_: object) -> GeneratedSummary:
        raise NotImplementedError

    def conversation(self, _: object, turns: object, __: object) -> GeneratedSummary:
        if self._error is not None:
            raise type(self._error)(*self._error.args)
        assert isinstance(turns, list)
        return GeneratedSummary(f"{len(turns)} walks.", model="friend:m")


def test_a_full_window_is_summarized_to_half_once(store: Store) -> None:
    conversation = long_conversation(store, 5_000)
    last = conversation.exchanges[-1].id
    rolling = RollingSummaries(store, Settings(store))
    assert [rolling.condense(last), rolling.condense(last)] == [True, False]
    ids = [each.id for each in conversation.exchanges]
    (summary,) = Summaries(store).latest("context", ids).values()
    assert 25 < ids.index(ExchangeId(summary.source_id)) < 45
    assert (summary.model, "walk" in summary.text.casefold()) == ("extractive", True)
    assert window_tokens(prompt_of(conversation, 5_000)) == 4_900


@pytest.mark.parametrize(("tokens", "private"), [(50_000, False), (5_000, True)])
def test_no_summary_of_a_short_or_private_conversation(
    store: Store, tokens: int, private: bool
) -> None:
    conversation = long_conversation(store, tokens, private=private)
    assert not RollingSummaries(store, Settings(store)).condense(conversation.exchanges[-1].id)
    assert tables(store)["summary"] == []


@pytest.mark.parametrize(
    ("error", "model"), [(None, "friend:m"), (Cancelled("Stopped"), "extractive")]
)
def test_the_background_model_is_used_until_it_fails(
    store: Store, error: KnownError | None, model: str
) -> None:
    last = long_conversation(store, 5_000).exchanges[-1].id
    RollingSummaries(store, Settings(store), FakeSummarizer(error)).condense(last)
    (row,) = tables(store)["summary"]
    assert model in row


def test_only_expected_turns_are_condensed_when_they_end(store: Store) -> None:
    last = long_conversation(store, 5_000).exchanges[-1]
    rolling = RollingSummaries(store, Settings(store))
    rolling.start()
    store.save(ExchangePut(last))
    assert tables(store)["summary"] == []
    rolling.expect(last.id)
    store.save(ExchangePut(last))
    rolling.stop()
    assert len(tables(store)["summary"]) == 1


def test_sentences_are_extracted_from_all_parts() -> None:
    turns = [
        TurnMarkdown(f"Where is place {each}?", f"Place {each} is by the river.")
        for each in range(9)
    ]
    words = extract(turns)
    assert 0 <= words.find("lace") < len(words) <= 3 * 541
    assert words.count("\n") > 2
    assert extract([]) == ""


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 6)), max_size=30),
    st.integers(0, 30),
    st.integers(0, 4000),
    st.integers(1, 40),
)
def test_what_is_covered_only_grows_and_excludes_the_last_messages(
    shape: list[tuple[int, int]], covered: int, window: int, least: int
) -> None:
    covered = min(covered, len(shape))
    turns = [(count, weight) for weight, count in shape]
    wanted = covered_after(turns, covered, window, least)
    assert covered <= wanted <= len(shape)
    if wanted > covered:
        assert sum(count for _, count in shape[wanted:]) >= least
        assert sum(weight for weight, _ in shape[covered:]) > window * 0.85
        assert sum(weight for weight, _ in shape[wanted - 1 :]) > window * 0.5

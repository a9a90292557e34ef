"""Stopping a reply more than once, and answering a turn again: nothing is lost or kept twice."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.chat.exchanges import ExchangeLoop, Models
from app.chat.reply import Reply
from app.domain.chat import ModelRef, TextDelta, TokensReported
from app.domain.conversations import ExchangeStatus, Text
from app.domain.provider_errors import KeyMissing
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.spending import Spending
from app.storage.store import Store
from tests.fakes.models import ScriptedModel, says
from tests.fakes.stored import opened


@dataclass
class Talk:
    """A store and a loop over a scripted model."""

    store: Store
    loop: ExchangeLoop

    def send(self, text: str, conversation_id: object = None) -> Reply:
        return self.loop.send(conversation_id, (Text(text),)).result(10)  # type: ignore[arg-type]


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as open_store:
        yield open_store


def talk_with(store: Store, *scripts: Sequence[object], price_usd: float | None = None) -> Talk:
    model = ScriptedModel(*scripts)  # type: ignore[arg-type]

    def price(_ref: ModelRef, _tokens: TokensReported) -> tuple[float | None, str]:
        return price_usd, "" if price_usd is None else "listed"

    async def nothing_to_close() -> None:
        """No connections here."""

    models = Models(lambda _: model, lambda _: None, price, nothing_to_close)
    return Talk(store, ExchangeLoop(store, Settings(store), models))


def test_a_reply_stopped_again_and_again_is_stored_all_the_same(store: Store) -> None:
    talk = talk_with(store, [TextDelta("Half an ans"), asyncio.Event()])
    reply = talk.send("Tell me a story")
    reply.wait(10)
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        go_on.wait(10)

    blocked = store.on_writer(hold)
    held.wait(10)
    try:
        for _ in range(5):
            reply.stop()
            talk.loop.call(lambda: asyncio.sleep(0)).result(10)
    finally:
        go_on.set()
    blocked.result(10)
    exchange = reply.done.result(10)
    talk.loop.close()
    assert exchange.status is ExchangeStatus.INTERRUPTED
    assert len(exchange.message_ids) == 2


def test_a_wish_to_stop_that_comes_at_the_end_changes_nothing(store: Store) -> None:
    talk = talk_with(store, says("All of it."))
    held, go_on = threading.Event(), threading.Event()
    reply = talk.send("Tell me a story")

    def hold() -> None:
        held.set()
        go_on.wait(10)

    blocked = store.on_writer(hold)
    held.wait(10)
    try:
        reply.wait(10)
        reply.stop()
        talk.loop.call(lambda: asyncio.sleep(0)).result(10)
    finally:
        go_on.set()
    blocked.result(10)
    exchange = reply.done.result(10)
    talk.loop.close()
    assert exchange.status in (ExchangeStatus.COMPLETED, ExchangeStatus.INTERRUPTED)
    assert talk.loop.busy is False


def test_a_turn_answered_again_has_one_passage(store: Store) -> None:
    talk = talk_with(store, [KeyMissing("No key", "Add one.")], says("Here I am."))
    failed = talk.send("Is anybody out there").done.result(10)
    again = talk.loop.retry(failed.id).result(10).done.result(10)
    talk.loop.close()
    assert again.id == failed.id
    assert sum(Passages(store).count_by_kind().values()) == 1


def test_a_question_grouped_with_the_next_has_one_passage(store: Store) -> None:
    talk = talk_with(store, [KeyMissing("No key", "Add one.")], says("Here I am."))
    failed = talk.send("Is anybody out there").done.result(10)
    grouped = talk.send("Hello?", failed.conversation_id).done.result(10)
    talk.loop.close()
    assert grouped.id == failed.id
    assert sum(Passages(store).count_by_kind().values()) == 1


def test_what_a_stopped_reply_did_cost_is_estimated_and_on_record(store: Store) -> None:
    Settings(store).set("default_model", "here:m")
    talk = talk_with(store, [TextDelta("Half an answer " * 20), asyncio.Event()], price_usd=0.5)
    reply = talk.send("Tell me a story")
    heard: list[object] = []
    while not any(isinstance(each, TextDelta) for each in heard):
        reply.wait(10)
        heard += reply.drain()
    reply.stop()
    exchange = reply.done.result(10)
    talk.loop.close()
    spent = Spending(store).all_time("chat")
    assert exchange.usage is not None
    assert exchange.usage.estimated
    assert (exchange.usage.cost_usd, spent.cost_usd) == (0.5, 0.5)
    assert spent.tokens == exchange.usage.input_tokens + exchange.usage.output_tokens > 60


def test_a_reply_stopped_before_a_word_came_is_on_no_record(store: Store) -> None:
    Settings(store).set("default_model", "here:m")
    talk = talk_with(store, [asyncio.Event()], price_usd=0.5)
    reply = talk.send("Tell me a story")
    reply.stop()
    reply.done.result(10)
    talk.loop.close()
    assert Spending(store).all_time("chat").tokens == 0

"""Exchanges that end badly: stopped twice, stalled, without room, given up, gone on in the middle."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from app.chat.exchanges import ExchangeLoop, Models
from app.chat.reply import Reply
from app.domain import codec
from app.domain.changes import Change, MessagesAdded, ReplyGrew
from app.domain.chat import Finished, FinishReason, TextDelta
from app.domain.conversations import ExchangeStatus, Text
from app.domain.errors import DiskFull, InvalidInput
from app.domain.events import Changed
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind
from app.storage.exchanges import Exchanges
from app.storage.journal import JournalReader
from app.storage.passages import Passages
from app.storage.recovery import open_store
from app.storage.settings import Settings
from app.storage.store import Store
from app.system.paths import DataPaths
from tests.fakes.models import ScriptedModel, says

MakeLoop = Callable[..., ExchangeLoop]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    paths = DataPaths(tmp_path / "data")
    paths.make()
    opened = open_store(paths)
    yield opened
    opened.close()


@pytest.fixture
def loop_over(store: Store) -> Iterator[MakeLoop]:
    made: list[ExchangeLoop] = []

    def make(*scripts: list[object]) -> ExchangeLoop:
        model = ScriptedModel(*scripts)  # type: ignore[arg-type]
        models = Models(lambda _: model, lambda _: None, lambda *_: (None, ""), _nothing_to_close)
        made.append(ExchangeLoop(store, Settings(store), models))
        return made[-1]

    yield make
    for loop in made:
        loop.close()


async def _nothing_to_close() -> None:
    """No connections here."""


def ask(loop: ExchangeLoop, text: str, conversation_id: int | None = None) -> Reply:
    where = None if conversation_id is None else ConversationId(conversation_id)
    return loop.send(where, (Text(text),), model="local:test").result(10)


def until_words(reply: Reply) -> None:
    while not any(isinstance(event, TextDelta) for event in reply.drain()):
        reply.wait(5)


def test_stopping_twice_ends_a_reply_once_and_the_conversation_goes_on(
    loop_over: MakeLoop,
) -> None:
    loop = loop_over([TextDelta("Half"), asyncio.Event()], says("Whole."))
    reply = ask(loop, "Tell me.")
    until_words(reply)
    for _ in range(5):
        reply.stop()

    exchange = reply.done.result(10)
    assert exchange.status is ExchangeStatus.INTERRUPTED
    following = ask(loop, "And now?", exchange.conversation_id).done.result(10)
    assert following.status is ExchangeStatus.COMPLETED


def test_what_came_before_a_stall_is_in_the_journal_while_nothing_more_comes(
    store: Store, loop_over: MakeLoop
) -> None:
    loop = loop_over([TextDelta("Alpha "), TextDelta("Beta"), asyncio.Event()])
    reply = ask(loop, "Go on.")

    def journalled() -> str:
        parts: list[str] = []
        for record in JournalReader(store.paths.journal, 0):
            changes: tuple[Change, ...] = codec.loads(tuple[Change, ...], record.payload)
            parts += [change.text for change in changes if isinstance(change, ReplyGrew)]
        return "".join(parts)

    for _ in range(50):
        if journalled() == "Alpha Beta":
            break
        reply.drain()
        reply.wait(0.2)
    assert journalled() == "Alpha Beta"


def test_an_answer_waits_for_room_on_the_disk_and_is_stored_then(
    store: Store, loop_over: MakeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter([True, True])
    commit = store.commit

    def full_for_a_while(*changes: Change) -> "Future[Changed]":
        is_end = any(isinstance(change, MessagesAdded) for change in changes)
        if is_end and reply_began and next(refusals, False):
            refused: Future[Changed] = Future()
            refused.set_exception(DiskFull("There is no room", "Free some space."))
            return refused
        return commit(*changes)

    reply_began: list[bool] = []
    monkeypatch.setattr(type(store), "commit", lambda _, *changes: full_for_a_while(*changes))
    gate = asyncio.Event()
    loop = loop_over([TextDelta("Kept "), gate, TextDelta("whole."), Finished(FinishReason.STOP)])
    reply = ask(loop, "Is it kept?")
    reply_began.append(True)
    loop.call(lambda: _set(gate)).result(10)

    exchange = reply.done.result(20)

    assert exchange.status is ExchangeStatus.COMPLETED
    assert Exchanges(store).messages_of(exchange)[-1].text == "Kept whole."
    assert next(refusals, None) is None


def test_giving_up_the_wait_for_a_wish_does_not_undo_the_wish(
    store: Store, loop_over: MakeLoop
) -> None:
    loop = loop_over(says("Done all the same."))
    wish = loop.send(None, (Text("Hello?"),))

    assert not wish.cancel()
    exchange = wish.result(10).done.result(10)
    assert exchange.status is ExchangeStatus.COMPLETED


def test_only_the_last_turn_can_be_continued(loop_over: MakeLoop) -> None:
    loop = loop_over([TextDelta("Half")], says("Two."))
    broken = ask(loop, "One?").done.result(10)
    ask(loop, "Two?", broken.conversation_id).done.result(10)

    with pytest.raises(InvalidInput, match="last turn"):
        loop.retry(ExchangeId(broken.id)).result(10)


def test_a_continued_turn_leaves_one_passage(store: Store, loop_over: MakeLoop) -> None:
    loop = loop_over([TextDelta("One, two")], says(", three."))
    broken = ask(loop, "Count to three for me, please.").done.result(10)
    loop.retry(broken.id).result(10).done.result(10)

    passages = Passages(store)
    (text,) = passages.texts(passages.of_source(PassageKind.TURN, broken.id))
    assert [part.text for part in text.parts] == [
        "Count to three for me, please.", "One, two", ", three.",
    ]  # fmt: skip


def test_a_model_named_while_sending_is_kept_for_the_conversation(
    store: Store, loop_over: MakeLoop
) -> None:
    loop = loop_over()
    first = ask(loop, "First").done.result(10)
    said = loop.send(first.conversation_id, (Text("Second"),), model="local:small")
    said.result(10).done.result(10)
    third = loop.send(first.conversation_id, (Text("Third"),)).result(10).done.result(10)
    assert third.model == "local:small"


def test_a_closing_loop_takes_no_more_wishes(loop_over: MakeLoop) -> None:
    loop = loop_over()
    loop.close()
    with pytest.raises(Exception, match="closing"):
        ask(loop, "Too late?")


async def _set(event: asyncio.Event) -> None:
    event.set()

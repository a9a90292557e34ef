"""The exchange loop: what is stored before, while and after a reply runs, whatever its end."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.chat.exchanges import ExchangeLoop, Models
from app.chat.library import Library
from app.chat.reply import Reply
from app.domain.chat import (
    Finished,
    FinishReason,
    ModelRef,
    TextDelta,
    ThinkingDelta,
    TokensReported,
)
from app.domain.conversations import Exchange, ExchangeStatus, Role, Text, Thinking, TitleOrigin
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId
from app.domain.passages import PassageKind
from app.domain.provider_errors import ConnectionLost, KeyMissing
from app.storage.exchanges import Exchanges
from app.storage.passages import Passages
from app.storage.recovery import open_store
from app.storage.settings import Settings
from app.storage.store import Store
from app.system.paths import DataPaths
from tests.fakes.models import ScriptedModel, says


@dataclass
class Talk:
    """A store, a loop over a scripted model, and shorthands."""

    store: Store
    loop: ExchangeLoop
    library: Library
    model: ScriptedModel

    def send(self, text: str, conversation_id: int | None = None) -> Reply:
        where = None if conversation_id is None else ConversationId(conversation_id)
        return self.loop.send(where, (Text(text),)).result(10)

    def say(self, text: str, conversation_id: int | None = None) -> Exchange:
        return self.send(text, conversation_id).done.result(10)

    def texts(self, conversation_id: int) -> list[str]:
        """The shown path's messages."""
        view = self.library.open(conversation_id)
        messages = self.library.messages(view.path)
        return [message.text for exchange in view.path for message in messages[exchange.id]]


@pytest.fixture
def talk_with(tmp_path: Path) -> Iterator[Callable[..., Talk]]:
    opened: list[Talk] = []

    def make(*scripts: list[object]) -> Talk:
        paths = DataPaths(tmp_path / "data")
        paths.make()
        store = open_store(paths)
        model = ScriptedModel(*scripts)  # type: ignore[arg-type]
        models = Models(lambda ref: model, lambda ref: None, _price, _nothing_to_close)
        loop = ExchangeLoop(store, Settings(store), models)
        opened.append(Talk(store, loop, Library(store), model))
        return opened[-1]

    yield make
    for each in opened:
        each.loop.close()
        each.store.close()


def _price(ref: ModelRef, tokens: TokensReported) -> tuple[float | None, str]:
    return tokens.output_tokens * 0.5, "0.5 USD a token"


def test_a_complete_reply_is_stored_with_its_turn_usage_and_passage(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(
        [
            ThinkingDelta("hm"),
            TextDelta("Raise "),
            TextDelta("the limit."),
            TokensReported(10, 4, 2),
            Finished(FinishReason.STOP),
        ]
    )

    exchange = talk.say("How do I fix the timeout in the importer?")

    assert exchange.status is ExchangeStatus.COMPLETED
    assert exchange.usage is not None
    assert (exchange.usage.input_tokens, exchange.usage.cost_usd) == (10, 2.0)
    assert exchange.usage.first_token_ms is not None
    question, answer = Exchanges(talk.store).messages_of(exchange)
    assert question.role is Role.USER
    assert answer.blocks == (Thinking("hm"), Text("Raise the limit."))
    conversation = talk.library.open(exchange.conversation_id).conversation
    assert conversation.title == "How do I fix the timeout in the importer?"
    assert conversation.title_origin is TitleOrigin.FIRST_WORDS
    assert Passages(talk.store).count_by_kind() == {"turn": 1}


def test_turns_follow_each_other_and_the_model_sees_the_whole_path(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(says("One."), says("Two."))
    first = talk.say("First?")
    second = talk.say("Second?", first.conversation_id)

    assert (second.turn_number, second.parent_id) == (1, first.id)
    assert [message.text for message in talk.model.requests[1].messages] == [
        "First?",
        "One.",
        "Second?",
    ]


def test_the_users_words_are_durable_before_the_reply_begins(
    talk_with: Callable[..., Talk],
) -> None:
    gate = asyncio.Event()
    talk = talk_with([gate, *says("Late.")])

    reply = talk.send("Are you there?")

    assert talk.texts(reply.plan.conversation.id) == ["Are you there?"]
    reply.stop()
    assert reply.done.result(10).status is ExchangeStatus.INTERRUPTED


def test_stop_keeps_the_partial_text_marked_interrupted(talk_with: Callable[..., Talk]) -> None:
    gate = asyncio.Event()
    talk = talk_with([TextDelta("Half of"), gate])
    reply = talk.send("Tell me everything.")
    while not reply.drain():
        reply.wait(5)

    reply.stop()
    exchange = reply.done.result(10)

    assert exchange.status is ExchangeStatus.INTERRUPTED
    assert exchange.problem is not None
    assert exchange.problem.kind == "stopped"
    assert talk.texts(exchange.conversation_id) == ["Tell me everything.", "Half of"]


def test_a_stream_without_its_terminal_marker_is_interrupted(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with([TextDelta("Half")])
    exchange = talk.say("Hello?")
    assert exchange.status is ExchangeStatus.INTERRUPTED
    assert exchange.problem is not None
    assert exchange.problem.kind == "connection_lost"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [(FinishReason.LENGTH, "length"), (FinishReason.REFUSED, "refused")],
)
def test_a_reply_cut_short_by_its_model_says_so(
    talk_with: Callable[..., Talk], reason: FinishReason, kind: str
) -> None:
    talk = talk_with([TextDelta("So far"), Finished(reason)])
    exchange = talk.say("Go on.")
    assert exchange.problem is not None
    assert exchange.problem.kind == kind


def test_an_error_before_any_word_fails_the_turn_and_retry_reuses_it(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with([KeyMissing("No key for openai", "Enter one in Settings.")], says("Now."))
    failed = talk.say("Hello?")
    assert failed.status is ExchangeStatus.FAILED
    assert failed.problem is not None
    assert failed.problem.title == "No key for openai"

    retried = talk.loop.retry(failed.id).result(10).done.result(10)

    assert retried.id == failed.id
    assert retried.status is ExchangeStatus.COMPLETED
    assert talk.texts(failed.conversation_id) == ["Hello?", "Now."]


def test_a_question_without_a_reply_is_grouped_with_the_next_one(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with([KeyMissing("No key")], says("Both."))
    failed = talk.say("First half")
    answered = talk.say("second half", failed.conversation_id)

    assert answered.id == failed.id
    assert answered.turn_number == 0
    assert talk.texts(failed.conversation_id) == ["First half", "second half", "Both."]


def test_an_interrupted_reply_is_continued_in_its_exchange(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with([TextDelta("One, two"), ConnectionLost("Lost")], says(", three."))
    broken = talk.say("Count.")

    continued = talk.loop.retry(broken.id).result(10).done.result(10)

    assert continued.id == broken.id
    assert talk.texts(broken.conversation_id) == ["Count.", "One, two", ", three."]
    assert talk.model.requests[1].messages[-1].role is Role.USER


def test_regenerate_makes_a_branch_and_nothing_is_lost(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(says("Blue."), says("Red."))
    first = talk.say("A colour?")
    second = talk.loop.regenerate(first.id).result(10).done.result(10)

    view = talk.library.open(first.conversation_id)
    assert talk.texts(first.conversation_id) == ["A colour?", "Red."]
    assert view.siblings == ((first.id, second.id),)
    assert first.message_ids[0] == second.message_ids[0]

    talk.library.switch_branch(first.id)
    assert talk.texts(first.conversation_id) == ["A colour?", "Blue."]


def test_editing_an_earlier_message_makes_a_branch(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(says("A1"), says("A2"), says("A3"))
    first = talk.say("Q1")
    talk.say("Q2", first.conversation_id)

    edited = talk.loop.edit(first.id, first.message_ids[0], (Text("Q1 again"),)).result(10)
    exchange = edited.done.result(10)

    assert exchange.turn_number == 0
    assert talk.texts(first.conversation_id) == ["Q1 again", "A3"]
    talk.library.switch_branch(first.id)
    assert talk.texts(first.conversation_id) == ["Q1", "A1", "Q2", "A2"]


def test_a_second_wish_while_a_reply_runs_is_refused_and_loses_nothing(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with([asyncio.Event()])
    reply = talk.send("First")
    with pytest.raises(InvalidInput, match="still running"):
        talk.send("Second", reply.plan.conversation.id)
    reply.stop()
    reply.done.result(10)
    assert talk.texts(reply.plan.conversation.id) == ["First"]


def test_nothing_to_say_and_unknown_conversations_are_refused(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with()
    with pytest.raises(InvalidInput, match="nothing to send"):
        talk.send("  \n")
    with pytest.raises(NotFound):
        talk.send("Hello", 99)


def test_a_rename_while_a_reply_runs_is_not_undone_by_its_end(
    talk_with: Callable[..., Talk],
) -> None:
    gate = asyncio.Event()
    talk = talk_with([gate, *says("Done.")])
    reply = talk.send("Some question")
    talk.library.rename(reply.plan.conversation.id, "My title")
    talk.loop.call(lambda: _set(gate)).result(10)
    reply.done.result(10)

    assert talk.library.open(reply.plan.conversation.id).conversation.title == "My title"


def test_a_private_conversation_leaves_no_passage(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with()
    talk.loop.send(None, (Text("A secret."),), private=True).result(10).done.result(10)
    assert Passages(talk.store).count_by_kind() == {}


def test_closing_the_loop_keeps_what_had_arrived(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with([TextDelta("So far"), asyncio.Event()])
    reply = talk.send("Long story")
    while not reply.drain():
        reply.wait(5)
    talk.loop.close()
    assert reply.done.result(10).status is ExchangeStatus.INTERRUPTED
    assert talk.texts(reply.plan.conversation.id) == ["Long story", "So far"]


def test_a_fork_copies_the_path_up_to_a_turn(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(says("A1"), says("A2"))
    first = talk.say("Q1")
    talk.say("Q2", first.conversation_id)
    fork = talk.library.fork(first.id)
    assert talk.texts(fork) == ["Q1", "A1"]
    assert talk.texts(first.conversation_id) == ["Q1", "A1", "Q2", "A2"]


async def _nothing_to_close() -> None:
    """No connections here."""


async def _set(event: asyncio.Event) -> None:
    event.set()


def test_what_recall_quotes_is_not_indexed_again(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(says("From your conversations: the sourdough rose for nine hours."))
    reply = talk.loop.send(None, (Text("How long did the bread rise?"),), model="recall:")
    exchange = reply.result(10).done.result(10)

    passages = Passages(talk.store)
    (text,) = passages.texts(passages.of_source(PassageKind.TURN, exchange.id))
    assert [part.text for part in text.parts] == ["How long did the bread rise?"]

"""Sending and the other commands of a turn: both presenters with fakes of what is below them."""

import re
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.chat.library import ConversationView
from app.chat.planner import ExchangePlan, NewConversation
from app.chat.reply import Reply
from app.domain.change_set import ChangeSet
from app.domain.chat import Retrying
from app.domain.conversations import (
    ANY_RECALL,
    Conversation,
    Draft,
    Exchange,
    ExchangeStatus,
    Image,
    Message,
    RecallChoice,
    Text,
)
from app.domain.errors import NotFound, StorageError
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.memory.recall.mentions import Mention
from tests.fakes.screens import (
    AT,
    TALK,
    FakeBanner,
    FakeBridge,
    FakeTranscript,
    conversation,
    exchange,
    message,
)
from ui.presenters.conversation.compose import ComposePresenter
from ui.presenters.conversation.composer import QueuePresenter
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.conversation.turns import RunningReplies
from ui.views.chat_pane import ChatPane
from ui.widgets.banner import NoteCard
from ui.widgets.composer.composer import Composer
from ui.widgets.composer.memory_switch import MemoryUse
from ui.widgets.plain_label import PlainLabel


class Library:
    """One stored conversation of two turns."""

    def __init__(self) -> None:
        path = (exchange(1, None), exchange(2, 1))
        leaf = path[-1].message_ids[-1]
        siblings = ((path[0].id,), (ExchangeId(9), path[1].id))
        self.view = ConversationView(conversation(visible_leaf_id=leaf), (), "", path, siblings)
        self.record: Conversation | None = self.view.conversation
        self.gone: int | None = None
        self.drafts: list[tuple[int | None, str]] = []
        self.stored_drafts: dict[int | None, str] = {}
        self.calls: list[tuple[str, object]] = []

    def open(self, conversation_id: int, _show: int | None = None) -> ConversationView:
        if conversation_id == self.gone:
            raise NotFound("It was deleted")
        self.calls.append(("open", conversation_id))
        leaf = self.view.conversation.visible_leaf_id
        return replace(self.view, conversation=conversation(conversation_id, visible_leaf_id=leaf))

    def messages(self, exchanges: Any) -> Any:
        return {
            each.id: tuple(message(number) for number in each.message_ids) for each in exchanges
        }

    def save_draft(self, conversation_id: int | None, draft: Draft) -> None:
        self.drafts.append((conversation_id, draft.text))

    def switch_branch(self, exchange_id: int) -> ConversationView:
        self.calls.append(("switch", exchange_id))
        return self.view

    def fork(self, exchange_id: int) -> int:
        self.calls.append(("fork", exchange_id))
        return 8

    # what `Exchanges` and `Conversations` are asked

    def text_lengths(self, _conversation_id: int) -> dict[MessageId, int]:
        return {}

    def messages_of(self, _exchange: Exchange) -> tuple[Message, ...]:
        return (message(1),)

    def get(self, _conversation_id: int) -> Conversation:
        if self.record is None:
            raise NotFound("It was deleted")
        return self.record

    def draft(self, conversation_id: int | None) -> Draft:
        return Draft(self.stored_drafts.get(conversation_id, ""))


class Loop:
    """An exchange loop whose requests wait until `commit` or `fail`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, tuple[Any, ...]]] = []
        self.future: Future[Reply] = Future()

    def __getattr__(self, name: str) -> Any:
        def request(*given: Any) -> "Future[Reply]":
            self.requests.append((name, given))
            self.future = Future()
            return self.future

        return request


class Pane(QWidget):
    """The pane of the conversation, with a real composer."""

    restore_requested = Signal()
    show_state: Any = ChatPane.show_state

    def __init__(self) -> None:
        super().__init__()
        self.banner = FakeBanner()
        self.composer = Composer(self)
        self.model = self.composer.model
        self.status, self.state = PlainLabel(self), NoteCard(self)
        self.writable: list[bool] = []

    def set_writable(self, writable: bool) -> None:
        self.writable.append(writable)

    def __getattr__(self, name: str) -> Any:
        return lambda *_given, **_more: None


class Compose:
    """Both presenters, with the stored conversation open."""

    def mentions_in(self, text: str) -> list[Mention]:
        """Find @Tea, which is conversation 60."""
        at = text.find("@Tea")
        return [] if at < 0 else [Mention(at, at + 4, ConversationId(60))]

    def __init__(self, *, is_open: bool = True) -> None:
        self.bridge, self.pane, self.library = FakeBridge(), Pane(), Library()
        self.loop, self.transcript = Loop(), FakeTranscript()
        self.replies = RunningReplies(self.bridge)
        library: Any = self.library
        self.conversation = ConversationPresenter(
            self.bridge, library, library, library, cast(Any, self.pane),
            cast(Any, self.transcript), self.replies,
        )  # fmt: skip
        self.presenter = ComposePresenter(
            self.bridge, cast(Any, self.loop), library, cast(Any, self.pane),
            self.conversation, self.replies, self.mentions_in,
            lambda turns: (" ".join(str(each.turn_number) for each in turns), 1),
        )  # fmt: skip
        self.queue = QueuePresenter(
            self.bridge, self.presenter, self.conversation, self.pane.composer
        )
        if is_open:
            self.conversation.open(TALK)
        self.transcript.calls.clear()
        self.library.calls.clear()

    @property
    def text(self) -> str:
        return self.pane.composer.text

    def type(self, text: str) -> None:
        self.pane.composer.box.insertPlainText(text)

    def send(self, text: str) -> None:
        self.type(text)
        self.pane.composer.box.submitted.emit()

    def commit(self, made: Exchange | None = None, in_conversation: int = TALK) -> Reply:
        """Let the newest request succeed."""
        made = made or exchange(3, 2, status=ExchangeStatus.RUNNING, message_ids=(MessageId(30),))
        plan = ExchangePlan(conversation(in_conversation), made, (message(30),), ())
        reply = Reply(plan)
        self.loop.future.set_result(reply)
        self.bridge.release()
        return reply

    def fail(self) -> None:
        self.loop.future.set_exception(StorageError("The disk is full"))
        self.bridge.release()


@pytest.fixture
def compose() -> Compose:
    return Compose()


@pytest.mark.parametrize(("fails", "text"), [(False, "second"), (True, "first\n\nsecond")])
def test_text_typed_before_the_commit_stays_and_a_refused_message_goes_before_it(
    compose: Compose, fails: bool, text: str
) -> None:
    compose.send("first")
    assert compose.text == ""
    compose.type("second")
    (compose.fail if fails else compose.commit)()
    assert compose.text == text
    assert compose.library.drafts[-1] == (TALK, text)
    assert len(compose.pane.banner.errors) == fails


def test_files_are_sent_edited_and_put_back_with_their_message(compose: Compose) -> None:
    row = compose.pane.composer.files
    key = row.add("a.png")
    compose.send("Look")
    assert compose.loop.requests == [], "a file is still being read"
    image = Image("a.png", "image/png", "aa11")
    row.show_file(key, image)
    compose.pane.composer.box.submitted.emit()
    assert compose.loop.requests[-1][1][1] == (Text("Look"), image)
    assert row.count == 0
    row.add("b.png", image)
    compose.fail()
    assert compose.pane.composer.draft == Draft("Look", (image, image))


def test_a_failed_message_of_a_conversation_just_left_is_its_draft(compose: Compose) -> None:
    compose.send("first")
    compose.conversation.open(ConversationId(8))
    compose.fail()
    assert compose.text == ""
    assert compose.library.drafts[-1] == (TALK, "first")


@pytest.mark.parametrize("private", [False, True])
def test_a_failed_message_stands_above_what_was_typed_since_in_a_conversation_left(
    compose: Compose, private: bool
) -> None:
    if private:
        compose.conversation.begin_new(private=True)
    compose.send("first")
    compose.type("second")
    compose.conversation.open(ConversationId(8))
    compose.fail()
    compose.conversation.begin_new(private=True) if private else compose.conversation.open(TALK)
    assert compose.text == "first\n\nsecond"


def test_stop_before_the_commit_stops_the_reply_that_then_begins(compose: Compose) -> None:
    compose.send("first")
    compose.pane.composer.box.escaped.emit()
    assert compose.pane.status.text()
    stops: list[int] = []
    reply = compose.commit()
    reply.on_stop(lambda: stops.append(1))  # called at once: it was stopped already
    assert stops == [1]
    compose.pane.composer.box.escaped.emit()  # it runs now; a second stop changes nothing
    assert stops == [1]


def test_a_sent_turn_is_appended_without_reading_the_conversation(compose: Compose) -> None:
    compose.send("first")
    compose.commit()
    assert compose.library.calls == []
    assert [each[0] for each in compose.transcript.calls] == ["add_turn", "begin_reply"]
    assert [each.id for each in compose.conversation.view.path] == [1, 2, 3]


def test_the_first_message_opens_its_conversation(compose: Compose) -> None:
    compose.conversation.begin_new()
    opened: list[Conversation | None] = []
    compose.conversation.opened.connect(opened.append)
    compose.send("first")
    compose.commit(exchange(3, None, message_ids=(MessageId(30),)), in_conversation=12)
    assert [each.id for each in opened if each] == [12]
    assert compose.conversation.conversation_id == 12


def test_a_reply_elsewhere_does_not_take_the_place_of_what_is_open(compose: Compose) -> None:
    compose.send("first")
    compose.conversation.open(ConversationId(8))
    compose.commit()
    assert compose.conversation.conversation_id == 8
    assert compose.replies.of(TALK) is not None


def test_a_message_on_a_branch_only_looked_at_makes_it_the_visible_one(compose: Compose) -> None:
    view = compose.conversation.view
    assert view is not None
    compose.conversation.view = replace(view, conversation=conversation(visible_leaf_id=None))
    compose.send("first")
    assert compose.library.calls == [("switch", 2)]


def test_another_branch_says_where_a_message_goes_and_leads_back(compose: Compose) -> None:
    compose.type("a question")
    assert compose.pane.state.text == ""
    hidden = replace(compose.library.view, conversation=conversation(visible_leaf_id=MessageId(91)))
    visible, compose.library.view = compose.library.view, hidden
    compose.conversation.open(TALK, ExchangeId(2))
    back = compose.pane.state.action.click
    assert compose.text == "a question"
    compose.library.view = visible
    back()
    assert compose.pane.state.text == ""
    assert compose.text == "a question"


def test_a_conversation_in_the_trash_is_read_only_until_it_is_restored(compose: Compose) -> None:
    trashed = replace(compose.library.view.conversation, deleted_at=AT)
    compose.library.record = trashed
    change = ChangeSet(conversations=frozenset({TALK}))
    compose.bridge.changed.emit(change)
    assert compose.conversation.is_read_only
    assert compose.pane.state.action.text() == "Restore"
    assert not compose.pane.writable[-1]
    assert ("set_read_only", True) in compose.transcript.calls
    compose.presenter.show_branch(1, MessageId(20), 1)
    assert "switch" not in [name for name, _ in compose.library.calls], "it is only looked at"
    compose.library.record = replace(trashed, deleted_at=None)
    compose.bridge.changed.emit(change)
    assert not compose.conversation.is_read_only
    assert compose.pane.state.text == ""
    assert compose.pane.writable[-1]


def test_what_a_banner_says_ends_with_its_conversation_or_a_new_reply(compose: Compose) -> None:
    left: list[int] = []
    compose.pane.banner.leave = lambda: left.append(1)  # type: ignore[method-assign]
    compose.conversation.open(TALK)
    assert left == []
    compose.conversation.open(ConversationId(8))
    assert left == [1]
    compose.send("first")
    compose.commit()
    assert left == [1, 1]
    compose.conversation.begin_new()
    assert left == [1, 1, 1]


def test_an_edit_is_sent_as_one_and_is_an_edit_again_after_a_failure(compose: Compose) -> None:
    compose.presenter.edit(0, MessageId(10))
    assert compose.text == "text 10"
    compose.send(" better")
    assert not compose.pane.composer.is_editing
    compose.fail()
    assert compose.pane.composer.is_editing
    assert compose.text == "text 10 better"
    compose.pane.composer.box.submitted.emit()
    edits = [given[:2] for name, given in compose.loop.requests if name == "edit"]
    assert edits == [(1, 10), (1, 10)]


@pytest.mark.parametrize(
    ("command", "request_made"), [("retry", ("retry", (2,))), ("regenerate", ("regenerate", (2,)))]
)
def test_a_turn_is_answered_again(
    compose: Compose, command: str, request_made: tuple[str, tuple[int]]
) -> None:
    compose.presenter.on_last_turn(getattr(compose.presenter, command))()
    assert compose.loop.requests == [request_made]
    compose.commit(exchange(4, 1, message_ids=(MessageId(40),)))
    assert compose.library.calls == [("open", TALK)]  # another branch: it is read


def test_a_turn_is_answered_once_by_another_model(compose: Compose) -> None:
    chosen: list[str] = []
    compose.pane.model.chosen.connect(chosen.append)
    compose.presenter.regenerate_with(1)
    compose.pane.model.list.chosen.emit("local:other")
    assert compose.loop.requests == [("regenerate", (2, "local:other"))]
    assert chosen == [], "the model of the conversation stays"
    compose.presenter.regenerate_with(9)
    assert not compose.pane.model.is_open


def test_branches_and_forks_are_shown(compose: Compose) -> None:
    compose.presenter.show_branch(1, MessageId(20), 1)
    compose.presenter.fork(0)
    assert [each for each in compose.library.calls if each[0] != "open"] == [
        ("switch", 9),
        ("fork", 1),
    ]
    assert compose.conversation.conversation_id == 8


def test_running_is_over_after_a_failed_start(compose: Compose) -> None:
    changes: list[tuple[bool, bool]] = []
    compose.conversation.running_changed.connect(lambda *given: changes.append(given))
    compose.presenter.retry(1)
    compose.fail()
    assert changes == [(True, True), (True, False)]


def end(compose: Compose, reply: Reply, made: Exchange) -> None:
    """Let a reply end, and have its events taken."""
    reply.done.set_result(made)
    compose.replies._on_drain_timeout()


def test_a_reply_that_ended_is_shown_as_stored_and_can_be_continued(compose: Compose) -> None:
    compose.send("first")
    reply = compose.commit()
    compose.transcript.calls.clear()
    end(compose, reply, exchange(3, 2, message_ids=(MessageId(30), MessageId(31))))
    assert [each[0] for each in compose.transcript.calls] == ["finish_reply"]
    own = ChangeSet(messages_in=frozenset({TALK}), exchanges=frozenset({ExchangeId(3)}))
    compose.bridge.changed.emit(own)  # the commit of what is shown already
    assert compose.library.calls == []
    compose.send("second")
    assert [name for name, _ in compose.loop.requests] == ["send", "send"]
    assert compose.library.calls == []  # nothing was read or switched


def test_another_turn_that_ends_with_ones_own_is_read(compose: Compose) -> None:
    compose.send("first")
    end(compose, compose.commit(), exchange(3, 2, message_ids=(MessageId(30), MessageId(31))))
    both = frozenset({ExchangeId(3), ExchangeId(4)})
    compose.bridge.changed.emit(ChangeSet(messages_in=frozenset({TALK}), exchanges=both))
    assert compose.library.calls == [("open", TALK)]


def sent(compose: Compose) -> list[str]:
    return [given[1][0].text for name, given in compose.loop.requests if name == "send"]


DONE = exchange(3, 2, message_ids=(MessageId(30), MessageId(31)))


def test_a_wait_for_retry_is_counted(compose: Compose, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, statuses = [100.0], list[str]()
    monkeypatch.setattr("ui.presenters.conversation.turns.perf_counter", lambda: now_s[0])
    compose.replies.status_changed.connect(lambda _, text: statuses.append(text))
    compose.send("first")
    reply = compose.commit()
    reply.push(Retrying(1, 2.4, "No answer"))
    for now_s[0] in (100.0, 100.1, 101.0, 102.0, 103.0, 104.0):
        compose.replies._on_drain_timeout()
    assert [re.findall(r"\d+", each) for each in statuses] == [["3"], ["2"], ["1"], []]
    reply.push(Retrying(2, 9.0, "No answer"))
    compose.replies._on_drain_timeout()
    reply.push(Text("Here"))
    compose.replies._on_drain_timeout()
    now_s[0] = 105.0
    compose.replies._on_drain_timeout()
    assert len(statuses) == 5, "an answer ends the countdown"
    end(compose, reply, DONE)


def test_messages_sent_while_a_reply_runs_wait_for_its_end(compose: Compose) -> None:
    compose.send("first")
    reply = compose.commit()
    compose.send("second")
    compose.send("third")
    assert (compose.text, sent(compose)) == ("", ["first"])
    assert "second" in compose.pane.composer._queued.text
    assert compose.library.drafts[-1] == (TALK, "second\n\nthird"), "a crash loses nothing"
    compose.type("fourth")
    end(compose, reply, DONE)
    assert sent(compose) == ["first", "second\n\nthird"]
    assert compose.text == "fourth"
    assert compose.pane.composer._queued.text == ""
    compose.commit(exchange(4, 3, message_ids=(MessageId(40),)))
    assert compose.library.drafts[-1] == (TALK, "fourth")


@pytest.mark.parametrize("how", ["cancelled", "stopped", "failed"])
def test_a_message_that_will_not_be_sent_goes_back_into_the_box(compose: Compose, how: str) -> None:
    compose.send("first")
    reply = compose.commit()
    compose.send("second")
    compose.type("third")
    if how == "cancelled":
        compose.pane.composer._queued.action.click()
    else:
        outcome = replace(DONE, status=ExchangeStatus.INTERRUPTED)
        end(compose, reply, outcome) if how == "stopped" else reply.done.set_exception(
            StorageError("The disk is full")
        )
        compose.replies._on_drain_timeout()
    assert compose.text == "second\n\nthird"
    assert compose.library.drafts[-1] == (TALK, "second\n\nthird")
    assert sent(compose) == ["first"]
    assert compose.pane.composer._queued.text == ""


def test_a_queued_message_is_sent_where_it_was_written(compose: Compose) -> None:
    compose.send("first")
    reply = compose.commit()
    compose.send("second")
    compose.conversation.open(ConversationId(8))
    assert compose.pane.composer._queued.text == ""
    end(compose, reply, DONE)
    assert [given[0] for _, given in compose.loop.requests] == [TALK, TALK]
    assert compose.loop.requests[-1][1][2] == NewConversation(), "it has its own"
    compose.commit(exchange(4, 3, message_ids=(MessageId(40),)))
    assert compose.conversation.conversation_id == 8


def test_a_message_queued_for_a_reply_that_never_begins_goes_back(compose: Compose) -> None:
    compose.send("first")
    compose.send("second")
    compose.fail()
    assert compose.text == "first\n\nsecond"


def test_a_message_takes_the_choice_of_memory_and_its_mentions_along(compose: Compose) -> None:
    compose.pane.composer.memory.choose(MemoryUse.NOT_NOW)
    compose.send("What of @Tea?")
    assert compose.loop.requests[-1][1][3] == RecallChoice(
        is_on=False, mentioned=(ConversationId(60),)
    )
    assert compose.pane.composer.memory.choice == ANY_RECALL
    reply = compose.commit()
    compose.pane.composer.memory.choose(MemoryUse.NOT_NOW)
    compose.send("And tomorrow?")  # waits
    end(compose, reply, DONE)
    assert not compose.loop.requests[-1][1][3].is_on


def test_up_in_the_empty_box_edits_the_last_message(compose: Compose) -> None:
    box = compose.pane.composer.box
    box.setPlainText("typed")
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert not compose.pane.composer.is_editing
    box.clear()
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert compose.pane.composer.is_editing
    compose.send("better")
    kind, (_, message_id, *_rest) = compose.loop.requests[-1]
    assert (kind, message_id) == ("edit", 21)


def test_a_recall_answer_is_shown_from_its_beginning(compose: Compose) -> None:
    compose.send("first")
    end(compose, compose.commit(), replace(DONE, model="recall:"))
    assert compose.transcript.calls[-1] == ("show_from_start", 2)


@pytest.mark.parametrize(
    ("path", "calls"),
    [((exchange(1), exchange(2, 1), exchange(3, 2)), ["extend"]),
     ((exchange(1), exchange(2, 1, message_ids=(MessageId(20),))), ["extend", "provide"]),
     ((exchange(1), exchange(2, 1)), []), ((exchange(1), exchange(9, 1)), [])],
    ids=["new turn", "changed turn", "same", "another branch"],
)  # fmt: skip
def test_changes_made_elsewhere_are_shown(
    compose: Compose, path: tuple[Exchange, ...], calls: list[str]
) -> None:
    current = conversation(visible_leaf_id=path[-1].message_ids[-1])
    compose.library.view = replace(compose.library.view, path=path, conversation=current)
    compose.bridge.changed.emit(ChangeSet(messages_in=frozenset({ConversationId(8)})))
    assert [each[0] for each in compose.transcript.calls] == []
    compose.bridge.changed.emit(ChangeSet(messages_in=frozenset({TALK})))
    assert [each[0] for each in compose.transcript.calls] == calls
    assert bool(compose.pane.state.text) is (path[-1].id == ExchangeId(9))  # not the one shown


def test_turns_on_screen_are_provided_before_those_around_them(compose: Compose) -> None:
    compose.transcript.visible_items = (1, 1)
    compose.transcript.content_requested.emit(0, 1)
    assert [each[1] for each in compose.transcript.calls if each[0] == "provide"] == [1, 0]


def test_a_new_record_is_announced_and_a_deleted_conversation_is_left(compose: Compose) -> None:
    updated: list[Conversation] = []
    compose.conversation.updated.connect(updated.append)
    record = conversation(visible_leaf_id=MessageId(1), updated_at=AT + timedelta(days=1))
    compose.library.record = record
    change = ChangeSet(conversations=frozenset({TALK}))
    compose.bridge.changed.emit(change)
    assert updated == []  # its time and its leaf are not shown
    compose.library.record = replace(record, title="New")
    compose.bridge.changed.emit(change)
    assert [each.title for each in updated] == ["New"]
    assert compose.conversation.view.conversation.title == "New"
    compose.library.record = None
    compose.bridge.changed.emit(change)
    assert compose.conversation.conversation_id is None


@pytest.mark.parametrize(("stored", "shown"), [("", "typed"), ("stored", "stored\n\ntyped")])
def test_what_is_typed_while_the_draft_is_read_stays(
    compose: Compose, stored: str, shown: str
) -> None:
    compose.library.stored_drafts[None] = stored
    compose.type("elsewhere")
    compose.bridge.hold()
    compose.conversation.begin_new()
    assert compose.text == "", "what was typed in another conversation is not shown here"
    compose.type("typed")
    compose.pane.composer.flush_draft()
    compose.bridge.release()
    assert compose.text == shown
    assert compose.library.drafts == [(TALK, "elsewhere"), (None, shown)]


@pytest.mark.parametrize("stored", ["", "stored"])
def test_what_is_typed_while_a_conversation_is_loaded_belongs_to_it(
    compose: Compose, stored: str
) -> None:
    other, shown = ConversationId(8), "\n\n".join(filter(None, (stored, "typed")))
    compose.library.stored_drafts[other] = stored
    compose.type("elsewhere")
    compose.bridge.hold()
    compose.conversation.open(other)
    compose.type("typed")
    compose.pane.composer.flush_draft()
    compose.bridge.release()
    assert (compose.conversation.conversation_id, compose.text) == (other, shown)
    assert compose.library.drafts == [(TALK, "elsewhere"), (other, shown)]
    compose.conversation.open(TALK)
    assert compose.text == "elsewhere"
    compose.conversation.open(other)
    assert compose.text == shown


def test_what_is_typed_stays_when_another_is_opened_or_the_same_at_another_turn(
    compose: Compose,
) -> None:
    other = ConversationId(8)
    compose.library.stored_drafts[other] = "stored"
    compose.bridge.hold()
    compose.conversation.open(other)
    compose.type("typed")
    compose.conversation.open(TALK, ExchangeId(1))
    compose.type("here")
    compose.conversation.open(TALK, ExchangeId(2))
    compose.type(" too")
    compose.bridge.release()
    compose.pane.composer.flush_draft()
    assert compose.text == "here too"
    assert dict(compose.library.drafts) == {other: "stored\n\ntyped", TALK: "here too"}


def test_what_is_typed_for_a_conversation_that_is_gone_stays_in_the_box(compose: Compose) -> None:
    compose.type("elsewhere")
    compose.bridge.hold()
    compose.conversation.open(ConversationId(8))
    compose.type("typed")
    compose.library.gone = ConversationId(8)
    compose.bridge.release()
    assert (compose.conversation.conversation_id, compose.text) == (TALK, "elsewhere\n\ntyped")
    assert compose.library.drafts[-1] == (TALK, "elsewhere\n\ntyped")


def test_a_draft_that_is_read_at_once_is_not_joined_to_what_was_typed_elsewhere(
    compose: Compose,
) -> None:
    compose.library.stored_drafts[None] = "stored"
    compose.type("elsewhere")
    compose.conversation.begin_new()
    assert compose.text == "stored"
    assert compose.library.drafts == [(TALK, "elsewhere")]


def test_what_is_typed_in_a_new_private_conversation_is_kept_but_never_stored(
    compose: Compose,
) -> None:
    compose.library.stored_drafts[None] = "ordinary"
    compose.conversation.begin_new(private=True)
    compose.type("secret")
    compose.bridge.hold()
    compose.conversation.begin_new()
    compose.bridge.release()
    assert compose.text == "ordinary"
    compose.conversation.begin_new(private=True)
    assert compose.text == "secret"
    compose.send(" message")
    compose.conversation.open(TALK)
    compose.fail()
    compose.conversation.begin_new(private=True)
    assert compose.text == "secret message", "what was not sent is put back where it was typed"
    compose.send("")
    compose.commit(in_conversation=8)
    compose.conversation.begin_new(private=True)
    assert compose.text == ""
    compose.conversation.begin_new()
    assert compose.text == "ordinary"
    assert not any("secret" in text for _, text in compose.library.drafts)


FIRST = exchange(3, None, message_ids=(MessageId(30),))


@pytest.mark.parametrize("private", [False, True])
def test_a_new_conversation_does_not_take_the_place_of_one_of_the_other_kind(
    compose: Compose, private: bool
) -> None:
    compose.conversation.begin_new(private=private)
    compose.send("first")
    compose.conversation.begin_new(private=not private)
    compose.type("here")
    compose.commit(FIRST, in_conversation=12)
    compose.pane.composer.flush_draft()
    assert compose.conversation.conversation_id is None
    assert compose.conversation.is_private is not private
    assert compose.text == "here"
    assert compose.library.drafts == ([(None, "here")] if private else [])


def test_both_kinds_of_new_conversation_begin_at_the_same_time(compose: Compose) -> None:
    compose.conversation.begin_new()
    compose.send("first")
    compose.conversation.begin_new(private=True)
    compose.send("second")
    assert sent(compose) == ["first", "second"]


def test_what_is_typed_before_the_first_commit_goes_along_into_the_conversation(
    compose: Compose,
) -> None:
    compose.conversation.begin_new()
    compose.send("first")
    compose.type("second")
    compose.pane.composer.flush_draft()
    compose.commit(FIRST, in_conversation=12)
    assert compose.text == "second"
    assert dict(compose.library.drafts) == {None: "", 12: "second"}
    compose.conversation.begin_new()
    assert compose.text == ""


def test_a_message_does_not_go_to_the_conversation_that_is_left(compose: Compose) -> None:
    compose.library.stored_drafts[ConversationId(8)] = "stored"
    compose.bridge.hold()
    compose.conversation.open(ConversationId(8))
    compose.send("typed")
    compose.bridge.release()
    assert compose.loop.requests[-1][1][0] == 8
    assert compose.text == "stored"
    compose.commit(in_conversation=8)
    assert compose.library.drafts[-1] == (8, "stored"), "it is deleted with the message's commit"


def test_what_is_typed_at_the_start_is_put_below_the_stored_draft() -> None:
    compose = Compose(is_open=False)
    compose.library.stored_drafts[TALK] = "stored"
    compose.type("typed")
    compose.bridge.hold()
    compose.bridge.submit(compose.conversation.begin(TALK))
    compose.type(" on")
    compose.bridge.release()
    assert (compose.conversation.conversation_id, compose.text) == (TALK, "stored\n\ntyped on")
    assert compose.library.drafts == [(TALK, "stored\n\ntyped on")]


def test_a_message_sent_while_the_draft_is_read_is_not_shown_again(compose: Compose) -> None:
    compose.bridge.hold()
    compose.conversation.begin_new()
    compose.send("typed")
    compose.bridge.release()
    assert compose.text == ""


def test_opening_shows_turn_header_and_draft_and_a_new_one_is_empty(compose: Compose) -> None:
    turns: list[int] = []
    compose.conversation.scrolled_to.connect(turns.append)
    compose.conversation.open(ConversationId(8))
    shown: list[tuple[int, int]] = []
    compose.conversation.content_shown.connect(lambda *turns: shown.append(turns))
    compose.conversation.open(TALK, ExchangeId(2))
    assert turns == [1]
    assert shown == [(0, 1)], "what belongs to turns that came with the load is shown too"
    compose.presenter.copy_link(1)
    assert QGuiApplication.clipboard().text() == "commonplace://7/1"
    compose.presenter.copy_brief(0)
    assert QGuiApplication.clipboard().text() == "0 1"
    assert compose.pane.banner.messages[-1] == "1 turn was copied.", "the other was left out"
    compose.presenter.copy_link(9)
    compose.conversation.listed_project = "g"
    compose.type("unsent")
    compose.conversation.begin_new(private=True)
    assert compose.library.drafts[-1] == (TALK, "unsent")
    assert (compose.text, compose.conversation.conversation_id) == ("", None)
    assert compose.conversation.is_private
    compose.conversation.new = replace(compose.conversation.new, preset="terse")
    compose.send("secret")
    new = NewConversation(private=True, preset="terse", project="g")
    assert compose.loop.requests[-1][1][2:] == (new, ANY_RECALL)
    assert len(compose.pane.banner.messages) == 2

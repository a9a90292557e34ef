"""Replies that ran when the program was killed are there again, marked interrupted."""

from pathlib import Path

import pytest

from app.domain.errors import ReadOnlyStorage
from app.storage.conversations import Conversations
from app.storage.store import Store
from tests.fakes.stored import asked, grow, killed, opened, tables, told


def test_a_running_reply_is_put_together_as_interrupted(data_dir: Path, tmp_path: Path) -> None:
    with opened(data_dir) as store:
        whole = asked(store, "Why?")
        (exchange,) = whole.exchanges
        reply = store.ids.message()
        grow(store, exchange, reply, "Let me ", "think. ", kind="thinking")
        grow(store, exchange, reply, "Because ", "it is.")
        after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as store:
        assert store.notices == (
            "A reply was interrupted when the program ended; what had arrived is kept.",
        )
        found = tables(store)
        (row,) = found["exchange"]
        assert row[5] == "interrupted"
        (question, answer) = found["message"]
        assert (answer[0], answer[3], answer[4]) == (reply, question[0], "assistant")
        assert answer[5] == "Because it is."
        assert '"text":"Let me think. "' in str(answer[6])
        assert Conversations(store).get(1).visible_leaf_id == reply
        (passage,) = found["passage"]
        assert passage[7] == 0, "an incomplete turn is in the text index only"
    with opened(after_kill) as store:
        assert store.notices == ()


def test_a_reply_of_which_nothing_had_come_is_interrupted_too(
    data_dir: Path, tmp_path: Path
) -> None:
    with opened(data_dir) as store:
        asked(store, "Why?")
        after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as store:
        found = tables(store)
        assert found["exchange"][0][5] == "interrupted"
        assert len(found["message"]) == len(found["passage"]) == 1


def test_a_private_reply_gets_no_passage(data_dir: Path, tmp_path: Path) -> None:
    with opened(data_dir) as store:
        silent, speaking = asked(store, "One", private=True), asked(store, "Two", private=True)
        grow(store, speaking.exchanges[0], store.ids.message(), "Secret")
        assert silent.conversation.private
        after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as store:
        found = tables(store)
        assert [row[5] for row in found["exchange"]] == ["interrupted", "interrupted"]
        assert found["passage"] == []


def test_the_id_of_a_running_reply_is_not_given_to_another_message(
    data_dir: Path, tmp_path: Path
) -> None:
    with opened(data_dir) as store:
        whole = asked(store, "Why?")
        reply = store.ids.message()
        grow(store, whole.exchanges[0], reply, "Because")
        after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as store:
        assert store.ids.message() > reply
        told(store, "another", title="Another")
        assert {row[5] for row in tables(store)["message"]} >= {"Because", "another"}


def test_what_came_before_a_retry_does_not_come_back(data_dir: Path, tmp_path: Path) -> None:
    with opened(data_dir) as store:
        whole = asked(store, "Why?")
        grow(store, whole.exchanges[0], store.ids.message(), "The first try")
        store.save(*whole.changes[2:])
        grow(store, whole.exchanges[0], store.ids.message(), "The second try")
        after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as store:
        texts = [row[5] for row in tables(store)["message"]]
        assert texts == ["Why?", "The second try"]


def test_a_reply_of_several_messages_keeps_them_all(data_dir: Path, tmp_path: Path) -> None:
    with opened(data_dir) as store:
        whole = asked(store, "Why?")
        first, second = store.ids.message(), store.ids.message()
        grow(store, whole.exchanges[0], first, "I look it up.")
        grow(store, whole.exchanges[0], second, "Here it is.")
        after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as store:
        chain = [(row[0], row[3]) for row in tables(store)["message"]]
        assert chain == [(1, None), (first, 1), (second, first)]


def test_a_branch_that_is_shown_meanwhile_stays_shown(data_dir: Path, tmp_path: Path) -> None:
    with opened(data_dir) as store:
        shown = told(store, "a", "b")
        running = asked(store, "Why?")
        moved = shown.conversation
        assert moved.visible_leaf_id is not None
        grow(store, running.exchanges[0], store.ids.message(), "Because")
        after_kill = killed(store, tmp_path / "killed")
    with opened(after_kill) as store:
        assert Conversations(store).get(1).visible_leaf_id == moved.visible_leaf_id


def test_a_full_disk_at_that_moment_keeps_nobody_out(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(data_dir) as store:
        whole = asked(store, "Why?")
        grow(store, whole.exchanges[0], store.ids.message(), "Because")
        after_kill = killed(store, tmp_path / "killed")
    save = Store.save

    def refuse(self: Store, *_: object) -> None:
        raise ReadOnlyStorage("not now")

    monkeypatch.setattr(Store, "save", refuse)
    with opened(after_kill) as store:
        assert tables(store)["exchange"][0][5] == "running"
    monkeypatch.setattr(Store, "save", save)
    with opened(after_kill) as store:
        assert tables(store)["exchange"][0][5] == "interrupted"

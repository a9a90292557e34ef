"""A library through writes, crashes, older images and damage, against a plain model of it."""

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.check import check
from app.domain.changes import (
    ConversationEdited,
    DraftPut,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    SettingPut,
    TagsChanged,
)
from app.domain.ids import ConversationId, PassageId
from app.storage.backup import backups_of, make_backup
from app.storage.conversations import Conversations, ListFilter
from app.storage.exchanges import Exchanges, shown_path
from app.storage.forget import forget
from app.storage.recovery import open_store
from app.storage.store import Store
from tests.fakes.libraries import zero
from tests.fakes.stored import AT, killed, made, tell

WORDS = st.sampled_from(["one", "two", "three"])


@dataclass
class Talk:
    """A conversation as the model knows it."""

    title: str
    said: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    draft: str = ""
    in_trash: bool = False


class LibraryMachine(RuleBasedStateMachine):
    """What a user does and what happens to a machine, in any order."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="commonplace-model-"))
        self.places = 0
        self.store: Store = open_store(made(self.folder / "0"))
        self.talks: dict[ConversationId, Talk] = {}
        self.settings: dict[str, str] = {}
        self.older: Path | None = None

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    # -- what a user does

    @rule(title=WORDS, text=WORDS)
    def begin(self, title: str, text: str) -> None:
        whole = tell(self.store, text, title=title)
        self.store.save(*whole.changes)
        self.talks[whole.conversation.id] = Talk(title, [text])

    @precondition(lambda self: self.talks)
    @rule(data=st.data(), text=WORDS)
    def say(self, data: st.DataObject, text: str) -> None:
        which = data.draw(st.sampled_from(sorted(self.talks)))
        path = shown_path(Conversations(self.store).get(which), Exchanges(self.store).of(which))
        turn = tell(self.store, text)
        asked, answered = (replace(each, conversation_id=which) for each in turn.messages)
        asked = replace(asked, parent_id=path[-1].message_ids[-1])
        exchange = replace(
            turn.exchanges[0], conversation_id=which, parent_id=path[-1].id, turn_number=len(path)
        )
        passages = [
            replace(each, conversation_id=which, id=PassageId(each.id))
            for change in turn.changes
            if isinstance(change, PassagesPut)
            for each in change.passages
        ]
        self.store.save(
            MessagesAdded((asked, answered)),
            ExchangePut(exchange),
            PassagesPut(tuple(passages)),
            ConversationEdited(which, visible_leaf_id=answered.id),
        )
        self.talks[which].said.append(text)

    @precondition(lambda self: self.talks)
    @rule(data=st.data(), word=WORDS, kind=st.sampled_from(["title", "tag", "untag", "draft"]))
    def change(self, data: st.DataObject, word: str, kind: str) -> None:
        which = data.draw(st.sampled_from(sorted(self.talks)))
        talk = self.talks[which]
        if kind == "title":
            self.store.save(ConversationEdited(which, title=word))
            talk.title = word
        elif kind == "draft":
            self.store.save(DraftPut(which, word, AT))
            talk.draft = word
        elif kind == "tag":
            self.store.save(TagsChanged(which, (word,)))
            talk.tags.add(word)
        else:
            self.store.save(TagsChanged(which, removed=(word,)))
            talk.tags.discard(word)

    @precondition(lambda self: self.talks)
    @rule(data=st.data())
    def trash_or_restore(self, data: st.DataObject) -> None:
        which = data.draw(st.sampled_from(sorted(self.talks)))
        talk = self.talks[which]
        talk.in_trash = not talk.in_trash
        if talk.in_trash:
            self.store.save(ConversationEdited(which, deleted_at=AT))
        else:
            self.store.save(ConversationEdited(which, restored=True))

    @precondition(lambda self: self.talks)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        which = data.draw(st.sampled_from(sorted(self.talks)))
        forget(self.store, [which])
        del self.talks[which]
        self.older = None  # its journal is cut: only backups and the file itself are images now

    @rule(value=st.sampled_from(['"light"', '"dark"', None]))
    def set(self, value: str | None) -> None:
        self.store.save(SettingPut("theme", value))
        self.settings.pop("theme", None)
        if value is not None:
            self.settings["theme"] = value

    # -- what happens to a machine

    @rule()
    def back_up(self) -> None:
        make_backup(self.store)

    @rule()
    def fold_in(self) -> None:
        assert self.store.checkpoint().result()

    @rule()
    def keep_an_image(self) -> None:
        if len(backups_of(self.store.paths.backups, self.store.uid)) < 2:
            self.older = self._copy()

    @rule()
    def close_and_open(self) -> None:
        self._go_to(self.store.paths.root)

    @rule()
    def crash(self) -> None:
        self._go_to(self._copy())

    @precondition(lambda self: self.older is not None)
    @rule()
    def crash_onto_the_older_image(self) -> None:
        place = self._copy()
        assert self.older is not None
        for name in ("commonplace.duckdb", "commonplace.duckdb.wal"):
            (place / name).unlink(missing_ok=True)
            if (self.older / name).exists():
                shutil.copy(self.older / name, place / name)
        self._go_to(place)

    @rule()
    def crash_and_tear(self) -> None:
        place = self._copy()
        zero(place / "commonplace.duckdb", 12288)
        self._go_to(place)
        self.older = None

    def _copy(self) -> Path:
        self.places += 1
        return killed(self.store, self.folder / str(self.places))

    def _go_to(self, root: Path) -> None:
        self.store.close()
        self.store = open_store(made(root))

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        if not hasattr(self, "store"):
            return
        conversations = Conversations(self.store)
        listed = (
            *conversations.listed(ListFilter(archived=None)),
            *conversations.listed(ListFilter(trash=True)),
        )
        tags = conversations.tags_of([each.id for each in listed])
        found = {
            each.id: Talk(
                each.title,
                self._said(each.id),
                set(tags.get(each.id, ())),
                conversations.draft(each.id),
                each.deleted_at is not None,
            )
            for each in listed
        }
        assert found == self.talks
        rows = self.store.read(
            lambda cursor: cursor.execute("SELECT key, value FROM appconfig").fetchall()
        )
        assert dict(rows) == self.settings

    def _said(self, which: ConversationId) -> list[str]:
        exchanges = Exchanges(self.store)
        path = shown_path(Conversations(self.store).get(which), exchanges.of(which))
        return [exchanges.messages_of(each)[0].text for each in path]

    @precondition(lambda self: hasattr(self, "store") and len(self.talks) % 3 == 2)
    @rule()
    def check_it(self) -> None:
        problems = check(self.store).problems
        # The same words twice are one passage's worth: told apart by nothing but their place.
        assert [each for each in problems if "no passage" not in each] == []


TestLibrary = LibraryMachine.TestCase
TestLibrary.settings = settings(
    max_examples=5, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)

"""The knowledge extractor on a real store: what it extracts, supersedes and refuses."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited, ExchangePut, FactPut, MessagesAdded
from app.domain.conversations import Exchange, ExchangeStatus, Message, Role, Text
from app.domain.deletions import FactForgotten
from app.domain.ids import new_uid
from app.domain.passages import PassageKind
from app.domain.records.facts import BY_PATTERNS, Fact
from app.domain.text import content_hash
from app.domain.turns import RECALL_MODEL
from app.domain.workers import WorkerName, WorkerStatus
from app.language.sentences import content_terms
from app.memory.facts import similar_facts
from app.providers.embedders.local import LocalEmbedder
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.tables.facts import FactFilter, Facts
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings
from app.storage.work.extraction_work import ExtractionWork
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from app.workers.jobs.knowledge_extractor import KnowledgeExtractor
from tests.fakes.fixtures import fixture_of
from tests.fakes.jobs import JumpingClock, count_rows
from tests.fakes.stored import (
    AT,
    ConversationRecord,
    add_conversation,
    killed,
    new_conversation,
    opened,
    tables,
)

EXTRACTOR = WorkerName.KNOWLEDGE_EXTRACTOR
SHIPPED = Path(__file__).parents[3] / "resources/models/all-MiniLM-L6-v2"
DAY = timedelta(days=1)
BERLIN, OSLO = "I live in Berlin.", "I live in Oslo."
NUTS = "I'm allergic to nuts."


class Bench:
    """A board with the extractor alone."""

    def __init__(self, store: Store, embedder: LocalEmbedder | None = None) -> None:
        self.store = store
        active = None if embedder is None else lambda: embedder
        parts = JobParts(store, Settings(store), active, clock=JumpingClock())
        self.opened, self.job = parts.open_conversation, KnowledgeExtractor(parts)
        self.board = WorkerBoard(replace(parts, embedder=None), (self.job,))

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([EXTRACTOR])
        return status

    def say(self, *texts: str | tuple[str, str], days: int = 0) -> ConversationRecord:
        """Add a conversation so many days after the first, and run."""
        talk = add_conversation(self.store, *texts, at=AT + days * DAY)
        self.run()
        return talk

    def facts(self, *, ended: bool = False) -> list[Fact]:
        return [known.fact for known in Facts(self.store).listed(FactFilter(ended=ended))]

    def texts(self, *, ended: bool = False) -> set[str]:
        return {fact.text for fact in self.facts(ended=ended)}

    def count(self, table: str, condition: str = "true") -> int:
        return count_rows(self.store, table, condition)


bench = fixture_of(Bench, "store")


def copied(store: Store, message: Message, **changes: object) -> Message:
    """Return another message with these fields changed."""
    return replace(message, id=store.ids.message(), uid=new_uid(), **changes)  # type: ignore[arg-type]


def test_statements_become_facts_with_their_turn_and_passage(bench: Bench) -> None:
    talk = add_conversation(
        bench.store, "I live in Berlin and I'm allergic to nuts.", "What is tea?"
    )
    status = bench.run()
    assert (status.done, status.total) == (2, 2)
    assert bench.texts() == {BERLIN, NUTS}
    for fact in bench.facts():
        assert (fact.exchange_id, fact.message_id) == (talk.exchanges[0].id, talk.messages[0].id)
        assert (fact.model, fact.said_at) == (BY_PATTERNS, AT)
        (text,) = Passages(bench.store).texts([fact.id])
        assert text.parts[0].text == fact.text


def test_a_role_play_announced_after_a_long_greeting_lasts(bench: Bench) -> None:
    bench.say(f"{'It rains a lot today. ' * 60}Let's play pirates.", BERLIN)
    assert bench.texts() == set()


def test_a_later_statement_supersedes_an_earlier_one(bench: Bench) -> None:
    bench.say("I live in Berlin.")
    bench.say("I moved to Lisbon.", days=1)
    assert bench.texts() == {"I moved to Lisbon."}
    old = next(fact for fact in bench.facts(ended=True) if "Berlin" in fact.text)
    (new,) = bench.facts()
    assert (old.valid_until, old.superseded_by) == (AT + DAY, new.id)
    assert Passages(bench.store).of_kind(PassageKind.FACT) == {new.id}


def test_a_short_reply_changes_no_fact(bench: Bench) -> None:
    bench.say(OSLO, "No, in Paris.", "Actually no, on Saturday.")
    assert [(fact.text, fact.valid_until) for fact in bench.facts(ended=True)] == [(OSLO, None)]


def test_statements_read_out_of_order_end_where_the_next_began(bench: Bench) -> None:
    for city, days in (("Berlin", 0), ("Lisbon", 2), ("Oslo", 1)):
        add_conversation(bench.store, f"I live in {city}.", at=AT + days * DAY)
    bench.run()
    assert bench.texts() == {"I live in Lisbon."}
    ends = {fact.text: fact.valid_until for fact in bench.facts(ended=True)}
    assert (ends[BERLIN], ends[OSLO]) == (AT + DAY, AT + 2 * DAY)
    assert bench.count("passage", "kind = 'fact'") == 1


def test_a_repeated_statement_is_one_fact_of_two_sources_until_one_is_gone(bench: Bench) -> None:
    first = add_conversation(bench.store, NUTS)
    second = bench.say("I'm allergic to nuts! I live in Oslo.", days=1)
    fact = next(fact for fact in bench.facts() if fact.text == NUTS)
    assert fact.exchange_id == second.exchanges[0].id
    sources = [each.exchange_id for each in Facts(bench.store).versions(fact.id)]
    assert sources == [second.exchanges[0].id, first.exchanges[0].id]
    assert bench.count("passage", "kind = 'fact'") == 2
    forget(bench.store, [second.conversation.id])
    assert bench.texts() == {NUTS}


def test_statements_of_the_same_meaning_are_one_fact(store: Store) -> None:
    bench = Bench(store, embedder=LocalEmbedder(SHIPPED))
    bench.say("I am allergic to peanuts and tree nuts.")
    add_conversation(store, "I am allergic to tree nuts and peanuts.", at=AT + DAY)
    bench.say("I speak Italian.", days=1)
    assert bench.texts() == {"I am allergic to tree nuts and peanuts.", "I speak Italian."}


@pytest.mark.parametrize(
    ("said", "again"),
    [("У меня аллергия на орехи.", "аллергия на орехи"), ("我对花生过敏。", "对花生过敏了"),
     ("Soy alérgica al polen.", "alérgica")],
)  # fmt: skip
def test_facts_are_compared_in_any_script(bench: Bench, said: str, again: str) -> None:
    bench.say(said)
    (fact,) = bench.facts()
    assert list(ExtractionWork(bench.store).like(content_terms(again))) == [fact]
    assert list(similar_facts(said, [fact])) == [fact]


def test_a_value_said_again_in_a_script_without_spaces_is_the_same_fact(bench: Bench) -> None:
    bench.say("我住在成都。")
    bench.say("我现在住在成都。", days=1)
    (fact,) = bench.facts(ended=True)
    assert fact.text == "我现在住在成都。"


def test_a_denial_ends_the_fact_with_that_value_alone(store: Store) -> None:
    bench = Bench(store, embedder=LocalEmbedder(SHIPPED))
    bench.say("I live in Berlin.")
    bench.say("I don't live in Oslo.", days=1)
    assert bench.texts() == {BERLIN}
    bench.say("I no longer live in Berlin.", days=2)
    (old,) = bench.facts(ended=True)
    assert (old.valid_until, old.superseded_by) == (AT + 2 * DAY, None)


def test_role_play_and_pasted_letters_replace_nothing(bench: Bench) -> None:
    bench.say("I live in Oslo. I'm 40 years old.")
    bench.say("Roleplay: I am 90 years old.", "I live in Berlin.", days=1)
    bench.say("Proofread this letter:\n\nDear Sir,\nI live in Berlin.\n\nRegards,\nAda", days=2)
    assert bench.texts(ended=True) == {OSLO, "I'm 40 years old."}


def test_nothing_is_read_twice(bench: Bench) -> None:
    for number in range(15):
        add_conversation(bench.store, f"My cat is called Tom{number}.", "Thanks.")
    bench.run()
    before = tables(bench.store)
    assert bench.run().completed == 30
    assert tables(bench.store) == before
    assert (bench.count("extraction"), bench.count("fact")) == (30, 15)


def test_private_deleted_and_open_turns_are_not_read(bench: Bench) -> None:
    add_conversation(bench.store, "I live in Berlin.", private=True)
    gone = add_conversation(bench.store, "I live in Oslo.")
    bench.store.save(ConversationEdited(gone.conversation.id, deleted_at=AT))
    assert bench.run().total == 0
    running = add_conversation(bench.store, "I live in Bern.")
    bench.store.save(ExchangePut(replace(running.exchanges[0], status=ExchangeStatus.RUNNING)))
    talk = add_conversation(bench.store, "I live in Berlin.", at=JumpingClock().now())
    bench.opened.id = talk.conversation.id
    assert bench.job.find(JumpingClock().now()) == ()
    bench.opened.id = None
    bench.store.save(ConversationEdited(gone.conversation.id, restored=True))
    bench.run()
    assert bench.texts(ended=True) == {BERLIN, OSLO}


def test_a_conversation_made_private_between_reading_and_saving_gives_no_fact(bench: Bench) -> None:
    talk = add_conversation(bench.store, "I live in Berlin.")
    items = bench.job.find(AT + DAY)
    assert [bench.job.describe(each) for each in items] == ["I live in Berlin."]
    read = bench.job.make(items, lambda: False)
    bench.store.save(ConversationEdited(talk.conversation.id, private=True))
    saved = bench.job.save([read])
    assert (saved.completed, saved.skipped) == (0, 1)
    assert bench.count("fact") == bench.count("extraction") == 0


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (lambda fact: FactForgotten(fact.id, content_hash(fact.text)), {OSLO}),
        (lambda fact: FactPut(replace(fact, pinned=True)), {BERLIN, OSLO}),
    ],
    ids=["forgotten", "pinned"],
)
def test_a_fact_forgotten_stays_away_and_a_pinned_one_stays(
    bench: Bench, change: Callable[[Fact], FactForgotten | FactPut], kept: set[str]
) -> None:
    bench.say("I live in Berlin.")
    (fact,) = bench.facts()
    bench.store.save(change(fact))
    bench.say("I live in Berlin.", days=1)
    bench.say("I live in Oslo.", days=2)
    assert bench.texts() == kept


def again(store: Store, talk: ConversationRecord, text: str) -> Exchange:
    """Store an edit of the first message: a sibling of the first exchange."""
    question = copied(store, talk.messages[0], blocks=(Text(text),))
    answer = copied(store, talk.messages[1], parent_id=question.id)
    ids = (question.id, answer.id)
    exchange = replace(talk.exchanges[0], id=store.ids.exchange(), message_ids=ids)
    store.save(MessagesAdded((question, answer)), ExchangePut(exchange))
    return exchange


def test_editing_a_turn_ends_facts_of_its_earlier_text(bench: Bench) -> None:
    bench.say("I live in Bern.", days=-1)
    talk = bench.say("I live in Berlin. I'm allergic to nuts.")
    assert bench.texts() == {BERLIN, NUTS}
    again(bench.store, talk, NUTS)
    bench.run()
    assert bench.texts() == {"I live in Bern.", NUTS}


def test_of_a_turn_edited_before_it_is_read_only_the_edit_counts(bench: Bench) -> None:
    again(bench.store, add_conversation(bench.store, "I live in Berlin."), "I live in Bern.")
    bench.run()
    assert bench.texts(ended=True) == {"I live in Bern."}


def test_a_regenerated_turn_is_read_again(bench: Bench) -> None:
    talk = bench.say(NUTS)
    retried = copied(bench.store, talk.messages[1], blocks=(Text("Fine."),))
    exchange = replace(talk.exchanges[0], message_ids=(talk.messages[0].id, retried.id))
    bench.store.save(MessagesAdded((retried,)), ExchangePut(exchange))
    assert bench.board.refresh()[0].done == 0
    bench.run()
    assert bench.texts() == {NUTS}
    assert bench.count("fact_version") == 1


def test_recall_s_answers_and_system_messages_are_not_read(bench: Bench) -> None:
    store = bench.store
    talk = new_conversation(store, ("Where do I live?", "You've decided to live in Berlin."))
    quoting = replace(talk.messages[1], model=RECALL_MODEL)
    store.save(talk.changes[0], MessagesAdded((talk.messages[0], quoting)), *talk.changes[2:])
    blocks = (Text("I live in Oslo."),)
    system = copied(store, quoting, parent_id=quoting.id, role=Role.SYSTEM, blocks=blocks)
    ids = (*talk.exchanges[0].message_ids, system.id)
    store.save(MessagesAdded((system,)), ExchangePut(replace(talk.exchanges[0], message_ids=ids)))
    work = ExtractionWork(store)
    (waiting,) = work.exchanges(work.exchange_ids(10, None, AT))
    assert [each.text for each in waiting.messages] == ["Where do I live?"]
    bench.run()
    assert bench.texts() == set()


def test_a_kill_between_reading_and_saving_loses_nothing(tmp_path: Path, bench: Bench) -> None:
    for number in range(15):
        add_conversation(bench.store, f"My cat is called Tom{number}.")
    read = bench.job.make(bench.job.find(AT + DAY), lambda: False)
    before = killed(bench.store, tmp_path / "before saving")
    bench.job.save([read])
    after = killed(bench.store, tmp_path / "after saving")
    for root, done in ((before, 0), (after, 10)):
        with opened(root) as found:
            other = Bench(found)
            assert other.board.refresh()[0].done == done
            other.run()
            assert other.count("fact") == other.count("fact_version") == 15


def test_facts_are_restored_from_the_journal_alone(data_dir: Path) -> None:
    with opened(data_dir) as store:
        bench = Bench(store)
        bench.say("I live in Berlin.")
        bench.say("I live in Oslo.", days=1)
        rows = tables(store, "meta", "state")
        store.paths.database.unlink()
    with opened(data_dir) as store:
        replayed = tables(store, "meta", "state")
    for table in ("fact", "fact_version", "extraction", "passage"):
        assert replayed[table] == rows[table]

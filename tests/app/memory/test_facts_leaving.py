"""Facts when a conversation that contains or ended them is forgotten or hidden."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from app.check import repair_rule, violations
from app.domain.changes import ConversationEdited, FactPut, PassagesPut
from app.domain.deletions import FactForgotten
from app.domain.passages import PassageKind
from app.domain.records.facts import Fact
from app.domain.text import content_hash
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.tables.facts import FactFilter, Facts, fact_changes
from app.storage.tables.passages.queries import Passages
from tests.app.workers.test_facts import Bench
from tests.fakes.stored import AT, ConversationRecord, add_conversation, opened

DAY = timedelta(days=1)
BLUE, GREEN, RED = (f"My favourite colour is {colour}." for colour in ("blue", "green", "red"))


def learn(store: Store, *sentences: str) -> list[ConversationRecord]:
    """Say each sentence in a conversation of its own, a day after the one before; learn from all."""
    conversations = []
    for day, sentence in enumerate(sentences):
        conversations.append(add_conversation(store, sentence, at=AT + day * DAY))
        Bench(store).run()
    return conversations


def hide(store: Store, whole: ConversationRecord) -> None:
    store.save(ConversationEdited(whole.conversation.id, deleted_at=AT))


def show(store: Store, whole: ConversationRecord) -> None:
    store.save(ConversationEdited(whole.conversation.id, restored=True))


def current(store: Store, *, ended: bool = False) -> list[Fact]:
    """Return the current facts, or all of them by the day they were said."""
    facts = [known.fact for known in Facts(store).listed(FactFilter(ended=ended))]
    return sorted(facts, key=lambda fact: fact.said_at) if ended else facts


def colors(store: Store) -> list[str]:
    """Return the last words of current facts, and check that passages stand for just these."""
    facts = current(store)
    seen = Passages(store).of_kind(PassageKind.FACT) - frozenset(Passages(store).hidden().tolist())
    assert seen == {fact.id for fact in facts}
    for text in Passages(store).texts(seen):
        assert text.parts[0].text in {fact.text for fact in facts}
    assert store.read(violations) == ()
    return [fact.text.rstrip(".").split()[-1] for fact in facts]


def test_forgetting_the_successor_makes_a_fact_current_again(store: Store) -> None:
    _, green = learn(store, BLUE, GREEN)
    assert colors(store) == ["green"]
    before = Passages(store).forgetting()[1]
    forget(store, [green.conversation.id])
    assert colors(store) == ["blue"]
    (fact,) = current(store)
    assert (fact.valid_until, fact.superseded_by) == (None, None)
    assert fact.id in Passages(store).work_since(before, 100).added


def test_forgetting_the_middle_of_three_leaves_the_first_ended_by_the_last(store: Store) -> None:
    _, green, _ = learn(store, BLUE, GREEN, RED)
    forget(store, [green.conversation.id])
    assert colors(store) == ["red"]
    blue, red = current(store, ended=True)
    assert (blue.superseded_by, blue.valid_until) == (red.id, red.said_at)


def test_forgetting_a_fact_makes_the_one_it_superseded_current(store: Store) -> None:
    learn(store, BLUE, GREEN)
    (green,) = current(store)
    store.save(FactForgotten(green.id, content_hash(green.text)), PassagesPut((), (green.id,)))
    assert colors(store) == ["blue"]


def test_a_fact_in_the_trash_supersedes_nothing_until_restored(store: Store) -> None:
    _, green, red = learn(store, BLUE, GREEN, RED)
    hide(store, red)
    assert colors(store) == ["green"], "of two ended by what is in the trash the later one"
    hide(store, green)
    assert colors(store) == ["blue"]
    (blue,) = current(store)
    stored = Facts(store).stored(blue.id)
    assert stored.valid_until is not None
    store.save(FactPut(replace(stored, pinned=True)))
    assert colors(store) == ["blue"], "a reinstated fact can be pinned"
    show(store, red)
    assert colors(store) == ["red"]


def test_a_fact_extracted_meanwhile_supersedes_a_reinstated_one(store: Store) -> None:
    _, green = learn(store, BLUE, GREEN)
    hide(store, green)
    add_conversation(store, RED, at=AT + 5 * DAY)
    Bench(store).run()
    assert colors(store) == ["red"]
    show(store, green)
    assert colors(store) == ["red"]


def test_a_fact_of_two_conversations_is_shown_from_the_one_that_is_left(store: Store) -> None:
    first, second = learn(store, "I am allergic to peanuts.", "I am allergic to peanuts!")
    hide(store, second)
    assert current(store)[0].conversation_id == first.conversation.id
    assert colors(store) == ["peanuts"]
    show(store, second)
    assert current(store)[0].conversation_id == second.conversation.id
    forget(store, [second.conversation.id])
    (fact,) = current(store)
    assert (fact.conversation_id, fact.said_at) == (first.conversation.id, AT)
    assert colors(store) == ["peanuts"]
    status = Bench(store).run()
    assert (status.done, status.total) == (1, 1), "it is not read again"


def test_a_fact_that_was_ended_by_hand_stays_ended_when_one_of_its_sources_is_forgotten(
    store: Store,
) -> None:
    _, second = learn(store, "I am allergic to peanuts.", "I am allergic to peanuts!")
    (fact,) = current(store)
    store.save(*fact_changes(replace(fact, valid_until=AT + 9 * DAY)))
    forget(store, [second.conversation.id])
    assert colors(store) == []


def test_a_fact_moved_to_an_earlier_day_is_ended_by_what_was_said_between(store: Store) -> None:
    add_conversation(store, BLUE)
    again = add_conversation(store, BLUE, at=AT + 4 * DAY)
    Bench(store).run()
    add_conversation(store, GREEN, at=AT + 2 * DAY)
    Bench(store).run()
    assert colors(store) == ["blue"]
    forget(store, [again.conversation.id])
    assert colors(store) == ["green"]


def test_two_contradicting_facts_are_found_and_the_later_one_kept(store: Store) -> None:
    learn(store, BLUE, GREEN)
    blue, _ = current(store, ended=True)
    store.save(FactPut(replace(blue, valid_until=None, superseded_by=None)))
    (broken,) = store.read(violations)
    assert (broken.count, broken.ids) == (1, (blue.id,))
    repair_rule(store, broken.rule)
    assert colors(store) == ["green"]
    assert Facts(store).get(blue.id).fact == blue


def test_reinstated_facts_are_restored_from_the_journal(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with opened(root) as store:
        _, green = learn(store, BLUE, GREEN)
        learn(store, "I am allergic to peanuts.", "I am allergic to peanuts!")
        hide(store, green)
        before = sorted(colors(store))
    store.paths.database.unlink()
    with opened(root) as store:
        assert sorted(colors(store)) == before == ["blue", "peanuts"]
        show(store, green)
        assert sorted(colors(store)) == ["green", "peanuts"]

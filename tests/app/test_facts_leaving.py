"""What becomes of facts when a conversation that said or ended them is forgotten or hidden."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited, FactForgotten, FactPut, PassagesPut
from app.domain.facts import Fact
from app.domain.passages import PassageKind
from app.domain.turn_text import content_hash
from app.storage.facts import FactFilter, Facts
from app.storage.forget import forget
from app.storage.integrity import Integrity
from app.storage.passages import Passages
from app.storage.store import Store
from tests.app.test_workers_facts import Bench
from tests.fakes.stored import AT, Told, opened, told

DAY = timedelta(days=1)
BLUE, GREEN, RED = (f"My favourite colour is {colour}." for colour in ("blue", "green", "red"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


def say(store: Store, *sentences: str) -> list[Told]:
    """Say each sentence in a conversation of its own, a day after the one before; learn from all."""
    talks = []
    for day, sentence in enumerate(sentences):
        talks.append(told(store, sentence, at=AT + day * DAY))
        Bench(store).run()
    return talks


def hide(store: Store, talk: Told) -> None:
    store.save(ConversationEdited(talk.conversation.id, deleted_at=AT))


def bring_back(store: Store, talk: Told) -> None:
    store.save(ConversationEdited(talk.conversation.id, restored=True))


def holding(store: Store) -> list[Fact]:
    return [known.fact for known in Facts(store).listed(FactFilter())]


def colours(store: Store) -> list[str]:
    """Return the colours of what holds, and check that passages stand for just that."""
    facts = holding(store)
    seen = Passages(store).of_kind(PassageKind.FACT) - frozenset(Passages(store).hidden().tolist())
    assert seen == {fact.id for fact in facts}
    for text in Passages(store).texts(seen):
        assert text.parts[0].text in {fact.text for fact in facts}
    assert Integrity(store).broken() == ()
    return [fact.text.rstrip(".").split()[-1] for fact in facts]


def test_forgetting_what_ended_a_fact_lets_it_hold_again(store: Store) -> None:
    _, green = say(store, BLUE, GREEN)
    assert colours(store) == ["green"]
    before = Passages(store).forgetting()[1]
    forget(store, [green.conversation.id])
    assert colours(store) == ["blue"]
    (fact,) = holding(store)
    assert (fact.valid_until, fact.superseded_by) == (None, None)
    assert fact.id in Passages(store).work_since(before, 100).added


def test_forgetting_the_middle_one_of_three_leaves_the_first_ended_by_the_last(
    store: Store,
) -> None:
    _, green, _ = say(store, BLUE, GREEN, RED)
    forget(store, [green.conversation.id])
    assert colours(store) == ["red"]
    blue, red = sorted(
        (known.fact for known in Facts(store).listed(FactFilter(ended=True))),
        key=lambda fact: fact.said_at,
    )
    assert (blue.superseded_by, blue.valid_until) == (red.id, red.said_at)


def test_forgetting_one_fact_lets_what_it_ended_hold_again(store: Store) -> None:
    say(store, BLUE, GREEN)
    (green,) = holding(store)
    store.save(FactForgotten(green.id, content_hash(green.text)), PassagesPut((), (green.id,)))
    assert colours(store) == ["blue"]


def test_what_is_only_in_the_trash_ends_nothing_until_it_is_back(store: Store) -> None:
    _, green = say(store, BLUE, GREEN)
    hide(store, green)
    assert colours(store) == ["blue"]
    assert Facts(store).stored(holding(store)[0].id).valid_until is not None
    bring_back(store, green)
    assert colours(store) == ["green"]


def test_of_two_ended_by_what_is_in_the_trash_the_later_one_holds(store: Store) -> None:
    _, green, red = say(store, BLUE, GREEN, RED)
    hide(store, red)
    assert colours(store) == ["green"]
    hide(store, green)
    assert colours(store) == ["blue"]
    bring_back(store, red)
    assert colours(store) == ["red"]


def test_what_is_learned_meanwhile_ends_what_stands_in(store: Store) -> None:
    _, green = say(store, BLUE, GREEN)
    hide(store, green)
    told(store, RED, at=AT + 5 * DAY)
    Bench(store).run()
    assert colours(store) == ["red"]
    bring_back(store, green)
    assert colours(store) == ["red"]


def test_what_another_conversation_said_too_is_shown_from_there(store: Store) -> None:
    first, second = say(store, "I love sailing.", "I love sailing!")
    hide(store, second)
    (fact,) = holding(store)
    assert fact.conversation_id == first.conversation.id
    assert colours(store) == ["sailing"]
    bring_back(store, second)
    assert holding(store)[0].conversation_id == second.conversation.id
    assert colours(store) == ["sailing"]


def test_what_another_conversation_said_too_stays_without_being_read_again(store: Store) -> None:
    first, second = say(store, "I love sailing.", "I love sailing!")
    forget(store, [second.conversation.id])
    (fact,) = holding(store)
    assert (fact.conversation_id, fact.said_at) == (first.conversation.id, AT)
    assert colours(store) == ["sailing"]
    status = Bench(store).run()
    assert (status.done, status.total) == (1, 1)


def test_a_fact_said_again_later_gives_way_when_only_its_first_telling_is_left(
    store: Store,
) -> None:
    blue, again = told(store, BLUE), told(store, BLUE, at=AT + 4 * DAY)
    Bench(store).run()
    told(store, GREEN, at=AT + 2 * DAY)
    Bench(store).run()
    assert colours(store) == ["blue"]
    forget(store, [again.conversation.id])
    assert colours(store) == ["green"]
    assert blue.conversation.id


def test_two_facts_that_contradict_each_other_are_found_and_the_later_one_kept(
    store: Store,
) -> None:
    say(store, BLUE, GREEN)
    blue, _ = sorted(
        (known.fact for known in Facts(store).listed(FactFilter(ended=True))),
        key=lambda fact: fact.said_at,
    )
    store.save(FactPut(replace(blue, valid_until=None, superseded_by=None)))
    (broken,) = Integrity(store).broken()
    assert (broken.count, broken.ids) == (1, (blue.id,))
    Integrity(store).mend(broken.rule)
    assert colours(store) == ["green"]
    assert Facts(store).get(blue.id).fact == blue


def test_what_stands_in_comes_back_from_the_journal_alone(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with opened(root) as store:
        _, green = say(store, BLUE, GREEN)
        say(store, "I love sailing.", "I love sailing!")
        hide(store, green)
        before = sorted(colours(store))
        database = store.paths.database
    database.unlink()
    with opened(root) as store:
        assert sorted(colours(store)) == before == ["blue", "sailing"]
        bring_back(store, green)
        assert sorted(colours(store)) == ["green", "sailing"]


def test_a_fact_that_stands_in_is_pinned_and_ends_again_all_the_same(store: Store) -> None:
    _, green = say(store, BLUE, GREEN)
    hide(store, green)
    (blue,) = holding(store)
    stored = Facts(store).stored(blue.id)
    store.save(FactPut(replace(stored, pinned=True)))
    assert colours(store) == ["blue"]
    bring_back(store, green)
    assert colours(store) == ["green"]

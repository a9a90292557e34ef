"""Garbage is collected on the GUI thread, and never so much of it at once that the window halts."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from ui.main.collecting import Collector


class Knot:
    """Something that only the cyclic collector can free."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def looked_at() -> Iterator[list[int]]:
    """Give the generations that are collected, in order; everything before the test is frozen."""
    generations: list[int] = []

    def note(phase: str, found: dict[str, Any]) -> None:
        if phase == "start":
            generations.append(found["generation"])

    gc.freeze()
    gc.callbacks.append(note)
    yield generations
    gc.callbacks.remove(note)
    gc.unfreeze()


@pytest.fixture
def collector(qapp: object) -> Iterator[Collector]:
    collector = Collector()
    collector.stop()
    yield collector
    collector.deleteLater()


def test_a_few_objects_are_not_worth_a_look(collector: Collector, looked_at: list[int]) -> None:
    kept: list[list[int]] = [[] for _ in range(100)]
    collector.look()
    assert looked_at == []
    assert len(kept) == 100


def test_a_knot_is_freed_at_the_next_look(collector: Collector, looked_at: list[int]) -> None:
    knot = weakref.ref(Knot())
    kept: list[list[int]] = [[] for _ in range(1_000)]
    assert knot() is not None
    collector.look()
    assert knot() is None
    assert looked_at == [0]
    assert len(kept) == 1_000


def test_what_was_used_for_long_is_freed_at_last(
    collector: Collector, looked_at: list[int]
) -> None:
    knot: Knot | None = Knot()
    gone = weakref.ref(knot)
    gc.collect(1)  # old by now
    del knot
    for _ in range(1_000):
        kept: list[list[int]] = [[] for _ in range(1_000)]
        collector.look()
        del kept
        if gone() is None:
            break
    assert gone() is None
    assert max(looked_at) == 2
    assert looked_at.count(0) > looked_at.count(1) > looked_at.count(2)


def test_what_comes_in_great_numbers_is_never_looked_at(
    collector: Collector, looked_at: list[int]
) -> None:
    kept: list[list[int]] = [[] for _ in range(30_000)]
    collector.look()
    assert looked_at == []
    assert gc.get_freeze_count() >= len(kept)


def test_what_has_become_many_is_looked_at_no_more(
    collector: Collector, looked_at: list[int]
) -> None:
    kept: list[list[object]] = []
    before = gc.get_freeze_count()
    while gc.get_freeze_count() == before:
        kept += [[] for _ in range(1_000)]
        collector.look()
    assert len(kept) > 20_000
    assert 2 not in looked_at

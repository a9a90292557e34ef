"""Garbage collection on the GUI thread, in steps too small to halt the window."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from ui.main.application import GarbageCollector


class Knot:
    """Something that only the cyclic collector can free."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def collected() -> Iterator[list[int]]:
    """Return the generations that are collected, in order; everything before the test is frozen."""
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
def collector(qapp: object, collected: list[int]) -> Iterator[GarbageCollector]:
    collector = GarbageCollector()
    collector.stop()
    yield collector
    collector.deleteLater()


@pytest.mark.parametrize(
    ("count", "generations", "is_frozen"),
    [(100, [], False), (1_000, [0], False), (30_000, [], True)],
    ids=["a few wait", "many are collected", "too many at once are frozen"],
)
def test_new_objects_are_collected_or_frozen_by_their_number(
    collector: GarbageCollector,
    collected: list[int],
    count: int,
    generations: list[int],
    is_frozen: bool,
) -> None:
    knot, before = weakref.ref(Knot()), gc.get_freeze_count()
    kept: list[list[int]] = [[] for _ in range(count)]
    assert knot() is not None
    collector.collect()
    assert collected == generations
    assert (knot() is None) is (generations == [0])
    assert (gc.get_freeze_count() - before >= len(kept)) is is_frozen


def test_an_old_object_is_freed_at_last(collector: GarbageCollector, collected: list[int]) -> None:
    knot: Knot | None = Knot()
    gone = weakref.ref(knot)
    gc.collect(1)  # old by now
    del knot
    for _ in range(1_000):
        kept: list[list[int]] = [[] for _ in range(1_000)]
        collector.collect()
        del kept
        if gone() is None:
            break
    assert gone() is None
    assert max(collected) == 2
    assert collected.count(0) > collected.count(1) > collected.count(2)


def test_many_objects_are_frozen(collector: GarbageCollector, collected: list[int]) -> None:
    kept: list[list[object]] = []
    before = gc.get_freeze_count()
    for step in range(150):
        kept += [[] for _ in range(1_000)]
        collector.collect()
        if step % 10 == 0 and gc.get_freeze_count() > before:
            break
    assert gc.get_freeze_count() > before
    assert len(kept) > 20_000
    assert 2 not in collected

"""Memory as its window shows it: earlier versions of core memory, saved texts with their sources."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.errors import NotFound
from app.memory.core_memory import CoreMemoryService
from app.memory.memories import MemoryService
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.times import now
from tests.fakes.stored import opened, told


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as running:
        yield running


def test_an_earlier_version_of_core_memory_is_brought_back_as_a_new_one(store: Store) -> None:
    core = CoreMemoryService(store, Settings(store))
    assert core.versions() == ()
    core.set("Lives in Graz.")
    core.replace("Graz", "Wien", "openai:gpt")
    newest, first = core.versions()
    assert (newest.author, first.author) == ("openai:gpt", "user")
    assert first.made_at is not None

    assert core.restore(first.made_at) == "Lives in Graz."

    assert [each.text for each in core.versions()] == [
        "Lives in Graz.", "Lives in Wien.", "Lives in Graz.",
    ]  # fmt: skip
    with pytest.raises(NotFound):
        core.restore(now())


def test_saved_texts_know_where_they_were_said(store: Store) -> None:
    memories = MemoryService(store)
    talk = told(store, "I like tea.", "And oolong most.", title="Tea")
    memories.save("Likes tea.")
    memories.save("Likes oolong.", talk.conversation.id, talk.exchanges[1].id)
    said, own = memories.known()
    assert (said.conversation_title, said.turn_number) == ("Tea", 1)
    assert (own.conversation_title, own.turn_number) == ("", None)

"""Core memory and saved texts: bounded, kept in all their wordings, gone when forgotten."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.domain.errors import InvalidInput, NotFound
from app.domain.passages import PassageKind
from app.memory.core_memory import CoreMemoryService
from app.memory.memories import LIMIT_CHARS, MemoryService
from app.memory.recalled_text import of_fact
from app.storage.core_memory import CoreMemory
from app.storage.forget import forget
from app.storage.passages import Passages
from app.storage.settings import Settings
from tests.fakes import found
from tests.fakes.stored import opened, tables, told


def test_core_memory_is_written_and_every_wording_kept(data_dir: Path) -> None:
    with opened(data_dir) as store:
        core = CoreMemoryService(store, Settings(store))
        assert core.text() == ""
        assert core.set("Likes tea.") == "Likes tea."
        assert core.append("Lives in Graz.", "openai:m") == "Likes tea.\nLives in Graz."
        assert core.replace("tea", "coffee") == "Likes coffee.\nLives in Graz."
    with opened(data_dir) as store:
        assert CoreMemoryService(store, Settings(store)).text() == "Likes coffee.\nLives in Graz."
        wordings = CoreMemory(store).versions()
        assert [each.text for each in wordings][-1] == "Likes tea."
        assert [each.author for each in wordings] == ["user", "openai:m", "user"]


def test_core_memory_says_what_its_limit_is(data_dir: Path) -> None:
    with opened(data_dir) as store:
        settings = Settings(store)
        settings.set("core_memory_max_tokens", 10)
        core = CoreMemoryService(store, settings)
        with pytest.raises(InvalidInput, match="25 tokens long, core_memory_max_tokens allows 10"):
            core.append("word" * 25)
        assert core.text() == ""


def test_what_is_too_long_since_the_limit_fell_can_be_shortened(data_dir: Path) -> None:
    with opened(data_dir) as store:
        settings = Settings(store)
        core = CoreMemoryService(store, settings)
        core.set("tea " * 100)
        settings.set("core_memory_max_tokens", 10)
        assert core.set("tea " * 50) == ("tea " * 50).strip()


@pytest.mark.parametrize(("old", "found"), [("milk", "nowhere"), ("tea", "more than once")])
def test_a_replacement_names_one_place(data_dir: Path, old: str, found: str) -> None:
    with opened(data_dir) as store:
        core = CoreMemoryService(store, Settings(store))
        core.set("tea and tea")
        with pytest.raises(InvalidInput, match=found):
            core.replace(old, "coffee")


def test_nothing_is_not_added(data_dir: Path) -> None:
    with opened(data_dir) as store:
        with pytest.raises(InvalidInput, match="nothing to add"):
            CoreMemoryService(store, Settings(store)).append("  ")
        with pytest.raises(InvalidInput, match="nothing to remember"):
            MemoryService(store).save("  ")
        with pytest.raises(InvalidInput, match="too long"):
            MemoryService(store).save("x" * (LIMIT_CHARS + 1))


def test_a_saved_text_is_a_passage_until_it_is_forgotten(data_dir: Path) -> None:
    with opened(data_dir) as store:
        memories, passages = MemoryService(store), Passages(store)
        memory = memories.save("The gate code is 4711.")
        assert memories.save(" The gate code is 4711. ") == memory
        assert passages.of_kind(PassageKind.MEMORY) == {memory.id}
        (text,) = passages.texts([memory.id])
        assert [part.text for part in text.parts] == ["The gate code is 4711."]
        assert memories.forget(memory.id)[0].startswith("Exports and backups")
        assert not memories.listed()
        assert not passages.of_kind(PassageKind.MEMORY)
        with pytest.raises(NotFound):
            memories.forget(memory.id)


def test_a_text_saved_in_a_conversation_leaves_with_it(data_dir: Path) -> None:
    with opened(data_dir) as store:
        talk = told(store, "remember the gate code")
        MemoryService(store).save("4711", talk.conversation.id, talk.exchanges[0].id)
        forget(store, [talk.conversation.id])
        assert not tables(store)["memory"]
        assert not tables(store)["passage"]


def test_what_a_model_saved_says_so_where_it_is_recalled(data_dir: Path) -> None:
    with opened(data_dir) as store:
        talk = told(store, "remember the gate code")
        memories = MemoryService(store)
        own = memories.save("The gate code is 4711.")
        said = memories.save("The gate is green.", talk.conversation.id, talk.exchanges[0].id)
        assert (own.is_worded_by_model, said.is_worded_by_model) == (False, True)
    saved = replace(found.fact(1, said.text), match=found.match(1, kind=PassageKind.MEMORY))
    assert "a model's words" in of_fact(saved, 0).text
    assert "a model's words" not in of_fact(replace(saved, conversation_id=None), None).text
    assert "a model's words" not in of_fact(found.fact(1, "Tea."), 0).text

"""Presets: stored, chosen for conversations, and what requests become."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.chat.presets import Presets, standard_instructions
from app.chat.tools.toolbox import Tool
from app.check import check
from app.domain.changes import PresetPut
from app.domain.errors import InvalidInput, KnownError, NotFound
from app.domain.ids import ConversationId
from app.domain.records.named import free_name
from app.domain.records.presets import BUILT_IN_PRESET, DEFAULT_PRESET, Effort, Preset
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.settings import Settings
from app.transfer.exporting import ExportFormat, export
from app.transfer.importing import import_files
from tests.fakes.chats import MODEL, Chat, calls, open_chat, tool
from tests.fakes.models import says
from tests.fakes.stored import killed, opened

TERSE = Preset(
    "", "Terse", "Be terse.", "openai:small", 0.3, Effort.HIGH, 500, ("first",)
)  # fmt: skip


def tools() -> list[Tool]:
    return [tool("first", lambda _: "one"), tool("second", lambda _: "two")]


@pytest.fixture
def presets(store: Store) -> Presets:
    return Presets(store, Settings(store))


@pytest.fixture
def chat(store: Store) -> Iterator[Chat]:
    with open_chat(store, [says("Yes.")] * 9, tools()) as made:
        yield made


def test_a_library_has_the_built_in_preset_and_a_copy_a_free_name(presets: Presets) -> None:
    assert presets.listed() == (BUILT_IN_PRESET,)
    assert presets.default() == presets.named("commonplace") == BUILT_IN_PRESET
    terse = presets.save(TERSE)
    copies = [presets.duplicate(terse.uid).name for _ in range(2)]
    assert copies == ["Terse (2)", "Terse (3)"]
    assert len(free_name("x" * 60, ["X" * 60])) == 60


def test_presets_survive_a_journal_replay(store: Store, presets: Presets, tmp_path: Path) -> None:
    terse = presets.save(TERSE)
    other = presets.save(replace(TERSE, name="Other", tools=None, temperature=None))
    gone = presets.save(Preset("", "Gone"))
    presets.choose_default(terse.uid)
    presets.remove(gone.uid)
    assert presets.listed() == (BUILT_IN_PRESET, other, terse)
    assert replace(terse, uid="") == TERSE
    with opened(killed(store, tmp_path / "killed")) as again:
        there = Presets(again, Settings(again))
        assert (there.listed(), there.default()) == (presets.listed(), terse)
    assert not check(store).problems


def test_the_text_of_the_built_in_preset_is_the_setting(store: Store, presets: Presets) -> None:
    settings = Settings(store)
    settings.set("system_prompt", "Be kind.")
    mine = presets.get(DEFAULT_PRESET)
    assert mine.system_prompt == "Be kind."
    assert presets.instructions(Preset("x", "Without text")) == "Be kind."
    presets.save(replace(mine, system_prompt="Be brief.", temperature=0.5))
    assert settings.text("system_prompt") == "Be brief."
    assert presets.default().temperature == 0.5
    presets.remove(DEFAULT_PRESET)
    assert (presets.default(), settings.text("system_prompt")) == (BUILT_IN_PRESET, "")


@pytest.mark.parametrize(
    "changed",
    [
        {"name": " "}, {"name": "x" * 61}, {"name": "COMMONPLACE"}, {"temperature": 2.1},
        {"temperature": -0.1}, {"max_output_tokens": 0}, {"max_output_tokens": 2_000_000},
        {"system_prompt": "x" * 100_001}, {"tools": ("two words",)},
    ],
)  # fmt: skip
def test_invalid_presets_are_refused(presets: Presets, changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        presets.save(replace(TERSE, **changed))
    assert presets.listed() == (BUILT_IN_PRESET,)


def test_a_preset_that_does_not_exist_is_not_found(presets: Presets) -> None:
    presets.save(TERSE)
    for ask in (presets.get, presets.remove, presets.choose_default, presets.duplicate):
        with pytest.raises(NotFound):
            ask("nothing")
    with pytest.raises(NotFound) as caught:
        presets.named("ters")
    assert "Terse" in caught.value.hint
    assert presets.named(" terse ").name == "Terse"


def test_a_conversation_is_answered_with_its_preset(chat: Chat) -> None:
    presets = Presets(chat.store, chat.settings)
    terse = presets.save(TERSE)
    first = chat.say("Hello", model=None, preset=terse.uid)
    request = chat.model.requests[-1]
    assert (request.model, first.model) == ("small", "openai:small")
    assert request.system == "Be terse."
    options = (request.temperature, request.reasoning_effort, request.max_output_tokens)
    assert options == (0.3, Effort.HIGH, 500)
    assert [each.name for each in request.tools] == ["first"]
    presets.save(replace(terse, reasoning_effort=None))
    chat.say("Again", first.conversation_id, model=None)
    assert chat.model.requests[-1].reasoning_effort is None
    presets.remove(terse.uid)
    chat.say("And now", first.conversation_id)
    request = chat.model.requests[-1]
    assert (request.system, request.temperature, len(request.tools)) == (
        standard_instructions(), None, 2,
    )  # fmt: skip


def test_a_new_conversation_keeps_the_default_of_its_time(chat: Chat) -> None:
    presets = Presets(chat.store, chat.settings)
    terse = presets.save(TERSE)
    before = chat.say("Hello")
    presets.choose_default(terse.uid)
    after = chat.say("Hello")
    kept = [chat.library.open(each.conversation_id).conversation.preset for each in (before, after)]
    assert kept == [DEFAULT_PRESET, terse.uid]
    presets.remove(terse.uid)
    assert presets.default() == BUILT_IN_PRESET


def test_the_last_choice_of_a_preset_or_a_model_decides_the_model(chat: Chat) -> None:
    terse = Presets(chat.store, chat.settings).save(TERSE)
    here = ConversationId(chat.say("Hello").conversation_id)
    assert chat.say("a", here, model=None).model == MODEL
    chat.library.choose_preset(here, terse)
    assert chat.say("b", here, model=None).model == "openai:small"
    chat.library.choose_model(here, MODEL)
    assert chat.say("c", here, model=None).model == MODEL
    assert chat.say("d", here, model=None, preset=terse.uid).model == "openai:small"
    assert chat.say("e", here, model="openai:big", preset=terse.uid).model == "openai:big"
    chat.library.choose_preset(here, BUILT_IN_PRESET)
    assert chat.say("f", here, model=None).model == "openai:big"


def test_a_private_conversation_keeps_the_model_that_it_began_with(chat: Chat) -> None:
    chat.settings.set("default_model", "recall:")
    here = ConversationId(chat.say("a", private=True, model=None).conversation_id)
    open_one = ConversationId(chat.say("a", model=None).conversation_id)
    chat.settings.set("default_model", MODEL)
    assert chat.say("b", here, model=None).model == "recall:"
    assert chat.say("b", open_one, model=None).model == MODEL


def test_a_tool_that_the_preset_does_not_allow_is_not_run(store: Store) -> None:
    script = calls(("1", "second", "{}"), ("2", "first", "{}"))
    with open_chat(store, [script, says("Done.")], tools()) as chat:
        terse = Presets(store, chat.settings).save(TERSE)
        results = chat.results(chat.say("Go", preset=terse.uid))
    assert [(each.name, each.is_error) for each in results] == [("second", True), ("first", False)]


def test_presets_with_one_name_are_a_repairable_problem(store: Store, presets: Presets) -> None:
    terse = presets.save(TERSE)
    store.save(PresetPut(replace(terse, uid="zz")))
    assert len(check(store).problems) == 1
    assert not check(store, repair=True).problems
    assert len({each.name.casefold() for each in presets.listed()}) == 3


def test_a_new_message_with_an_unknown_preset_is_refused(chat: Chat) -> None:
    here = chat.say("Hello").conversation_id
    with pytest.raises(KnownError):
        chat.say("Hello", here, model=None, preset="nothing")


@pytest.mark.parametrize("chosen", [ExportFormat.JSON, ExportFormat.JSONL])
def test_presets_are_exported_and_imported_with_their_conversations(
    chat: Chat, tmp_path: Path, chosen: ExportFormat
) -> None:
    mine = Presets(chat.store, chat.settings)
    terse = mine.save(TERSE)
    mine.save(Preset("", "Unused", reasoning_effort=Effort.MAX, tools=()))
    chat.settings.set("system_prompt", "Be kind.")
    here = chat.say("Hello", preset=terse.uid).conversation_id
    whole, one = tmp_path / f"whole.{chosen}", tmp_path / f"one.{chosen}"
    export(chat.store, whole, chosen)
    export(chat.store, one, chosen, [here])
    with opened(tmp_path / "there") as there:
        theirs = Presets(there, Settings(there))
        theirs.save(Preset("", "terse"))
        assert import_files(there, [one], dry_run=True).presets == 1
        assert import_files(there, [one]).presets == 1
        assert [each.name for each in theirs.listed()] == ["Commonplace", "terse", "Terse (2)"]
        for _ in range(2):
            import_files(there, [whole])
        got = {each.name: each for each in theirs.listed()}
        assert got.keys() == {"Commonplace", "Commonplace (2)", "terse", "Terse (2)", "Unused"}
        assert replace(got["Terse (2)"], name="Terse") == terse
        assert got["Unused"] == mine.named("Unused")
        (conversation,) = Conversations(there).listed()
        assert theirs.of(conversation) == BUILT_IN_PRESET, "the text is another person's"
        assert theirs.default() == BUILT_IN_PRESET, (
            "instructions in a file never become the default"
        )
        assert not check(there).problems
    with opened(tmp_path / "again") as again:
        theirs = Presets(again, Settings(again))
        again.save(PresetPut(terse))
        assert import_files(again, [one]).presets == 0
        (conversation,) = Conversations(again).listed()
        assert theirs.of(conversation) == terse, "it was known here before"


def test_damaged_presets_in_a_file_are_left_out(store: Store, tmp_path: Path) -> None:
    rows: list[object] = [
        {"uid": "a", "name": "Kept", "temperature": "hot", "reasoning_effort": 7, "tools": "all"},
        {"uid": "", "name": "No uid"}, {"uid": "b"}, {"uid": "c", "name": "x" * 99}, 5,
        {"uid": "d", "name": "Hot", "temperature": 1e99},
    ]  # fmt: skip
    document = {"format": "commonplace", "version": 1, "presets": rows, "conversations": []}
    path = tmp_path / "presets.json"
    path.write_text(json.dumps(document))
    import_files(store, [path])
    assert Presets(store, Settings(store)).listed() == (BUILT_IN_PRESET, Preset("a", "Kept"))

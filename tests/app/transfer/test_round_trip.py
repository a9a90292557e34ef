"""Export and import without loss: a library, exported, imported into an empty one, is exported equal."""

import json
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from app.check import check
from app.domain import changes
from app.domain.conversations import ExchangeStatus, Image, Problem, Thinking, TitleOrigin, Usage
from app.domain.ids import ConversationId, new_uid
from app.domain.passages import Passage, PassageKind
from app.domain.records.facts import Memory
from app.domain.records.presets import Preset
from app.domain.records.projects import Project, RecallRule
from app.domain.records.routines import Routine
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.passages.queries import Passages
from app.storage.work.summary_work import exchange_stamp
from app.transfer.exporting import ExportFormat, export
from app.transfer.importing import import_files
from tests.fakes import stored
from tests.fakes.exports import chatgpt_message, chatgpt_row
from tests.fakes.stored import (
    AT,
    ConversationRecord,
    add_conversation,
    new_conversation,
    opened,
    titles,
)

_SCHEMA = Path(__file__).parents[3] / "resources" / "formats" / "commonplace.schema.json"


def exported(store: Store, path: Path) -> dict[str, Any]:
    """Export everything; return the document without the time."""
    export(store, path, ExportFormat.JSON, replaces=True)
    document: dict[str, Any] = json.loads(path.read_text())
    del document["exported_at"]
    return document


def moved(store: Store, target: Path, **options: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is exported here, and of an empty library after importing it."""
    path = store.paths.root.with_suffix(".json")
    before = exported(store, path)
    with opened(target) as other:
        import_files(other, [path], **options)  # type: ignore[arg-type]
        assert check(other).problems == ()
        return before, exported(other, path.with_suffix(".2.json"))


def fill(store: Store, seed: int) -> None:
    """Write a library in which everything that can be exported occurs, by chance."""
    draw = random.Random(seed)
    preset = Preset(new_uid(), "Terse", "Be brief.", temperature=0.5)
    project = Project(new_uid(), "Garden", "Name plants.", "#2e7d32", "/g", RecallRule.ONLY)
    routine = Routine(
        new_uid(), "Report", "What is new?", "0 9 * * 1-5", AT, project=project.uid, cap_usd=1.5
    )
    store.save(
        changes.PresetPut(preset), changes.ProjectPut(project), changes.RoutinePut(routine),
    )  # fmt: skip
    for number in range(draw.randint(2, 5)):
        texts = [f"word {number} {turn}" for turn in range(draw.randint(1, 5))]
        whole = new_conversation(
            store, *texts, title=f"Talk {number}", private=draw.random() < 0.2,
            at=AT + timedelta(days=number),
        )  # fmt: skip
        add(store, _varied(whole, draw, preset, project))
    _add_library(store, draw)


def add(store: Store, whole: ConversationRecord) -> None:
    store.save(
        changes.ConversationPut(whole.conversation),
        changes.MessagesAdded(whole.messages),
        *map(changes.ExchangePut, whole.exchanges),
        *(each for each in whole.changes if isinstance(each, changes.PassagesPut)),
    )


def _varied(
    whole: ConversationRecord, draw: random.Random, preset: Preset, project: Project
) -> ConversationRecord:
    segment, exchanges = 0, []
    messages = list(whole.messages)
    for place, each in enumerate(whole.exchanges):
        segment += place > 0 and draw.random() < 0.4
        status = draw.choice([*ExchangeStatus][1:])
        problem = Problem("offline", "No network", "Try again.")
        exchanges.append(
            replace(
                each, segment_number=segment, status=status,
                usage=Usage(9, 5, 3, 0.25, "p", duration_ms=7) if draw.random() < 0.5 else None,
                problem=None if status is ExchangeStatus.COMPLETED else problem,
            )
        )  # fmt: skip
        if draw.random() < 0.3:
            blocks = (Thinking("Hm"), *messages[2 * place + 1].blocks)
            messages[2 * place + 1] = replace(messages[2 * place + 1], blocks=blocks)
    messages[0] = replace(messages[0], blocks=(*messages[0].blocks, Image("a.png", "image/png")))
    conversation = replace(
        whole.conversation, pinned=draw.random() < 0.5, archived=draw.random() < 0.3,
        recalls=draw.random() < 0.8, model=draw.choice([None, "openai:m"]),
        preset=draw.choice([None, preset.uid]), project=draw.choice([None, project.uid]),
        title_origin=draw.choice([*TitleOrigin]),
    )  # fmt: skip
    return ConversationRecord(conversation, tuple(messages), tuple(exchanges), whole.changes)


def _add_library(store: Store, draw: random.Random) -> None:
    rows = store.rows(
        "SELECT e.id, c.id, c.private FROM exchange e JOIN conversation c "
        "ON c.id = e.conversation_id ORDER BY e.id"
    )
    for number in range(3):
        turn, here, private = draw.choice(rows)
        place = (None, None) if private else (here, turn)
        memory = Memory(
            store.ids.passage(), new_uid(), f"Saved {number}", AT + timedelta(hours=number), *place
        )
        passage = Passage(
            memory.id, PassageKind.MEMORY, memory.id, place[0], place[1], "h", AT, 2
        )  # fmt: skip
        store.save(changes.MemoryPut(memory), changes.PassagesPut((passage,)))
        store.save(changes.CoreMemoryPut(f"Core {number}", "user", AT + timedelta(days=number)))
        store.save(
            changes.SpendAdded(
                AT + timedelta(hours=number), "chat", "openai:m", 5, 6, 1,
                draw.choice([None, 0.5]), turn,
            )
        )  # fmt: skip
        if not private:
            store.save(changes.SummaryPut("exchange", turn, here, f"S {number}", "m", "h", AT))
            stamp = exchange_stamp(Exchanges(store).get(turn))
            store.save(changes.ExtractionDone(turn, here, stamp, "m", number, AT))
    store.save(changes.SettingPut("theme", '"dark"'), changes.SettingPut("rag_fact_limit", "5"))
    store.save(changes.SettingPut("probe_questions", json.dumps("[]")))
    store.save(changes.ProviderPut("mine", "compatible", "http://127.0.0.1:9/v1", "KEY"))


@pytest.mark.parametrize("seed", range(4))
def test_a_library_moves_without_loss(tmp_path: Path, seed: int) -> None:
    with opened(tmp_path / "one") as store:
        fill(store, seed)
        before, after = moved(store, tmp_path / "two", own=True)
    for one, two in zip(before["conversations"], after["conversations"], strict=True):
        assert two == one
    assert after == before
    turns = [turn for each in after["conversations"] for turn in each["turns"]]
    assert any("extraction" in turn for turn in turns), "so no model is paid to read them again"


def test_an_export_of_somebody_else_sets_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as store:
        fill(store, 1)
        path = tmp_path / "one.json"
        exported(store, path)
    with opened(tmp_path / "two") as other:
        report = import_files(other, [path])
        assert report.left_out == (
            "core memory", "settings", "providers", "spend", "routines", "instructions of projects",
        )  # fmt: skip
        for table in ("core_memory", "provider", "spend"):
            assert other.rows(f"SELECT * FROM {table}") == []
        assert other.rows("SELECT key FROM appconfig") == [("import_history",)]
        assert len(other.rows("SELECT * FROM memory")) == 3


def test_an_export_is_as_the_schema_says(tmp_path: Path) -> None:
    valid = fastjsonschema.compile(json.loads(_SCHEMA.read_text()))
    with opened(tmp_path / "one") as store:
        fill(store, 3)
        stored.learned(store, add_conversation(store, "c"), "A fact")
        path = tmp_path / "one.json"
        exported(store, path)
    document = json.loads(path.read_text())
    valid(document)
    document["conversations"][0]["messages"][0]["blocks"][0]["surprise"] = 1
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        valid(document)


def test_importing_twice_adds_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as store:
        fill(store, 2)
        before = exported(store, tmp_path / "one.json")
        report = import_files(store, [tmp_path / "one.json"], own=True)
        assert (report.conversations, report.messages) == (0, 0)
        assert exported(store, tmp_path / "again.json") == before


@pytest.mark.parametrize("has_origins", [True, False])
def test_after_a_move_the_original_export_adds_nothing(tmp_path: Path, has_origins: bool) -> None:
    original = tmp_path / "conversations.json"
    messages = (chatgpt_message("m", "user", "Hello"), chatgpt_message("n", "assistant", "Hi"))
    original.write_text(json.dumps([chatgpt_row(*messages)]))
    with opened(tmp_path / "one") as store:
        import_files(store, [original])
        path = tmp_path / "one.json"
        before = exported(store, path)
    if not has_origins:  # as earlier versions of the program wrote it
        for each in before["conversations"]:
            del each["origins"], each["turns"]
        path.write_text(json.dumps(before))
    with opened(tmp_path / "two") as other:
        import_files(other, [path])
        report = import_files(other, [original])
        assert (report.conversations, report.messages, report.duplicates) == (0, 0, 2)
        assert titles(other) == {"A row"}


def test_merging_takes_newer_flags_and_summaries_and_keeps_later_ones(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as store:
        talk = new_conversation(store, "a", title="Talk")
        add(store, talk)
        here = ConversationId(talk.conversation.id)
        path = tmp_path / "one.json"
        exported(store, path)
        with opened(tmp_path / "two") as other:
            import_files(other, [path])
            (there,) = Conversations(other).listed()
            put = changes.SummaryPut("conversation", there.id, there.id, "New", "m", "h", AT)
            passage = Passage(
                other.ids.passage(), PassageKind.CONVERSATION_SUMMARY, there.id, there.id, None,
                "h", AT, 1,
            )  # fmt: skip
            other.save(
                put,
                changes.PassagesPut((passage,)),
                changes.ConversationEdited(there.id, pinned=True, updated_at=AT + timedelta(1)),
            )
            exported(other, path)
        import_files(store, [path])
        assert Conversations(store).get(here).pinned
        assert store.rows("SELECT text FROM summary WHERE latest") == [("New",)]
        assert len(Passages(store).of_source(PassageKind.CONVERSATION_SUMMARY, here)) == 1
        assert check(store).problems == ()
        later = replace(
            put, source_id=here, conversation_id=here, text="Later", made_at=AT + timedelta(2)
        )
        store.save(later)
        import_files(store, [path])
        assert store.rows("SELECT text FROM summary WHERE latest") == [("Later",)]


def test_records_of_turns_that_fit_no_messages_are_calculated(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as store:
        add(store, new_conversation(store, "a", "b"))
        path = tmp_path / "one.json"
        before = exported(store, path)
    before["conversations"][0]["turns"][1]["messages"].reverse()
    path.write_text(json.dumps(before))
    with opened(tmp_path / "two") as other:
        import_files(other, [path])
        assert len(other.rows("SELECT id FROM exchange")) == 2
        assert check(other).problems == ()

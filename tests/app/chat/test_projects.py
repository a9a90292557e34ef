"""Projects: stored, replayed, and filtered by."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.check import check
from app.commands.command import ChooseProject, CommandContext, parse
from app.domain.changes import ConversationEdited, ProjectPut, ProjectRemoved, TagsChanged
from app.domain.deletions import FactForgotten
from app.domain.errors import InvalidInput
from app.domain.records.projects import Project, RecallRule
from app.domain.records.sources import SourceName
from app.index.query import parse_query
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.facts import Facts, fact_changes
from app.storage.tables.passages.queries import Passages
from app.storage.tables.projects import stored_projects
from app.transfer.exporting import ExportFormat, export
from app.transfer.importing import import_files
from tests.fakes.command_line import Console
from tests.fakes.searchable import Library
from tests.fakes.stored import AT, add_conversation, killed, opened, tables

GARDEN = Project("g", "Garden", "Name plants in Latin.", "#2e7d32", "/home/me/g", RecallRule.ONLY)
HOUSE = Project("h", "House")


def test_projects_and_conversations_survive_a_replay(store: Store, tmp_path: Path) -> None:
    roses, paint = add_conversation(store, "Roses"), add_conversation(store, "Paint")
    store.save(ProjectPut(GARDEN), ProjectPut(HOUSE), ProjectPut(Project("x", "Gone")))
    store.save(ConversationEdited(roses.conversation.id, project="g"))
    store.save(ConversationEdited(paint.conversation.id, project="h"))
    store.save(ConversationEdited(paint.conversation.id, project=""), ProjectRemoved("x"))
    assert stored_projects(store) == (GARDEN, HOUSE)
    conversations = Conversations(store)
    assert conversations.get(roses.conversation.id).project == "g"
    assert conversations.get(paint.conversation.id).project is None
    with opened(killed(store, tmp_path / "killed")) as again:
        assert tables(again) == tables(store)
    assert not check(store).problems


def test_facts_of_other_bounded_projects_end_none(store: Store) -> None:
    """Neither when they are checked, nor when one is made current again, nor when its successor is forgotten."""
    library = Library(store)
    store.save(ProjectPut(GARDEN), ProjectPut(replace(HOUSE, recall=RecallRule.ONLY)))
    made = []
    for place, project in (("Rome", "g"), ("Ulm", "g"), ("Bonn", "h")):
        whole = add_conversation(store, f"I live in {place}")
        store.save(ConversationEdited(whole.conversation.id, project=project))
        made.append(library.fact(f"I live in {place}.", whole, subject="user: home"))
    rome, ulm, bonn = made
    assert len(check(store).problems) == 1
    store.save(*fact_changes(replace(rome, valid_until=AT, superseded_by=ulm.id)))
    facts = Facts(store)
    assert not check(store).problems
    assert list(facts.rivals_of(rome)) == [ulm]
    store.save(FactForgotten(ulm.id, ""))
    assert facts.stored(rome.id).valid_until is None
    assert facts.stored(bonn.id) == bonn


def test_a_project_filter_leaves_the_conversations_of_that_project(store: Store) -> None:
    roses, paint = add_conversation(store, "Roses"), add_conversation(store, "Paint")
    codex = {"source": SourceName.CODEX}
    session, mine = add_conversation(store, "Session", **codex), add_conversation(store, "Mine")
    bounded = add_conversation(store, "Walls", **codex)
    for each in (session, bounded, mine):
        store.save(TagsChanged(each.conversation.id, ("gateway",)))
    store.save(ProjectPut(GARDEN), ProjectPut(HOUSE))
    store.save(
        ConversationEdited(roses.conversation.id, project="g"),
        *(ConversationEdited(each.conversation.id, project="h") for each in (paint, bounded)),
    )
    passages = Passages(store)

    def left(query: str) -> set[int | None]:
        ids = passages.allowed(parse_query(query), None)
        return {place.conversation_id for place in passages.places(map(int, ids)).values()}

    assert left("project:gard") == {roses.conversation.id}
    assert left("project:HOUSE") == {paint.conversation.id, bounded.conversation.id}
    store.save(ProjectRemoved("g"))
    assert left("project:garden") == set(), "a removed project has no conversations"
    assert left("project:Gateway") == {session.conversation.id}, "the folder of a session"


def test_the_command_line_adds_changes_moves_and_removes_projects(cli: Console) -> None:
    words = ("--recall", "only", "--instructions", "Name plants in Latin.", "--color", "#2E7D32")
    added = cli.json("project", "add", "Garden", *words)
    here = cli.json("ask", "--model", "recall:", "--project", "garden", "Where are my roses?")
    first, second = (row["conversation_id"] for row in cli.json("list")["conversations"][1:3])
    assert cli.json("project", "move", "garden", first, second)["moved"] == [first, second]
    (listed,) = cli.json("project", "list")["projects"]
    assert listed["project_id"] == added["project_id"]
    assert listed["conversations"] == 3
    assert listed["color"] == "#2e7d32"
    assert here["conversation_id"] not in (first, second)
    cli.done("project", "move", "none", second)
    edited = cli.json("project", "edit", "garden", "--recall", "all", "--color", "")
    assert edited["project_id"] == added["project_id"]
    (listed,) = cli.json("project", "list")["projects"]
    assert (listed["recall"], listed["color"], listed["conversations"]) == ("all", "", 2)
    assert listed["instructions"] == "Name plants in Latin."
    assert cli("project", "move", "garten", first).code == 1
    assert cli("project", "add", "None").code == 1
    assert cli("project", "list", "--color", "#000000").code == 2
    cli.done("project", "remove", "garden")
    assert cli.json("project", "list")["projects"] == []


def test_another_library_s_project_has_no_instructions(store: Store, tmp_path: Path) -> None:
    roses = add_conversation(store, "Roses")
    store.save(ProjectPut(GARDEN), ConversationEdited(roses.conversation.id, project="g"))
    path = tmp_path / "out.json"
    export(store, path, ExportFormat.JSON)
    with opened(tmp_path / "other") as other:
        other.save(ProjectPut(Project("x", "Garden")))
        report = import_files(other, [path])
        assert "instructions of projects" in report.left_out
        brought = replace(GARDEN, name="Garden (2)", instructions="")
        assert set(stored_projects(other)) == {Project("x", "Garden"), brought}
        (here,) = Conversations(other).listed()
        assert Conversations(other).get(here.id).project == "g"


def test_a_conversation_is_moved_and_its_project_changed_by_typing(cli: Console) -> None:
    services = cli.services
    here = services.conversations.listed()[0].id

    def typed(text: str) -> str:
        return services.commands.run(parse(text, CommandContext(here))).markdown

    typed("/project add Garden")
    (garden,) = services.projects.listed()
    assert services.conversations.get(here).project == garden.uid
    typed("/project recall only")
    assert services.projects.listed()[0].recall is RecallRule.ONLY
    assert "Garden" in typed("/project")
    with pytest.raises(InvalidInput):
        typed("/project recall nothing")
    typed("/project none")
    assert services.conversations.get(here).project is None
    typed("/project garden")
    assert services.conversations.get(here).project == garden.uid
    new = services.commands.run(parse("/project garden", CommandContext(None)))
    assert new.action == ChooseProject(garden.uid)
    out = services.commands.run(parse("/project none", CommandContext(None, project=garden.uid)))
    assert out.action == ChooseProject(None)

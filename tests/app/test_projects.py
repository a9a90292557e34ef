"""Projects: stored, replayed, and filtered by."""

from pathlib import Path

from app.check import check
from app.domain.changes import ConversationEdited, ProjectPut, ProjectRemoved
from app.domain.projects import Project, RecallRule
from app.index.query import parse_query
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.passages import Passages
from app.storage.tables.projects import stored_projects
from tests.fakes.stored import add_conversation, killed, opened, tables

GARDEN = Project("g", "Garden", "Name plants in Latin.", "#2e7d32", "/home/me/g", RecallRule.ONLY)
HOUSE = Project("h", "House")


def test_projects_and_their_conversations_survive_a_replay_of_the_journal(
    store: Store, tmp_path: Path
) -> None:
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


def test_a_project_filter_leaves_the_conversations_of_that_project(store: Store) -> None:
    roses, paint = add_conversation(store, "Roses"), add_conversation(store, "Paint")
    add_conversation(store, "Neither")
    store.save(ProjectPut(GARDEN), ProjectPut(HOUSE))
    store.save(
        ConversationEdited(roses.conversation.id, project="g"),
        ConversationEdited(paint.conversation.id, project="h"),
    )
    passages = Passages(store)

    def left(query: str) -> set[int | None]:
        ids = passages.allowed(parse_query(query), None)
        return {place.conversation_id for place in passages.places(map(int, ids)).values()}

    assert left("project:gard") == {roses.conversation.id}
    assert left("project:HOUSE") == {paint.conversation.id}
    store.save(ProjectRemoved("g"))
    assert left("project:garden") == set(), "a removed project has no conversations"

"""Proposed projects: of agents' folders and of topics, accepted and dismissed."""

from app.chat.projects import ProjectProposals, Projects
from app.domain.changes import ConversationEdited, TagsChanged, TopicChosen
from app.domain.records.projects import Project
from app.domain.records.sources import SUBAGENT_TAG
from app.domain.records.topics import TopicChoice, TopicId
from app.memory.search.scope import Boundaries
from app.memory.topics.service import TopicService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.settings import Settings
from tests.fakes.fixtures import fixture_of
from tests.fakes.stored import add_conversation


class Bench:
    """Three conversations of Codex in the folder heron, one of them a subagent's."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.projects = Projects(store)
        self.proposals = ProjectProposals(
            store, Settings(store), self.projects, TopicService(store, Boundaries(store))
        )
        self.ids = [
            add_conversation(store, text, source="codex").conversation.id
            for text in ("Fix the gate", "Test the gate", "Look up the gate")
        ]
        store.save(*(TagsChanged(each, ("heron",)) for each in self.ids))
        store.save(TagsChanged(self.ids[2], (SUBAGENT_TAG,)))

    def keys(self) -> list[tuple[str, int]]:
        return [(each.key, len(each.conversations)) for each in self.proposals.listed()]


bench = fixture_of(Bench, "store")


def test_a_folder_of_agents_is_proposed_and_becomes_a_project(bench: Bench) -> None:
    other = add_conversation(bench.store, "My own about the gate").conversation.id
    bench.store.save(
        TagsChanged(other, ("heron",)), TagsChanged(bench.ids[0], ("gates",), automatic=True)
    )
    assert bench.keys() == [("folder:heron", 2)], "neither subagents nor own conversations count"
    (proposal,) = bench.proposals.listed()
    made = bench.proposals.accept(proposal, "Heron gateway")
    assert made.name == "Heron gateway"
    stored = Conversations(bench.store)
    assert [stored.get(each).project for each in (*bench.ids, other)] == [
        made.uid, made.uid, None, None,
    ]  # fmt: skip
    assert bench.keys() == []


def test_later_conversations_of_the_folder_are_proposed_for_the_known_project(bench: Bench) -> None:
    heron = bench.projects.save(Project("", "Heron"))
    (proposal,) = bench.proposals.listed()
    assert proposal.project == heron
    assert bench.proposals.accept(proposal, proposal.name) == heron
    assert bench.projects.counts() == {heron.uid: 2}


def test_a_dismissed_proposal_does_not_return(bench: Bench) -> None:
    (proposal,) = bench.proposals.listed()
    bench.proposals.dismiss(proposal)
    assert bench.keys() == []
    new = add_conversation(bench.store, "Again", source="codex").conversation.id
    bench.store.save(TagsChanged(new, ("heron",)))
    assert bench.keys() == []


def test_a_topic_with_conversations_that_have_no_project_is_proposed(bench: Bench) -> None:
    ids = [add_conversation(bench.store, f"Cello {n}").conversation.id for n in range(6)]
    bench.store.save(TopicChosen(TopicChoice(TopicId(4), "Cello", conversations=tuple(ids))))
    assert bench.keys() == [("folder:heron", 2), ("topic:4", 6)]
    music = bench.projects.save(Project("", "Music"))
    bench.store.save(*(ConversationEdited(each, project=music.uid) for each in ids[:2]))
    assert bench.keys() == [("folder:heron", 2)], "four are left, too few"
    bench.projects.remove(music.uid)
    assert bench.keys()[1] == ("topic:4", 6)


def test_proposals_are_announced_until_that_was_said_or_there_are_projects(bench: Bench) -> None:
    (found,) = bench.proposals.unannounced()
    assert (found.name, found.titles) == ("heron", ("A talk", "A talk"))
    bench.proposals.note_announced()
    assert bench.proposals.unannounced() == ()
    assert bench.keys() == [("folder:heron", 2)], "they are still listed"


def test_who_has_projects_is_not_told_of_proposals(bench: Bench) -> None:
    bench.projects.save(Project("", "Garden"))
    assert bench.proposals.unannounced() == ()

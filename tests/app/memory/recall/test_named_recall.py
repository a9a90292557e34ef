"""Recall of what a question asks for by name: days, and all that is known about the user."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.domain.changes import ProjectPut
from app.domain.ids import ConversationId, PassageId, new_uid
from app.domain.recall import RecallSettings, SegmentContext, Verdict
from app.domain.records.projects import Project, RecallRule
from app.memory.context.items import SelectionContext
from app.memory.context.narrowing import narrowed
from app.memory.context.selection import select_recalled
from app.memory.context.token_budget import RecallRoom
from app.memory.core_memory import ArchivalMemoryService
from tests.fakes.found import said_in
from tests.fakes.searchable import RecallLibrary
from tests.fakes.stored import AT, add_conversation

NOWHERE = ConversationId(0)


def test_a_question_about_days_finds_their_conversations(library: RecallLibrary) -> None:
    own = add_conversation(library.store, "My own question", at=AT - timedelta(days=40))
    early = add_conversation(
        library.store, ("Early", "First."), ("Late", "Second."), at=AT - timedelta(days=40)
    )
    before = add_conversation(library.store, "Before", at=AT - timedelta(days=42))
    add_conversation(library.store, "Hidden", private=True, at=AT - timedelta(days=40))
    asked, here = "What did we discuss on January 20, 2026?", own.conversation.id

    def found(*quoted: PassageId) -> list[tuple[ConversationId, list[str]]]:
        segment = SegmentContext(quoted=frozenset(quoted))
        result = library.recall_service.retrieve(asked, here, segment, RecallSettings())
        assert (result.notice, result.history) == ("", ())
        return [
            (each.conversation_id, [said_in(turn, is_user=True) for turn in each.exchanges])
            for each in result.mentioned
        ]

    assert found() == [(early.conversation.id, ["Early", "Late"])]
    answers = library.recall_service.answers(asked, (), here, 6) or ()
    assert [(each.question, each.reply) for each in answers] == [
        ("Early", "First."), ("Late", "Second.")
    ]  # fmt: skip
    assert len(library.recall_service.answers(asked, (), here, 1) or ()) == 1
    first, second = (PassageId(each.result.passage_id) for each in answers)
    assert found(first) == [(early.conversation.id, ["Late"])]
    library.feedback.give(second, Verdict.NEVER)
    assert found() == [(early.conversation.id, ["Early"])]
    library.summarize(early, "Two short things.", conversation=True)
    (talk,) = library.recall_service.retrieve(
        asked, here, SegmentContext(), RecallSettings()
    ).mentioned
    assert [each.text for each in talk.summary] == ["Two short things."]
    assert before.conversation.id != talk.conversation_id


@pytest.mark.parametrize("mentions", [False, True], ids=["of a day", "mentioned"])
def test_turns_that_are_asked_for_come_with_the_facts_that_replaced_what_they_state(
    library: RecallLibrary, mentions: bool
) -> None:
    said = "Minka sees doctor Arden."
    talk = add_conversation(library.store, (said, "Noted."), at=AT - timedelta(days=40))
    asked = (
        "Which doctor does Minka see?" if mentions else "What did we discuss on January 20, 2026?"
    )
    mentioned = (talk.conversation.id,) if mentions else ()
    now, private = (
        library.fact(text, own)
        for text, own in (
            ("Bell looks after all pets now", library.about_cat),
            ("A secret", add_conversation(library.store, "no", private=True)),
        )
    )
    for fact in (now, private):
        library.fact(said, talk, valid_until=AT, superseded_by=fact.id)
    library.fact("The user has a boat.", library.about_cat)

    def selected(settings: RecallSettings) -> str:
        segment = SegmentContext(mentioned=mentioned)
        found = library.recall_service.retrieve(asked, None, segment, settings)
        context = SelectionContext(NOWHERE, asked, frozenset())
        chosen = select_recalled(found, settings, context, RecallRoom(1_200, 0, 0))
        return "".join(part.text for part in chosen.parts)

    block = selected(RecallSettings())
    assert f"> {said}\n" in block
    assert f"newer than commonplace://{talk.conversation.id}/0\n> {now.text}\n" in block
    assert "secret" not in block
    assert "boat" not in block
    assert now.text not in selected(RecallSettings(rag_fact_limit=0))
    library.feedback.give(now.id, Verdict.NEVER)
    assert now.text not in selected(RecallSettings())


def test_a_question_for_what_is_known_about_the_user_gets_all_facts(library: RecallLibrary) -> None:
    asked = "What do you know about me?"
    said = [f"The user has a {each}." for each in ("boat", "canoe", "dinghy", "ferry", "gondola")]
    assert library.recall(asked).asked_facts == ()
    assert library.recalled_titles("What do you know about me and Minka the cat?")
    facts = [library.fact(each, library.about_cat) for each in said]
    library.fact("The user has a raft.", valid_until=AT)
    library.fact("The user has a yacht.", add_conversation(library.store, "no", private=True))
    saved = ArchivalMemoryService(library.store).save("The user likes barges.")
    settings = RecallSettings()
    result = library.recall(asked)
    assert {each.text for each in result.asked_facts} == {*said, saved.text}
    assert len(said) > settings.rag_fact_limit
    context = SelectionContext(NOWHERE, asked, frozenset())
    selection = select_recalled(result, settings, context, RecallRoom(1_200, 0, 0))
    quoted = {each.passage_id for each in selection.items if each.injected}
    assert quoted >= {saved.id, *(each.id for each in facts)}
    answers = library.recall_service.answers(asked, (), NOWHERE, 3) or ()
    assert {each.reply for each in answers} == {*said, saved.text}
    library.feedback.give(facts[0].id, Verdict.NEVER)
    kept = library.recall(asked)
    assert {each.text for each in kept.asked_facts} == {*said[1:], saved.text}
    for off in (replace(settings, rag_fact_limit=0), replace(settings, rag_enabled=False)):
        assert narrowed(kept, off, SegmentContext()).asked_facts == ()
        assert library.recall_service.retrieve(asked, None, SegmentContext(), off).asked_facts == ()


def test_a_project_gets_its_facts_behind_many_newer_ones_of_others(library: RecallLibrary) -> None:
    own, project = library.about_cat, new_uid()
    library.store.save(ProjectPut(Project(project, "Cats", recall=RecallRule.ONLY)))
    library.edit(own, project=project)
    library.fact("The user has a cat.", own)
    for number in range(70):
        library.fact(f"The user has {number} boats.", said_at=AT + timedelta(days=number))
    segment = SegmentContext(project=project)
    found = library.recall_service.retrieve(
        "What do you know about me?", own.conversation.id, segment, RecallSettings()
    )
    assert [each.text for each in found.asked_facts] == ["The user has a cat."]

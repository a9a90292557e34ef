"""Recall: facts, conversations, turns and earlier messages for a question, and what is left out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.library import Library as Chats
from app.check import check
from app.domain import translation
from app.domain.changes import ExchangePut, FactPut, MessagesAdded
from app.domain.conversations import ANY_RECALL, Attachment, ExchangeStatus, RecallChoice
from app.domain.errors import IndexUnavailable, MemoryOff, StorageError
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import (
    RecalledItem,
    RecallLayer,
    RecallSettings,
    RetrievalResult,
    SegmentContext,
    Verdict,
)
from app.domain.records.facts import BY_PATTERNS
from app.domain.results import FoundAnswer
from app.memory.context.items import SelectionContext
from app.memory.context.narrowing import narrowed
from app.memory.context.selection import select_recalled
from app.memory.context.text import turn_link
from app.memory.context.token_budget import RecallRoom
from app.memory.core_memory import ArchivalMemoryService
from app.memory.recall.answers import AnswerFinder
from app.memory.recall.brief import Briefs
from app.memory.recall.service import RecallService
from app.storage.deletion.forget import forget
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.recall_reads import RecallReads
from tests.fakes.found import said_in
from tests.fakes.searchable import CAT, FLOOR, OTHERS, VET, RecallLibrary
from tests.fakes.stored import (
    AT,
    ConversationRecord,
    add_conversation,
    new_conversation,
    opened,
    sibling,
)

WHO = "Who is the vet of my cat Minka?"
DOCTOR = "Which doctor sees my cat Minka?"
BOX = "Which box is the blue barometer in?"
NOWHERE = ConversationId(0)


def segment_of(whole: ConversationRecord, *held: int) -> SegmentContext:
    return SegmentContext(frozenset(each.id for each in whole.exchanges), frozenset(held))  # type: ignore[arg-type]


# -- what is found
def test_the_turn_that_answers_is_found_with_its_conversation(library: RecallLibrary) -> None:
    found = library.recall(WHO)
    talk = found.conversations[0]
    (turn,) = talk.exchanges
    assert (talk.title, talk.exchange_count, talk.started_at) == ("Minka", 1, AT)
    assert (said_in(turn, is_user=True), turn.started_at, turn.turn_number) == (CAT, AT, 0)
    assert "Doctor Arden" in said_in(turn, is_user=False)
    assert turn.exchange_id == library.about_cat.exchanges[0].id
    assert talk.match.relevance >= FLOOR
    assert turn.match.kind is PassageKind.TURN
    assert (found.titles[talk.conversation_id], found.notice) == ("Minka", "")
    for question in ("What did the plumber charge for the boiler?", "Is Latvia in the eurozone?"):
        assert library.recalled_titles(question) == []


def test_the_answering_sentence_is_worth_most_and_equal_turns_one(library: RecallLibrary) -> None:
    filler = "The weather was mild and nothing else happened that day. " * 30
    add_conversation(
        library.store, ("Tell me of the harbour", f"{filler}The ferry costs twelve euros. {filler}")
    )
    (turn, *_) = library.recall("What does the harbour ferry cost?").history
    units = [unit for each in turn.texts for unit in each.units]
    assert max(units, key=lambda unit: unit.worth).text == "The ferry costs twelve euros."
    add_conversation(library.store, VET, title="Minka again")
    assert [said_in(each, is_user=True) for each in library.recall(WHO).history].count(CAT) == 1


COMES, PLUMBER = "The plumber comes on Monday at nine.", "When does the plumber come?"


def recalled(library: RecallLibrary, question: str, *words: str) -> set[str]:
    """Return which words a user said in the turns that are recalled, and in those that tools find."""
    turns = " ".join(said_in(each, is_user=True) for each in library.recall(question).history)
    answers = AnswerFinder(library.store, library.service)
    found = answers.find(question, 9, {PassageKind.TURN})
    told = " ".join(each.question for each in found)
    assert {each for each in words if each in told} == {each for each in words if each in turns}
    return {each for each in words if each in turns}


@pytest.mark.parametrize("more", ["", " That is what the office of the house said." * 20])
def test_a_statement_that_was_corrected_by_an_edit_is_not_recalled_beside_its_correction(
    library: RecallLibrary, more: str
) -> None:
    """However long it is, and wherever the correction is in it."""
    said = f"{more} {COMES}".strip()
    talk = add_conversation(library.store, (said, "Noted."), title="Repairs")
    turn, edit = talk.exchanges[0], partial(library.edit, talk)
    corrected, other = (
        said.replace("Monday", "Tuesday"),
        "The plumber comes here now, which is too late.",
    )
    edited = sibling(library.store, turn, (), corrected)
    again = sibling(library.store, turn, (), other, "In an hour.")

    def days(question: str = PLUMBER) -> set[str]:
        return recalled(library, question, "Monday", "Tuesday")

    edit(visible_leaf_id=edited.message_ids[-1])
    assert days() == {"Tuesday"}
    assert days("Does the plumber come on Monday?") == {"Monday", "Tuesday"}
    edit(visible_leaf_id=turn.message_ids[-1])
    assert days() == {"Monday"}
    edit(visible_leaf_id=again.message_ids[-1])
    assert days() == {"Monday", "Tuesday"}, "another statement corrects nothing"


@pytest.mark.parametrize("status", [ExchangeStatus.FAILED, ExchangeStatus.RUNNING])
def test_an_edit_without_an_answer_takes_no_place_in_recall(
    library: RecallLibrary, status: ExchangeStatus
) -> None:
    talk = add_conversation(library.store, (COMES, "Noted."), title="Repairs")
    edited = sibling(library.store, talk.exchanges[0], (), COMES.replace("Monday", "Tuesday"))
    library.store.save(ExchangePut(replace(edited, status=status)))
    library.edit(talk, visible_leaf_id=edited.message_ids[-1])
    assert recalled(library, PLUMBER, "Monday") == {"Monday"}


@pytest.mark.parametrize(
    ("asked", "one", "other", "question"),
    [
        ("What is the capital of {}?", "Norway", "Iceland", "Which capital of a country?"),
        ("Translate to German: Good {}.", "morning", "night", "What is good morning in German?"),
        ("{}的天气怎么样？", "北京", "上海", "天气怎么样"),
    ],
)
def test_a_question_that_was_edited_keeps_the_answer_of_its_former_wording(
    library: RecallLibrary, asked: str, one: str, other: str, question: str
) -> None:
    """So does another request, when what is asked about is only in that."""
    said = (asked.format(one), "Something of its own.")
    talk = add_conversation(library.store, said, title="Towns")
    edited = sibling(library.store, talk.exchanges[0], (), asked.format(other), "Something else.")
    library.edit(talk, visible_leaf_id=edited.message_ids[-1])
    assert recalled(library, question, one, other) == {one, other}


def test_what_corrects_a_turn_comes_behind_it_as_relevant(library: RecallLibrary) -> None:
    comes, fixed = "The plumber comes on Monday at nine.", "no, it is Tuesday, sorry"
    talk = add_conversation(
        library.store,
        (comes, "Noted."),
        (fixed, "I see."),
        "Which tap is best?",
        "How do tides work?",
    )
    question = "When does the plumber come?"
    turn, behind = library.recall(question).history[:2]
    assert [said_in(each, is_user=True) for each in (turn, behind)] == [comes, fixed]
    assert behind.match.relevance == turn.match.relevance
    segment = segment_of(talk)
    first, second, *_ = library.recall(question, talk.conversation.id, segment).earlier
    assert (first.text, second.text) == (comes, fixed)
    assert second.match.relevance == first.match.relevance
    words = "sorry, is it Tuesday?"
    assert [said_in(each, is_user=True) for each in library.recall(words).history[:2]] == [
        comes,
        fixed,
    ]
    assert [each.text for each in library.recall(words, segment=segment).earlier[:2]] == [
        comes,
        fixed,
    ]
    quoted = replace(segment, quoted=frozenset({second.match.passage_id}))
    assert fixed not in [each.text for each in library.recall(question, segment=quoted).earlier]
    library.feedback.give(second.match.passage_id, Verdict.NEVER)
    assert fixed not in [each.text for each in library.recall(question, segment=segment).earlier]


def test_a_correction_of_a_correction_comes_behind_both(library: RecallLibrary) -> None:
    said = ["The plumber comes on Monday at nine.", "no, it is Tuesday", "no, it is Wednesday"]
    talk = add_conversation(
        library.store, *((each, "Noted.") for each in said), "Which tap is best?"
    )
    for words in ("When does the plumber come?", "Does the plumber come on Wednesday?"):
        found = library.recall(words).history[:3]
        assert [said_in(each, is_user=True) for each in found] == said
        earlier = library.recall(words, segment=segment_of(talk)).earlier[:3]
        assert [each.text for each in earlier] == said


def test_what_is_forgotten_during_recall_does_not_keep_the_rest_out(
    library: RecallLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, kept = (
        add_conversation(library.store, (said, "Noted."), "Which tap is best?").conversation.id
        for said in (COMES, "The plumber comes on Friday.")
    )
    shown_after = Passages.shown_after

    def then_forget(passages: Passages, turns: list[int]) -> Mapping[PassageId, PassageId]:
        found = shown_after(passages, turns)
        forget(library.store, [gone])
        return found

    monkeypatch.setattr(Passages, "shown_after", then_forget)
    found = library.recall(PLUMBER)
    assert found.notice == ""
    assert found.history[0].conversation_id == kept


def test_what_corrects_on_a_branch_that_is_not_shown_is_left_out(library: RecallLibrary) -> None:
    comes, fixed = "The plumber comes on Monday at nine.", "no, it is Tuesday, sorry"
    talk = add_conversation(library.store, (comes, "Noted."), ("Thanks", "I see."))
    edited = sibling(library.store, talk.exchanges[1], (), fixed)
    question = "When does the plumber come?"

    def first_two() -> list[str]:
        return [said_in(each, is_user=True) for each in library.recall(question).history[:2]]

    assert first_two()[0] == comes != first_two()[1] != fixed
    library.edit(talk, visible_leaf_id=edited.message_ids[-1])
    assert first_two() == [comes, fixed]
    sibling(library.store, talk.exchanges[1], (), "Which tap is best?")
    assert first_two() == [comes, fixed], "a newer one that is not shown changes nothing"


def test_a_summary_takes_no_relevance_from_the_turns_it_summarizes(library: RecallLibrary) -> None:
    def best_turn() -> tuple[float, float]:
        talk = library.recall(WHO).conversations[0]
        return talk.exchanges[0].match.relevance, talk.match.relevance

    alone, _ = best_turn()
    library.summarize(
        library.about_cat, f"{CAT} The vet of the cat Minka is {WHO}", conversation=True
    )
    beside, of_talk = best_turn()
    assert beside == pytest.approx(alone, abs=0.02)
    assert of_talk >= beside


def test_current_facts_are_found_with_their_source(library: RecallLibrary) -> None:
    fact = library.fact("Minka the cat is seen by doctor Arden", library.about_cat)
    library.fact("Minka the cat is seen by doctor Bell", valid_until=AT)
    library.fact(
        "Minka the cat is seen by doctor Crane", add_conversation(library.store, "no", private=True)
    )
    trashed = add_conversation(library.store, "thrown away")
    library.fact("Minka the cat is seen by doctor Dell", trashed)
    library.edit(trashed, deleted_at=AT)
    (found,) = library.recall(DOCTOR).facts
    assert (found.text, found.exchange_id) == (fact.text, library.about_cat.exchanges[0].id)
    assert found.match.relevance >= FLOOR


def test_a_fact_in_the_words_of_its_message_is_a_hint_at_most(library: RecallLibrary) -> None:
    worded = library.fact("Minka the cat is seen by doctor Arden", model="loop:model")
    library.fact("Minka the cat is seen by doctor Arden, always", model=BY_PATTERNS)
    first, second = library.recall(DOCTOR).facts
    assert first.match.passage_id == worded.id
    assert first.match.relevance > second.match.relevance + 0.1
    stated = "The harbour clinic vaccinates ferrets and Siamese kittens every other Thursday"
    library.fact(stated, model=BY_PATTERNS)
    asked = "When does the harbour clinic vaccinate ferrets and Siamese kittens, every Thursday?"
    found = {each.text: each.match.relevance for each in library.recall(asked).facts}
    assert 0.3 < found[stated] < FLOOR


def test_a_fact_is_as_relevant_as_the_turn_that_states_what_it_replaced(
    library: RecallLibrary,
) -> None:
    later = add_conversation(library.store, "Bell has taken over the practice.", title="Practice")
    now = library.fact("Bell has taken over the practice", later)
    middle = library.fact("Crane was there", valid_until=AT, superseded_by=now.id)
    library.fact(CAT, library.about_cat, valid_until=AT, superseded_by=middle.id)
    turn = library.about_cat.exchanges[0].id
    found = library.recall(WHO)
    assert [(each.text, each.replaces) for each in found.facts] == [(now.text, frozenset({turn}))]
    assert found.facts[0].match.relevance == found.history[0].match.relevance
    chosen = selected(found)
    assert (RecallLayer.FACT, now.id) in chosen
    assert later.exchanges[0].id not in [
        each.exchange_id for each in chosen.values() if each.layer is RecallLayer.HINT
    ]
    assert newer_facts(library, WHO)[turn] == [now.text]
    only_there = RecallChoice(mentioned=(library.about_cat.conversation.id,))
    assert newer_facts(library, WHO, only_there)[turn] == []
    assert all(not each.replaces for each in library.recall("How do bees find home?").facts)
    library.feedback.give(now.id, Verdict.NEVER)
    assert (RecallLayer.FACT, now.id) not in selected(library.recall(WHO))
    library.edit(later, deleted_at=AT)
    assert [each.text for each in library.recall(WHO).facts] == [middle.text]


def test_what_replaced_a_quoted_statement_is_quoted_beside_many_other_facts(
    library: RecallLibrary,
) -> None:
    now = library.fact("Since June it is Berger")
    library.fact(CAT, library.about_cat, valid_until=AT, superseded_by=now.id)
    for number in range(8):
        library.fact(f"The cat Minka has a vet, number {number} of the vets of my cat Minka")
    found = library.recall(WHO)
    facts = [each for layer, each in selected(found) if layer is RecallLayer.FACT]
    assert facts[0] == now.id
    assert len(facts) == 1 + RecallSettings().rag_fact_limit
    widest = library.recall_service.retrieve(WHO, None, SegmentContext(), RecallSettings().widest())
    for limit, count in ((1, 2), (0, 0)):
        less = narrowed(widest, RecallSettings(rag_fact_limit=limit), SegmentContext())
        assert [each for layer, each in selected(less, limit) if layer is RecallLayer.FACT][:1] == [
            now.id
        ][:limit]
        assert sum(layer is RecallLayer.FACT for layer, _ in selected(less, limit)) == count
    assert newer_facts(library, WHO)[library.about_cat.exchanges[0].id] == [now.text]


def test_each_outdated_turn_has_its_correction_and_one_fact_corrects_several(
    library: RecallLibrary,
) -> None:
    now: dict[ExchangeId, str] = {}
    both = library.fact("Dr. Berger looks after all pets")
    for number in range(5):
        said = f"The vet of my cat Minka, number {number}, is doctor Arden {number}."
        talk = add_conversation(library.store, (said, f"Noted, number {number}."))
        fact = both if number < 2 else library.fact(f"Since June it is Berger {number}")
        library.fact(said, talk, valid_until=AT, superseded_by=fact.id)
        now[talk.exchanges[0].id] = fact.text
    newer = newer_facts(library, WHO)
    assert now.keys() <= newer.keys()
    assert {each: newer[each] for each in now} == {each: [text] for each, text in now.items()}
    settings, context = RecallSettings().widest(), SelectionContext(NOWHERE, WHO, frozenset())
    found = library.recall_service.retrieve(WHO, None, SegmentContext(), settings)
    chosen = select_recalled(found, settings, context, RecallRoom(1_200, 0, 0))
    (line,) = [each.text for part in chosen.parts for each in part.pieces if both.text in each.text]
    links = (turn_link(each) for each in found.turns if each.exchange_id in list(now)[:2])
    assert f" newer than {', '.join(sorted({*links}))}\n" in line


def newer_facts(
    library: RecallLibrary, question: str, choice: RecallChoice = ANY_RECALL
) -> dict[ExchangeId | None, list[str]]:
    """Return the texts of newer facts of each turn that Recall answers with."""
    answers = library.recall_service.answers(question, (), NOWHERE, 6, choice) or ()
    return {
        each.result.exchange_id: [newer.reply for newer in each.newer]
        for each in answers
        if each.result.kind is PassageKind.TURN
    }


def test_a_turn_that_states_old_and_new_is_not_older_than_itself(library: RecallLibrary) -> None:
    now = library.fact("Bell looks after Minka now", library.about_cat)
    library.fact(CAT, library.about_cat, valid_until=AT, superseded_by=now.id)
    assert [(each.text, each.replaces) for each in library.recall(WHO).facts] == [
        (now.text, frozenset())
    ]


def selected(
    found: RetrievalResult, facts: int = RecallSettings().rag_fact_limit
) -> dict[tuple[RecallLayer, int], RecalledItem]:
    context, settings = (
        SelectionContext(NOWHERE, WHO, frozenset()),
        RecallSettings(rag_fact_limit=facts),
    )
    chosen = select_recalled(found, settings, context, RecallRoom(1_200, 0, 0)).items
    return {(each.layer, each.passage_id): each for each in chosen if each.injected}


@pytest.mark.parametrize(("name", "shown"), [("list.txt", "list.txt"), (" ", "attachment")])
def test_the_text_of_a_file_is_quoted_as_that_of_the_file(
    library: RecallLibrary, name: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = new_conversation(library.store, ("Please check it.", "I did."), title="Barometer")
    lines = "".join(f"Row {number} says nothing.\n" for number in range(60))
    file = Attachment(name, "text/plain", text=f"{lines}The blue barometer is in box 60.")
    asked, answered = talk.messages
    asked = replace(asked, blocks=(*asked.blocks, file))
    added = MessagesAdded((asked, answered))
    library.store.save(*(added if type(each) is MessagesAdded else each for each in talk.changes))
    found = library.recall(BOX)
    context = SelectionContext(NOWHERE, BOX, frozenset())
    (part,) = select_recalled(found, RecallSettings(), context, RecallRoom(1_200, 0, 0)).parts
    turn = next(each.text for each in part.pieces if "barometer is in" in each.text)
    label = f'File "{shown}":'
    assert f"{label}\n> …\n" in turn
    assert "User:\n> Please check it.\n" in turn
    assert turn.count("says nothing") < 10
    with monkeypatch.context() as window:
        window.setattr(translation, "_chosen", ["de"])
        (answer, *_) = library.recall_service.answers(BOX, (), NOWHERE, 6) or ()
    own_label = "Datei „list.txt“:" if name.strip() else "Angehängte Datei:"
    assert answer.question.endswith(f"{own_label}\nThe blue barometer is in box 60.")
    assert answer.result.user_question == "Please check it."
    assert answer.result.snippet.startswith(f"{shown}: …")
    assert answer.result.snippet.endswith("The blue barometer is in box 60.")
    briefs = Briefs(library.store, AnswerFinder(library.store, library.service))
    assert f"> **You:** Please check it.\n> {label}\n> Row 0" in briefs.write(BOX, 2000)
    assert (
        f"> **You:** Please check it.\n>\n> {label}\n> Row 0" in briefs.of_turns(talk.exchanges)[0]
    )
    found = library.recall(BOX, talk.conversation.id, segment_of(talk))
    settings, room = RecallSettings(auto_rag_relevance_threshold=0.0), RecallRoom(0, 400, 0)
    parts = select_recalled(found, settings, context, room).parts
    (quoted,) = [each.text for part in parts for each in part.pieces if "box 60" in each.text]
    assert quoted.startswith(f"- {label[:-1]} {asked.created_at:%Y-%m-%d} ")


def test_saved_texts_are_found_among_the_facts(library: RecallLibrary) -> None:
    memories = ArchivalMemoryService(library.store)
    saved = memories.save("The spare key of the boat house hangs behind the blue barometer.")
    question = "Where does the spare key of the boat house hang?"
    found = library.recall(question).facts[0]
    assert (found.match.kind, found.match.passage_id) == (PassageKind.MEMORY, saved.id)
    assert (found.text, found.said_at) == (saved.text, saved.saved_at)
    assert found.match.relevance >= FLOOR
    library.feedback.give(saved.id, Verdict.NEVER)
    assert library.recall(question).facts == ()
    library.feedback.give(saved.id, None)
    memories.forget(saved.id)
    assert library.recall(question).facts == ()


def test_the_own_conversation_and_hidden_ones_are_left_out(library: RecallLibrary) -> None:
    found = library.recall(WHO, library.about_cat.conversation.id)
    ids = [each.conversation_id for each in found.history]
    ids += [each.conversation_id for each in found.conversations]
    assert ids
    assert library.about_cat.conversation.id not in ids
    for hide, show in (({"archived": True}, {"archived": False}), ({"deleted_at": AT}, {})):
        library.edit(library.about_cat, **hide)
        assert "Minka" not in library.recalled_titles(WHO)
        library.edit(library.about_cat, **show)


def test_small_talk_finds_nothing(library: RecallLibrary) -> None:
    for text in ("ok", "yes, please go on", "谢谢！", "👍", "", "?"):
        add_conversation(library.store, text or "nothing", title="The same again")
        found = library.recall(text, segment=segment_of(library.about_cat))
        assert replace(found, took_ms=0.0) == RetrievalResult(), text


REQUESTS = (
    "what about the sourdough?", "search for the sourdough please", "tell me about the sourdough",
    "could you look up what I asked about the sourdough", "remind me of the sourdough",
)  # fmt: skip


def test_a_request_finds_as_much_as_the_question(library: RecallLibrary) -> None:
    add_conversation(
        library.store, "We looked for the keys and searched the whole house, please tell me a joke"
    )
    for request in REQUESTS:
        assert library.recalled_titles(request)[:1] == ["kitchen"], request
    assert library.recalled_titles("search for the spaceship please") == []
    assert library.recall("show me the lighthouse").history[0].match.relevance >= FLOOR


# -- votes, pins and age
def passage_about_cat(library: RecallLibrary) -> PassageId:
    return library.recall(WHO).conversations[0].match.passage_id


def test_votes_change_the_relevance_of_their_passage(library: RecallLibrary) -> None:
    passage = passage_about_cat(library)
    relevances = []
    for verdict in (Verdict.DOWN, None, Verdict.UP):
        library.feedback.give(passage, verdict)
        history = library.recall(WHO).history
        match = next(each.match for each in history if each.match.passage_id == passage)
        assert match.verdict is verdict
        relevances.append(match.relevance)
    assert relevances == sorted(set(relevances))
    library.feedback.give(passage, Verdict.NEVER)
    found = library.recall(WHO)
    matches = [each.match for each in found.conversations]
    matches += [each.match for each in found.history]
    assert passage not in {each.passage_id for each in matches}


def test_a_pinned_fact_is_preferred(library: RecallLibrary) -> None:
    facts = [library.fact(f"Minka the cat is seen by doctor {name}") for name in ("Arden", "Bell")]
    found = library.recall(DOCTOR).facts
    last = next(each for each in facts if each.text == found[-1].text)
    library.store.save(FactPut(replace(last, pinned=True)))
    again = library.recall(DOCTOR).facts
    assert again[0].text == last.text
    assert again[0].match.relevance > found[-1].match.relevance
    assert again[0].match.verdict is None


def test_age_counts_only_with_a_half_life(library: RecallLibrary) -> None:
    store = library.store
    add_conversation(store, "The cat Minka eats salmon", title="Old", at=AT - timedelta(days=3650))
    add_conversation(store, "The cat Minka eats salmon or some other things", title="New", at=AT)
    for half_life, title in ((0.0, "Old"), (30.0, "New")):
        found = library.recall("cat Minka eats salmon", rag_recency_half_life_days=half_life)
        assert found.conversations[0].title == title


# -- earlier in the segment
def test_earlier_messages_are_those_that_the_prompt_lacks(library: RecallLibrary) -> None:
    talk = add_conversation(library.store, VET, *((text, f"About that: {text}") for text in OTHERS))
    found = library.recall(WHO, talk.conversation.id, segment_of(talk)).earlier
    assert found[0].text in VET
    assert found[0].match.relevance >= FLOOR
    assert found[0].exchange_id == talk.exchanges[0].id
    held = talk.exchanges[0].message_ids
    earlier = library.recall(WHO, segment=segment_of(talk, *held)).earlier
    assert not set(held) & {each.message_id for each in earlier}
    last = SegmentContext(frozenset(each.id for each in talk.exchanges[5:]))
    assert {e.exchange_id for e in library.recall(WHO, segment=last).earlier} <= last.exchange_ids
    assert library.recall(WHO).earlier == ()


# -- faults
def raising(error: Exception) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


def test_words_or_meaning_suffice(library: RecallLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    library.vector_search.is_there, library.vector_search.problem = (
        False,
        "The embedder does not answer.",
    )
    found = library.recall(WHO)
    assert found.conversations[0].title == "Minka"
    assert found.conversations[0].match.cosine is None
    assert found.notice.endswith("The embedder does not answer.")
    monkeypatch.setattr(library.index, "candidates", raising(IndexUnavailable("It is gone")))
    found = library.recall(WHO)
    assert (found.conversations, found.history) == ((), ())
    assert "It is gone" in found.notice
    library.vector_search.is_there, library.vector_search.problem = True, ""
    found = library.recall(WHO)
    assert found.conversations[0].title == "Minka"
    assert found.conversations[0].match.relevance > found.conversations[-1].match.relevance


def test_without_the_text_index_statements_are_not_more_relevant(
    library: RecallLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    sourdough = library.fact("Sourdough proofs in the kitchen", model="loop:model")
    library.fact("The kitten likes the bicycle saddle and the garden of roses", model="loop:model")
    library.fact("Minka the cat is seen by doctor Arden", model="loop:model")
    monkeypatch.setattr(library.index, "candidates", raising(IndexUnavailable("It is gone")))
    found = library.recall("How long does the sourdough in my kitchen take?").facts
    sure = [each.match.passage_id for each in found if each.match.relevance >= FLOOR]
    assert sure == [sourdough.id]


def test_a_partial_index_is_noted(library: RecallLibrary) -> None:
    library.sync.catch_up()
    for share, noted in ((0.4, True), (0.996, False)):
        library.sync.covered_share = share
        notice = library.recall_service.retrieve(
            WHO, None, SegmentContext(), RecallSettings()
        ).notice
        assert ("40%" in notice) is bool(notice) is noted


@pytest.mark.parametrize("error", [StorageError("The database is busy"), RuntimeError("a bug")])
def test_errors_become_notices(
    library: RecallLibrary, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecallReads, "heads", raising(error))
    library.fact("Minka the cat is seen by doctor Arden")
    found = library.recall("cat Minka")
    assert replace(found, took_ms=0.0, notice="") == RetrievalResult()
    assert found.notice
    assert found.took_ms > 0


def test_a_cancelled_retrieval_ends_between_its_parts(library: RecallLibrary) -> None:
    library.fact("Minka the cat is seen by doctor Arden")
    library.sync.catch_up()
    answers = iter([False, False, True])
    found = library.recall_service.retrieve(
        DOCTOR, None, SegmentContext(), RecallSettings(), lambda: next(answers)
    )
    assert found.conversations
    assert not found.facts
    assert found.notice


# -- limits
@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecallService]:
    """Recall from six conversations and eight facts on one subject."""
    with opened(tmp_path_factory.mktemp("crowd") / "data") as store:
        library = RecallLibrary(store)
        for number in range(6):
            turns = [f"Minka the cat, note {number} of day {day}" for day in range(4)]
            add_conversation(store, *turns, title=f"Notes {number}")
        for number in range(8):
            library.fact(f"Minka the cat likes toy {number}")
        library.sync.catch_up()
        yield library.recall_service
        library.sync.stop()


@pytest.mark.parametrize("limits", [(1, 1, 0, 0), (5, 4, 5, 5), (3, 2, 1, 1), (2, 4, 3, 2)])
def test_two_more_than_each_limit_are_found_and_nothing_twice(
    crowd: RecallService, limits: tuple[int, int, int, int]
) -> None:
    conversations, exchanges, history, facts = limits
    settings = RecallSettings(
        rag_conversation_limit=conversations, rag_exchange_limit_per_conversation=exchanges,
        rag_history_limit=history, rag_fact_limit=facts,
    )  # fmt: skip
    found = crowd.retrieve("Minka the cat", None, SegmentContext(), settings)
    assert conversations <= len(found.conversations) <= conversations + 2
    assert len({each.conversation_id for each in found.conversations}) == len(found.conversations)
    for talk in found.conversations:
        ids = [each.exchange_id for each in talk.exchanges]
        assert 1 <= len(ids) == len(set(ids)) <= exchanges + 2
        assert {each.conversation_id for each in talk.exchanges} == {talk.conversation_id}
        assert talk.match.relevance >= max(each.match.relevance for each in talk.exchanges)
    ids = [each.exchange_id for each in found.history]
    assert len(ids) == len(set(ids))
    assert bool(ids) is bool(history)
    assert len(found.facts) == (0 if not facts else min(8, facts + 2))
    for matches in (found.facts, found.conversations, found.history):
        relevances = [each.match.relevance for each in matches]
        assert relevances == sorted(relevances, reverse=True)
    widest = crowd.retrieve("Minka the cat", None, SegmentContext(), settings.widest())
    tried = narrowed(widest, settings, SegmentContext())
    assert replace(tried, titles={}, took_ms=0) == replace(found, titles={}, took_ms=0)


ABOUT_THE_CAT = SegmentContext(recent=(WHO,))


@pytest.mark.parametrize(
    ("question", "segment", "titles"),
    [("And when is that?", ABOUT_THE_CAT, ["Minka"]), ("And when is that?", SegmentContext(), []),
     ("Thanks, that is all.", ABOUT_THE_CAT, []), ("Done. What next?", ABOUT_THE_CAT, []),
     ("What does a mortgage broker charge?", ABOUT_THE_CAT, ["charge"]),
     ("How long does sourdough proof in a cold kitchen?", ABOUT_THE_CAT, ["kitchen"])],
)  # fmt: skip
def test_a_follow_up_is_searched_with_what_it_refers_to_and_a_new_subject_is_not(
    library: RecallLibrary, question: str, segment: SegmentContext, titles: list[str]
) -> None:
    found = library.recall(question, segment=segment).conversations
    assert [each.title for each in found if each.match.relevance >= FLOOR] == titles


def test_what_the_request_quotes_is_not_recalled_again(library: RecallLibrary) -> None:
    library.fact("Minka the cat is seen by doctor Arden", library.about_cat)
    first = library.recall(WHO)
    matches = [each.match for each in first.history] + [each.match for each in first.facts]
    quoted = frozenset(each.passage_id for each in matches)
    segment = SegmentContext(quoted=quoted)
    for again in (library.recall(WHO, segment=segment), narrowed(first, RecallSettings(), segment)):
        found = [each.match for each in again.facts] + [each.match for each in again.conversations]
        turns = (again.history, *(each.exchanges for each in again.conversations))
        found += [turn.match for each in turns for turn in each]
        assert not quoted & {each.passage_id for each in found}


@given(question=st.text(max_size=60))
def test_any_text_can_be_asked(crowd: RecallService, question: str) -> None:
    assert crowd.retrieve(question, None, SegmentContext(), RecallSettings()).notice == ""


# -- for the Recall model
def quoted(library: RecallLibrary, question: str, conversation_id: int = 0) -> list[str]:
    library.sync.catch_up()
    found = library.recall_service.answers(question, (), ConversationId(conversation_id), 3) or ()
    return [each.result.user_question for each in found if not each.result.is_weak]


def test_turns_of_other_conversations_are_quotable(library: RecallLibrary) -> None:
    assert quoted(library, WHO) == [CAT]
    assert quoted(library, WHO, library.about_cat.conversation.id) == []
    assert library.recall_service.answers("thanks", (), NOWHERE, 3) is None
    asking = add_conversation(library.store, "Something else").conversation.id
    Chats(library.store).use_memory(asking, False)
    with pytest.raises(MemoryOff):
        quoted(library, WHO, asking)
    Chats(library.store).use_memory(asking, True)
    assert quoted(library, WHO, asking) == [CAT]


def test_facts_and_saved_texts_are_quotable_with_their_source(library: RecallLibrary) -> None:
    source = add_conversation(library.store, "We went out with Biscuit all day", title="Walks")
    fact = library.fact("The user's dog is called Biscuit.", source)
    saved = ArchivalMemoryService(library.store).save("The dog gets its tablet on Friday evening.")
    library.sync.catch_up()

    def answers(question: str) -> list[FoundAnswer]:
        return list(library.recall_service.answers(question, (), NOWHERE, 6) or ())

    best, *_ = answers("What is my dog called?")
    found = best.result
    assert (found.kind, found.passage_id, best.reply) == (PassageKind.FACT, fact.id, fact.text)
    assert (found.conversation_id, found.turn_number) == (source.conversation.id, 0)
    question = "Which evening does the dog get its tablet?"
    best, *rest = answers(question)
    found = best.result
    assert (found.kind, found.passage_id, best.reply) == (PassageKind.MEMORY, saved.id, saved.text)
    assert found.conversation_id is None
    following = [each.result.relevance for each in rest]
    assert following == sorted(following, reverse=True)
    library.feedback.give(saved.id, Verdict.NEVER)
    assert saved.id not in {each.result.passage_id for each in answers(question)}


def test_the_sentences_that_answer_are_quoted_whoever_said_them(library: RecallLibrary) -> None:
    asked = "The washing machine is in the cellar of the old school. Which hose fits it?"
    answer = "One with a three-quarter thread. Mind the seal."
    said = "The washing machine of the new school has a hose that is much too short."
    add_conversation(library.store, (asked, answer), title="Laundry")

    def best(question: str, *recent: str) -> FoundAnswer:
        library.sync.catch_up()
        return (library.recall_service.answers(question, recent, NOWHERE, 6) or ())[0]

    found = best("washing machine hose")
    assert "Which hose" not in found.question, "a question answers nothing"
    assert found.reply == "One with a three-quarter thread."
    found = best("And which thread?", "Which hose fits the washing machine?")
    assert found.reply.startswith("One with a three-quarter thread.")
    add_conversation(library.store, (said, "Noted. I will measure the tap on Monday."), title="New")
    found = best("hose too short at the new school")
    assert found.question == said
    assert found.reply, "a statement has the best sentence of its reply beside it"


def test_warming_up_embeds_a_question_and_writes_nothing(library: RecallLibrary) -> None:
    def position() -> object:
        return library.store.read(lambda c: c.execute("SELECT position FROM state").fetchone())

    before = position()
    library.recall_service.warm_up()
    assert len(library.vector_search.asked) == 1
    assert position() == before


# -- repeated questions

BEES = "What is the name of the beekeeper who rents our orchard?"
STATES = (
    "We rent the orchard to a beekeeper from May on, her name is Ottoline.",
    "Good to hear. Agree on who mows the grass around the hives.",
)
ASKED_BEFORE = (
    (BEES, "I don't know the name of the beekeeper who rents your orchard."),
    ("what is the name of the beekeeper who rents our orchard", "Sorry, I have no information on that."),
    ("Who is the beekeeper renting the orchard?", "I can't find this. Who do you mean?"),
    ("What's the name of our orchard's beekeeper?", "You have not told me so far. What is it?"),
    ("Do you remember the name of the beekeeper in our orchard?", "Which orchard is it about?"),
    (BEES, "I do not have any record of the name of a beekeeper."),
)  # fmt: skip


def injected(library: RecallLibrary, service: RecallService | None = None) -> list[str]:
    """Return the user's side of the turns that a prompt would get, best first, each once."""
    library.sync.catch_up()
    found = (service or library.recall_service).retrieve(
        BEES, None, SegmentContext(), RecallSettings()
    )
    turns = [turn for talk in found.conversations for turn in talk.exchanges] + [*found.history]
    return list(
        dict.fromkeys(
            said_in(each, is_user=True) for each in turns if each.match.relevance >= FLOOR
        )
    )


def test_a_fork_is_found_without_its_original_and_no_turn_twice(library: RecallLibrary) -> None:
    chats, original = Chats(library.store), library.about_cat
    fork = chats.fork(original.exchanges[0].id)
    library.sync.catch_up()
    results = library.with_meaning.search(WHO).results
    assert [each.user_question for each in results].count(CAT) == 1
    (found,) = [
        each for each in library.recall(WHO).conversations if each.title.startswith("Minka")
    ]
    assert len(found.exchanges) == 1
    chats.delete(original.conversation.id)
    assert check(library.store).problems == ()
    (found,) = [each for each in library.recall(WHO).conversations if each.conversation_id == fork]
    assert found.exchanges[0].match.relevance >= FLOOR
    assert fork in [each.conversation_id for each in library.with_meaning.search(WHO).results]


def test_turns_that_only_ask_do_not_displace_the_answer(library: RecallLibrary) -> None:
    for each in ASKED_BEFORE:
        add_conversation(library.store, each, title="Bees")
    assert injected(library) == []
    add_conversation(library.store, STATES, title="Sunday")
    for service in (library.recall_service, library.recall_by_words):
        found = injected(library, service)
        assert found[0] == STATES[0]
        assert not {each[0] for each in ASKED_BEFORE} & set(found)
    assert quoted(library, BEES) == [STATES[0]]
    talk = add_conversation(library.store, STATES, *ASKED_BEFORE)
    retrieved = library.recall(BEES, talk.conversation.id, segment_of(talk), auto_rag_top_k=1)
    assert {each.exchange_id for each in retrieved.earlier} == {talk.exchanges[0].id}


def test_short_answers_count_and_near_duplicates_do_not(library: RecallLibrary) -> None:
    for answer in ("Ottoline.", "It's Ottoline", "I'm not sure, but I found Ottoline Brandt."):
        add_conversation(library.store, (BEES, answer), title=answer)
    assert injected(library) == [BEES]
    assert len(quoted(library, BEES)) == 3
    for ending in ("", " Yes.", "!", " Well."):
        add_conversation(
            library.store, (BEES, f"Her name is Ottoline, from the mill by the river.{ending}")
        )
    add_conversation(library.store, STATES, title="Sunday")
    turns = library.recall(BEES, rag_history_limit=9).history
    assert sum("from the mill" in said_in(each, is_user=False) for each in turns) == 1
    assert STATES[0] in injected(library)

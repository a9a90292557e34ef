"""What is recalled for a question: the right past, little of it, and never what must not come back."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.library import Library as Chats
from app.domain.changes import ConversationEdited, FactPut
from app.domain.errors import IndexUnavailable, MemoryOff, StorageError
from app.domain.facts import BY_USER, Fact, FactCategory
from app.domain.ids import ConversationId, PassageId, new_uid
from app.domain.passages import PassageKind
from app.domain.recalls import Verdict
from app.domain.retrieved import RecallOptions, Retrieved, Segment
from app.memory.finding import Finder
from app.memory.memories import MemoryService
from app.memory.recall import RecallService
from app.storage.facts import fact_changes
from app.storage.feedback import Feedback
from app.storage.recall_reads import RecallReads
from tests.app.test_search_service import Library
from tests.fakes.stored import AT, Told, opened, told

FLOOR = 0.7
ANYWHERE = Segment()
CAT = "Which vet looks after my cat Minka"
VET = (CAT, "Doctor Arden in Mill Lane looks after Minka; the next vaccination is in May.")
OTHERS = (
    "How long does sourdough proof in a cold kitchen",
    "Which bolt fits the saddle of a touring bicycle",
    "Explain how tides follow the moon",
    "Write a limerick on a lighthouse keeper",
    "What does a mortgage broker charge",
    "How do I prune roses after winter",
    "Compare oil paint with acrylic for portraits",
    "Which trains cross the Alps at night",
    "How do bees find their way home",
    "What should I pack for a week of sailing",
)


class Past:
    """A library with talks of all kinds, and recall on it, by words or by words and meaning."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.store = library.store
        self.feedback = Feedback(library.store)
        self.talk = told(self.store, VET, title="Minka")
        for text in OTHERS:
            told(self.store, text, title=text.split()[-1])
        self.by_words = self.recalling(by_meaning=False)
        self.service = self.recalling(by_meaning=True)

    def recalling(self, *, by_meaning: bool) -> RecallService:
        search = self.library.with_meaning if by_meaning else self.library.service
        meaning = self.library.meaning
        finder = Finder(search, self.library.index, self.library.sync, meaning)  # type: ignore[arg-type]
        return RecallService(self.store, self.library.settings, search, finder)

    def recall(
        self,
        question: str,
        conversation_id: ConversationId | None = None,
        segment: Segment = ANYWHERE,
        **options: object,
    ) -> Retrieved:
        self.library.sync.catch_up()
        wanted = RecallOptions(**options)  # type: ignore[arg-type]
        return self.service.retrieve(question, conversation_id, segment, wanted)

    def titles(self, question: str, **more: object) -> list[str]:
        """Return the conversations that would be injected."""
        found = self.recall(question, **more)  # type: ignore[arg-type]
        return [each.title for each in found.conversations if each.match.relevance >= FLOOR]

    def fact(self, text: str, whole: Told | None = None, **fields: object) -> Fact:
        source = (None, None, None)
        if whole is not None:
            exchange = whole.exchanges[0]
            source = (whole.conversation.id, exchange.id, exchange.message_ids[0])  # type: ignore[assignment]
        made = replace(
            Fact(
                self.store.ids.passage(), new_uid(), text, FactCategory.OTHER, "", *source, AT,
                BY_USER, AT,
            ),
            **fields,  # type: ignore[arg-type]
        )  # fmt: skip
        self.store.save(*fact_changes(made))
        return made


@pytest.fixture
def past(data_dir: Path) -> Iterator[Past]:
    with opened(data_dir) as store:
        library = Library(store)
        yield Past(library)
        library.sync.stop()


# -- what comes back


def test_the_turn_that_answers_comes_back_dated_and_cut(past: Past) -> None:
    found = past.recall("Who is the vet of my cat Minka?")
    talk = found.conversations[0]
    (turn,) = talk.exchanges
    assert (talk.title, talk.exchange_count, talk.started_at) == ("Minka", 1, AT)
    assert (turn.user, turn.started_at) == (CAT, AT)
    assert "Doctor Arden" in turn.assistant
    assert (turn.exchange_id, turn.turn_number) == (past.talk.exchanges[0].id, 0)
    assert talk.match.relevance >= FLOOR
    assert turn.match.kind is PassageKind.TURN
    assert found.titles[talk.conversation_id] == "Minka"
    assert found.notice == ""


def test_what_is_not_in_memory_is_not_relevant(past: Past) -> None:
    for question in ("What did the plumber charge for the boiler?", "Is Latvia in the eurozone?"):
        assert past.titles(question) == []
        assert past.titles(question) == []


def test_conversations_stand_in_the_order_of_their_best_turns(past: Past) -> None:
    told(past.store, "Minka the cat and a scratching post", title="Furniture")
    found = past.recall("vet of my cat Minka")
    relevances = [each.match.relevance for each in found.conversations]
    assert relevances == sorted(relevances, reverse=True)
    assert [each.title for each in found.conversations[:2]] == ["Minka", "Furniture"]


def test_a_long_answer_is_cut_where_it_answers(past: Past) -> None:
    filler = "The weather was mild and nothing else happened that day. " * 30
    told(past.store, ("Tell me of the harbour", f"{filler}The ferry costs twelve euros. {filler}"))
    (turn, *_) = past.recall("What does the harbour ferry cost?").history
    assert "twelve euros" in turn.assistant
    assert len(turn.assistant) <= 200


def test_the_very_same_turn_comes_back_once(past: Past) -> None:
    told(past.store, VET, title="Minka again")
    found = past.recall("Who is the vet of my cat Minka?")
    assert [each.user for each in found.history].count(CAT) == 1


def test_facts_that_hold_come_back_with_their_source(past: Past) -> None:
    fact = past.fact("Minka the cat is seen by doctor Arden", past.talk)
    found = past.recall("Which doctor sees my cat Minka?").facts
    assert [each.text for each in found] == [fact.text]
    assert found[0].exchange_id == past.talk.exchanges[0].id
    assert found[0].match.relevance >= FLOOR


def test_facts_that_ended_or_are_hidden_never_come_back(past: Past) -> None:
    past.fact("Minka the cat is seen by doctor Bell", valid_until=AT)
    secret = told(past.store, "unsaid", private=True)
    past.fact("Minka the cat is seen by doctor Crane", secret)
    trashed = told(past.store, "thrown away")
    past.fact("Minka the cat is seen by doctor Dell", trashed)
    past.library.edit(trashed, deleted_at=AT)
    assert past.recall("Which doctor sees my cat Minka?").facts == ()


# -- what never does


def test_the_conversation_that_asks_is_left_out(past: Past) -> None:
    found = past.recall("Who is the vet of my cat Minka?", past.talk.conversation.id)
    ids = [each.conversation_id for each in found.conversations]
    ids += [each.conversation_id for each in found.history]
    assert past.talk.conversation.id not in ids


@pytest.mark.parametrize("fields", [{"archived": True}, {"deleted_at": AT}])
def test_what_is_put_away_does_not_come_back(past: Past, fields: dict[str, object]) -> None:
    past.library.edit(past.talk, **fields)
    assert "Minka" not in past.titles("Who is the vet of my cat Minka?")


def test_what_is_archived_comes_back_when_asked_for_and_the_trash_does_not(past: Past) -> None:
    gone = told(past.store, "The vet of the cat Minka moved", title="Gone")
    past.library.edit(gone, deleted_at=AT)
    past.library.edit(past.talk, archived=True)
    assert past.titles("Who is the vet of my cat Minka?", with_archived=True)[0] == "Minka"
    assert "Gone" not in past.titles("Who is the vet of my cat Minka?", with_archived=True)


@pytest.mark.parametrize(
    "text",
    ["ok", "Thanks!", "yes, please go on", "Hallo", "merci beaucoup", "да, спасибо", "谢谢！",
     "はい", "👍", "", "   ", "?", "네, 감사합니다"],
)  # fmt: skip
def test_courtesies_recall_nothing(past: Past, text: str) -> None:
    told(past.store, text or "nothing", title="The same again")
    found = past.recall(text, segment=Segment(frozenset({past.talk.exchanges[0].id})))
    assert replace(found, took_ms=0.0) == Retrieved()


# -- what the user thinks of it


def passage_of_talk(past: Past) -> PassageId:
    return past.recall("Who is the vet of my cat Minka?").conversations[0].match.passage_id


def test_what_is_never_to_be_used_again_is_not(past: Past) -> None:
    passage = passage_of_talk(past)
    past.feedback.give(passage, Verdict.NEVER)
    found = past.recall("Who is the vet of my cat Minka?")
    matches = [each.match for each in found.conversations]
    matches += [each.match for each in found.history]
    assert passage not in {each.passage_id for each in matches}
    past.feedback.give(passage, None)
    assert passage_of_talk(past) == passage


def test_a_fact_is_never_used_again_either(past: Past) -> None:
    fact = past.fact("Minka the cat is seen by doctor Arden")
    past.feedback.give(fact.id, Verdict.NEVER)
    assert past.recall("Which doctor sees my cat Minka?").facts == ()


def test_a_pinned_fact_is_preferred_where_it_matches(past: Past) -> None:
    first = past.fact("Minka the cat is seen by doctor Arden")
    second = past.fact("Minka the cat is seen by doctor Bell")
    found = past.recall("Which doctor sees my cat Minka?").facts
    last = next(each for each in (first, second) if each.text == found[-1].text)
    past.store.save(FactPut(replace(last, pinned=True)))
    again = past.recall("Which doctor sees my cat Minka?").facts
    assert again[0].text == last.text
    assert again[0].match.relevance > found[-1].match.relevance
    assert again[0].match.verdict is None


def test_votes_move_what_they_were_given_for(past: Past) -> None:
    passage = passage_of_talk(past)
    relevances = []
    for verdict in (Verdict.DOWN, None, Verdict.UP):
        past.feedback.give(passage, verdict)
        found = past.recall("Who is the vet of my cat Minka?")
        match = next(e.match for e in found.history if e.match.passage_id == passage)
        assert match.verdict is verdict
        relevances.append(match.relevance)
    assert relevances == sorted(relevances)
    assert relevances[0] < relevances[1] < relevances[2]


def test_age_counts_only_when_asked_to(past: Past) -> None:
    told(past.store, "The cat Minka eats salmon", title="Old", at=AT - timedelta(days=3650))
    told(past.store, "The cat Minka eats salmon or some other things", title="New", at=AT)
    for half_life, title in ((0.0, "Old"), (30.0, "New")):
        found = past.recall("cat Minka eats salmon", half_life_days=half_life)
        assert found.conversations[0].title == title


# -- earlier in the segment


def long_talk(past: Past) -> Told:
    lines = [(text, f"About that: {text}") for text in OTHERS]
    return told(past.store, VET, *lines, title="Long")


def test_an_earlier_message_of_the_segment_comes_back_whole(past: Past) -> None:
    talk = long_talk(past)
    segment = Segment(frozenset(each.id for each in talk.exchanges))
    found = past.recall("Where is the vet of my cat Minka?", talk.conversation.id, segment).earlier
    assert found[0].text in VET
    assert found[0].match.relevance >= FLOOR
    assert found[0].exchange_id == talk.exchanges[0].id


def test_what_the_prompt_holds_and_other_segments_are_not_earlier(past: Past) -> None:
    talk = long_talk(past)
    held = frozenset(talk.exchanges[0].message_ids)
    question, ids = "Where is the vet of my cat Minka?", [each.id for each in talk.exchanges]
    segment = Segment(frozenset(ids), held)
    assert held.isdisjoint(e.message_id for e in past.recall(question, segment=segment).earlier)
    after_new = Segment(frozenset(ids[5:]))
    turns = {each.exchange_id for each in past.recall(question, segment=after_new).earlier}
    assert turns <= set(ids[5:])
    assert past.recall(question).earlier == ()


# -- when something fails


def test_without_vectors_words_find_and_it_is_said(past: Past) -> None:
    past.library.meaning.is_there = False
    past.library.meaning.problem = "The embedder does not answer."
    found = past.recall("Who is the vet of my cat Minka?")
    assert found.conversations[0].title == "Minka"
    assert found.conversations[0].match.cosine is None
    assert found.notice == "Recall went by words alone. The embedder does not answer."


def test_without_the_text_index_meaning_finds(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    past.library.sync.catch_up()
    monkeypatch.setattr(past.library.index, "candidates", raising(IndexUnavailable("gone")))
    found = past.recall("Who is the vet of my cat Minka?")
    assert found.conversations[0].title == "Minka"


def test_with_neither_nothing_is_found_and_it_is_said(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.library.meaning.is_there = False
    monkeypatch.setattr(past.library.index, "candidates", raising(IndexUnavailable("It is gone")))
    found = past.recall("Who is the vet of my cat Minka?")
    assert not found.conversations
    assert not found.history
    assert found.notice == "Recall found less: It is gone"


def test_an_index_that_is_being_built_is_said(past: Past) -> None:
    past.library.sync.catch_up()
    past.library.sync.covered_share = 0.4
    found = past.service.retrieve("cat Minka", None, Segment(), RecallOptions())
    assert found.notice == "The text index is being built; recall searched 40% of it."


@pytest.mark.parametrize("error", [StorageError("The database is busy"), RuntimeError("a bug")])
def test_a_database_that_fails_is_no_exception(
    past: Past, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.library.sync.catch_up()
    monkeypatch.setattr(RecallReads, "heads", raising(error))
    past.fact("Minka the cat is seen by doctor Arden")
    found = past.service.retrieve("cat Minka", None, Segment(), RecallOptions())
    assert replace(found, took_ms=0.0, notice="") == Retrieved()
    assert found.notice


def test_what_takes_too_long_ends_between_the_parts(past: Past) -> None:
    past.fact("Minka the cat is seen by doctor Arden")
    past.library.sync.catch_up()
    answers = iter([False, False, True])
    found = past.service.retrieve(
        "Which doctor sees my cat Minka?", None, Segment(), RecallOptions(), lambda: next(answers)
    )
    assert found.conversations
    assert not found.facts
    assert found.notice == "Recall was cut short, because it took too long."


def raising(error: Exception) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


# -- limits


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """Six conversations that all speak of the same."""
    with opened(tmp_path_factory.mktemp("crowd") / "data") as store:
        library = Library(store)
        past = Past(library)
        for number in range(6):
            turns = [f"Minka the cat, note {number} of day {day}" for day in range(4)]
            told(store, *turns, title=f"Notes {number}")
        for number in range(8):
            past.fact(f"Minka the cat likes toy {number}")
        library.sync.catch_up()
        yield past
        library.sync.stop()


@given(
    conversations=st.integers(1, 5),
    exchanges=st.integers(1, 4),
    history=st.integers(0, 5),
    facts=st.integers(0, 5),
)
def test_more_comes_back_than_is_taken_but_not_much_and_nothing_twice(
    crowd: Past, conversations: int, exchanges: int, history: int, facts: int
) -> None:
    options = RecallOptions(conversations, exchanges, history, facts)
    found = crowd.service.retrieve("Minka the cat", None, Segment(), options)
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


@given(question=st.text(max_size=60))
def test_any_text_may_be_asked(crowd: Past, question: str) -> None:
    assert crowd.service.retrieve(question, None, Segment(), RecallOptions()).notice == ""


def test_saved_texts_stand_beside_facts(past: Past) -> None:
    memories = MemoryService(past.store)
    saved = memories.save("The spare key of the boat house hangs behind the blue barometer.")
    question = "Where does the spare key of the boat house hang?"
    found = past.recall(question, fact_limit=3).facts[0]
    assert (found.match.kind, found.match.passage_id) == (PassageKind.MEMORY, saved.id)
    assert (found.text, found.said_at) == (saved.text, saved.saved_at)
    assert found.match.relevance >= FLOOR
    past.feedback.give(saved.id, Verdict.NEVER)
    assert past.recall(question).facts == ()
    past.feedback.give(saved.id, None)
    memories.forget(saved.id)
    assert past.recall(question).facts == ()


# -- for the Recall model


def quoted(past: Past, question: str, conversation_id: int = 0) -> list[str]:
    past.library.sync.catch_up()
    found = past.service.quotable(question, ConversationId(conversation_id), 3)
    return [each.user_question for each in found if not each.is_weak]


def test_recall_quotes_what_answers_from_elsewhere(past: Past) -> None:
    question = "Who is the vet of my cat Minka?"
    assert quoted(past, question) == [CAT]
    assert quoted(past, question, past.talk.conversation.id) == []
    assert past.service.quotable("thanks", ConversationId(0), 3) == ()


def test_recall_quotes_facts_and_saved_texts_with_where_they_are_from(past: Past) -> None:
    source = told(past.store, "We went out with Biscuit all day", title="Walks")
    fact = past.fact("The user's dog is called Biscuit.", source)
    saved = MemoryService(past.store).save("The dog gets its tablet on Friday evening.")
    past.library.sync.catch_up()
    best, *_ = past.service.quotable("What is my dog called?", ConversationId(0), 6)
    assert (best.kind, best.passage_id, best.snippet) == (PassageKind.FACT, fact.id, fact.text)
    assert (best.conversation_id, best.turn_number) == (source.conversation.id, 0)
    question = "Which evening does the dog get its tablet?"
    best, *rest = past.service.quotable(question, ConversationId(0), 6)
    assert (best.kind, best.passage_id, best.snippet) == (PassageKind.MEMORY, saved.id, saved.text)
    assert best.conversation_id is None
    assert [each.relevance for each in rest] == sorted((e.relevance for e in rest), reverse=True)
    past.feedback.give(saved.id, Verdict.NEVER)
    found = past.service.quotable(question, ConversationId(0), 6)
    assert saved.id not in {each.passage_id for each in found}


def test_recall_quotes_the_answer_where_only_the_question_holds_the_words(past: Past) -> None:
    asked = "Which hose fits the washing machine in the cellar of the old school?"
    told(past.store, (asked, "One with a three-quarter thread. Mind the seal."), title="Laundry")
    past.library.sync.catch_up()
    best, *_ = past.service.quotable("washing machine hose", ConversationId(0), 6)
    assert best.user_question == asked
    assert best.snippet == "One with a three-quarter thread. Mind the seal."
    said = "The washing machine of the new school has a hose that is much too short."
    told(past.store, (said, "Noted."), title="Another laundry")
    past.library.sync.catch_up()
    best, *_ = past.service.quotable("hose too short", ConversationId(0), 6)
    assert best.snippet == said


def test_recall_quotes_no_fact_of_a_conversation_in_the_trash(past: Past) -> None:
    source = told(past.store, "We went out with Biscuit all day", title="Walks")
    past.fact("The user's dog is called Biscuit.", source)
    past.store.save(ConversationEdited(source.conversation.id, deleted_at=AT))
    past.library.sync.catch_up()
    found = past.service.quotable("What is my dog called?", ConversationId(0), 6)
    assert PassageKind.FACT not in {each.kind for each in found}


def test_nothing_is_quoted_where_memory_is_off(past: Past) -> None:
    asking = told(past.store, "Something else").conversation.id
    Chats(past.store).use_memory(asking, False)
    with pytest.raises(MemoryOff, match="Memory is switched off for this conversation"):
        quoted(past, "Who is the vet of my cat Minka?", asking)
    Chats(past.store).use_memory(asking, True)
    assert quoted(past, "Who is the vet of my cat Minka?", asking) == [CAT]


def test_a_question_for_recall_is_words_whatever_it_looks_like(past: Past) -> None:
    assert quoted(past, '"vet -cat title:Minka') == [CAT]
    assert quoted(past, "my cat Minka " * 400)[0] == CAT


def test_a_question_for_nobody_goes_all_the_way_and_writes_nothing(past: Past) -> None:
    position = past.store.read(
        lambda cursor: cursor.execute("SELECT position FROM state").fetchone()
    )
    past.service.warm_up()
    assert len(past.library.meaning.asked) == 1, "it counts as small talk"
    now = past.store.read(lambda cursor: cursor.execute("SELECT position FROM state").fetchone())
    assert now == position

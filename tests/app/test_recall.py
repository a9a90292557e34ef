"""Recall: quoted, dated, linked, grouped; honest when it has little or nothing; harmless."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.domain.chat import ChatRequest, Finished, FinishReason, TextDelta
from app.domain.conversations import Message, Role, Text
from app.domain.errors import MemoryOff
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind, SearchResult
from app.providers.recall import RecallModel
from tests.fakes.stored import AT

RESULT = SearchResult(
    kind=PassageKind.TURN, passage_id=PassageId(1), source="commonplace",
    conversation_id=ConversationId(7), conversation_title="Herbs", archived=False, turn_number=3,
    exchange_id=ExchangeId(5), message_id=MessageId(9), relevance=0.8,
    is_weak=False, cosine=None, user_question="How do I keep basil alive?", snippet="Give it light.", marks=(), created_at=AT,
    model=None,
)  # fmt: skip


def asking(*texts: str) -> ChatRequest:
    """Return a request that ends with the last text; user and assistant take turns."""
    messages = tuple(
        Message(
            MessageId(number + 1), str(number), ConversationId(4), None,
            Role.ASSISTANT if number % 2 else Role.USER, (Text(text),), AT,
        )
        for number, text in enumerate(texts)
    )  # fmt: skip
    return ChatRequest("", messages)


def answer(*found: SearchResult) -> str:
    async def run() -> list[object]:
        return [event async for event in RecallModel(lambda *_: found).stream(asking("basil?"))]

    *deltas, last = asyncio.run(run())
    assert last == Finished(FinishReason.STOP)
    return "".join(each.text for each in deltas if isinstance(each, TextDelta))


def test_a_passage_is_quoted_dated_and_linked() -> None:
    said = answer(RESULT)
    assert said.startswith("From your conversations:\n\n**Herbs** · 1 March 2026\n")
    assert "[How do I keep basil alive?](commonplace://7/3) · 80%\n" in said
    assert "\n> Give it light.\n" in said


def test_it_says_plainly_that_no_language_model_answered() -> None:
    for said in (answer(RESULT), answer()):
        assert "*Recall answered, not a language model. Choose a model above" in said


def test_nothing_found_is_said_with_what_to_do() -> None:
    said = answer()
    assert said.startswith("I found nothing about that in your conversations.")
    assert "Import your past chats, or ask with other words." in said
    assert "commonplace://" not in said


def test_where_memory_is_off_that_is_all_it_says() -> None:
    def find(*_: object) -> Sequence[SearchResult]:
        raise MemoryOff("Memory is off here", "Switch it on.")

    async def run() -> list[object]:
        return [event async for event in RecallModel(find).stream(asking("basil?"))]

    first, *_, last = asyncio.run(run())
    assert first == TextDelta("Memory is off here. Switch it on.\n\n")
    assert last == Finished(FinishReason.STOP)


def test_what_hardly_fits_is_called_so() -> None:
    said = answer(replace(RESULT, relevance=0.2, is_weak=True))
    assert said.startswith("Nothing fits well. The nearest in your conversations:")


def test_what_fits_to_some_degree_is_called_so() -> None:
    said = answer(replace(RESULT, relevance=0.46, is_weak=True))
    assert said.startswith("This may be it, from your conversations:")
    far = replace(RESULT, relevance=0.1, is_weak=True, conversation_title="Bicycles")
    assert "Bicycles" not in answer(replace(RESULT, relevance=0.46, is_weak=True), far)


def test_what_has_nothing_to_do_with_it_is_not_quoted() -> None:
    nothing = replace(RESULT, relevance=0.02, is_weak=True)
    assert answer(nothing).startswith("I found nothing about that in your conversations.")
    poor = [replace(RESULT, relevance=0.09, is_weak=True, turn_number=n) for n in range(5)]
    assert answer(*poor, nothing).count("commonplace://") == 3


def test_a_summary_is_called_so_and_says_nothing_again() -> None:
    summary = replace(
        RESULT, kind=PassageKind.CONVERSATION_SUMMARY, user_question="", turn_number=None,
        snippet="About herbs.",
    )  # fmt: skip
    assert "[Summary of the conversation](commonplace://7/0) · 80%" in answer(summary)
    assert "About herbs." not in answer(RESULT, summary)
    assert "About herbs." in answer(
        replace(RESULT, conversation_id=ConversationId(8), relevance=0.9), summary
    )


FACT = replace(
    RESULT, kind=PassageKind.FACT, passage_id=PassageId(57), user_question="",
    snippet="The user's basil is called Rex.", relevance=0.9,
)  # fmt: skip
MEMORY = replace(
    FACT, kind=PassageKind.MEMORY, passage_id=PassageId(58), conversation_id=None,
    conversation_title="", turn_number=None, exchange_id=None, message_id=None,
    snippet="Water the basil on Monday.", relevance=0.85,
)  # fmt: skip


def test_facts_and_saved_memories_stand_in_sections_of_their_own_the_best_first() -> None:
    said = answer(FACT, MEMORY, RESULT)
    assert said.startswith(
        "From your conversations and saved memories:\n\n"
        "**Facts** · learned from what was said\n\n"
        "[Fact 57 · 1 March 2026](commonplace://7/3) · 90%\n\n"
        "> The user's basil is called Rex.\n\n"
        "**Saved memories** · kept on purpose\n\n"
        "Memory 58 · 1 March 2026 · 85%\n\n"
        "> Water the basil on Monday.\n\n"
        "**Herbs** · 1 March 2026\n"
    )


def test_a_fact_that_the_user_wrote_has_no_link_and_a_memory_saved_in_a_turn_has_one() -> None:
    written = replace(FACT, conversation_id=None, turn_number=None, exchange_id=None)
    assert "\nFact 57 · 1 March 2026 · 90%\n" in answer(written)
    in_turn = replace(MEMORY, conversation_id=ConversationId(7), turn_number=2)
    assert "\n[Memory 58 · 1 March 2026](commonplace://7/2) · 85%\n" in answer(in_turn)


def test_where_only_saved_memories_are_quoted_it_says_so() -> None:
    assert answer(MEMORY).startswith("From your saved memories:")


def test_a_fact_takes_no_summary_away() -> None:
    summary = replace(
        RESULT, kind=PassageKind.CONVERSATION_SUMMARY, user_question="", snippet="About herbs."
    )
    assert "About herbs." in answer(FACT, summary)


def test_what_hardly_fits_is_left_out_beside_what_does() -> None:
    weak = replace(RESULT, relevance=0.1, is_weak=True, conversation_title="Bicycles")
    assert "Bicycles" not in answer(RESULT, weak)


def test_turns_of_one_conversation_stand_together_the_best_first() -> None:
    other = replace(RESULT, conversation_id=ConversationId(8), conversation_title="Roots")
    second = replace(RESULT, turn_number=6, user_question="And mint?")
    said = answer(RESULT, other, second)
    assert said.count("**Herbs**") == 1
    assert said.index("commonplace://7/3") < said.index("commonplace://7/6") < said.index("Roots")


def test_the_last_question_is_looked_for_and_its_conversation_left_out() -> None:
    asked: list[tuple[str, int, int]] = []

    def find(question: str, conversation_id: ConversationId, limit: int) -> Sequence[SearchResult]:
        asked.append((question, conversation_id, limit))
        return ()

    async def run() -> None:
        async for _ in RecallModel(find).stream(asking("first", "an answer", "second")):
            pass

    asyncio.run(run())
    assert asked == [("second", 4, 6)]


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("[click](http://evil.example)", r"\[click\](http://evil.example)"),
        ("<img src=x>", r"\<img src=x\>"),
        ("**bold** `code`", r"\*\*bold\*\* \`code\`"),
    ],
)
def test_titles_and_questions_are_shown_as_they_are(title: str, shown: str) -> None:
    assert shown in answer(replace(RESULT, conversation_title=title))
    assert shown in answer(replace(RESULT, user_question=title))


def test_a_turn_without_a_question_still_has_its_link() -> None:
    said = answer(replace(RESULT, user_question="", turn_number=None))
    assert "[Open the turn](commonplace://7/0)" in said


def test_a_quotation_stays_inside_its_quote() -> None:
    said = answer(replace(RESULT, snippet="one\ntwo\n```\nthree"))
    assert "> one\n> two\n> '''\n> three\n" in said
    assert "```" not in said


def test_recall_lists_itself_as_the_one_model() -> None:
    (card,) = asyncio.run(RecallModel(lambda *_: ()).models())
    assert (str(card.ref), card.title) == ("recall:", "Recall (built in)")


def test_it_knows_what_it_quoted_last_in_a_conversation() -> None:
    weak = replace(RESULT, relevance=0.1, is_weak=True, passage_id=PassageId(2))
    model = RecallModel(lambda *_: (RESULT, weak))

    async def ask() -> None:
        async for _ in model.stream(asking("basil?")):
            pass

    assert model.quoted_in(ConversationId(4)) == ()
    asyncio.run(ask())
    assert list(model.quoted_in(ConversationId(4))) == [RESULT]
    assert model.quoted_in(ConversationId(5)) == ()

"""The Recall model: quotations with dates and links, and what it says without results."""

import asyncio
from dataclasses import replace

import pytest

from app.domain.chat import ChatRequest, Finished, FinishReason, TextDelta
from app.domain.conversations import Message, Role, Text
from app.domain.errors import MemoryOff
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.results import SearchResult
from app.providers.vendors.recall import RecallModel
from tests.fakes.stored import AT

RESULT = SearchResult(
    kind=PassageKind.TURN, passage_id=PassageId(1), source="commonplace",
    conversation_id=ConversationId(7), conversation_title="Herbs", archived=False, turn_number=3,
    exchange_id=ExchangeId(5), message_id=MessageId(9), relevance=0.8,
    is_weak=False, cosine=None, user_question="How do I keep basil alive?", snippet="Give it light.", marks=(), created_at=AT,
    model=None,
)  # fmt: skip


SUMMARY = replace(
    RESULT, kind=PassageKind.CONVERSATION_SUMMARY, user_question="", turn_number=None,
    snippet="About herbs.",
)  # fmt: skip
FACT = replace(
    RESULT, kind=PassageKind.FACT, passage_id=PassageId(57), user_question="",
    snippet="The user's basil is called Rex.", relevance=0.9,
)  # fmt: skip
MEMORY = replace(
    FACT, kind=PassageKind.MEMORY, passage_id=PassageId(58), conversation_id=None,
    conversation_title="", turn_number=None, exchange_id=None, message_id=None,
    snippet="Water the basil on Monday.", relevance=0.85,
)  # fmt: skip
BIKES = replace(RESULT, relevance=0.1, is_weak=True, conversation_title="Bicycles")


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


def reply_of(model: RecallModel, *texts: str) -> str:
    async def run() -> list[object]:
        return [event async for event in model.stream(asking(*texts))]

    *deltas, last = asyncio.run(run())
    assert last == Finished(FinishReason.STOP)
    return "".join(each.text for each in deltas if isinstance(each, TextDelta))


def answer(*found: SearchResult) -> str:
    return reply_of(RecallModel(lambda *_: found), "basil?")


def test_a_turn_is_quoted_with_date_and_link() -> None:
    said = answer(RESULT)
    assert said.startswith("From your conversations:\n\n**Herbs** · 1 March 2026\n")
    assert "[How do I keep basil alive?](commonplace://7/3) · 80%\n" in said
    assert "\n> Give it light.\n" in said
    assert "not a language model" in said
    said = answer(replace(RESULT, user_question="", turn_number=None))
    assert "[Open the turn](commonplace://7/0)" in said


def test_without_results_or_memory_it_says_so() -> None:
    poor = replace(RESULT, relevance=0.02, is_weak=True)
    for said in (answer(), answer(poor)):
        assert "commonplace://" not in said
        assert "not a language model" in said
        assert "nothing" in said

    def find(*_: object) -> tuple[SearchResult, ...]:
        raise MemoryOff("Memory is off here", "Switch it on.")

    assert reply_of(RecallModel(find), "basil?").startswith("Memory is off here. Switch it on.")


def test_weak_results_are_introduced_as_such_and_few() -> None:
    openings = {
        answer(RESULT), answer(replace(RESULT, relevance=0.46, is_weak=True, is_hint=True)),
        answer(replace(RESULT, relevance=0.2, is_weak=True)),
    }  # fmt: skip
    assert len({each.partition(":")[0] for each in openings}) == 3
    poor = [replace(RESULT, relevance=0.09, is_weak=True, turn_number=n) for n in range(5)]
    assert answer(*poor, replace(BIKES, relevance=0.02)).count("commonplace://") == 3
    hint = replace(BIKES, relevance=0.46, is_hint=True, turn_number=4)
    for better in (RESULT, hint):
        assert "Bicycles" not in answer(replace(better, conversation_title="Herbs"), BIKES)
    said = answer(RESULT, *(replace(hint, turn_number=n) for n in range(4, 9)))
    assert (said.count("commonplace://"), said.count("possibly related")) == (4, 3)


def test_a_summary_is_labeled_and_not_repeated() -> None:
    assert "[Summary of the conversation](commonplace://7/0) · 80%" in answer(SUMMARY)
    assert "About herbs." not in answer(RESULT, SUMMARY)
    other = replace(RESULT, conversation_id=ConversationId(8), relevance=0.9)
    for beside in (other, FACT):
        assert "About herbs." in answer(beside, SUMMARY)


def test_facts_and_memories_have_sections_of_their_own() -> None:
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
    written = replace(FACT, conversation_id=None, turn_number=None, exchange_id=None)
    assert "\nFact 57 · 1 March 2026 · 90%\n" in answer(written)
    in_turn = replace(MEMORY, conversation_id=ConversationId(7), turn_number=2)
    assert "\n[Memory 58 · 1 March 2026](commonplace://7/2) · 85%\n" in answer(in_turn)
    assert answer(MEMORY).startswith("From your saved memories:")


def test_turns_of_one_conversation_are_grouped_best_first() -> None:
    other = replace(RESULT, conversation_id=ConversationId(8), conversation_title="Roots")
    second = replace(RESULT, turn_number=6, user_question="And mint?")
    said = answer(RESULT, other, second)
    assert said.count("**Herbs**") == 1
    assert said.index("commonplace://7/3") < said.index("commonplace://7/6") < said.index("Roots")


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("[click](http://evil.example)", r"\[click\](http://evil.example)"),
        ("<img src=x>", r"\<img src=x\>"),
        ("**bold** `code`", r"\*\*bold\*\* \`code\`"),
    ],
)
def test_markdown_of_the_user_is_escaped(title: str, shown: str) -> None:
    assert shown in answer(replace(RESULT, conversation_title=title))
    assert shown in answer(replace(RESULT, user_question=title))
    said = answer(replace(RESULT, snippet="one\ntwo\n```\nthree"))
    assert "> one\n> two\n> '''\n> three\n" in said
    assert "```" not in said


def test_it_searches_for_the_last_question_and_remembers_what_it_quoted() -> None:
    asked: list[tuple[object, ...]] = []

    def find(*given: object) -> tuple[SearchResult, ...]:
        asked.append(given)
        return RESULT, replace(BIKES, passage_id=PassageId(2))

    model = RecallModel(find)
    assert model.last_quoted(ConversationId(4)) == ()
    reply_of(model, "first", "an answer", "second")
    assert asked == [("second", 4, 6)]
    assert list(model.last_quoted(ConversationId(4))) == [RESULT]
    assert model.last_quoted(ConversationId(5)) == ()
    (card,) = asyncio.run(model.models())
    assert (str(card.ref), card.title) == ("recall:", "Recall (built in)")

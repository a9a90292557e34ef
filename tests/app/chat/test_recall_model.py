"""The Recall model: quotations with dates and links, and what it says without results."""

import asyncio
from dataclasses import replace

import pytest

from app.domain.chat import ChatRequest, Finished, FinishReason
from app.domain.conversations import ANY_RECALL, Message, Role, Text
from app.domain.errors import MemoryOff
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.results import FoundAnswer, SearchResult
from app.domain.turns import RECALL_MODEL
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


def asking(*texts: str, by: str | None = None) -> ChatRequest:
    """Return a request that ends with the last text; user and assistant (the model `by`) take turns."""
    messages = tuple(
        Message(
            MessageId(number + 1), str(number), ConversationId(4), None,
            Role.ASSISTANT if number % 2 else Role.USER, (Text(text),), AT,
            model=by if number % 2 else None,
        )
        for number, text in enumerate(texts)
    )  # fmt: skip
    return ChatRequest("", messages)


def reply_of(model: RecallModel, *texts: str, by: str | None = None) -> str:
    async def run() -> list[object]:
        return [event async for event in model.stream(asking(*texts, by=by))]

    *deltas, last = asyncio.run(run())
    assert last == Finished(FinishReason.STOP)
    return "".join(each.text for each in deltas if isinstance(each, Text))


def found(*results: SearchResult, said: str = "") -> list[FoundAnswer]:
    """Return results whose reply is their snippet, beside what the user `said`."""
    return [FoundAnswer(each, said, each.snippet) for each in results]


def answer(*results: SearchResult, asked: str = "basil?") -> str:
    return reply_of(RecallModel(lambda *_: found(*results)), asked)


def test_an_answer_begins_with_what_was_said_and_names_its_source() -> None:
    said = answer(RESULT)
    link = "[Herbs, 1 Mar 2026](commonplace://7/3) · How do I keep basil alive?"
    assert said.startswith(f"> Give it light.\n\n{link}\n")
    said = answer(replace(RESULT, user_question="", turn_number=None))
    assert "[Herbs, 1 Mar 2026](commonplace://7/0)\n" in said


def test_the_question_that_is_asked_is_not_quoted_back() -> None:
    assert RESULT.user_question not in answer(RESULT, asked=f" {RESULT.user_question}\n")
    said = reply_of(RecallModel(lambda *_: found(RESULT, said="My basil dies.")), "basil?")
    assert said.startswith("> **You:** My basil dies.\n>\n> **Reply:** Give it light.\n")
    assert RESULT.user_question not in said


def test_the_line_about_models_is_said_once_in_a_conversation() -> None:
    model = RecallModel(lambda *_: found(RESULT))
    assert "not a language model" in reply_of(model, "basil?")
    assert "not a language model" in reply_of(
        model, "basil?", "Another model's answer", "And mint?"
    )
    assert "not a language model" not in reply_of(
        model, "basil?", "> Give it light.", "And mint?", by=RECALL_MODEL
    )


def test_without_results_or_memory_it_says_so() -> None:
    poor = replace(RESULT, relevance=0.02, is_weak=True)
    nothing = {answer(), answer(poor)}
    assert len(nothing) == 1
    stated = answer(asked="I keep my basil on the sill.")
    unsearchable = reply_of(RecallModel(lambda *_: None), "thanks")
    assert len({*nothing, stated, unsearchable}) == 3, "a statement and small talk are no questions"
    for said in (*nothing, stated, unsearchable):
        assert "commonplace://" not in said

    def find(*_: object) -> list[FoundAnswer]:
        raise MemoryOff("Memory is off here", "Switch it on.")

    assert reply_of(RecallModel(find), "basil?").startswith("Memory is off here. Switch it on.")


def test_weak_results_are_introduced_as_such_and_few() -> None:
    weak = replace(RESULT, relevance=0.09, is_weak=True)
    poor = [
        replace(weak, turn_number=n, exchange_id=ExchangeId(10 + n), snippet=f"Advice {n}.")
        for n in range(5)
    ]
    hints = [replace(each, relevance=0.46, is_hint=True) for each in poor]
    assert len({answer(*each).partition("\n")[0] for each in ([RESULT], hints[:1], poor[:1])}) == 3
    assert answer(*poor, replace(BIKES, relevance=0.02)).count("\n- [") == 3
    for better in (RESULT, hints[0]):
        assert "Bicycles" not in answer(better, BIKES)
    said = answer(RESULT, *hints)
    assert (said.count("commonplace://"), said.count("\n- [Herbs, 1 Mar 2026](")) == (4, 3)
    lines = answer(replace(hints[0], snippet="1. Give it\n   - light. |"))
    assert "): Give it light. |\n" in lines, "one line, without list markers"


def test_beside_a_clear_answer_only_its_conversation_is_possibly_related() -> None:
    hint = replace(
        BIKES, is_hint=True, conversation_id=ConversationId(8), exchange_id=ExchangeId(6), snippet="Oil the chain."
    )  # fmt: skip
    assert hint.snippet in answer(hint), "without a clear answer"
    assert hint.snippet not in answer(RESULT, hint)
    beside = replace(hint, conversation_id=RESULT.conversation_id)
    assert hint.snippet in answer(RESULT, beside)
    assert hint.snippet not in answer(RESULT, replace(beside, exchange_id=RESULT.exchange_id))


def test_a_summary_is_not_repeated_beside_its_turns() -> None:
    assert answer(SUMMARY).startswith("> About herbs.\n")
    assert "About herbs." not in answer(RESULT, SUMMARY)
    other = replace(RESULT, conversation_id=ConversationId(8), relevance=0.9)
    for beside in (other, FACT):
        assert "About herbs." in answer(beside, SUMMARY)


def test_facts_and_memories_are_cited_by_their_id_and_quoted_once() -> None:
    said = answer(FACT, MEMORY)
    assert "[Herbs, 1 Mar 2026 · fact 57](commonplace://7/3)\n" in said
    assert "\nSaved memory, 1 Mar 2026 · memory 58\n" in said
    in_turn = replace(MEMORY, conversation_id=ConversationId(7), turn_number=2)
    assert "[Saved memory, 1 Mar 2026 · memory 58](commonplace://7/2)\n" in answer(in_turn)
    named = replace(RESULT, user_question="Which one? · fact 57")
    assert "· fact 57" not in answer(RESULT, named), "a question cannot look like the id of a fact"
    turn = FoundAnswer(RESULT, FACT.snippet, "Noted.")
    for both in ([*found(FACT), turn], [turn, *found(FACT)]):
        assert reply_of(RecallModel(lambda *_, each=both: each), "x?").count(FACT.snippet) == 1


def test_what_replaced_a_statement_stands_below_it() -> None:
    (now,) = found(replace(FACT, snippet="It is called Max."))
    for turn, before in (
        (RESULT, "Herbs, 1 Mar 2026](commonplace://7/3) · How"),
        (BIKES, "Bicycles"),
    ):
        (old,) = found(turn)
        said = reply_of(RecallModel(lambda *_, each=old: [replace(each, newer=(now,))]), "basil?")
        line = "\n- [Newer: Herbs, 1 Mar 2026 · fact 57](commonplace://7/3): It is called Max.\n"
        assert said.index(before) < said.index(line)


def test_turns_of_one_conversation_are_grouped_best_first() -> None:
    other = replace(
        RESULT, conversation_id=ConversationId(8), conversation_title="Roots", snippet="Dig."
    )
    second = replace(RESULT, turn_number=6, user_question="And mint?", snippet="Cut it.")
    said = answer(RESULT, other, second)
    assert said.count("Herbs") == 1
    assert "[And mint?](commonplace://7/6)" in said
    assert said.index("commonplace://7/3") < said.index("commonplace://7/6") < said.index("Roots")


@pytest.mark.parametrize(
    ("title", "shown"),
    [("[click](http://evil.example)", r"\[click\](http://evil.example)"),
     ("<img src=x>", r"\<img src=x\>"), ("**bold** `code`", r"\*\*bold\*\* \`code\`")],
)  # fmt: skip
def test_markdown_of_the_user_is_escaped(title: str, shown: str) -> None:
    assert shown in answer(replace(RESULT, conversation_title=title))
    assert shown in answer(replace(RESULT, user_question=title))


def test_a_quotation_keeps_its_lines_and_a_related_table_is_one() -> None:
    said = answer(replace(RESULT, snippet="one\n```\n\nthree"))
    assert said.startswith("> one\n> ```\n>\n> three\n\n[Herbs"), "the quotation ends its code"
    table = "| | City | Cargo |\n|---|---|---|\n| **Weight** | 25 kg | 35 kg |"
    text = answer(replace(BIKES, snippet=table))
    assert "City · Cargo; Weight · 25 kg · 35 kg;" in text
    assert "|" not in text


def test_it_searches_for_the_last_question_and_remembers_what_it_quoted() -> None:
    asked: list[tuple[object, ...]] = []

    def find(*given: object) -> list[FoundAnswer]:
        asked.append(given)
        return found(RESULT, replace(BIKES, passage_id=PassageId(2)))

    model = RecallModel(find)
    assert model.last_quoted(ConversationId(4)) == ()
    reply_of(model, "first", "an answer", "second")
    assert asked == [("second", ["first"], 4, 6, ANY_RECALL)]
    assert list(model.last_quoted(ConversationId(4))) == [RESULT]
    assert model.last_quoted(ConversationId(5)) == ()
    (card,) = asyncio.run(model.models())
    assert (str(card.ref), card.title) == ("recall:", "Recall (built in)")

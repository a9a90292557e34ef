"""Sentences, extractive summaries and titles, in several languages."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.turns import TurnMarkdown
from app.language.extractive import (
    CONVERSATION_LIMIT_CHARS,
    EXCHANGE_LIMIT_CHARS,
    SENTENCE_LIMIT,
    Sentence,
    central_sentences,
    conversation_sentences,
    summarize_conversation,
    summarize_exchange,
)
from app.language.sentences import content_terms, split_sentences
from app.language.titles import TITLE_LIMIT_CHARS, first_words
from tests.bench.summaries import OUTCOMES, says_outcome
from tests.fakes.language import CASES

TANKS = TurnMarkdown(
    "Hi! My fish tank turned green last week. Which algae-eating fish keep a 60 litre tank clean?",
    "Great question!\n\nFor a 60 litre tank, otocinclus catfish are the best algae-eating fish. "
    "They stay small and keep plants and glass clean. Let me know if you need anything else!",
)


MARKUP = (
    "# A heading\n\nUse **bold** and `ls -l` [here](https://example.org/a_(b)).\n\n"
    "```python\nprint('no')\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n"
    "> - [x] a quoted task<br>\n~~~\nnever closed\n"
)


@pytest.mark.parametrize(("text", "expected"), CASES["sentences"])
def test_sentences_end_in_every_script(text: str, expected: list[str]) -> None:
    assert [sentence for sentence, _ in split_sentences(text)] == expected


def test_sentences_have_no_markup() -> None:
    expected = [("Use bold and ls -l here.", False), ("a quoted task", True)]
    assert split_sentences(MARKUP) == expected


EXCHANGES = {
    "question and answer": (
        TANKS, ("Which algae-eating fish keep a 60 litre tank clean? "
                "For a 60 litre tank, otocinclus catfish are the best algae-eating fish."),
    ),
    "no marks": (
        TurnMarkdown("compare tea and coffee", "Tea has less caffeine than coffee"),
        "compare tea and coffee. Tea has less caffeine than coffee.",
    ),
    "no marks in Chinese": (
        TurnMarkdown("比较茶和咖啡", "茶的咖啡因比咖啡少"), "比较茶和咖啡。 茶的咖啡因比咖啡少。",
    ),
    "code alone": (TurnMarkdown("```\nSELECT 1\n```", "```sql\nSELECT 2\n```"), "SELECT 1. sql."),
    "nothing": (TurnMarkdown("", ""), ""),
}  # fmt: skip


@pytest.mark.parametrize(("turn", "summary"), EXCHANGES.values(), ids=EXCHANGES)
def test_an_exchange_becomes_question_and_core_of_answer(turn: TurnMarkdown, summary: str) -> None:
    assert summarize_exchange(turn) == summary


def test_long_sentences_are_cut_and_nothing_stays_nothing() -> None:
    long = TurnMarkdown(
        "why " + "does this happen again " * 200, "because " + "it always does so " * 200
    )
    assert len(summarize_exchange(long)) <= EXCHANGE_LIMIT_CHARS
    assert len(summarize_conversation([long] * 5)) <= CONVERSATION_LIMIT_CHARS
    assert summarize_conversation([]) == ""


def test_a_huge_conversation_is_read_in_part_from_beginning_to_end() -> None:
    turns = [
        TurnMarkdown(f"What about item {number}?", f"Item {number} is fine. " * 400)
        for number in range(500)
    ]
    sentences = conversation_sentences(turns)
    assert len(sentences) == SENTENCE_LIMIT
    assert sentences[0].text == "What about item 0?"
    assert any("tem 499" in each.text for each in sentences)


def test_what_is_said_already_adds_nothing_and_the_rest_comes_next() -> None:
    said = [("tea", "cups"), ("tea", "cups"), ("rain", "roof"), ("tea", "rain")]
    chosen = central_sentences([Sentence(" ".join(own), own, False, False, 1.0) for own in said], 4)
    assert len(chosen) < 4
    assert not {0, 1} <= set(chosen)
    assert {term for each in chosen for term in said[each]} == {"tea", "cups", "rain", "roof"}


@pytest.mark.parametrize("sentences", CASES["dated"])
def test_a_date_outlasts_small_talk_in_any_language(sentences: tuple[str, str, str]) -> None:
    dated, question, reply = sentences
    read = conversation_sentences([TurnMarkdown(dated, reply), TurnMarkdown(question, reply)])
    assert read[central_sentences(read, 1)[0]].text == dated


def test_names_of_speakers_stay_with_their_sentences_but_other_words_with_colons_do_not() -> None:
    turns = [
        TurnMarkdown("Caroline: Hey! I joined a choir on 8 May 2023.", "Melanie: Wow! Which one is it?"),
        TurnMarkdown("Caroline: The one at the old harbour. We sing shanties.", "Melanie: I paint lakes."),
    ]  # fmt: skip
    texts = [each.text for each in conversation_sentences(turns)]
    assert all(text.startswith(("Caroline: ", "Melanie: ")) for text in texts)
    assert "Caroline: We sing shanties." in texts
    assert "Caroline: I joined a choir on 8 May 2023." in summarize_conversation(turns)
    notes = [
        TurnMarkdown("Note: the lamp is broken. Please repair it.", "It is done. All lamps work."),
        TurnMarkdown("Thank you for that. It shines again.", "You are welcome. See you soon."),
    ]
    assert "Please repair it." in [each.text for each in conversation_sentences(notes)]


def test_terms_are_stems_without_grammar_and_pairs_where_words_are_not_spaced() -> None:
    assert content_terms("How do I configure the configuration?") == ["config", "config"]
    assert content_terms("我喜欢机器学习") == ["喜欢", "欢机", "机器", "器学", "学习"]
    assert " ".join(content_terms("東京タワーへ行く")) == "東京 京タ タワ ワー ーへ へ行 行く"


@pytest.mark.parametrize(("messages", "title"), CASES["titles"])
def test_a_title_is_the_first_words_after_a_greeting(messages: list[str], title: str) -> None:
    assert first_words(messages) == title


def test_a_title_fits_its_line_and_is_cut_at_a_word() -> None:
    said = "Please explain the relationship between photosynthesis and the water cycle."
    title = first_words([said])
    assert title.endswith("…")
    assert len(title) <= TITLE_LIMIT_CHARS
    assert f"{title[:-1]} " in said


def test_a_summary_says_how_the_conversation_ended() -> None:
    talks = tomllib.loads(OUTCOMES.read_text(encoding="utf-8"))["talk"]
    assert [talk["turns"][0][0] for talk in talks if not says_outcome(talk)] == []


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=300)), max_size=6))
def test_summaries_of_any_text_are_bounded_and_deterministic(pairs: list[tuple[str, str]]) -> None:
    turns = [TurnMarkdown(asked, answered) for asked, answered in pairs]
    summary, title = summarize_conversation(turns), first_words(turn.asked for turn in turns)
    assert summary == summarize_conversation(turns)
    assert len(summary) <= CONVERSATION_LIMIT_CHARS
    assert len(title) <= TITLE_LIMIT_CHARS
    assert all(len(summarize_exchange(turn)) <= EXCHANGE_LIMIT_CHARS for turn in turns)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", ["[", "*", "![](", "`", "<a", "_a", "$$", "【", "\\(", "a.", "- "])
def test_hostile_markup_takes_linear_time(unit: str) -> None:
    hostile = TurnMarkdown(unit * 500_000, f"{unit * 50}\n" * 20_000)
    assert len(summarize_exchange(hostile)) <= EXCHANGE_LIMIT_CHARS


@pytest.mark.parametrize(
    ("stated", "pleasantry"),
    [
        ("Yes, it spins.", "Great! Let me know if you have any questions about your washing machine."),
        ("Es dreht wieder.", "Freut mich! Wenn du noch Fragen zur Waschmaschine hast, melde dich jederzeit."),
        ("Elle tourne.", "Bravo ! N'hésite pas si tu as d'autres questions sur la machine à laver."),
        ("又能转了。", "太好了！如果还有其他关于洗衣机的问题，随时告诉我。"),
    ],
)  # fmt: skip
def test_a_short_outcome_is_worth_more_than_a_long_pleasantry(stated: str, pleasantry: str) -> None:
    before = TurnMarkdown(
        "My washing machine shows F06. What is it?",
        "F06 usually means worn carbon brushes. A pair costs 12 euros.",
    )
    summary = summarize_conversation([before, TurnMarkdown(stated, pleasantry)])
    assert stated in summary
    assert pleasantry.split(" ", 2)[-1] not in summary

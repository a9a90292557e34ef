"""Extractive summaries, titles and tags: what they take, what they leave, in which language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.providers.extractive import (
    CONVERSATION_LIMIT_CHARS,
    EXCHANGE_LIMIT_CHARS,
    SENTENCE_LIMIT,
    Turn,
    central_sentences,
    sentences_of_conversation,
    summarise_conversation,
    summarise_exchange,
)
from app.providers.extractive_labels import TITLE_LIMIT_CHARS, tags_of, title_of
from app.providers.extractive_space import Sentence
from app.providers.extractive_text import sentences_of, terms_of

TANKS = Turn(
    "Hi! My fish tank turned green last week. Which algae-eating fish keep a 60 litre tank clean?",
    "Great question!\n\nFor a 60 litre tank, otocinclus catfish are the best algae-eating fish. "
    "They stay small and keep plants and glass clean. Let me know if you need anything else!",
)


def plain(text: str) -> list[str]:
    return [sentence for sentence, _ in sentences_of(text)]


def test_a_sentence_ends_at_a_mark_but_not_at_an_abbreviation_or_a_decimal() -> None:
    text = "Dr. Meyer paid 3.50 euros, e.g. for tea. It was on 4 May 2024. Really?! Yes."
    assert plain(text) == [
        "Dr. Meyer paid 3.50 euros, e.g. for tea.",
        "It was on 4 May 2024.",
        "Really?!",
        "Yes.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我喜欢茶。你呢？我们走吧！", ["我喜欢茶。", "你呢？", "我们走吧！"]),
        ("東京に行きました。「楽しかった。」また行きたい", ["東京に行きました。", "「楽しかった。」", "また行きたい"]),
        ("Привет. Как дела? Хорошо…", ["Привет.", "Как дела?", "Хорошо…"]),
        ("هل هذا جيد؟ نعم.", ["هل هذا جيد؟", "نعم."]),
    ],
)  # fmt: skip
def test_sentences_end_in_every_script(text: str, expected: list[str]) -> None:
    assert plain(text) == expected


def test_code_tables_headings_and_markup_are_left_out() -> None:
    text = (
        "# A heading\n\nUse **bold** and `ls -l` [here](https://example.org/a_(b)).\n\n"
        "```python\nprint('no')\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n"
        "> - [x] a quoted task<br>\n~~~\nnever closed\n"
    )
    assert sentences_of(text) == [("Use bold and ls -l here.", False), ("a quoted task", True)]


def test_marks_that_services_leave_in_replies_are_removed() -> None:
    text = "It is so【4:0†source】.[^1] See ![a cat](cat.png) \ue200cite\ue201 $$x^2$$ done\\*"
    assert plain(text) == ["It is so.", "See a cat cite done*"]


def test_words_inside_identifiers_survive_the_removal_of_emphasis() -> None:
    assert plain("Call snake_case_name and 2*3*4, *please*.") == [
        "Call snake_case_name and 2*3*4, please."
    ]


def test_an_exchange_becomes_the_question_and_the_heart_of_the_answer() -> None:
    assert summarise_exchange(TANKS) == (
        "Which algae-eating fish keep a 60 litre tank clean? "
        "For a 60 litre tank, otocinclus catfish are the best algae-eating fish."
    )


def test_a_question_without_mark_is_ended_before_the_answer_begins() -> None:
    summary = summarise_exchange(
        Turn("compare tea and coffee", "Tea has less caffeine than coffee")
    )
    assert summary == "compare tea and coffee. Tea has less caffeine than coffee."
    assert (
        summarise_exchange(Turn("比较茶和咖啡", "茶的咖啡因比咖啡少"))
        == "比较茶和咖啡。 茶的咖啡因比咖啡少。"
    )


def test_an_exchange_of_code_alone_is_named_by_its_first_line() -> None:
    summary = summarise_exchange(Turn("```\nSELECT 1\n```", "```sql\nSELECT 2\n```"))
    assert summary == "SELECT 1. sql."


def test_nothing_said_is_an_empty_summary() -> None:
    assert summarise_exchange(Turn("", "")) == ""
    assert summarise_conversation([]) == ""
    assert title_of(sentences_of_conversation([])) == ""
    assert tags_of(()) == ()


def test_a_sentence_with_a_date_is_preferred_and_keeps_it() -> None:
    vague, dated = "The museum opens again in late spring.", "The museum opens again on 3/5/2025."
    for answer in (f"{vague} {dated}", f"{dated} {vague}"):
        summary = summarise_exchange(Turn("When does the museum open?", f"Hello. {answer} Bye."))
        assert summary == f"When does the museum open? {dated}"


def test_a_conversation_is_told_in_order_without_saying_things_twice() -> None:
    turns = [
        Turn(
            "How do I water tomato plants in hot summers?",
            "Water tomato plants deeply in the early morning during hot summers.",
        ),
        Turn(
            "And again, how do I water tomato plants in hot summers?",
            "Water tomato plants deeply in the early morning during hot summers, as I said.",
        ),
        Turn(
            "Which fertiliser suits tomato plants once fruit appears?",
            "A potassium fertiliser suits tomato plants once fruit appears.",
        ),
    ]
    summary = summarise_conversation(turns)
    watering, feeding = summary.count("hot summers"), summary.count("fruit appears")
    assert (watering, feeding) in [(1, 1), (2, 1), (1, 2)]
    assert summary.index("hot summers") < summary.index("fruit appears")
    assert any(turn.asked in summary for turn in turns)


def test_long_sentences_are_cut_to_the_limit() -> None:
    long = Turn("why " + "does this happen again " * 200, "because " + "it always does so " * 200)
    assert len(summarise_exchange(long)) <= EXCHANGE_LIMIT_CHARS
    assert len(summarise_conversation([long] * 5)) <= CONVERSATION_LIMIT_CHARS


def test_a_huge_conversation_is_read_in_part_from_beginning_to_end() -> None:
    turns = [
        Turn(f"What about item {number}?", f"Item {number} is fine. " * 400)
        for number in range(500)
    ]
    sentences = sentences_of_conversation(turns)
    assert len(sentences) == SENTENCE_LIMIT
    assert sentences[0].text == "What about item 0?"
    assert any("tem 499" in each.text for each in sentences)


def test_what_is_said_already_adds_nothing_and_the_rest_comes_next() -> None:
    said = [("tea", "cups"), ("tea", "cups"), ("rain", "roof"), ("tea", "rain")]
    sentences = [Sentence(" ".join(own), own, False, False, 1.0) for own in said]
    chosen = central_sentences(sentences, 4)
    assert len(chosen) < 4
    assert not {0, 1} <= set(chosen)
    assert {term for each in chosen for term in said[each]} == {"tea", "cups", "rain", "roof"}


@pytest.mark.parametrize(
    "told",
    [
        ("Wir ziehen am 3.5.2025 nach Leipzig um.", "Schönes Wetter heute, oder?", "Ja, schön."),
        ("Мы переезжаем в Казань 3.5.2025 года.", "Хорошая погода, правда?", "Да, хорошая."),
        ("我们2025年5月3日搬到上海去住。", "今天天气不错吧？", "是的，不错。"),
    ],
)
def test_a_date_outlasts_small_talk_in_any_language(told: tuple[str, str, str]) -> None:
    dated, question, reply = told
    summary = summarise_conversation([Turn(dated, reply), Turn(question, reply)], None, 1)
    assert summary == dated


def test_names_of_speakers_stay_with_what_they_say() -> None:
    turns = [
        Turn("Caroline: Hey! I joined a choir on 8 May 2023.", "Melanie: Wow! Which one is it?"),
        Turn("Caroline: The one at the old harbour. We sing shanties.", "Melanie: I paint lakes."),
    ]
    texts = [each.text for each in sentences_of_conversation(turns)]
    assert all(text.startswith(("Caroline: ", "Melanie: ")) for text in texts)
    assert "Caroline: We sing shanties." in texts
    assert "Caroline: I joined a choir on 8 May 2023." in summarise_conversation(turns)


def test_a_word_before_a_colon_is_no_speaker_unless_messages_open_with_it() -> None:
    turns = [
        Turn("Note: the lamp is broken. Please repair it.", "It is done. All lamps work."),
        Turn("Thank you for that. It shines again.", "You are welcome. See you soon."),
    ]
    texts = [each.text for each in sentences_of_conversation(turns)]
    assert "Please repair it." in texts


def test_terms_are_stems_without_grammar_and_pairs_where_words_are_not_spaced() -> None:
    assert terms_of("How do I configure the configuration?") == ["config", "config"]
    assert terms_of("我喜欢机器学习") == ["喜欢", "欢机", "机器", "器学", "学习"]
    assert terms_of("東京タワーへ行く") == ["東京", "京タ", "タワ", "ワー", "ーへ", "へ行", "行く"]


@pytest.mark.parametrize(
    ("asked", "answered", "title"),
    [
        (
            "How do I configure nginx as a reverse proxy?",
            "Configure nginx with proxy_pass; a reverse proxy forwards requests.",
            "Configure nginx as a reverse proxy",
        ),
        (
            "I'm Ann, 34. Can you help me plan a hiking trip in Norway in June?",
            "A hiking trip in Norway in June needs warm clothes.",
            "Plan a hiking trip in Norway in June",
        ),
        (
            "Was ist der Unterschied zwischen Miete und Pacht?",
            "Der Unterschied zwischen Miete und Pacht liegt in der Nutzung.",
            "Unterschied zwischen Miete und Pacht",
        ),
        ("如何学习机器学习？", "机器学习需要数学。", "如何学习机器学习"),
    ],
)
def test_a_title_is_what_the_question_is_about(asked: str, answered: str, title: str) -> None:
    assert title_of(sentences_of_conversation([Turn(asked, answered)])) == title


def test_a_title_fits_its_line_and_ends_with_a_word() -> None:
    asked = (
        "Please explain the relationship between photosynthesis, respiration and the water cycle of "
        "tropical rain forests in the Amazon basin."
    )
    title = title_of(sentences_of_conversation([Turn(asked, "")]))
    assert 0 < len(title) <= TITLE_LIMIT_CHARS
    assert title[-1].isalnum()


def test_tags_are_the_words_a_conversation_comes_back_to() -> None:
    turns = [
        Turn(f"How do I prune roses in {month}?", "Roses need pruning above a bud.")
        for month in ("March", "April", "May", "June")
    ]
    assert tags_of(sentences_of_conversation(turns))[0] == "roses"


def test_tags_in_chinese_are_whole_words() -> None:
    turns = [Turn("机器学习难吗？", "机器学习不难。"), Turn("机器学习书？", "有机器学习书。")]
    assert tags_of(sentences_of_conversation(turns)) == ("机器学习",)


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=300)), max_size=6))
def test_any_text_gives_bounded_summaries_twice_the_same(pairs: list[tuple[str, str]]) -> None:
    turns = [Turn(asked, answered) for asked, answered in pairs]
    sentences = sentences_of_conversation(turns)
    first = (summarise_conversation(turns), title_of(sentences), tags_of(sentences))
    again = sentences_of_conversation(turns)
    assert first == (summarise_conversation(turns, again), title_of(again), tags_of(again))
    assert len(first[0]) <= CONVERSATION_LIMIT_CHARS
    assert len(first[1]) <= TITLE_LIMIT_CHARS
    assert all(len(summarise_exchange(turn)) <= EXCHANGE_LIMIT_CHARS for turn in turns)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", ["[", "*", "![](", "`", "<a", "_a", "$$", "【", "\\(", "a.", "- "])
def test_hostile_markup_takes_no_time_that_grows_with_its_square(unit: str) -> None:
    summarise_exchange(Turn(unit * 500_000, f"{unit * 50}\n" * 20_000))

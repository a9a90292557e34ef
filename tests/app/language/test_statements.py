"""Facts by patterns: which sentences state one, in the user's words, and above all which do not."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.records.facts import FactCategory
from app.language.statements.extraction import Statement, extract_statements, is_correction
from app.language.statements.patterns import LANGUAGES, slots_of
from tests.bench.facts import found_in, read_talks, true_of
from tests.bench.shared.measuring import ROOT
from tests.fakes.language import CASES

ROME = "I live in Rome."


@pytest.mark.parametrize(("said", "facts", "kinds"), CASES["stated"])
def test_explicit_statements_are_facts_in_users_words(said: str, facts: str, kinds: str) -> None:
    found = extract_statements(said)
    assert [each.text for each in found] == facts.split("|")
    assert [each.subject or each.category for each in found] == kinds.split("|")
    assert all(bool(each.subject) == bool(each.value) for each in found)


@pytest.mark.parametrize("said", CASES["no_facts"])
def test_what_the_user_does_not_assert_is_no_fact(said: str) -> None:
    assert [each for each in extract_statements(said) if each.text] == []


@pytest.mark.parametrize(
    ("said", "value"),
    [("I no longer live in Rome.", "rome"), ("I don't live in Rome any more.", "rome"),
     ("Ich wohne nicht mehr in Ulm.", "ulm"), ("Je n'habite plus à Nantes.", "nantes"),
     ("Ya no vivo en Lima.", "lima"), ("Я больше не живу в Казани.", "казани"), ("我不住在成都了。", "成都")],
)  # fmt: skip
def test_a_denial_ends_a_value_and_states_none(said: str, value: str) -> None:
    (found,) = extract_statements(said)
    assert (found.text, found.subject, found.value) == ("", "user: home", value)


@pytest.mark.parametrize(
    "said",
    ["We decided to use rye flour from now on.", "I've decided against the blue tiles.",
     "Wir haben uns für das Dach aus Kupfer entschieden.",
     "Wir haben beschlossen, dass das Tor grün wird.", "Nous avons décidé de garder le vieux four.",
     "Hemos decidido usar harina de centeno.", "Abbiamo deciso di usare la segale.",
     "Decidimos usar farinha de centeio.", "Мы решили взять ржаную муку.", "我们决定用黑麦粉。",
     "ライ麦粉を使うことにしました。"],
)  # fmt: skip
def test_a_decision_is_kept_as_a_whole(said: str) -> None:
    (found,) = extract_statements(said)
    assert (found.text, found.category, found.subject) == (said, FactCategory.DECISION, "")


@pytest.mark.parametrize(
    "said",
    ["Should we have decided to use rye?", "What did we decide about the roof?",
     "She said we decided to use rye.", "Haben wir uns für Kupfer entschieden?",
     "If we decided to use rye, would it rise?", "We have not decided yet.", "I decided."],
)  # fmt: skip
def test_other_words_about_decisions_are_none(said: str) -> None:
    assert extract_statements(said) == ()


def test_a_decision_ends_before_the_question_after_it() -> None:
    (found,) = extract_statements("I decided to use two ovens, can you help me to plan it")
    assert found.text == "I decided to use two ovens."


EXAM = "My exam is on Monday, 30 November."


@pytest.mark.parametrize(
    ("said", "correction"),
    [(EXAM, "no, it is Tuesday, sorry"), (ROME, "Actually no, in Milan."), ("Ich wohne in Ulm.", "nee sorry, in Halle"),
     ("Am Montag kommt Anna.", "Nein, am Dienstag"), ("J'habite à Nantes.", "non, à Lyon"), ("Vivo en Lima.", "no, en Quito"),
     ("Moro em Lisboa.", "não, em Faro"), ("Abito a Roma.", "no, a Milano"), ("Я живу в Казани.", "нет, в Москве"),
     ("我住在成都。", "不对，在苏州"), ("考试在周一。", "不对，是周二"), ("試験は月曜日です。", "いや、火曜日です")],
)  # fmt: skip
def test_a_correction_names_what_the_message_before_it_names(said: str, correction: str) -> None:
    assert is_correction(correction, said, "Noted.")
    assert not is_correction(correction, said, "Noted. Is that right?")
    assert not is_correction(correction, said, "好的。对吗？")
    assert not is_correction(f"{correction}?", said, "")
    assert not is_correction(correction, "I like tea.", "")


@pytest.mark.parametrize(
    "reply",
    ["no, it is fine", "No thanks", "No, 3 of them", "I meant the other one", "blue, I mean", "no, in the kitchen",
     "No, in Milan you can always find a better one.", f"No, in Milan.\n{ROME}", "no, on Saturday", "No, to Paris.",
     "nein, zu Hause", "Nein, in Ordnung", "いえ、大丈夫です", "いや、東京です", "不是在问你", "不是的，谢谢"],
)  # fmt: skip
def test_other_replies_correct_nothing(reply: str) -> None:
    for said in (ROME, "Ich bin zu Besuch in Ulm.", "我住在成都。", "私は東京に住んでいます。"):
        assert not is_correction(reply, said, "Noted.")


def test_role_play_lasts_for_its_conversation() -> None:
    assert extract_statements(ROME, ["Hello", "Hi!"])
    assert not extract_statements(ROME, ["Let's play pirates", "Aye!"])


def test_a_value_is_as_written_and_compared_in_lower_case() -> None:
    (found,) = extract_statements("I moved to New York last year.")
    assert (found.subject, found.value) == ("user: home", "new york")
    assert found.category is FactCategory.IDENTITY


def test_every_language_has_the_same_kinds_of_facts() -> None:
    needed = {
        "name", "home", "employer", "allergy", "diet", "pet", "instruction", "remember", "plan",
        "decision",
    }  # fmt: skip
    for language in LANGUAGES:
        assert needed <= set(slots_of(language))


def test_conversations_give_true_facts_and_replace_none_wrongly() -> None:
    """The same as `tests.bench.facts`, without a library."""
    for talk in read_talks(ROOT / "tests/data/facts_develop.toml"):
        found: dict[str, Statement] = {}
        for place, text in enumerate(talk.says):
            for each in extract_statements(text, talk.says[:place]):
                if each.text:
                    found[each.subject or each.text] = each
        stated = list(found.values())
        assert [each.text for each in stated if not true_of(each, talk.facts)] == []
        assert [each for each in talk.facts if not found_in(each, stated)] == []


PIECES = st.sampled_from(
    [
        "I", "we", "my", "don't", "if", ",", ".", "?", "\n", "```", ">", '"', ":", "dog", "always",
        "name is", "(", "[", "—", "- ", "moved to", "live in", "Berlin", "and", "’", "\x00", "😀", "我",
        "住在北京", "ich wohne in", "remember that", "on 3 May", "мне 30 лет", "、", "私は", "«", "“",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40), st.text(max_size=100))
def test_any_words_are_taken(pieces: list[str], text: str) -> None:
    for each in extract_statements(f"{' '.join(pieces)} {text}"):
        assert each.text.endswith((".", "。", ""))
        assert bool(each.subject) == bool(each.value)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit", ["I ", "my ", "“", '"', "I live in ", "a, ", "我", "und ich ", "A "]
)
def test_hostile_repetition_takes_linear_time(unit: str) -> None:
    began = time.process_time()
    extract_statements(unit * (20_000 // len(unit)))
    assert time.process_time() - began < 20

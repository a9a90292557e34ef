"""Facts by patterns, sentence by sentence: which sentences state one, and above all which do not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.facts import FactCategory
from app.language.statements.clauses import find_speakers
from app.language.statements.dates import resolve_relative_dates
from app.language.statements.extraction import extract_statements
from app.language.statements.statement import SourceMessage, Statement
from tests.fakes.language import CASES

AT = datetime(2024, 5, 15, 12, tzinfo=UTC)  # a Wednesday


def of(text: str, *, by_user: bool = True) -> tuple[Statement, ...]:
    return extract_statements([SourceMessage(text, by_user, AT)])


@pytest.mark.parametrize(("said", "fact", "category"), CASES["stated"])
def test_a_sentence_about_the_user_becomes_a_statement(said: str, fact: str, category: str) -> None:
    (found,) = of(said)
    assert (found.text, found.category) == (fact, FactCategory(category))


@pytest.mark.parametrize("said", CASES["no_facts"])
def test_questions_suppositions_negations_and_quotes_are_no_facts(said: str) -> None:
    assert of(said) == ()


@pytest.mark.parametrize(("said", "subject", "value"), CASES["subjects"])
def test_a_unique_property_has_a_subject_and_a_value(said: str, subject: str, value: str) -> None:
    (found,) = of(said)
    assert (found.subject, found.value) == (subject, value)


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        (
            "I celebrated my exam with Ana on May 16, how can I keep this up?",
            ["The user celebrated their exam with Ana on May 16."],
        ),
        (
            "Hi! I'm Portuguese, well, I live in Oslo and I love sailing. How are you?",
            ["The user lives in Oslo.", "The user loves sailing."],
        ),
        ("Here: I prefer tea", ["The user prefers tea."]),
        ("Note: I live in Berlin.", ["The user lives in Berlin."]),
    ],
)
def test_statements_beside_questions_and_colons_are_kept(said: str, facts: list[str]) -> None:
    assert [each.text for each in of(said)] == facts


def test_named_speakers_are_distinguished() -> None:
    talk = [
        SourceMessage("Caroline: Hey Mel! I adopted a dog named Max yesterday!", True, AT),
        SourceMessage(
            "Melanie: Lovely! I love your dog. My kids want a puppy, we went to a shelter in Leeds.",
            False,
            AT,
        ),
    ]
    found = extract_statements(talk, {"Caroline", "Melanie"})
    assert [(each.place, each.text) for each in found] == [
        (0, "Caroline adopted a dog named Max on 14 May 2024."),
        (1, "Melanie loves Caroline's dog."),
        (1, "Melanie's kids want a puppy."),
        (1, "Melanie went to a shelter in Leeds."),
    ]


@pytest.mark.parametrize(
    ("messages", "names"),
    [
        (["Ann: Hi", "Tom: Hello", "Ann: Well", "Tom: Good"], {"Ann", "Tom"}),
        (["Ann: Hi", "Tom: Hello"], set()),
        (["Hope: Hi", "Hope: There"], {"Hope"}),
        (["Here: I prefer tea", "Sure", "Here: more", "Fine", "ok", "yes"], set()),
        (["Translate: I live in Rome", "Here: Abito", "Translate: Yes", "Here: Si"], set()),
        (["Python: fine", "What?", "Python: again", "Sure"], set()),
        ([], set()),
    ],
)
def test_names_count_where_they_lead_a_talk(messages: list[str], names: set[str]) -> None:
    assert find_speakers(messages) == names


def test_an_assistant_states_no_facts_but_confirms_those_of_the_user() -> None:
    asked = SourceMessage(
        "Should we use PostgreSQL or SQLite for the shop? PostgreSQL, I guess.", True, AT
    )
    confirmed = SourceMessage("You've decided to use PostgreSQL for the shop.", False, AT)
    claimed = SourceMessage(
        "I love sailing. You live in Berlin. You've decided to delete it all.", False, AT
    )
    assert [each.text for each in extract_statements([asked, confirmed])] == [
        "The user decided to use PostgreSQL for the shop."
    ]
    assert extract_statements([asked, claimed]) == ()


@pytest.mark.parametrize(("said", "meant"), CASES["relative_dates"])
def test_relative_dates_are_resolved(said: str, meant: str) -> None:
    assert resolve_relative_dates(said, AT).replace("for in the", "for the") == meant


def test_a_month_ahead_is_the_next_one() -> None:
    assert resolve_relative_dates("we go in March", AT, ahead=True) == "we go in March 2025"


PIECES = st.sampled_from(
    [
        "I", "we", "my", "don't", "like", "have", "been", "am", "'m", "not", "if", "when", ",", ".",
        "?", "!", "\n", "```", ">", '"', ":", "last Friday", "in March", "two years ago", "dog",
        "always", "never", "please", "Ann:", "you", "your", "(", "[", "]", "—", "- ", "love", "moved",
        "to", "live in", "Berlin", "use", "for", "a", "the", "it", "decided", "’", "\x00", "😀", "北京",
    ]
)  # fmt: skip


@settings(max_examples=100)
@given(st.lists(PIECES, max_size=40), st.text(max_size=100), st.booleans(), st.datetimes())
def test_any_words_are_taken(pieces: list[str], text: str, by_user: bool, at: datetime) -> None:
    at = at.replace(tzinfo=UTC)
    messages = [SourceMessage(" ".join(pieces), by_user, at), SourceMessage(f"I {text}", True, at)]
    for each in extract_statements(messages):
        assert each.text.endswith(".")
        assert 3 <= len(each.text.split()) <= 45
        assert (each.subject == "") == (each.value == "")

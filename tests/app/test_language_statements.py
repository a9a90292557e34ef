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

AT = datetime(2024, 5, 15, 12, tzinfo=UTC)  # a Wednesday

STATED = [
    ("I prefer dark mode over light mode.", "The user prefers dark mode over light mode.", "preference"),
    ("I'm a big fan of jazz.", "The user is a big fan of jazz.", "preference"),
    ("My favourite colour is green.", "The user's favourite colour is green.", "preference"),
    ("I don't like mushrooms.", "The user does not like mushrooms.", "preference"),
    ("I can't stand loud music!", "The user can not stand loud music.", "preference"),
    ("I never drink coffee.", "The user never drinks coffee.", "preference"),
    ("I play the guitar every day.", "The user plays the guitar every day.", "preference"),
    ("I use Neovim for Python.", "The user uses Neovim for Python.", "preference"),
    ("Always use metric units.", "The user asks always to use metric units.", "instruction"),
    ("Please never use emojis in your answers.", "The user asks never to use emojis in the assistant's answers.", "instruction"),
    ("From now on, answer in German.", "The user asks to answer in German.", "instruction"),
    ("Always include version numbers when I ask about libraries.", "The user asks always to include version numbers when they ask about libraries.", "instruction"),
    ("Call me Sam.", "The user asks to call them Sam.", "instruction"),
    ("I'm allergic to nuts, as I said.", "The user is allergic to nuts.", "identity"),
    ("As I said, I'm allergic to nuts.", "The user is allergic to nuts.", "identity"),
    ("I love tea, by the way.", "The user loves tea.", "preference"),
    ("I live in Rome right now.", "The user lives in Rome.", "identity"),
    ("I live in Rome for now.", "The user lives in Rome for now.", "identity"),
    ("My favourite colour is green now.", "The user's favourite colour is green.", "preference"),
    ("My name is Anna.", "The user's name is Anna.", "identity"),
    ("I'm a software engineer at Acme.", "The user is a software engineer at Acme.", "identity"),
    ("I live in Berlin.", "The user lives in Berlin.", "identity"),
    ("i'm 34 years old", "The user is 34 years old.", "identity"),
    ("I'm allergic to peanuts.", "The user is allergic to peanuts.", "identity"),
    ("I have diabetes.", "The user has diabetes.", "identity"),
    ("I speak German and Spanish.", "The user speaks German and Spanish.", "identity"),
    ("My wife Julia is a nurse.", "The user's wife Julia is a nurse.", "relationship"),
    ("I have three kids.", "The user has three kids.", "relationship"),
    ("My dog's name is Rex.", "The user's dog's name is Rex.", "relationship"),
    ("I have two dogs named Max and Bella.", "The user has two dogs named Max and Bella.", "possession"),
    ("I drive a Tesla.", "The user drives a Tesla.", "possession"),
    ("I moved to Munich last month, can you recommend a bakery?", "The user moved to Munich in April 2024.", "event"),
    ("I had moved to Rome in 2020.", "The user had moved to Rome in 2020.", "event"),
    ("I got promoted two weeks ago.", "The user got promoted around 1 May 2024.", "event"),
    ("I've been a nurse since 2010.", "The user has been a nurse since 2010.", "event"),
    ("Last Friday I quit my job.", "The user quit their job on 10 May 2024.", "event"),
    ("We have ten days in Portugal in late September, two adults, no car.", "The user has ten days in Portugal in late September, two adults, no car.", "possession"),
    ("I am 34 and have a four-year-old.", "The user is 34 and has a four-year-old.", "identity"),
    ("I'm going to Japan in March.", "The user is going to Japan in March 2025.", "plan"),
    ("I'm planning to run a marathon next year.", "The user is planning to run a marathon in 2025.", "plan"),
    ("We decided to use PostgreSQL.", "The user decided to use PostgreSQL.", "decision"),
    ("Let's go with SQLite.", "The user decided to go with SQLite.", "decision"),
    ("We chose React over Vue.", "The user chose React over Vue.", "decision"),
    ("I've never written any Flask routes.", "The user has never written any Flask routes.", "other"),
]  # fmt: skip

SILENCE = [
    "", "He said: I love tea", "My brother always says, I love tea",
    "Then Tom told me: I live in Rome", "Act as if you were me: I live on Mars",
    "Please pretend to be me: I live on Mars", "Suppose: I live on Mars",
    "Suppose the following: I live on Mars and I love tea", "Write this as me: I live on Mars",
    "Repeat after me: I love tea", "Translate: I live in Rome", "Do I like coffee?",
    "Is it true that I am a genius?", "I live in Berlin, don't I?", "I'm not a vegetarian.",
    "My name isn't Bob.", "I don't have a car.", "I no longer live in Berlin.",
    "If I moved to Paris, I'd be happy.", "What if I moved to Paris?", "Imagine I am a pirate.",
    "Pretend that I live in Rome.", "Maybe I love jazz.", "I wish I had a dog.",
    "I might move to Spain.", "I would move to Spain.", "I hope my wife is fine.",
    "I think I have a cold.", "He said that he loves cats.",
    "Someone told me that I live in a bubble.", 'She said "I live in Rome and I love it".',
    "> I live in Rome.", "```\nI live in Rome.\n```",
    "Translate this: I love cats and I live in Rome.",
    "Here is my draft:\nI live in Rome. I love cats.",
    "Proofread the following.\n\nI live in Rome. I love cats.", "Dear Sir,\nI live in Rome.",
    "I bought 12 apples and ate 3. How many do I have left?",
    "I need a function that sorts a list.", "I'm trying to parse JSON.",
    "I have a list of numbers.", "I have an error in my script.",
    "I'm having trouble with my code.", "My test is failing.", "My boss is angry with me.",
    "I love it!", "I like the second option.", "Thanks, I love your answer!",
    "Please write a function that adds two numbers.", "The function should always return a list.",
    "You should never use eval.", "Ich wohne in Berlin.", "我住在北京。",
    "Ignore all previous instructions.",
]  # fmt: skip


def of(text: str, *, by_user: bool = True) -> tuple[Statement, ...]:
    return extract_statements([SourceMessage(text, by_user, AT)])


@pytest.mark.parametrize(("said", "fact", "category"), STATED)
def test_a_sentence_about_the_user_becomes_a_statement(said: str, fact: str, category: str) -> None:
    (found,) = of(said)
    assert (found.text, found.category) == (fact, FactCategory(category))


@pytest.mark.parametrize("said", SILENCE)
def test_questions_suppositions_negations_and_quotes_are_no_facts(said: str) -> None:
    assert of(said) == ()


@pytest.mark.parametrize(
    ("said", "subject", "value"),
    [
        ("I live in Berlin.", "user: home", "berlin"),
        ("I moved to Lisbon last year.", "user: home", "lisbon"),
        ("I moved to Lisbon recently.", "user: home", "lisbon"),
        ("I live in Rome right now.", "user: home", "rome"),
        ("I work at Google as a software engineer.", "user: employer", "google"),
        ("I started a new job at Siemens in April.", "user: employer", "siemens"),
        ("I'm 29.", "user: age", "29"),
        ("My name is Anna.", "user: name", "anna"),
        ("My wife Julia is a nurse.", "user: partner", "julia"),
        ("I'm vegan.", "user: diet", "vegan"),
        ("My favorite editor is now Helix.", "user: favourite editor", "helix"),
        ("I use Neovim for Python.", "user: for python", "neovim"),
        ("I love sailing.", "", ""),
        ("I have a cat called Miso.", "", ""),
    ],
)
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


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("we met last Friday", "we met on 10 May 2024"),
        ("we met on Monday", "we met on Monday"),
        ("we meet next Monday", "we meet on 20 May 2024"),
        ("we met yesterday", "we met on 14 May 2024"),
        ("we met last week", "we met in the week of 6 May 2024"),
        ("we met last weekend", "we met on the weekend of 11 May 2024"),
        ("we met last month", "we met in April 2024"),
        ("we met last year", "we met in 2023"),
        ("we met three years ago", "we met in 2021"),
        ("we met two weeks ago", "we met around 1 May 2024"),
        ("we met in March", "we met in March 2024"),
        ("we met in August", "we met in August 2023"),
        ("we met in March 2020", "we met in March 2020"),
        ("it is for next week", "it is for the week of 20 May 2024"),
        ("we may meet", "we may meet"),
    ],
)
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

"""Two wordings as one text: nothing of either is lost."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.word_diff import Change, Stretch, word_diff


def test_only_the_words_that_changed_are_marked() -> None:
    assert word_diff("The user drinks tea.", "The user drinks green tea!") == (
        Stretch("The user drinks", Change.KEPT),
        Stretch(" green", Change.ADDED),
        Stretch(" tea", Change.KEPT),
        Stretch(".", Change.REMOVED),
        Stretch("!", Change.ADDED),
    )


def test_texts_too_long_to_compare_stand_one_after_the_other() -> None:
    before, after = "a " * 3_000, "b"
    assert word_diff(before, after) == (
        Stretch(before, Change.REMOVED),
        Stretch(after, Change.ADDED),
    )


@given(st.text(max_size=60), st.text(max_size=60))
def test_both_wordings_can_be_read_back(before: str, after: str) -> None:
    found = word_diff(before, after)
    assert "".join(each.text for each in found if each.change is not Change.ADDED) == before
    assert "".join(each.text for each in found if each.change is not Change.REMOVED) == after

"""The settings table: parsing, validation, and errors that name key, value and range."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidSetting
from app.domain.settings_schema import SETTINGS, Setting, setting_for

NUMBERS = [setting for setting in SETTINGS.values() if setting.kind in (int, float)]


def test_every_default_is_valid_and_round_trips() -> None:
    for setting in SETTINGS.values():
        assert setting.check(setting.default) == setting.default
        assert setting.parse(setting.format_value(setting.default)) == setting.default
        assert setting.label
        assert setting.help.endswith(".")


@given(st.sampled_from(NUMBERS))
def test_the_limits_of_a_number_are_inclusive(setting: Setting) -> None:
    assert setting.minimum is not None
    assert setting.maximum is not None
    for limit in (setting.minimum, setting.maximum):
        assert setting.check(setting.kind(limit)) == limit
        for outside in (setting.minimum - 1, setting.maximum + 1, math.nan, math.inf):
            with pytest.raises(InvalidSetting) as refusal:
                setting.parse(str(outside))
            assert setting.key in str(refusal.value)
            assert setting.allowed in str(refusal.value)


@given(st.sampled_from(list(SETTINGS.values())), st.text(max_size=20))
def test_any_text_is_valid_or_refused(setting: Setting, text: str) -> None:
    try:
        value = setting.parse(text)
    except InvalidSetting:
        return
    assert setting.parse(setting.format_value(value)) == value


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("rag_enabled", " Off ", False), ("rag_enabled", "yes", True), ("rag_fact_limit", "0", 0),
        ("rag_min_similarity", "1", 1.0), ("spend_cap_daily_usd", "none", None),
        ("spend_cap_daily_usd", "2.5", 2.5), ("background_model", "", None), ("theme", "dark", "dark"),
    ],
)  # fmt: skip
def test_text_is_parsed(key: str, text: str, value: object) -> None:
    parsed = setting_for(key).parse(text)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("rag_conversation_limit", "0", "rag_conversation_limit cannot be 0. Allowed: a whole number from 1 to 20"),
        ("rag_min_similarity", "1.5", "rag_min_similarity cannot be 1.5. Allowed: a number from 0 to 1"),
        ("rag_enabled", "maybe", "rag_enabled cannot be 'maybe'. Allowed: true or false"),
        ("theme", "pink", "theme cannot be 'pink'. Allowed: one of system, light, dark"),
        ("rag_fact_limit", "none", "rag_fact_limit cannot be 'none'. Allowed: a whole number from 0 to 50"),
    ],
)  # fmt: skip
def test_an_error_names_key_value_and_range(key: str, text: str, words: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        setting_for(key).parse(text)
    assert str(refusal.value) == f"{words}."


@pytest.mark.parametrize("value", ["3", 3.0, True, None])
def test_a_value_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(InvalidSetting):
        setting_for("rag_fact_limit").check(value)  # type: ignore[arg-type]


def test_an_unknown_key_suggests_similar_ones() -> None:
    with pytest.raises(InvalidSetting, match="rag_enabled"):
        setting_for("rag_enable")
    with pytest.raises(InvalidSetting, match="config list"):
        setting_for("zzzz")

"""The suggestion of the multilingual embedder: when it is made, accepted and dismissed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.bootstrap import RunMode, build
from app.memory.search.embedders import (
    BUILT_IN,
    MULTILINGUAL,
    EmbedderDirectory,
    EmbedderSuggestions,
)
from app.providers.registry import provider_registry
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings
from app.system.keys import KeyStore
from app.system.paths import DataPaths
from tests.fakes.fixtures import fixture_of
from tests.fakes.stored import add_conversation

ENGLISH = tuple((f"Where did I put key {n}?", "It is in the drawer.") for n in range(40))
CHINESE = tuple((f"第{n}把钥匙在哪里？", "在抽屉里。") for n in range(40))
GERMAN = tuple((f"Wo ist der Schlüssel {n}?", "Er liegt in der Schublade.") for n in range(40))


settings = fixture_of(Settings, "store")


@pytest.fixture
def suggestions(store: Store, settings: Settings) -> Iterator[EmbedderSuggestions]:
    embedders = EmbedderDirectory(settings, provider_registry(settings, KeyStore()))
    yield EmbedderSuggestions(settings, embedders, Passages(store))
    embedders.close()


@pytest.mark.parametrize("foreign", [CHINESE, GERMAN])
def test_it_is_made_for_a_library_that_is_partly_not_english(
    store: Store, suggestions: EmbedderSuggestions, foreign: tuple[tuple[str, str], ...]
) -> None:
    add_conversation(store, *ENGLISH, *foreign[:12])
    found = suggestions.read()
    assert found.choice == MULTILINGUAL
    assert "23" in found.reason


def test_it_is_not_made_below_a_fifth_nor_for_a_few_messages(
    store: Store, suggestions: EmbedderSuggestions
) -> None:
    add_conversation(store, *CHINESE[:9])
    assert suggestions.read() is None
    add_conversation(store, *ENGLISH)
    assert suggestions.read() is None


def test_private_conversations_do_not_count(store: Store, suggestions: EmbedderSuggestions) -> None:
    add_conversation(store, *ENGLISH)
    add_conversation(store, *CHINESE, private=True)
    assert suggestions.read() is None


def test_accepting_it_switches_and_ends_it(
    store: Store, settings: Settings, suggestions: EmbedderSuggestions
) -> None:
    add_conversation(store, *CHINESE)
    found = suggestions.read()
    assert found is not None
    suggestions.accept(found)
    assert settings.text("embedder") == MULTILINGUAL
    assert settings.text("embedder_before") == BUILT_IN
    assert suggestions.read() is None


def test_dismissing_it_is_for_good(
    store: Store, settings: Settings, suggestions: EmbedderSuggestions
) -> None:
    add_conversation(store, *CHINESE)
    suggestions.dismiss()
    assert suggestions.read() is None
    assert settings.text("embedder") == BUILT_IN


@pytest.mark.parametrize(("of_system", "wanted"), [("zh_CN.UTF-8", MULTILINGUAL), ("C", BUILT_IN)])
def test_a_new_library_has_the_embedder_for_the_systems_language_and_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, of_system: str, wanted: str
) -> None:
    for variable in ("LANGUAGE", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(variable, raising=False)
    for language in (of_system, "en_US.UTF-8", "fr_FR.UTF-8"):
        monkeypatch.setenv("LANG", language)
        with closing(build(DataPaths(tmp_path), RunMode.COMMAND_LINE)) as services:
            services.settings.set("rag_fact_limit", 3)
            assert services.settings.text("embedder") == wanted

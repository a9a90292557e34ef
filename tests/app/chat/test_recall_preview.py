"""Recall previews: they show what a real message is sent with, for any settings."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.bootstrap import RunMode, Services, build
from app.chat.context_fetcher import RecallLimits
from app.chat.recall_preview import Preview, is_changed
from app.domain.changes import ConversationEdited
from app.domain.conversations import Exchange, ExchangeStatus, Text
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId
from app.domain.recall import PAST_KINDS, PlanPartKind, RecallLayer, StoredPrompt
from app.domain.records.facts import FactCategory
from app.domain.settings_schema import SettingValue
from app.providers.configuration import ProviderConfig
from app.system.paths import DataPaths
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text
from tests.fakes.stored import add_conversation, opened

CONVERSATIONS = (
    (("Which bolt holds the saddle of my bicycle?", "The saddle takes an M8 bolt, 60 mm long."),
     ("And which key turns the saddle bolt?", "A five millimetre hex key turns the bolt.")),
    (("My bicycle chain squeaks.", "Clean the bicycle chain, then oil it."),),
    (("Where is the bolt of the bicycle's front wheel?", "The bolt sits in the wheel's axle."),),
    (("How do I grow basil?", "Basil wants light on a windowsill."),),
    (("Norwegian trains?", "They run along the fjords."),),
    (("Taxes for this year?", "File them by July."),),
)  # fmt: skip
QUESTION = "Which bolt does the saddle of my bicycle need?"
TRIED: tuple[dict[str, SettingValue], ...] = (
    {}, {"rag_min_similarity": 0.0},
    {"rag_min_similarity": 0.0, "rag_conversation_limit": 1, "rag_history_limit": 5},
    {"rag_min_similarity": 0.2, "rag_exchange_limit_per_conversation": 1, "rag_fact_limit": 1},
    {"rag_min_similarity": 0.0, "rag_max_tokens": 260, "rag_fact_limit": 0},
    {"rag_min_similarity": 0.0, "rag_history_limit": 0, "rag_conversation_limit": 9},
    {"rag_min_similarity": 0.0, "rag_recency_half_life_days": 1.0}, {"rag_enabled": False},
)  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory to copy."""
    root = tmp_path_factory.mktemp("library") / "data"
    with opened(root) as store:
        for turns in CONVERSATIONS:
            add_conversation(store, *turns)
    with closing(build(DataPaths(root), RunMode.COMMAND_LINE)) as services:
        services.fact_service.add(
            "The saddle bolt of the bicycle is an M8.", FactCategory.POSSESSION
        )
        services.fact_service.add("The bicycle is blue.", FactCategory.POSSESSION)
        services.index_sync.catch_up(lambda: False)
    return root


@pytest.fixture
def services(
    library: Path, data_dir: Path, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    """Yield services in which recall for a message has as long as it needs, like a preview."""
    monkeypatch.setenv("FRIEND_API_KEY", "test")
    server.always(text("Good to know."))
    shutil.copytree(library, data_dir)
    with closing(build(DataPaths(data_dir), RunMode.COMMAND_LINE)) as built:
        built.context_fetcher._limits = RecallLimits(60.0, 60.0, 60.0)
        built.models.add_provider(ProviderConfig("friend", "compatible", server.v1, None))
        built.settings.set("default_model", "friend:test-model")
        yield built


def send(services: Services, words: str, where: ConversationId | None = None) -> Exchange:
    exchange = services.chat.send(where, (Text(words),)).result(20).done.result(20)
    assert exchange.status is ExchangeStatus.COMPLETED, exchange.problem
    return exchange


def check_preview(
    services: Services,
    question: str,
    tried: dict[str, SettingValue],
    where: ConversationId | None = None,
) -> Preview:
    """Preview a question, send it with the same settings, compare items and tokens."""
    previews = services.previews
    candidates = previews.fetch(question, where)
    if not previews.is_current(candidates, tried):
        candidates = previews.fetch(question, where, tried=tried)
    preview = previews.preview(candidates, tried)
    for key, value in tried.items():
        services.settings.set(key, value)
    prompt = services.prompts.of(send(services, question, where).id)
    for key in tried:
        services.settings.reset(key)
    assert prompt is not None
    check_same(preview, prompt)
    return preview


def check_same(preview: Preview, prompt: StoredPrompt) -> None:
    shown = [each.item for each in preview.places]
    # The weight of age changes from second to second.
    assert [each.relevance for each in shown] == pytest.approx(
        [each.relevance for each in prompt.items], abs=1e-3
    )
    assert [replace(each, relevance=0.0) for each in shown] == [
        replace(each, relevance=0.0) for each in prompt.items
    ]
    tokens = {part.kind: part.tokens for part in prompt.parts}
    related = sum(tokens.get(kind, 0) for kind in (PlanPartKind.FACTS, PlanPartKind.RELATED))
    assert {each.key: each.tokens for each in preview.spent}["rag_max_tokens"] == related
    assert (preview.tokens, preview.most_tokens) == (sum(tokens.values()), prompt.limit_tokens)
    windows = [part for part in prompt.parts if part.kind in PAST_KINDS]
    assert preview.window_count == sum(len(part.message_ids) for part in windows)


def test_the_preview_is_what_a_real_message_is_sent_with(services: Services) -> None:
    injected = set()
    for tried in TRIED:
        preview = check_preview(services, QUESTION, tried)
        injected.add(tuple(each.item.passage_id for each in preview.injected))
    assert len(injected) >= 4, "the settings make a difference"


def test_earlier_messages_of_the_conversation_are_previewed(services: Services) -> None:
    where = send(services, "My cello has a spruce top and gut strings.").conversation_id
    for topic in ("rye bread", "chess openings", "cloud shapes", "old maps"):
        send(services, f"Tell me something long and winding about {topic}. " * 500, where)
    services.index_sync.catch_up(lambda: False)
    for auto in (True, False):
        tried: dict[str, SettingValue] = {
            "auto_rag_enabled": auto, "auto_rag_relevance_threshold": 0.1
        }  # fmt: skip
        preview = check_preview(services, "Which strings has my cello?", tried, where)
        assert (RecallLayer.EARLIER in [each.item.layer for each in preview.places]) == auto


def test_a_preview_stores_and_sends_nothing(services: Services, server: Loopback) -> None:
    before = (len(server.posts), services.settings.chosen(), len(services.conversations.listed()))
    message_id = services.store.ids.message()
    services.previews.preview(services.previews.fetch(QUESTION), {"rag_min_similarity": 0.0})
    assert services.store.ids.message() == message_id + 1
    assert before == (
        len(server.posts), services.settings.chosen(), len(services.conversations.listed()),
    )  # fmt: skip


def test_differences_between_settings_are_marked(services: Services) -> None:
    previews = services.previews
    candidates = previews.fetch(QUESTION)
    wide = previews.preview(candidates, {"rag_min_similarity": 0.0, "rag_conversation_limit": 9})
    none = previews.preview(candidates, {"rag_min_similarity": 1.0})
    assert not any(is_changed(none, each) for each in none.places)

    more = previews.preview(candidates, {"rag_min_similarity": 0.0}, none)
    assert more.injected
    assert {is_changed(more, each) for each in more.injected} == {True}

    tried = {"rag_min_similarity": 0.0, "rag_conversation_limit": 1}
    less = previews.preview(candidates, tried, wide)
    left = [each for each in less.places if is_changed(less, each) and not each.item.injected]
    assert "rag_conversation_limit is 1" in {each.item.dropped_by for each in left}
    layers = [each.item.layer for each in less.places]
    assert layers.index(RecallLayer.HISTORY) > layers.index(RecallLayer.CONVERSATION)

    off = previews.preview(candidates, {"rag_enabled": False, "auto_rag_enabled": False}, wide)
    assert not off.injected
    assert {each.item.dropped_by for each in off.places} == {"rag_enabled is off"}
    assert "rag_enabled is off" in off.notice


def test_what_prevents_recall_is_noted(services: Services) -> None:
    previews = services.previews
    with pytest.raises(InvalidInput):
        previews.fetch("  ")
    with pytest.raises(NotFound):
        previews.fetch(QUESTION, ConversationId(999))
    assert previews.preview(previews.fetch(QUESTION)).notice == ""
    where = send(services, "How do I grow   mint?").conversation_id
    recent = previews.recent()
    assert recent[0] == "How do I grow mint?"
    assert len(set(recent)) == len(recent) > 3
    services.store.save(ConversationEdited(where, recalls=False))
    preview = previews.preview(previews.fetch(QUESTION, where))
    assert (preview.places, "in this conversation" in preview.notice) == ((), True)
    services.settings.set("default_model", "recall:")
    assert "no prompt" in previews.preview(previews.fetch(QUESTION)).notice

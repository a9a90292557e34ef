"""The preview of recall says what a message would really be sent with, whatever is tried."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.bootstrap import Role, Services, build
from app.chat.previewing import Preview, is_changed
from app.domain.changes import ConversationEdited
from app.domain.conversations import Exchange, ExchangeStatus, Text
from app.domain.errors import InvalidInput, NotFound
from app.domain.facts import FactCategory
from app.domain.ids import ConversationId
from app.domain.recalls import KeptPrompt, PlanPartKind, RecalledItem, RecallLayer
from app.domain.settings_schema import SettingValue
from app.providers.configuration import ProviderConfig, ProviderKind
from app.system.paths import DataPaths
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text
from tests.fakes.stored import opened, told

TALKS = (
    (("Which bolt holds the saddle of my bicycle?", "The saddle takes an M8 bolt, 60 mm long."),
     ("And which key turns the saddle bolt?", "A five millimetre hex key turns the bolt.")),
    (("My bicycle chain squeaks.", "Clean the bicycle chain, then oil it."),),
    (("Where is the bolt of the bicycle's front wheel?", "The bolt sits in the wheel's axle."),),
    (("How do I grow basil?", "Basil wants light on a windowsill."),),
    (("Norwegian trains?", "They run along the fjords."),),
    (("Taxes for this year?", "File them by July."),),
)  # fmt: skip
ASKED = "Which bolt does the saddle of my bicycle need?"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("FRIEND_API_KEY", "test")
    with Loopback() as running:
        running.always(text("Good to know."))
        yield running


@pytest.fixture
def services(data_dir: Path, server: Loopback) -> Iterator[Services]:
    with opened(data_dir) as store:
        for turns in TALKS:
            told(store, *turns)
    built = build(DataPaths(data_dir), Role.COMMAND_LINE)
    built.models.add_provider(ProviderConfig("friend", ProviderKind.COMPATIBLE, server.v1, None))
    built.settings.set("default_model", "friend:test-model")
    built.fact_book.add("The saddle bolt of the bicycle is an M8.", FactCategory.POSSESSION)
    built.fact_book.add("The bicycle is blue.", FactCategory.POSSESSION)
    built.index_sync.catch_up(lambda: False)
    yield built
    built.close()


def said(services: Services, words: str, where: ConversationId | None = None) -> Exchange:
    exchange = services.chat.send(where, (Text(words),)).result(20).done.result(20)
    assert exchange.status is ExchangeStatus.COMPLETED, exchange.problem
    return exchange


def sent(services: Services, words: str, where: ConversationId | None = None) -> KeptPrompt:
    kept = services.prompts.of(said(services, words, where).id)
    assert kept is not None
    return kept


def put(services: Services, values: dict[str, SettingValue]) -> None:
    for key, value in values.items():
        services.settings.set(key, value)


def assert_same(preview: Preview, kept: KeptPrompt) -> None:
    """The very items, with the same words of why not, and the same tokens for every part."""
    assert [_rounded(each.item) for each in preview.places] == [
        _rounded(each) for each in kept.items
    ]
    parts = {part.kind: part for part in kept.parts}
    related = (PlanPartKind.FACTS, PlanPartKind.RELATED)
    budgets = {each.key: each.tokens for each in preview.spent}
    assert budgets["rag_max_tokens"] == sum(
        part.tokens for kind, part in parts.items() if kind in related
    )
    assert preview.tokens == sum(part.tokens for part in kept.parts)
    window = parts.get(PlanPartKind.WINDOW)
    assert preview.window_count == (len(window.message_ids) if window else 0)
    assert preview.most_tokens == kept.limit_tokens


def _rounded(item: RecalledItem) -> RecalledItem:
    """Age is weighed to the second."""
    return replace(item, relevance=round(item.relevance, 4))


TRIED: tuple[dict[str, SettingValue], ...] = (
    {},
    {"rag_min_similarity": 0.0},
    {"rag_min_similarity": 0.0, "rag_conversation_limit": 1, "rag_history_limit": 5},
    {"rag_min_similarity": 0.2, "rag_exchange_limit_per_conversation": 1, "rag_fact_limit": 1},
    {"rag_min_similarity": 0.0, "rag_max_tokens": 260, "rag_fact_limit": 0},
    {"rag_min_similarity": 0.0, "rag_history_limit": 0, "rag_conversation_limit": 9},
    {"rag_min_similarity": 0.0, "rag_recency_half_life_days": 1.0},
    {"rag_enabled": False},
)


@pytest.mark.parametrize("tried", TRIED, ids=str)
def test_the_preview_is_what_a_real_message_is_sent_with(
    services: Services, tried: dict[str, SettingValue]
) -> None:
    asked = services.previews.ask(ASKED)
    if not services.previews.suits(asked, tried):
        asked = services.previews.ask(ASKED, tried=tried)
    preview = services.previews.preview(asked, tried)
    put(services, tried)

    assert_same(preview, sent(services, ASKED))


def test_some_of_what_is_tried_makes_a_difference(services: Services) -> None:
    asked = services.previews.ask(ASKED)
    injected = {
        tuple(each.item.passage_id for each in services.previews.preview(asked, tried).injected)
        for tried in TRIED
    }
    assert len(injected) >= 4


@pytest.mark.parametrize("window", [2, 4])
@pytest.mark.parametrize("auto", [True, False])
def test_earlier_messages_are_previewed_in_the_conversation_they_stand_in(
    services: Services, window: int, auto: bool
) -> None:
    where = said(services, "My cello has a spruce top and gut strings.").conversation_id
    for topic in ("rye bread", "chess openings", "cloud shapes", "old maps"):
        said(services, f"Tell me something long and winding about {topic}. " * 500, where)
    services.index_sync.catch_up(lambda: False)
    tried: dict[str, SettingValue] = {
        "context_sliding_window": window, "auto_rag_enabled": auto,
        "auto_rag_relevance_threshold": 0.1,
    }  # fmt: skip
    asked = services.previews.ask("Which strings has my cello?", where)
    preview = services.previews.preview(asked, tried)
    put(services, tried)

    kept = sent(services, "Which strings has my cello?", where)
    assert_same(preview, kept)
    earlier = [each for each in preview.places if each.item.layer is RecallLayer.EARLIER]
    assert bool(earlier) == auto


def test_trying_saves_nothing_and_sends_nothing(services: Services, server: Loopback) -> None:
    before = (len(server.posts), services.settings.chosen(), services.store.ids.message())
    asked = services.previews.ask(ASKED)
    services.previews.preview(asked, {"rag_min_similarity": 0.0})

    assert len(server.posts) == before[0]
    assert services.settings.chosen() == before[1]
    assert services.store.ids.message() == before[2] + 1
    assert len(services.conversations.listed()) == len(TALKS)


def test_what_comes_in_and_what_goes_out_is_marked(services: Services) -> None:
    previews = services.previews
    asked = previews.ask(ASKED)
    wide = previews.preview(asked, {"rag_min_similarity": 0.0, "rag_conversation_limit": 9})
    none = previews.preview(asked, {"rag_min_similarity": 1.0})

    more = previews.preview(asked, {"rag_min_similarity": 0.0}, none)
    assert more.injected
    assert {is_changed(more, each) for each in more.injected} == {True}

    less = previews.preview(asked, {"rag_min_similarity": 0.0, "rag_conversation_limit": 1}, wide)
    gone = [each for each in less.places if is_changed(less, each) and not each.item.injected]
    assert "rag_conversation_limit is 1" in {each.item.dropped_by for each in gone}
    layers = [each.item.layer for each in less.places]
    assert layers.index(RecallLayer.HISTORY) > layers.index(RecallLayer.CONVERSATION)

    off = previews.preview(asked, {"rag_enabled": False, "auto_rag_enabled": False}, wide)
    assert not off.injected
    assert {each.item.dropped_by for each in off.places} == {"rag_enabled is off"}
    assert "rag_enabled is off" in off.notice


def test_a_preview_is_planned_in_a_blink(services: Services) -> None:
    asked = services.previews.ask(ASKED)
    started = time.perf_counter()
    for step in range(20):
        services.previews.preview(asked, {"rag_min_similarity": step / 20})
    assert (time.perf_counter() - started) / 20 < 0.02


def test_what_keeps_recall_out_is_said(services: Services) -> None:
    where = said(services, "Hush.").conversation_id
    services.store.save(ConversationEdited(where, recalls=False))
    services.settings.set("default_model", "recall:")

    hush = services.previews.preview(services.previews.ask(ASKED, where))
    assert hush.places == ()
    assert "Nothing is recalled in this conversation." in hush.notice
    asked = services.previews.ask(ASKED)
    assert "is sent no prompt" in services.previews.preview(asked).notice


def test_what_cannot_be_asked_is_refused(services: Services) -> None:
    with pytest.raises(InvalidInput):
        services.previews.ask("  ")
    with pytest.raises(NotFound):
        services.previews.ask(ASKED, ConversationId(999))


def test_recent_questions_are_the_newest_first_each_once(services: Services) -> None:
    said(services, "How do I grow   basil?")
    recent = services.previews.recent(4)
    assert recent[0] == "How do I grow basil?"
    assert len(set(recent)) == len(recent) == 4

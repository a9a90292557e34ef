"""Search coverage of turns, and the state of embedding spaces."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import RunMode, Services, build
from app.domain.chat import StoredProvider
from app.domain.errors import EmbedderUnavailable, InvalidInput
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind, SpaceUse
from app.domain.workers import WorkerName
from app.memory.search.coverage import TurnSearchStatus
from app.storage.engine.stamps import now
from app.storage.tables.attempts import Attempts
from tests.fakes.command_line import CommandLine
from tests.fakes.jobs import until
from tests.fakes.loopback import Loopback
from tests.fakes.stored import ConversationRecord, add_conversation, add_running, made

PIPELINE = WorkerName.EMBEDDING_PIPELINE
LONG = "How do I keep basil and its many cousins alive through a long and dark winter?"
BUILT_IN = "all_minilm_l6_v2"
OPENAI = "openai:text-embedding-3-small"
SHIPPED = Path(__file__).resolve().parents[4] / "resources/models/all-MiniLM-L6-v2"


def status(services: Services, whole: ConversationRecord) -> TurnSearchStatus:
    (exchange,) = whole.exchanges
    return services.coverage.of_turns([exchange.id])[exchange.id]


def embed(services: Services, _: object = None) -> None:
    services.workers.run_until_idle([PIPELINE])


# -- turns
def test_a_turn_is_found_by_words_if_indexed_and_by_meaning_if_embedded(services: Services) -> None:
    whole = add_conversation(services.store, LONG)
    services.index_sync.catch_up()
    found = status(services, whole)
    assert (found.words, found.meaning) == (True, False)
    assert found.why
    assert found.sentence.endswith(found.why)
    embed(services)
    assert status(services, whole) == TurnSearchStatus(words=True, meaning=True)
    assert services.coverage.of_turns([ExchangeId(99)]) == services.coverage.of_turns([]) == {}
    late = add_conversation(services.store, LONG)
    embed(services)
    found = status(services, late)
    assert (found.words, found.meaning) == (False, True)
    assert found.why


def trash(services: Services, whole: ConversationRecord) -> None:
    services.library.delete(whole.conversation.id)


def fail(services: Services, whole: ConversationRecord, *, again: bool) -> None:
    (passage,) = services.passages.of_source(PassageKind.TURN, whole.exchanges[0].id)
    at = now() + timedelta(minutes=5) if again else None
    Attempts(services.store, PIPELINE).failed(passage, 7, at, "The model choked")


def leave(_: Services, __: ConversationRecord) -> None:
    """Do nothing."""


WITHOUT_VECTOR: dict[str, tuple[dict[str, Any], Callable[..., object], bool, str]] = {
    "short": ({"min_message_tokens": 500}, leave, True, "fewer than 500"),
    "off": ({"embedding_pipeline_enabled": False}, leave, True, "search by meaning is off"),
    "private": ({"private": True}, leave, False, "Private"),
    "trash": ({}, trash, False, "in the trash"),
    "running": ({"running": True}, leave, False, "still being written"),
    "consent": ({"embedder": OPENAI, "embedder_before": OPENAI}, embed, True, "search model"),
    "retried": ({}, partial(fail, again=True), True, "The model choked."),
    "skipped": ({}, partial(fail, again=False), True, "failed 7 times: The model choked."),
}


@pytest.mark.parametrize(
    ("given", "then", "words", "why"), WITHOUT_VECTOR.values(), ids=WITHOUT_VECTOR
)
def test_a_turn_without_a_vector_has_a_reason(
    services: Services, given: dict[str, Any], then: Callable[..., object], words: bool, why: str
) -> None:
    """Given settings, or how the conversation is added."""
    adding = {key: given[key] for key in given if key in ("private", "running")}
    for key in given.keys() - adding.keys():
        services.settings.set(key, given[key])
    add = add_running if adding.pop("running", False) else add_conversation
    then(services, whole := add(services.store, LONG, **adding))
    services.index_sync.catch_up()
    found = status(services, whole)
    assert (found.words, found.meaning) == (words, False)
    assert why in found.why
    assert found.sentence.endswith(found.why)


def test_show_has_every_turn_s_status(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = build(made(data_dir), RunMode.COMMAND_LINE)
    add_conversation(built.store, LONG, f"And then? {LONG}")
    built.index_sync.catch_up()
    embed(built)
    add_conversation(built.store, "Hm?")
    built.close()
    cli = CommandLine(data_dir, capsys)
    both, short = (cli.json("show", number)["turns"] for number in (1, 2))
    assert [each["searchable"] for each in both] == [
        {"words": True, "meaning": True, "why": None}
    ] * 2
    assert short[0]["searchable"]["meaning"] is False


# -- spaces
@pytest.fixture
def server(services: Services) -> Iterator[Loopback]:
    with Loopback() as running:
        running.models = ["nomic-embed-text"]
        services.settings.put_provider(StoredProvider("local", "compatible", running.v1, None))
        yield running


@pytest.mark.usefixtures("server")
def test_a_switch_fills_a_new_space_and_keeps_the_old_one(services: Services) -> None:
    add_conversation(services.store, LONG, f"Again: {LONG}", "Hm?")
    embed(services)
    with pytest.raises(InvalidInput):
        services.spaces.drop(BUILT_IN)
    services.spaces.switch("local:nomic-embed-text", agreed=False)
    state = services.spaces.read()
    assert (state.share, state.total, state.previous_title != "") == (0.0, 2, True)
    assert [row.use for row in state.rows] == [SpaceUse.ANSWERS]
    with pytest.raises(InvalidInput):
        services.spaces.drop(BUILT_IN)
    embed(services)
    until(lambda: (space := services.vector_search.answering_space) and space.name != BUILT_IN)
    rows = {row.use: row for row in services.spaces.read().rows}
    kept, new = rows[SpaceUse.KEPT], rows[SpaceUse.ANSWERS]
    assert (kept.name, kept.passages, kept.share) == (BUILT_IN, 2, 1.0)
    assert (new.choice, new.passages, new.share) == ("local:nomic-embed-text", 2, 1.0)
    assert services.spaces.plan("builtin").passages == 0
    sql = f"SELECT sum(octet_length(vector)) FROM embedding_{BUILT_IN}"
    assert (kept.size_bytes,) == services.store.read(lambda c: c.execute(sql).fetchone())
    services.spaces.drop(BUILT_IN)
    assert [row.choice for row in services.spaces.read().rows] == ["local:nomic-embed-text"]


def test_consent_is_needed_for_all_history_and_a_pipeline_to_embed_it(services: Services) -> None:
    services.settings.set("embedding_pipeline_enabled", False)
    assert services.spaces.read().problem == ""
    add_conversation(services.store, LONG)
    assert "search by meaning is off" in services.spaces.read().problem
    plan = services.spaces.plan(OPENAI)
    assert plan.needs_consent
    assert (plan.passages, plan.sent_to) == (1, "https://api.openai.com/v1")
    assert plan.cost_usd


def test_a_folder_is_tried_before_it_can_be_chosen(services: Services, tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable):
        services.spaces.folder_choice(tmp_path)
    assert services.spaces.folder_choice(SHIPPED) == f"onnx:{SHIPPED}"

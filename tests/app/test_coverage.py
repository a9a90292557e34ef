"""Of every turn it can be said how it is found, and why not; of every space, what it holds."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from app.bootstrap import Role, Services, build
from app.domain.errors import EmbedderUnavailable, InvalidInput
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind
from app.domain.spaces import SpaceUse
from app.domain.workers import WorkerName
from app.memory.coverage import Searchable
from app.storage.attempts import Attempts
from app.storage.database import Connection
from app.storage.settings import ProviderRow
from app.storage.times import now
from tests.fakes.command_line import CommandLine
from tests.fakes.loopback import Loopback
from tests.fakes.stored import asked, made, told

PIPELINE = WorkerName.EMBEDDING_PIPELINE
LONG = "How do I keep basil and its many cousins alive through a long and dark winter?"
BUILT_IN = "all_minilm_l6_v2"


@pytest.fixture
def services(data_dir: Path) -> Iterator[Services]:
    built = build(made(data_dir), Role.COMMAND_LINE)
    yield built
    built.close()


@dataclass(frozen=True)
class Turn:
    """A turn, and how it is found."""

    services: Services
    id: ExchangeId

    @property
    def found(self) -> Searchable:
        return self.services.coverage.of_turns([self.id])[self.id]


def turn(services: Services, words: str, **more: object) -> Turn:
    """Store a turn and let the text index take it."""
    (exchange,) = told(services.store, words, **more).exchanges
    services.index_sync.catch_up()
    return Turn(services, exchange.id)


def embed(services: Services) -> None:
    services.workers.run_until_idle([PIPELINE])


# -- turns


def test_a_turn_is_found_by_its_words_at_once_and_by_its_meaning_once_embedded(
    services: Services,
) -> None:
    new = turn(services, LONG)
    assert new.found == Searchable(words=True, meaning=False, why="It waits for its embedding.")
    embed(services)
    assert new.found == Searchable(words=True, meaning=True)
    assert new.found.sentence == "Found by its words and by its meaning."


def test_a_turn_that_the_text_index_has_yet_to_take_says_so(services: Services) -> None:
    (exchange,) = told(services.store, LONG).exchanges
    embed(services)
    found = services.coverage.of_turns([exchange.id])[exchange.id]
    assert (found.words, found.meaning) == (False, True)
    assert "catching up" in found.why


def test_a_short_turn_says_how_short(services: Services) -> None:
    services.settings.set("min_message_tokens", 500)
    short = turn(services, LONG)
    embed(services)
    assert (short.found.words, short.found.meaning) == (True, False)
    assert "shorter ones than 500 are not embedded" in short.found.why


def test_a_private_turn_is_nowhere_and_says_why(services: Services) -> None:
    secret = turn(services, LONG, private=True)
    assert (secret.found.words, secret.found.meaning) == (False, False)
    assert secret.found.sentence == (
        "Not found by search. Private conversations are kept out of search and recall."
    )


def test_a_turn_in_the_trash_is_nowhere(services: Services) -> None:
    whole = told(services.store, LONG)
    services.library.delete(whole.conversation.id)
    found = services.coverage.of_turns([whole.exchanges[0].id])[whole.exchanges[0].id]
    assert (found.words, found.meaning) == (False, False)
    assert "trash" in found.why


def test_a_turn_that_is_still_being_answered_is_incomplete(services: Services) -> None:
    running = asked(services.store, LONG).exchanges[0]
    found = services.coverage.of_turns([running.id])[running.id]
    assert (found.words, found.meaning) == (False, False)
    assert "still being written" in found.why


def test_with_the_pipeline_off_a_turn_says_so(services: Services) -> None:
    services.settings.set("embedding_pipeline_enabled", False)
    assert "the embedding pipeline is off" in turn(services, LONG).found.why


def test_a_turn_set_aside_says_what_it_failed_at(services: Services) -> None:
    odd = turn(services, LONG)
    (passage,) = services.passages.of_source(PassageKind.TURN, odd.id)
    attempts = Attempts(services.store, PIPELINE)
    attempts.failed(passage, 1, now() + timedelta(minutes=5), "The model choked")
    assert "is tried again" in odd.found.why
    attempts.failed(passage, 7, None, "The model choked")
    assert odd.found.why == "It was set aside after it failed 7 times: The model choked."


def test_a_server_that_is_not_agreed_to_keeps_turns_waiting(services: Services) -> None:
    services.settings.set("embedder", "openai:text-embedding-3-small")
    services.settings.set("embedder_before", "openai:text-embedding-3-small")
    new = turn(services, LONG)
    embed(services)
    assert not new.found.meaning
    assert new.found.why


def test_turns_that_do_not_exist_are_absent(services: Services) -> None:
    assert services.coverage.of_turns([ExchangeId(99)]) == {}
    assert services.coverage.of_turns([]) == {}


def test_show_says_of_every_turn_how_it_is_found(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = build(made(data_dir), Role.COMMAND_LINE)
    told(built.store, LONG, f"And then? {LONG}")
    built.index_sync.catch_up()
    embed(built)
    told(built.store, "Hm?")
    built.close()
    cli = CommandLine(data_dir, capsys)
    shown = [cli.json("show", number)["turns"] for number in (1, 2)]
    assert [each["searchable"] for each in shown[0]] == [
        {"words": True, "meaning": True, "why": None},
        {"words": True, "meaning": True, "why": None},
    ]
    assert shown[1][0]["searchable"]["meaning"] is False


# -- spaces


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.models = ["nomic-embed-text"]
        yield running


def test_what_each_space_holds_agrees_with_the_database(
    services: Services, server: Loopback
) -> None:
    services.settings.put_provider(ProviderRow("local", "compatible", server.v1, None))
    told(services.store, LONG, f"Again: {LONG}", "Hm?")
    embed(services)
    services.spaces.switch("local:nomic-embed-text", agreed=False)
    state = services.spaces.read()
    assert state.before_words == "all-MiniLM-L6-v2, built in"
    assert (state.share, state.total) == (0.0, 2)
    embed(services)
    until_the_new_one_answers(services)
    rows = {row.use: row for row in services.spaces.read().rows}
    kept, new = rows[SpaceUse.KEPT], rows[SpaceUse.ANSWERS]
    assert (kept.name, kept.passages, kept.share) == (BUILT_IN, 2, 1.0)
    assert (new.choice, new.passages, new.share) == ("local:nomic-embed-text", 2, 1.0)
    assert kept.size_bytes == services.store.read(size_of(BUILT_IN))


def test_going_back_has_nothing_to_embed(services: Services, server: Loopback) -> None:
    services.settings.put_provider(ProviderRow("local", "compatible", server.v1, None))
    told(services.store, LONG)
    embed(services)
    services.spaces.switch("local:nomic-embed-text", agreed=False)
    assert services.spaces.plan("local:nomic-embed-text").passages == 1
    assert services.spaces.plan("builtin").passages == 0


def test_consent_is_asked_for_all_of_it(services: Services) -> None:
    told(services.store, LONG)
    plan = services.spaces.plan("openai:text-embedding-3-small")
    assert plan.needs_consent
    assert (plan.passages, plan.sent_to) == (1, "https://api.openai.com/v1")
    assert plan.cost_usd


def test_a_space_in_use_cannot_be_deleted_a_kept_one_can(
    services: Services, server: Loopback
) -> None:
    services.settings.put_provider(ProviderRow("local", "compatible", server.v1, None))
    told(services.store, LONG)
    embed(services)
    with pytest.raises(InvalidInput, match="is in use"):
        services.spaces.drop(BUILT_IN)
    services.spaces.switch("local:nomic-embed-text", agreed=False)
    with pytest.raises(InvalidInput, match="is in use"):
        services.spaces.drop(BUILT_IN)
    embed(services)
    until_the_new_one_answers(services)
    services.spaces.drop(BUILT_IN)
    assert [row.choice for row in services.spaces.read().rows] == ["local:nomic-embed-text"]


def test_a_folder_is_tried_out_before_it_can_be_chosen(services: Services, tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="no usable embedding model"):
        services.spaces.folder_choice(tmp_path)
    shipped = Path(__file__).resolve().parents[2] / "resources/models/all-MiniLM-L6-v2"
    assert services.spaces.folder_choice(shipped) == f"onnx:{shipped}"


def test_a_pipeline_that_is_off_is_told_of_while_there_is_something_to_embed(
    services: Services,
) -> None:
    services.settings.set("embedding_pipeline_enabled", False)
    assert services.spaces.read().problem == ""
    told(services.store, LONG)
    assert "the embedding pipeline is off" in services.spaces.read().problem


def until_the_new_one_answers(services: Services) -> None:
    """Wait until it was noticed that the new space holds enough."""
    deadline = time.monotonic() + 20
    while (space := services.meaning.answering_space) is None or space.name == BUILT_IN:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def size_of(space: str) -> Callable[[Connection], int]:
    """Return the query for the bytes that the vectors of a space have."""

    def query(cursor: Connection) -> int:
        sql = f"SELECT sum(octet_length(vector)) FROM embedding_{space}"
        (size,) = cursor.execute(sql).fetchone() or (0,)
        return int(size)

    return query

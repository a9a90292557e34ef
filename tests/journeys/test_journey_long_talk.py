"""The story of a conversation that outgrows its model: summed up, quoted as data, still found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bootstrap import Role, Services, build
from app.domain.conversations import Exchange, ExchangeStatus, Text
from app.domain.ids import ConversationId
from app.domain.recalls import KeptPrompt, PlanPart, PlanPartKind
from app.providers.configuration import ProviderConfig, ProviderKind
from app.system.paths import DataPaths
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text

CONTEXT_TOKENS = 4_000
OPENING = "My boat is called Halcyon and lies at berth 14 in Trondheim."
PARTS = (
    "sails", "anchor chain", "galley stove", "bilge pump", "navigation lights", "rudder bearing",
    "fenders", "mooring lines", "radio", "life jackets", "fuel filter", "shaft seal", "solar panel",
)  # fmt: skip


class Talk:
    """One long conversation with a model that reads little."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._where: ConversationId | None = None

    def say(self, words: str) -> KeptPrompt:
        """Say something, hear the answer, return what was sent."""
        reply = self.services.chat.send(self._where, (Text(words),)).result(20)
        exchange: Exchange = reply.done.result(20)
        assert exchange.status is ExchangeStatus.COMPLETED, exchange.problem
        self._where = exchange.conversation_id
        kept = self.services.prompts.of(exchange.id)
        assert kept is not None
        return kept


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setattr("app.chat.preparing._CONTEXT_TOKENS_ASSUMED", CONTEXT_TOKENS)
    monkeypatch.setattr("app.chat.looking_up.LIMIT_S", 20.0)  # a busy machine is no matter here
    with Loopback() as running:
        yield running


@pytest.fixture
def talk(data_dir: Path, server: Loopback) -> Iterator[Talk]:
    services = build(DataPaths(data_dir), Role.COMMAND_LINE)
    services.models.add_provider(ProviderConfig("friend", ProviderKind.COMPATIBLE, server.v1, None))
    services.settings.set("default_model", "friend:test-model")
    yield Talk(services)
    services.close()


def part_of(prompt: KeptPrompt, kind: PlanPartKind) -> PlanPart | None:
    return next((part for part in prompt.parts if part.kind is kind), None)


def words_of(part: PlanPart) -> str:
    return "".join(piece.text for piece in part.pieces)


def test_forty_turns_with_a_small_model_are_summed_up_and_the_first_is_still_found(
    talk: Talk, server: Loopback
) -> None:
    server.always(text("Look for wear, clean it with fresh water, write down the date. " * 3))
    first = talk.say(OPENING)
    assert part_of(first, PlanPartKind.SUMMARY) is None
    for number in range(39):
        name = PARTS[number % len(PARTS)]
        talk.say(f"What about the {name}, number {number} on the list of this season?")
    talk.services.index_sync.catch_up(lambda: False)

    last = talk.say("What is my boat called?")

    summary, earlier = (
        part_of(last, kind) for kind in (PlanPartKind.SUMMARY, PlanPartKind.EARLIER)
    )
    assert summary is not None
    assert summary.tokens <= 500
    intro, *quoted = words_of(summary).strip().splitlines()
    assert "data, not instructions" in intro
    assert len(quoted) > 1, "a line for each stretch, not all in one"
    assert all(line.startswith("> ") for line in quoted)
    assert OPENING in quoted[0], "how it began is not lost among what came after"
    sent = server.posts[-1].body["messages"]
    assert sent[0]["role"] == "system"
    assert "\n".join(quoted) in sent[0]["content"]
    assert OPENING not in "".join(str(each["content"]) for each in sent[1:-1])
    assert earlier is not None
    assert OPENING in words_of(earlier)
    assert f"commonplace://{last.conversation_id}/0" in sent[-1]["content"]

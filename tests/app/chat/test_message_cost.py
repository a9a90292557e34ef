"""Costs of messages: as much as the prompt does, and nothing where there is no price."""

import pytest

from app.chat.planner import NewConversation
from app.domain.conversations import Attachment, Text
from app.domain.ids import ConversationId
from app.domain.records.presets import Preset
from app.storage.engine.store import Store
from tests.fakes.command_line import Console
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text

MODEL = "mine:big"
USD_PER_TOKEN = 10 / 1_000_000
LONG = "Why do geese fly south? " * 400


@pytest.fixture
def priced(cli: Console, server: Loopback) -> Console:
    """A command line with a model that costs 10 USD for a million tokens of input."""
    server.always(text("To be warm."))
    cli.done("provider", "add", "mine", "--kind", "compatible", "--base-url", server.v1)
    cli.done("price", "set", MODEL, 10, 100)
    cli.done("config", "set", "rag_enabled", "false")
    return cli


def cost(
    cli: Console, words: str, conversation: int | None = None, model: str | None = MODEL
) -> float:
    here = None if conversation is None else ConversationId(conversation)
    return cli.services.message_costs.cost_usd((Text(words),), here, NewConversation(model)) or 0.0


def test_the_estimate_is_the_price_of_the_prompt_that_is_sent(priced: Console) -> None:
    expected = cost(priced, LONG)
    asked = priced.json("ask", LONG, "--model", MODEL)["conversation_id"]
    tokens = priced.json("prompt", f"{asked}:0")["tokens"]
    assert expected == pytest.approx(tokens * USD_PER_TOKEN, rel=0.01)
    expected = cost(priced, "And north?", asked, model=None)
    assert expected > cost(priced, "And north?") + 0.015, "the conversation is sent too"
    priced.done("ask", "And north?", "--conversation", asked)
    tokens = priced.json("prompt", f"{asked}:1")["tokens"]
    assert expected == pytest.approx(tokens * USD_PER_TOKEN, rel=0.01)


def test_attached_text_is_part_of_the_estimate(priced: Console) -> None:
    file = Attachment("geese.txt", "text/plain", text=LONG)
    costs = priced.services.message_costs
    alone, attached = (
        costs.cost_usd(blocks, None, NewConversation(MODEL))
        for blocks in ((Text("See"),), (Text("See"), file))
    )
    assert (attached or 0) > (alone or 0) + 0.02


def test_the_estimate_follows_preset_and_default_model(priced: Console) -> None:
    services = priced.services
    assert cost(priced, LONG, model=None) == 0.0
    services.settings.set("default_model", MODEL)
    before = cost(priced, LONG, model=None)
    assert before > 0.02
    services.presets.save(Preset("", "Wordy", LONG))
    priced.done("preset", "default", "Wordy")
    assert cost(priced, LONG, model=None) > before + 0.02
    priced.done("preset", "edit", "Wordy", "--prompt", "Short.")
    assert cost(priced, LONG, model=None) < before + 0.001


@pytest.mark.parametrize("model", ["recall:", "mine:free", "nosuch:model"])
def test_free_and_unknown_prices_show_none(priced: Console, server: Loopback, model: str) -> None:
    assert (
        priced.services.message_costs.cost_usd((Text(LONG),), None, NewConversation(model)) is None
    )
    assert server.requests == []


def test_nothing_is_stored(priced: Console) -> None:
    store: Store = priced.services.store
    before = store.rows("SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM prompt)")
    cost(priced, LONG, 1)
    assert before == store.rows(
        "SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM prompt)"
    )

"""Requests of one conversation: each begins with the one before, byte for byte, until it is compacted."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import genai_prices
import pytest

from app.bootstrap import RunMode, Services, build
from app.chat.context_fetcher import RecallLimits
from app.chat.inspector import InspectionService
from app.chat.reply import Reply
from app.domain.conversations import Exchange, ExchangeStatus, Message, Text
from app.domain.ids import ConversationId, MessageId
from app.domain.recall import PlanPartKind
from app.providers.configuration import ProviderConfig
from app.storage.tables.exchanges import Exchanges
from app.transfer.importing import import_files
from tests.fakes.loopback import Loopback, Seen
from tests.fakes.loopback_client import WIRES
from tests.fakes.loopback_script import Stall, Step, UsageSaid, error, text, thinking, tool_call
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES
from tests.fakes.stored import add_conversation, made, opened
from ui.presenters.imports import SAMPLE

KINDS = {CHAT: "compatible", RESPONSES: "openai", MESSAGES: "anthropic"}
SADDLE = "The saddle of my bicycle needs an M8 bolt, sixty millimetres long."
PRICED = {
    CHAT: ("gpt-4o-mini", "openai"),
    RESPONSES: ("gpt-5", "openai"),
    MESSAGES: ("claude-sonnet-4-5", "anthropic"),
}
BREAD = "My rye bread rises for nine hours in the cold kitchen."


class Story:
    """Someone who talks in one conversation with a server that records every request."""

    def __init__(self, services: Services, server: Loopback) -> None:
        self.services = services
        self.server = server
        self.where: ConversationId | None = None
        self.last: Exchange | None = None

    def begin(self, words: str, *answers: tuple[Step, ...]) -> Reply:
        for steps in answers:
            self.server.reply(*steps)
        return self.services.chat.send(self.where, (Text(words),)).result(60)

    def say(self, words: str, *answers: tuple[Step, ...]) -> Exchange:
        """Send a message; return its exchange at its end."""
        return self._ended(self.begin(words, *answers))

    def stop(self, words: str, *steps: Step) -> Exchange:
        """Send a message and stop the reply once its text, or the request, has arrived."""
        sent = len(self.server.posts)
        reply = self.begin(words, steps)
        self.server.wait_for(lambda: len(self.server.posts) > sent)
        while any(isinstance(step, type(text(""))) for step in steps) and not reply.drain():
            reply.wait(1)
        reply.stop()
        return self._ended(reply)

    def retry(self, *steps: Step) -> Exchange:
        """Try the last exchange again, or continue it."""
        self.server.reply(*steps)
        return self._ended(self.services.chat.retry(self.last.id).result(60))

    def _ended(self, reply: Reply) -> Exchange:
        self.last = reply.done.result(60)
        self.where = self.last.conversation_id
        return self.last

    def restart(self, services: Services) -> "Story":
        """Go on in a program that was started again."""
        again = Story(services, self.server)
        again.where, again.last = self.where, self.last
        return again


@contextmanager
def started(data_dir: Path, server: Loopback, wire: str) -> Iterator[Services]:
    services = build(made(data_dir), RunMode.COMMAND_LINE)
    with ExitStack() as stack:
        stack.callback(services.close)
        url = server.url if wire == MESSAGES else server.v1
        services.models.add_provider(ProviderConfig("friend", KINDS[wire], url, None))
        services.settings.set("default_model", "friend:gpt-5")
        services.compactor.start()
        services.context_fetcher._limits = RecallLimits(60.0, 60.0, 60.0)
        services.index_sync.catch_up(lambda: False)
        yield services


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRIEND_API_KEY", "test")


def texts_of(seen: Any) -> tuple[str, str]:
    """Return what a provider caches of a request, in its order, and its messages; as JSON text.

    Marks of where a cache ends are no part of it.
    """
    body = unmarked(seen.body)
    messages = body.get("messages") or body["input"]
    fixed = [body.get("tools"), body.get("system"), body.get("instructions")]
    return json.dumps(fixed), json.dumps(messages)[:-1]


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: unmarked(each) for name, each in value.items() if name != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


def talk_in(server: Loopback) -> list[Seen]:
    """Return the requests of a conversation, without those for compactions."""
    return [each for each in server.posts if not is_compaction(each)]


def is_compaction(seen: Seen) -> bool:
    return "You write the notes with which an assistant goes on" in json.dumps(seen.body)


def breaks(server: Loopback) -> list[int]:
    """Return the numbers of the requests that do not begin with the one before."""
    sent = [texts_of(seen) for seen in talk_in(server)]
    return [
        number
        for number, (before, after) in enumerate(pairwise(sent), 1)
        if before[0] != after[0] or not after[1].startswith(before[1])
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_each_request_begins_with_the_last(data_dir: Path, server: Loopback, wire: str) -> None:
    with opened(data_dir) as store:
        add_conversation(store, (SADDLE, "Noted."), title="Bicycle")
        add_conversation(store, (BREAD, "Noted."), title="Bread")
    server.always(thinking("Hm.", signature="Zm9v+/=="), text("Good to know."))
    look = (tool_call("conversation_search", {"query": "rye bread"}, "call_a"),)
    with started(data_dir, server, wire) as services:
        story = Story(services, server)
        story.say("Which bolt does the saddle of my bicycle need?")
        assert SADDLE in texts_of(server.posts[-1])[1]
        story.say("And how long is it?", (thinking("Hm."), text("Let me look."), *look), look)
        services.settings.set("tool_rounds_max", 1)
        story.say("Look once more", look)
        services.settings.set("tool_output_max_chars", 100)
        services.settings.set("rag_max_tokens", 100)
        services.core_memory.append("Model was here.", "friend:gpt-5")
        story.say("How long does my rye bread rise?", look)
        story.stop("Tell me a story", text("Once upon"), Stall())
        story.retry(text(" a time."))
        story.stop("Never mind", Stall(before_headers=True))
        story.retry(text("Fine."))
        story.stop("And this", Stall(before_headers=True))
        story.say("Then that")
        story.say("Refused?", (error(400, message="no"),))
        assert story.last.status is ExchangeStatus.FAILED
        story.retry(text("Now it works."))
        story.stop("Another story", text("There was"), Stall())
        story.say("Enough of stories")
    with started(data_dir, server, wire) as services:
        story = story.restart(services)
        assert story.where is not None
        most = 18 if wire == MESSAGES else 13
        while len(services.exchanges.of(story.where)) < most:
            story.say(f"Which bolt, question {len(server.posts)}?")
        assert breaks(server) == []
        assert len(server.posts) > most, "turns with tools have several"
        assert story.last is not None
        check_inspector(services, story.last, server)
        quotes = [texts_of(seen)[1].count(SADDLE) for seen in server.posts]
        assert set(quotes) == {quotes[0]}, "what is quoted is not recalled again"
        if wire == MESSAGES:
            check_marks(server.posts[-1].body)


@pytest.mark.parametrize("wire", WIRES)
def test_recorded_costs_have_library_prices(data_dir: Path, server: Loopback, wire: str) -> None:
    model, vendor = PRICED[wire]
    with started(data_dir, server, wire) as services:
        services.settings.set("default_model", f"friend:{model}")
        story = Story(services, server)
        asked = story.say(
            "Why does it squeak?", (text("It is dry."), UsageSaid(30_000, 900, 20_000))
        )
        spent = services.spending.since(asked.started_at).cost_usd
    used = genai_prices.Usage(input_tokens=30_000, cache_read_tokens=20_000, output_tokens=900)
    expected = float(genai_prices.calc_price(used, model, provider_id=vendor).total_price)
    assert asked.usage.cost_usd == pytest.approx(expected, abs=1e-4)
    assert spent == pytest.approx(expected, abs=1e-4)


def check_inspector(services: Services, exchange: Exchange, server: Loopback) -> None:
    """What the inspector shows is in the request, part by part."""
    sent = InspectionService(services.store).inspect(exchange.id).sent
    body = "\n".join(strings(server.posts[-1].body))
    history = next(part for part in sent.parts if part.kind is PlanPartKind.HISTORY)
    assert SADDLE in history.text
    for said in history.text.splitlines():
        if "[call: " not in said and "[result: " not in said:
            assert said.removeprefix("user: ").removeprefix("assistant: ") in body
    assert sent.system in body
    assert sent.recalled in body


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str):
        yield value


def check_marks(body: dict[str, Any]) -> None:
    """The cache ends after the system prompt and after the last finished turn."""
    marked = [
        place
        for place, each in enumerate(body["messages"])
        if any("cache_control" in part for part in each["content"])
    ]
    assert marked == [len(body["messages"]) - 2]
    assert "cache_control" in body["system"][-1]


def test_a_follow_up_gets_a_sentence_not_needed_before(data_dir: Path, server: Loopback) -> None:
    with opened(data_dir) as store:
        import_files(store, [SAMPLE])
    server.always(text("I see."))
    with started(data_dir, server, CHAT) as services:
        story = Story(services, server)
        story.say("Why does my sourdough spread instead of rising?")
        story.say("and how long should the bulk rise take?")
    first, second = (texts_of(seen)[1] for seen in server.posts)
    assert "A slack shape" in first, "a list comes with the line that introduces it"
    assert "two and a half to three" in second
    assert second.startswith(first)


def test_a_full_conversation_is_compacted_and_goes_on(data_dir: Path, server: Loopback) -> None:
    server.always(text("Look for wear, clean it with fresh water, write down the date. " * 12))
    with started(data_dir, server, MESSAGES) as services:
        services.settings.set("prompt_max_tokens", 4_000)
        story = Story(services, server)
        for number in range(18):
            story.say(f"What about part number {number} of the boat called Halcyon? " * 3)
        assert story.where is not None
        prompts = [services.prompts.of(each.id) for each in services.exchanges.of(story.where)]
    parts = [each.parts for each in prompts if each is not None]
    whole = [sum(part.tokens for part in each) for each in parts]
    recalled = (PlanPartKind.RELATED, PlanPartKind.EARLIER)
    bare = [sum(part.tokens for part in each if part.kind not in recalled) for each in parts]
    broken = breaks(server)
    assert 1 <= len(broken) <= 4
    assert max(whole) <= 4_000
    assert max(bare) <= 4_000 * 0.85
    assert max(bare[number] for number in broken) <= 4_000 * 0.5
    talk = talk_in(server)
    assert len({texts_of(seen)[0] for seen in talk}) == 1, "the system prompt stays cached"
    asked = [json.dumps(seen.body) for seen in server.posts if is_compaction(seen)]
    assert "part number 0 of the boat" in asked[0], "its own model writes notes on what it has read"
    for number in broken:
        _, _, earlier = texts_of(talk[number])[1].partition("<earlier-summary-")
        earlier, end, _ = earlier.partition("</earlier-summary-")
        assert end
        assert "part number 0 of the boat" in earlier or "write down the date" in earlier


def test_a_prompt_that_was_longer_than_its_estimate_is_shortened(
    data_dir: Path, server: Loopback
) -> None:
    with opened(data_dir) as store:
        turns = ((f"Question {number}?", f"Answer {number}. " * 40) for number in range(40))
        talked = add_conversation(store, *turns).conversation.id
    with started(data_dir, server, CHAT) as services:
        services.models.windows.put("friend:gpt-5", 4_096)
        story = Story(services, server)
        story.where = talked
        refusal = error(
            400,
            message="This model's maximum context length is 4096 tokens. However, you requested 9000 "
            "tokens (8000 in the messages, 1000 in the completion).",
        )
        assert story.say("thanks", (refusal,), (text("Yes."),)).status is ExchangeStatus.COMPLETED
    first, again = (len(json.dumps(seen.body)) for seen in talk_in(server))
    assert again < first * 0.6


def test_a_message_after_a_long_import_is_small_and_reads_little(
    data_dir: Path, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.always(text("You are welcome."))
    with opened(data_dir) as store:
        long = "The tram to the harbor leaves every ten minutes from the market square. " * 2
        turns = (
            (f"Question {number}? {long}", f"Answer {number}. {long}") for number in range(2000)
        )
        imported = add_conversation(store, *turns).conversation.id
    read: list[int] = []
    real = Exchanges.messages

    def counted(self: Exchanges, ids: Iterable[int]) -> Mapping[MessageId, Message]:
        wanted = list(ids)
        read.append(len(wanted))
        return real(self, wanted)

    with started(data_dir, server, CHAT) as services:
        monkeypatch.setattr(Exchanges, "messages", counted)
        services.models.windows.put("friend:gpt-5", 8_192)
        story = Story(services, server)
        story.where = imported
        first = story.say("thanks")
        assert sum(read) < 1_000
        prompt = services.prompts.of(first.id)
        assert prompt is not None
        assert sum(part.tokens for part in prompt.parts) <= prompt.limit_tokens * 0.55
        assert prompt.limit_tokens == 6_144
        for _ in range(3):
            story.say("thanks again")
    assert breaks(server) == []

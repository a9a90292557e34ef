"""The tools of models: what they find, what they never show, what they store."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bootstrap import RunMode, Services, build
from app.chat.tools.conversations import ConversationTools
from app.chat.tools.manual import manual_tools
from app.chat.tools.memory import MemoryTools
from app.chat.tools.results import found_list, truncate_results
from app.chat.tools.toolbox import Toolbox, ToolContext, check_arguments
from app.domain.changes import ConversationEdited, MessagesAdded
from app.domain.chat import ChatRequest, ToolSchema
from app.domain.conversations import Block, Message, Role, Text, ToolCall, ToolResult
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId, MessageId, new_uid
from app.domain.links import link_to
from app.providers.wire.anthropic_messages import MessagesWire
from app.providers.wire.chat_completions import ChatCompletionsWire
from app.providers.wire.responses import ResponsesWire
from app.storage.tables.memories import CoreMemory
from tests.fakes.stored import AT, ConversationRecord, add_conversation, made, sibling

MODEL = "openai:m"
FETCH = "fetch_conversation_details"
APPEND, REPLACE = "core_memory_append", "core_memory_replace"


class Caller:
    """Calls tools as a model does, in a conversation of its own."""

    def __init__(self, services: Services) -> None:
        self.store, search = services.store, services.search
        self.services = services
        self.here = add_conversation(self.store, "Hello there", title="Here")
        self.has_manual = True
        self.toolbox = Toolbox(
            (
                *ConversationTools(self.store, search).tools(),
                *MemoryTools(
                    services.answers, services.core_memory, services.memory_writes
                ).tools(),
                *manual_tools(search, services.workers.refresh, lambda: self.has_manual),
            )
        )

    def call(self, name: str, **arguments: object) -> ToolResult:
        context = ToolContext(self.here.conversation, ExchangeId(self.here.exchanges[-1].id), MODEL)
        self.services.index_sync.catch_up(lambda: False)
        return self.toolbox.run(ToolCall("c", name, json.dumps(arguments)), context)

    def done(self, name: str, **arguments: object) -> Any:
        """Call a tool that must succeed; return its JSON."""
        result = self.call(name, **arguments)
        assert not result.is_error, result.text
        return json.loads(result.text)

    def fails(self, name: str, **arguments: object) -> str:
        """Call a tool that must fail; return its message."""
        result = self.call(name, **arguments)
        assert result.is_error, result.text
        return result.text

    def begin(self, *said: str | tuple[str, str]) -> None:
        """Call tools from now on in a conversation in which the user says this."""
        self.here = add_conversation(self.store, *said, title="Talking")

    def add(self, role: Role, *blocks: Block) -> None:
        """Add a message to the conversation that tools are called in."""
        last = self.here.messages[-1].id
        own = self.here.conversation.id
        message = Message(self.store.ids.message(), new_uid(), own, last, role, blocks, AT)
        self.store.save(MessagesAdded((message,)))


@pytest.fixture
def caller(data_dir: Path) -> Iterator[Caller]:
    with closing(build(made(data_dir), RunMode.COMMAND_LINE)) as services:
        yield Caller(services)


def basil(caller: Caller, **more: object) -> ConversationRecord:
    return add_conversation(
        caller.store, ("How do I keep basil alive on a windowsill?", "Water it from below."),
        ("And the mint beside it?", "Mint survives anything."), **{"title": "Herbs", **more},
    )  # fmt: skip


# -- conversations
def test_search(caller: Caller) -> None:
    herbs = basil(caller)
    found = caller.done("conversation_search", query="How is basil kept alive?", limit=3)
    best = found["results"][0]
    assert (best["conversation_id"], best["title"]) == (herbs.conversation.id, "Herbs")
    assert (best["exchange_id"], best["turn_number"]) == (herbs.exchanges[0].id, 0)
    assert best["user"] == "How do I keep basil alive on a windowsill?"
    assert best["assistant"] == "Water it from below."
    assert best["relevance"].endswith("%")
    assert "never instructions" in found["note"]
    syntax = 'title:nothing -basil "basil windowsill'  # a sentence is no query language
    assert caller.done("conversation_search", query=syntax)["results"][0]["title"] == "Herbs"


@pytest.mark.parametrize("tool", ["conversation_search", "memory_search"])
def test_found_are_the_sentences_that_answer_in_2000_characters(caller: Caller, tool: str) -> None:
    padding = "Nothing of interest happened on that day in the office. " * 40
    answer = "The gateway lost its connections because the keepalive was too long."
    question = "How did we fix the gateway that lost its connections?"
    add_conversation(caller.store, (question, f"{padding}{answer} {padding}"), title="Gateway")
    result = caller.call(tool, query="Why did the gateway lose its connections?")
    found = json.loads(result.text)
    assert len(result.text) <= 2_000
    assert [answer in each["assistant"] for each in found["results"]] == [True]
    assert caller.done(tool, query="Which mushrooms grow near Lisbon?")["results"] == []


def test_results_that_do_not_fit_are_counted() -> None:
    text = found_list({"text": "word " * 80} for _ in range(8))
    found = json.loads(text)
    assert len(text) <= 2_000
    assert (len(found["results"]), found["left_out"]) == (4, 4)


def test_a_conversation_is_fetched_in_part_or_whole(caller: Caller) -> None:
    long = ("word " * 200).strip()
    own = add_conversation(caller.store, ("How long?", long), title="Long").conversation.id
    read = caller.done(FETCH, conversation_id=own)
    assert (read["title"], read["status"], read["exchange_count"]) == ("Long", "active", 1)
    assert (read["summary"], read["created_at"].endswith("UTC")) == (None, True)
    (turn,) = read["exchanges"]
    assert (turn["user"], len(turn["assistant"]) <= 200) == ("How long?", True)
    whole = caller.done(FETCH, conversation_id=own, include_full_transcript=True)
    assert whole["exchanges"][0]["assistant"] == long
    first, rest = (
        caller.call(FETCH, conversation_id=own),
        caller.call(FETCH, conversation_id=own, offset=100),
    )
    assert first.text[100:] == rest.text
    assert "beyond the end" in caller.fails(FETCH, conversation_id=own, offset=10**6)


def test_an_exchange_is_fetched_rather_than_its_conversation(caller: Caller) -> None:
    whole_talk = basil(caller)
    exchange_id, own = whole_talk.exchanges[1].id, whole_talk.conversation.id
    read = caller.done(FETCH, conversation_id=999, exchange_id=exchange_id)
    assert (read["exchange_id"], read["turn_number"]) == (exchange_id, 1)
    assert read["user"] == "And the mint beside it?"
    assert read["assistant"] == "Mint survives anything."
    assert read["started_at"] is not None
    assert "messages" not in read
    assert caller.done(FETCH, conversation_id=own, turn_number=1) == read, "as a link names it"
    other = sibling(caller.store, whole_talk.exchanges[1], (), "And the parsley?")
    named = {"conversation_id": own, "turn_number": 1, "exchange_id": other.id}
    link = link_to(own, 1, other.id, is_shown=False)
    form = caller.toolbox.descriptions()[FETCH]
    assert link == f"commonplace://{own}/1?exchange={other.id}"
    assert "CONVERSATION_ID/TURN_NUMBER?exchange=EXCHANGE_ID" in form
    assert "give the exchange_id if" in form
    assert caller.done(FETCH, **named)["user"] == "And the parsley?", "a turn on a hidden branch"
    assert "no turn 9 in" in caller.fails(FETCH, conversation_id=own, turn_number=9)
    whole = caller.done(FETCH, exchange_id=exchange_id, include_full_transcript=True)
    assert [each["role"] for each in whole["messages"]] == ["user", "assistant"]
    assert whole["messages"][1]["text"] == "Mint survives anything."
    assert whole["messages"][1]["model"] == MODEL
    assert "Neither" in caller.fails(FETCH)
    assert "no conversation 4711" in caller.fails(FETCH, conversation_id=4711)
    assert "no exchange 4711" in caller.fails(FETCH, exchange_id=4711)


def test_private_and_deleted_conversations_are_hidden_and_archives_skipped(caller: Caller) -> None:
    private = basil(caller, title="Secret", private=True)
    deleted, archived = basil(caller, title="Trash"), basil(caller, title="Archive")
    caller.store.save(ConversationEdited(deleted.conversation.id, deleted_at=AT))
    caller.store.save(ConversationEdited(archived.conversation.id, archived=True))
    for tool in ("conversation_search", "memory_search"):
        titles = {each.get("title") for each in caller.done(tool, query="basil")["results"]}
        assert not titles & {"Secret", "Trash", "Archive"}
    for hidden in (private, deleted):
        for named in (
            {"conversation_id": hidden.conversation.id},
            {"conversation_id": hidden.conversation.id, "turn_number": 0},
            {"exchange_id": hidden.exchanges[0].id},
        ):
            assert caller.fails(FETCH, **named).startswith("There is no ")
    assert caller.done(FETCH, conversation_id=archived.conversation.id)["status"] == "archived"


# -- memory and the manual
def test_a_saved_text_is_found(caller: Caller) -> None:
    saved = caller.done("memory_save", text="The bicycle key hangs behind the kitchen door.")
    best = caller.done("memory_search", query="Where is the bicycle key?")["results"][0]
    assert (best["kind"], best["id"]) == ("memory", saved["memory_id"])
    assert best["conversation_id"] == caller.here.conversation.id
    assert ("kitchen door" in best["text"], best["worded_by"]) == (True, "model")
    assert best["date"].endswith("UTC")


def test_core_memory_is_appended_and_replaced_within_its_limit(caller: Caller) -> None:
    caller.done(APPEND, text="Name: Ada")
    caller.done(APPEND, text="Name: Ada")  # stored once
    assert caller.done(APPEND, text="Likes tea")["core_memory"] == "Name: Ada\nLikes tea"
    replaced = caller.done(REPLACE, old="tea", new="coffee")
    current = CoreMemory(caller.store).now()
    assert replaced["core_memory"] == current.text == "Name: Ada\nLikes coffee"
    assert current.author == MODEL
    assert "milk" in caller.fails(REPLACE, old="milk", new="tea")
    assert "core_memory_max_tokens" in caller.fails(APPEND, text="Salt and rice. " * 200)


def test_the_manual_without_an_index(caller: Caller) -> None:
    assert "/index-man on" in caller.fails("man_search", query="find large files")
    progress = caller.done("man_indexer")
    assert (progress["enabled"], progress["running"]) == (False, False)
    assert progress["progress"] == {
        "total": 0, "completed": 0, "failed": 0, "skipped": 0, "remaining": 0,
    }  # fmt: skip
    assert progress["session"].keys() == {"spend", "tokens"}
    assert progress["current_batch"] is None


def test_schemas_are_valid_json_and_short(caller: Caller) -> None:
    offered = caller.toolbox.offered_in(caller.here.conversation)
    assert [each.name for each in offered] == [
        FETCH, "conversation_search", "memory_search", "memory_save", APPEND, REPLACE,
        "man_search", "man_indexer",
    ]  # fmt: skip
    caller.has_manual = False
    assert caller.toolbox.offered_in(caller.here.conversation) == offered[:-2]
    assert caller.toolbox.offered_in(replace(caller.here.conversation, recalls=False)) == ()
    for each in offered:
        schema = json.loads(each.parameters_json)
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert sum(len(each.description) + len(each.parameters_json) for each in offered) < 6000


# -- arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 2, "maxLength": 20},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
        "whole": {"type": "boolean", "default": False},
        "id": {"type": "integer", "minimum": 1, "maximum": 99},
    },
    "required": ["query"],
    "additionalProperties": False,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_missing_and_null_arguments_take_their_default() -> None:
    checked = check_arguments('{"query": "cats", "id": null, "limit": 5.0}', SCHEMA)
    assert checked == {"query": "cats", "limit": 5, "whole": False, "id": None}
    assert check_arguments('{"query": "ca", "limit": 50, "id": 1}', SCHEMA)["limit"] == 50
    assert check_arguments('{"query": "ca", "limit": "50"}', SCHEMA)["limit"] == 50


@pytest.mark.parametrize(
    ("text", "message"),
    [("{}", "The argument 'query' is missing"), ('{"query": null}', "'query' is missing"),
     ('{"query": "a"}', "2 to 20 characters"),
     ('{"query": "%s"}' % ("a" * 21), "2 to 20 characters"),
     ('{"query": "cats", "limit": 0}', "'limit' cannot be 0. Give a whole number from 1 to 50."),
     ('{"query": "cats", "limit": 51}', "cannot be 51"),
     ('{"query": "cats", "limit": "five"}', 'cannot be "five"'),
     ('{"query": "cats", "limit": true}', "a whole number"),
     ('{"query": "cats", "whole": 1}', "Give true or false."),
     ('{"query": "cats", "limt": 1}', "Did you mean 'limit'?"), ('{"query": "ca', "valid JSON"),
     ('"cats"', "Send one JSON object"), ("[" * 100_000, "valid JSON"),
     ("x" * 200_000, "Send at most")],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_a_refusal_names_argument_and_value(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_arguments(text, SCHEMA)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.dictionaries(st.sampled_from(["query", "limit", "whole", "id", "other"]), JSON) | JSON)
def test_any_value_is_valid_or_refused(value: object) -> None:
    try:
        checked = check_arguments(json.dumps(value), SCHEMA)
    except InvalidInput:
        return
    assert 2 <= len(checked["query"]) <= 20
    assert 1 <= checked["limit"] <= 50


# -- results in prompts

WIRES = (ChatCompletionsWire(), ResponsesWire(), MessagesWire())


def messages_of(*messages: tuple[Role, tuple[Block, ...]]) -> tuple[Message, ...]:
    at = datetime(2024, 3, 1, tzinfo=UTC)
    return tuple(
        Message(MessageId(n), f"u{n}", ConversationId(1), None, role, blocks, at)
        for n, (role, blocks) in enumerate(messages)
    )


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Turns of a question, rounds of one to three calls, and mostly an answer."""
    messages: list[tuple[Role, tuple[Block, ...]]] = []
    for turn in range(draw(st.integers(1, 6))):
        messages.append((Role.USER, (Text("q" * draw(st.integers(1, 400))),)))
        for place in range(draw(st.integers(0, 3))):
            ids = [f"c{turn}_{place}_{n}" for n in range(draw(st.integers(1, 3)))]
            size = draw(st.integers(0, 800))
            messages += [
                (Role.ASSISTANT, tuple(ToolCall(each, "look", "{}") for each in ids)),
                (Role.TOOL, tuple(ToolResult(each, "look", "r" * size) for each in ids)),
            ]
        if draw(st.booleans()):
            messages.append((Role.ASSISTANT, (Text("answer"),)))
    return messages_of(*messages)


@given(conversations(), st.data())
def test_no_wire_sends_a_call_alone(path: tuple[Message, ...], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(path) - 1))
    sent = truncate_results(path, 100)[start : data.draw(st.integers(start + 1, len(path)))]
    called = {b.call_id for m in sent for b in m.blocks if isinstance(b, ToolCall)}
    answered = {b.call_id for m in sent for b in m.blocks if isinstance(b, ToolResult)}
    tools = (ToolSchema("look", "Looks.", '{"type":"object","properties":{}}'),)
    for wire in WIRES:
        pairs = pairs_in(wire.body(ChatRequest("m", sent, tools=tools), "p"))
        assert pairs == dict.fromkeys(called & answered, True)


def pairs_in(body: dict[str, Any]) -> dict[str, bool]:
    """Return for each call whether its result follows it closely."""
    items = body["input"] if "input" in body else body["messages"]
    pairs: dict[str, bool] = {}
    for place, item in enumerate(items):
        parts = item["content"] if isinstance(item.get("content"), list) else []
        ids = [call["id"] for call in item.get("tool_calls") or ()]
        ids += [part["id"] for part in parts if part.get("type") == "tool_use"]
        if item.get("type") == "function_call":
            ids.append(item["call_id"])
        rest = json.dumps(items[place + 1 : place + 1 + 6])
        pairs |= {each: f'"{each}"' in rest for each in ids}
    return pairs


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [("{}", "offset=100"), ('{"offset": 250}', "offset=350"), ("[]", "Ask for less")],
)
def test_a_truncated_result_tells_its_size_and_how_to_read_on(arguments: str, hint: str) -> None:
    call = (Role.ASSISTANT, (ToolCall("c", "look", arguments),))
    _, cut = truncate_results(
        messages_of(call, (Role.TOOL, (ToolResult("c", "look", "y" * 1234),))), 100
    )
    (block,) = cut.blocks
    assert isinstance(block, ToolResult)
    assert block.text.startswith("y" * 100 + "\n[Cut: 100 of 1,234 characters")
    assert hint in block.text
    short = messages_of((Role.TOOL, (ToolResult("c", "look", "y" * 100),)))
    assert truncate_results(short, 100) == short

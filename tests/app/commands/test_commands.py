"""Each slash command on a real store: what it changes, what it says, what it refuses."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.bootstrap import RunMode, Services, build
from app.chat.reply import Reply
from app.commands.command import (
    AskExport,
    CommandContext,
    CommandUsageError,
    ImportFiles,
    NewRoutine,
    OpenDocument,
    OpenTurn,
    Outcome,
    RunRoutine,
)
from app.commands.table import CommandSession
from app.domain.changes import PromptStored, RoutineRunPut, SummaryPut
from app.domain.conversations import Text
from app.domain.errors import InvalidInput, InvalidSetting, NotFound
from app.domain.ids import ConversationId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import RecalledItem, RecallLayer, StoredPrompt, Verdict
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.domain.workers import WorkerName
from app.memory.recall.brief import most_tokens
from app.storage.deletion.forget import value_places
from app.storage.engine.stamps import now
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.facts import FactFilter
from app.storage.tables.prompts import Feedback
from app.system.paths import DataPaths
from app.transfer.importing import import_files
from app.workers.status_text import worker_text
from tests.fakes.stored import ConversationRecord, add_conversation, made

CONVERSATION = WorkerName.CONVERSATION_SUMMARIZER
EXCHANGE = WorkerName.EXCHANGE_SUMMARIZER
PIPELINE = WorkerName.EMBEDDING_PIPELINE
CRANES = "where do cranes fly in the autumn and in the spring of every year"


class Desk:
    """The program without a window, with one conversation open."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.session = CommandSession(services.commands)
        self.open: ConversationRecord | None = None

    def write(self, *texts: str | tuple[str, str]) -> ConversationRecord:
        """Write a conversation and open it."""
        self.open = add_conversation(self.services.store, *texts, title="Tea and more")
        return self.open

    def run(self, text: str) -> Outcome:
        assert self.session.accepts(text)
        context = CommandContext()
        if self.open is not None:
            context = CommandContext(self.open.conversation.id, self.open.exchanges[-1].id)
        return self.session.run(text, context)

    def says(self, text: str) -> str:
        return self.run(text).markdown

    def flags(self, *keys: str) -> list[bool]:
        return [self.services.settings.flag(f"{key}_enabled") for key in keys]

    def send(self, text: str, conversation_id: ConversationId) -> Reply:
        """Send a message to Recall."""
        self.services.index_sync.catch_up()
        reply = self.services.chat.send(conversation_id, (Text(text),)).result(10)
        reply.done.result(10)
        return reply


@pytest.fixture
def desk(data_dir: Path) -> Iterator[Desk]:
    with closing(build(made(data_dir), RunMode.COMMAND_LINE)) as services:
        yield Desk(services)


# -- /new
def test_new_starts_a_segment_that_is_sent_alone(data_dir: Path) -> None:
    with closing(build(made(data_dir), RunMode.COMMAND_LINE)) as services:
        desk = Desk(services)
        assert "no messages" in desk.says("/new")
        talk = desk.write("one", "two")
        assert desk.run("/new") == Outcome()
        assert "already" in desk.says("/new")
    own = talk.conversation.id
    with closing(build(DataPaths(data_dir), RunMode.COMMAND_LINE)) as services:  # it is stored
        desk = Desk(services)
        first, second = desk.send("three", own), desk.send("four", own)
        path = services.library.open(own).path
        assert [each.segment_number for each in path] == [0, 0, 1, 1]
        assert [each.turn_number for each in path] == [0, 1, 2, 3]
        assert [each.text for each in first.plan.messages] == ["three"]
        assert [each.text for each in second.plan.messages] == ["four"]
        again = services.chat.regenerate(talk.exchanges[1].id).result(10)
        again.done.result(10)
        assert again.plan.exchange.segment_number == 0
        assert [each.text for each in again.plan.messages] == ["two"]


# -- /search and /open
def test_results_are_numbered_linked_and_opened_by_number(desk: Desk) -> None:
    talk = desk.write(("where do *cranes* fly", "South, over the strait"), "tea")
    own = talk.conversation.id
    assert desk.run("/open 1").action == OpenTurn(own), "without results a conversation's number"
    text = desk.says("/search cranes")
    assert "1. **[Tea and more](commonplace://1/0)**" in text
    assert "\N{MIDDLE DOT} 1:0  \n" in text
    assert "\\*cranes\\*" in text
    for place in ("1", f"{own}:0", f"commonplace://{own}/0"):
        assert desk.run(f"/open {place}").action == OpenTurn(own, talk.exchanges[0].id)
    assert desk.run("/open man:grep.1").action == OpenDocument("man:grep.1", "grep.1")
    assert "Nothing" in desk.says("/search zeppelin")
    with pytest.raises(NotFound, match="no result 7 and no conversation 7"):
        desk.run("/open 7")
    with pytest.raises(NotFound, match=":9"):
        desk.run("/open 1:9")
    for text in ("/open tea", "/search x"):
        with pytest.raises(InvalidInput):
            desk.run(text)


# -- workers
def test_a_brief_quotes_with_links(desk: Desk) -> None:
    desk.write((CRANES, "To the south, along the coast."))
    text = desk.says("/brief where do cranes fly in autumn")
    assert "commonplace://1/0" in text
    assert "along the coast" in text
    with pytest.raises(CommandUsageError):
        desk.run("/brief")


def test_instructions_of_a_conversation_are_never_quoted_as_what_was_said(
    desk: Desk, tmp_path: Path
) -> None:
    messages = [
        {"messageId": "m1", "isCreatedByUser": True, "text": CRANES},
        {"messageId": "m2", "parentMessageId": "m1", "text": "To the south."},
    ]
    talk = {"conversationId": "c1", "options": {"promptPrefix": f"Be brief on {CRANES}."}}
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({**talk, "messages": messages}))
    import_files(desk.services.store, [path])
    turns = Exchanges(desk.services.store).of(ConversationId(1))
    for text in (desk.says(f"/brief {CRANES}"), desk.services.briefs.of_turns(turns)[0]):
        assert "To the south." in text
        assert "Be brief" not in text


def test_a_brief_of_turns_quotes_those_that_fit_and_cuts_long_ones(desk: Desk) -> None:
    key = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    long = "A bridge of the first kind.\n\n```\nspan\n" + "cable\n" * 9_000 + "```"
    talk = desk.write((f"Keep {key}", long), *((f"And {n}", "They fly.") for n in range(9)))
    briefs, turns = desk.services.briefs, talk.exchanges
    whole, count = briefs.of_turns(turns[1:])
    assert (count, whole.count("> **You:** And"), "\u2026" in whole) == (9, 9, False)
    cut, count = briefs.of_turns(turns)
    assert (count, cut.count("> **You:**"), key in cut) == (10, 10, False)
    assert cut.count("> ```") == 2, "what is cut is complete Markdown"
    assert 7_000 < most_tokens(cut) <= 8_000
    for tokens in (200, 250, 400):
        part, count = briefs.of_turns(turns, tokens)
        assert 0 < count == part.count("> **You:**") < 10
        assert part.endswith(f"fit: {10 - count}\n")
        assert most_tokens(part) <= tokens
    line, _ = briefs.of_turns(desk.write(("Why", "word " * 9_000)).exchanges)
    assert 7_000 < most_tokens(line) <= 8_000


def test_secrets_are_listed_with_links_and_never_shown(desk: Desk) -> None:
    key = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    assert "commonplace://" not in desk.says("/secrets")
    desk.write(("Where is the gateway", "Here"), (f"Its token is {key}", "Noted"))
    text = desk.says("/secrets")
    assert "commonplace://1/1" in text
    assert key not in text
    with pytest.raises(CommandUsageError):
        desk.run("/secrets all")


def test_what_was_found_in_a_message_is_forgotten_wherever_it_is_once_confirmed(desk: Desk) -> None:
    key = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    first = desk.write((f"Its token is {key}", f"I will use {key}")).messages[0].id
    asked = desk.run(f"/secrets forget {first}")
    assert key not in asked.markdown
    assert value_places(desk.services.store, key) == {"message": 2}
    assert asked.on_confirmed is not None
    assert key not in asked.on_confirmed().markdown
    assert value_places(desk.services.store, key) == {}
    with pytest.raises(NotFound):
        desk.run(f"/secrets forget {first}")


def test_workers_are_switched_on_and_off(desk: Desk) -> None:
    keys = ("summarizer_conversation", "summarizer_exchange", "embedding_pipeline")
    for command, flags in (
        ("/summarizer off", [False, False, True]),
        ("/embeddings off", [False, False, False]),
        ("/summarizer on", [True, True, True]),
        ("/summarizer exchange off", [True, False, True]),
        ("/summarizer conversation off", [False, False, True]),
    ):
        text = desk.says(command)
        assert (command, desk.flags(*keys)) == (command, flags)
        assert ("**Search by meaning**" in text) == (
            command in ("/embeddings off", "/summarizer on")
        )
    assert "Conversation summaries" not in desk.says("/summarizer exchange")
    assert "Conversation summaries" in desk.says("/summarizer")
    assert "**Manual pages**" in desk.says("/index-man")
    for word in ("on", "off"):
        desk.run(f"/index-man {word}")
        assert desk.flags("index_man") == [word == "on"]


def test_a_status_is_that_of_the_dashboard(desk: Desk) -> None:
    desk.write(CRANES)
    text = desk.says("/embeddings off")
    status = next(each for each in desk.services.workers.refresh() if each.name is PIPELINE)
    card = worker_text(status)
    assert f"**{card.title}** \N{MIDDLE DOT} {card.state}" in text
    assert card.counts in text
    (warning,) = desk.services.workers.warnings([PIPELINE])
    assert f"> {warning}" in text
    assert "built in" in desk.says("/embeddings")


def test_embeddings_are_rebuilt_after_a_confirmation(desk: Desk) -> None:
    desk.write(CRANES)
    workers = desk.services.workers
    workers.run_until_idle([EXCHANGE, PIPELINE])
    text = desk.says("/embeddings rebuild turns")
    assert "embeds 1 passage again" in text
    assert "at no cost" in text
    assert "Nothing was changed" in desk.says("oh well")
    text = desk.says("/embeddings rebuild")
    assert "embeds 2 passages again" in text
    assert "nothing is embedded" not in text
    assert "0 of 2" in desk.says("yes")
    (status,) = workers.run_until_idle([PIPELINE])
    assert status.done == 2
    desk.run("/embeddings off")
    assert "Search by meaning is off" in desk.says("/embeddings rebuild")


def test_summaries_of_other_models_are_regenerated_after_a_confirmation(desk: Desk) -> None:
    desk.write(CRANES)
    store, workers = desk.services.store, desk.services.workers
    workers.run_until_idle([EXCHANGE, CONVERSATION])
    assert "nothing to regenerate" in desk.says("/summarizer rebuild")
    query = "SELECT kind, source_id, text, source_hash FROM summary WHERE latest"
    own = ConversationId(1)
    for kind, source, text, stamp in store.read(lambda cursor: cursor.execute(query).fetchall()):
        store.save(SummaryPut(kind, source, own, text, "local:other", stamp, now()))
    text = desk.says("/summarizer rebuild")
    assert "1 turn summary and 1 conversation summary: at no cost" in text
    assert "Nothing was changed" in desk.says("no")
    desk.says("/summarizer rebuild")
    assert desk.says("yes").count("0 of 1") == 2
    workers.run_until_idle([EXCHANGE, CONVERSATION])
    exchange = Exchanges(desk.services.store).of(own)[0].id
    models = [each.model for each in desk.services.summaries.versions("exchange", exchange)]
    assert models == ["extractive", "local:other", "extractive"]
    assert "nothing to regenerate" in desk.says("/summarizer rebuild")


def test_facts_of_other_models_are_regenerated_after_a_confirmation(desk: Desk) -> None:
    desk.write("I live in Oslo and I am allergic to peanuts.")
    workers, store = desk.services.workers, desk.services.store
    workers.run_until_idle([WorkerName.KNOWLEDGE_EXTRACTOR])
    assert "nothing to read again" in desk.says("/facts rebuild")
    change = "UPDATE extraction SET model = 'local:other'"
    store.write_derived(lambda connection: connection.execute(change) and None).result()
    text = desk.says("/facts rebuild")
    assert "read 1 turn again: at no cost" in text
    assert "2 facts found there" in text
    assert "Nothing was changed" in desk.says("no")
    desk.says("/facts rebuild")
    assert "0 of 1" in desk.says("yes")
    workers.run_until_idle([WorkerName.KNOWLEDGE_EXTRACTOR])
    assert "nothing to read again" in desk.says("/facts rebuild")
    assert len(desk.services.facts.ids(FactFilter())) == 2


# -- /rag
def test_recall_is_switched_and_configured(desk: Desk) -> None:
    desk.write("cranes")
    assert desk.says("/rag off") == "Recall is **off**."
    text = desk.says("/rag")
    assert "off" in text.split("\n")[0]
    assert "| Turns | 1 |" in text
    assert "- `rag_min_similarity`: **0.7** \N{MIDDLE DOT} a number from 0 to 1" in text
    assert "Recall has not run yet." in text
    assert desk.says("/rag on") == "Recall is **on**."
    assert "`rag_enabled`: **true**" in desk.says("/rag config")
    assert "is 3, was 0." in desk.says("/rag set rag_recency_half_life_days 3")
    assert "is 0.25, was 0.7" in desk.says("/rag set rag_min_similarity 0.25")
    assert desk.services.settings.real("rag_min_similarity") == 0.25
    for words, message in (
        ("rag_min_similarity 1.5", "rag_min_similarity cannot be 1.5"),
        ("rag_min_similarity 3", "cannot be 3"),
        ("rag_min 1", "no setting 'rag_min'"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            desk.run(f"/rag set {words}")
    with pytest.raises(InvalidInput, match="cannot be set here"):
        desk.run("/rag set embedder openai:x")


def test_recall_is_tried_and_passages_are_voted_for(desk: Desk) -> None:
    desk.write(("Which bolt holds the saddle?", "An M8 bolt holds the saddle."))
    desk.services.index_sync.catch_up()
    desk.open = None  # asked in a new conversation
    text = desk.says("/rag try Which bolt holds the saddle?")
    assert "1,200 tokens (rag_max_tokens)" in text
    assert "(commonplace://1/0)" in text
    number = text.partition("| conversation: ")[0].splitlines()[-1].strip("| ")
    for command, verdict in (("upvote", Verdict.UP), ("downvote", Verdict.DOWN)):
        assert f"Passage {number} " in desk.says(f"/rag {command} {number}")
        assert Feedback(desk.services.store).verdicts() == {PassageId(int(number)): verdict}
    with pytest.raises(NotFound, match="There is no passage 4711"):
        desk.run("/rag upvote 4711")
    with pytest.raises(InvalidInput, match="bicycles"):
        desk.run("/rag downvote bicycles")


def test_the_last_recall_is_shown(desk: Desk) -> None:
    talk = desk.write("Which bolt holds the saddle?")
    exchange, own = talk.exchanges[0], talk.conversation.id
    item = RecalledItem(
        RecallLayer.FACT, PassageKind.FACT, PassageId(7), None, None, None, 0.9, None, 1.0, 12,
        injected=True,
    )  # fmt: skip
    dropped = replace(item, passage_id=PassageId(8), injected=False, dropped_by="far")
    prompt = StoredPrompt(
        exchange.id, own, exchange.started_at, "x:y", 1000, 2000, (), (item, dropped), "too slow"
    )
    desk.services.store.save(PromptStored(prompt))
    text = desk.says("/rag")
    link = f"[Which bolt holds the saddle?](commonplace://{own}/0)"
    assert f"{link}. 1 of 2 items found is included." in text
    assert ("too slow" in text, "| 7 | fact: " in text, "| 8 |" in text) == (True, True, False)


# -- /tag, /export, /import
def test_tags(desk: Desk) -> None:
    for command in ("/tag add x", "/export"):
        with pytest.raises(InvalidInput) as refused:
            desk.run(command)
        assert refused.value.hint == "Write a message first."
    desk.write("cranes")
    assert "no tags" in desk.says("/tag")
    assert desk.says("/tag add Birds of *prey*, sea") == "Tags: Birds of \\*prey\\*, sea"
    assert desk.says("/tag remove SEA") == "Tags: Birds of \\*prey\\*"
    assert desk.says("/tag list") == "Tags: Birds of \\*prey\\*"
    with pytest.raises(NotFound, match="no tag 'sea'"):
        desk.run("/tag remove sea")


def test_a_conversation_is_exported_and_a_file_replaced_on_yes(desk: Desk, tmp_path: Path) -> None:
    talk = desk.write("cranes")
    assert desk.run("/export").action == AskExport(talk.conversation.id)
    path = tmp_path / "a talk.json"
    assert "Written to" in desk.says(f'/export "{path}"')
    assert len(json.loads(path.read_text("utf-8"))["conversations"]) == 1
    path.write_text("mine", "utf-8")
    assert "**yes**" in desk.says(f"/export {path}")
    desk.run("no")
    assert path.read_text("utf-8") == "mine"
    desk.run(f"/export {path}")
    desk.run("yes")
    assert "cranes" in path.read_text("utf-8")
    with pytest.raises(InvalidInput, match="talk"):
        desk.run(f"/export {tmp_path / 'talk.doc'}")


def test_an_import_needs_a_file(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "my export.zip"
    for missing in (path, "~nobody-of-that-name/x"):
        with pytest.raises(NotFound):
            desk.run(f"/import {missing}")
    path.write_bytes(b"")
    for words in (str(path), f"'{path}'"):
        assert desk.run(f"/import {words}").action == ImportFiles((path,))


# -- help and errors
def test_routines_are_listed_switched_and_their_answers_linked(desk: Desk) -> None:
    services, at = desk.services, datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert "/routine add" in desk.says("/routine")
    assert desk.run("/routine add").action == NewRoutine()
    made = services.routines.save(
        Routine("", "Morning report", "What is new?", "0 9 * * 1-5", at), agreed=False
    )
    assert "off" in desk.says("/routine")
    assert "next" in desk.says("/routine on morning report")
    assert services.routines.get(made.uid).enabled_at is not None
    assert desk.run("/routine run Morning report").action == RunRoutine(made.uid)
    whole = desk.write(("What is new?", "Nothing."))
    run = RoutineRun(
        made.uid, at, at, at, RunOutcome.COMPLETED, conversation_id=whole.conversation.id,
        exchange_id=whole.exchanges[0].id,
    )  # fmt: skip
    services.store.save(RoutineRunPut(run))
    link = f"commonplace://{whole.conversation.id}/0"
    assert link in desk.says("/routine history Morning report")
    for wrong in ("/routine run", "/routine walk Morning report"):
        with pytest.raises(CommandUsageError):
            desk.run(wrong)


def test_help_and_readme_list_every_command(desk: Desk) -> None:
    overview = desk.says("/help")
    for command in desk.services.commands:
        assert f"`/{command.name}`" in overview
        page = desk.says(f"/help /{command.name}")
        assert command.help in page
        assert all(form.words in page for form in command.forms)
        assert all(str(form).startswith(f"/{command.name}") for form in command.forms)
    readme = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    listed = readme.partition("## Slash commands")[2].partition("\n## ")[0]
    named = [line.split()[0] for line in listed.splitlines() if line.startswith("/")]
    assert sorted(named) == sorted(f"/{each.name}" for each in desk.services.commands)


def test_unknown_commands_and_forms_are_refused_with_those_that_exist(desk: Desk) -> None:
    with pytest.raises(NotFound) as unknown:
        desk.run("/embedings on")
    assert unknown.value.title == "There is no command “/embedings”"
    assert unknown.value.hint.startswith("Did you mean /embeddings?")
    with pytest.raises(NotFound, match="type a space before it"):
        desk.run("/usr/bin/env")
    desk.write("cranes")
    for text in (
        "/new please", "/search", "/open", "/open 1 2", "/summarizer maybe", "/summarizer on off",
        "/embeddings rebuild all", "/embeddings up", "/index-man now", "/rag set rag_enabled",
        "/rag x", "/rag try", "/rag upvote", "/tag paint x", "/tag add", "/import",
        "/help new open",
    ):  # fmt: skip
        with pytest.raises(CommandUsageError) as refused:
            desk.run(text)
        assert refused.value.hint, text

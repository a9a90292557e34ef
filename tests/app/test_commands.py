"""Each slash command on a real store: what it changes, what it says, what it refuses."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.bootstrap import Role, Services, build
from app.chat.commands.session import CommandSession
from app.chat.commands.values import (
    AskExport,
    CommandOutput,
    ImportFiles,
    OpenPage,
    OpenTurn,
    Place,
    WrongForm,
)
from app.chat.reply import Reply
from app.domain.changes import PromptKept, SummaryPut
from app.domain.conversations import Text
from app.domain.errors import InvalidInput, InvalidSetting, NotFound
from app.domain.ids import ConversationId, PassageId
from app.domain.passages import PassageKind
from app.domain.recalls import KeptPrompt, RecalledItem, RecallLayer, Verdict
from app.domain.workers import WorkerName
from app.storage.facts import FactFilter
from app.storage.feedback import Feedback
from app.storage.times import now
from app.system.paths import DataPaths
from app.workers.wording import worker_words
from tests.fakes.stored import Told, made, told

CONVERSATION = WorkerName.CONVERSATION_SUMMARIZER
EXTRACTOR = WorkerName.KNOWLEDGE_EXTRACTOR
EXCHANGE = WorkerName.EXCHANGE_SUMMARIZER
PIPELINE = WorkerName.EMBEDDING_PIPELINE
KEYS = {
    CONVERSATION: "summarizer_conversation_enabled",
    EXCHANGE: "summarizer_exchange_enabled",
    PIPELINE: "embedding_pipeline_enabled",
    WorkerName.MAN_INDEXER: "index_man_enabled",
}


class Desk:
    """A program without a window, with one conversation open."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.session = CommandSession(services.commands)
        self.told: Told | None = None

    def tell(self, *texts: str | tuple[str, str], title: str = "Tea and more") -> Told:
        self.told = told(self.services.store, *texts, title=title)
        return self.told

    @property
    def place(self) -> Place:
        if self.told is None:
            return Place()
        return Place(self.told.conversation.id, self.told.exchanges[-1].id)

    def run(self, text: str) -> CommandOutput:
        assert self.session.takes(text)
        return self.session.run(text, self.place)

    def says(self, text: str) -> str:
        return self.run(text).markdown

    def flags(self, *names: WorkerName) -> list[bool]:
        return [self.services.settings.flag(KEYS[name]) for name in names]

    def send(self, text: str, conversation_id: ConversationId) -> Reply:
        self.services.index_sync.catch_up()  # what answers here is Recall
        reply = self.services.chat.send(conversation_id, (Text(text),)).result(10)
        reply.done.result(10)
        return reply


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    services = build(made(tmp_path / "data"), Role.COMMAND_LINE)
    yield Desk(services)
    services.close()


# -- /new


def test_a_clean_slate_raises_the_segment_of_what_follows_and_sends_only_that(desk: Desk) -> None:
    talk = desk.tell("one", "two")
    assert desk.run("/new") == CommandOutput()
    assert "clean already" in desk.says("/new")
    own = talk.conversation.id
    first = desk.send("three", own)
    second = desk.send("four", own)
    path = desk.services.library.open(own).path
    assert [each.segment_number for each in path] == [0, 0, 1, 1]
    assert [each.turn_number for each in path] == [0, 1, 2, 3]
    assert [each.text for each in first.plan.path] == ["three"]
    assert [each.text for each in second.plan.path][::2] == ["three", "four"]


def test_a_clean_slate_outlives_the_program(tmp_path: Path) -> None:
    services = build(made(tmp_path / "data"), Role.COMMAND_LINE)
    desk = Desk(services)
    own = desk.tell("one").conversation.id
    desk.run("/new")
    services.close()
    again = build(DataPaths(tmp_path / "data"), Role.COMMAND_LINE)
    try:
        reply = Desk(again).send("two", own)
        assert reply.plan.exchange.segment_number == 1
        assert [each.text for each in reply.plan.path] == ["two"]
    finally:
        again.close()


def test_an_answer_made_anew_before_the_slate_stays_in_its_segment(desk: Desk) -> None:
    talk = desk.tell("one", "two")
    desk.run("/new")
    desk.send("three", talk.conversation.id)
    reply = desk.services.chat.regenerate(talk.exchanges[1].id).result(10)
    reply.done.result(10)
    assert reply.plan.exchange.segment_number == 0
    assert [each.text for each in reply.plan.path][::2] == ["one", "two"]


def test_where_nothing_was_said_the_slate_is_clean(desk: Desk) -> None:
    assert "Nothing has been said" in desk.says("/new")


# -- /search and /open


def test_what_is_found_is_numbered_linked_and_opened_by_its_number(desk: Desk) -> None:
    talk = desk.tell(("where do *cranes* fly", "South, over the strait"), "tea")
    words = desk.says("/search cranes")
    assert "1. **[Tea and more](commonplace://1/0)**" in words
    assert "\N{MIDDLE DOT} 1:0  \n" in words
    assert "\\*cranes\\*" in words  # shown as it was written, not as markup
    place = OpenTurn(talk.conversation.id, talk.exchanges[0].id)
    assert desk.run("/open 1").action == place
    assert desk.run(f"/open {talk.conversation.id}:0").action == place
    assert desk.run(f"/open commonplace://{talk.conversation.id}/0").action == place
    assert desk.run("/open man:grep.1").action == OpenPage("grep.1", "grep.1")


def test_a_number_without_a_result_is_a_conversation_or_an_error(desk: Desk) -> None:
    talk = desk.tell("cranes")
    assert desk.run("/open 1").action == OpenTurn(talk.conversation.id)
    with pytest.raises(NotFound, match="no result 7 and no conversation 7"):
        desk.run("/open 7")
    with pytest.raises(NotFound, match="has no turn 9"):
        desk.run("/open 1:9")
    with pytest.raises(InvalidInput, match="names no turn"):
        desk.run("/open tea")


def test_what_is_not_there_is_said(desk: Desk) -> None:
    desk.tell("cranes")
    assert "Nothing was found" in desk.says("/search zeppelin")
    with pytest.raises(InvalidInput):
        desk.run("/search x")


# -- workers


def test_on_alone_starts_both_summarisers_and_the_pipeline_off_stops_the_two(desk: Desk) -> None:
    desk.run("/summarizer off")
    assert desk.flags(CONVERSATION, EXCHANGE, PIPELINE) == [False, False, True]
    desk.run("/embeddings off")
    words = desk.says("/summarizer on")
    assert desk.flags(CONVERSATION, EXCHANGE, PIPELINE) == [True, True, True]
    assert [title in words for title in ("Conversation summaries", "Embeddings")] == [True, True]
    desk.run("/summarizer exchange off")
    assert desk.flags(CONVERSATION, EXCHANGE, PIPELINE) == [True, False, True]
    assert "Conversation summaries" not in desk.says("/summarizer exchange")


def test_a_status_says_what_the_card_shows_and_warns_as_the_dashboard_does(desk: Desk) -> None:
    desk.tell("where do cranes fly in the autumn and in the spring of every year")
    words = desk.says("/embeddings off")
    status = next(each for each in desk.services.workers.refresh() if each.name is PIPELINE)
    card = worker_words(status)
    assert f"**{card.title}** \N{MIDDLE DOT} {card.state}" in words
    assert card.counts in words
    (warning,) = desk.services.workers.warnings([PIPELINE])
    assert f"> {warning}" in words
    assert "built in" in desk.says("/embeddings")


def test_vectors_are_made_anew_after_a_yes_and_the_price_is_said_before(desk: Desk) -> None:
    desk.tell("where do cranes fly in the autumn and in the spring of every year")
    desk.services.workers.run_until_idle([EXCHANGE, PIPELINE])
    status = next(each for each in desk.services.workers.refresh() if each.name is PIPELINE)
    assert status.done == 2
    words = desk.says("/embeddings rebuild turns")
    assert "embeds 1 passage again" in words
    assert "at no cost" in words
    assert "Nothing was changed" in desk.says("oh well")
    assert "embeds 2 passages again" in desk.says("/embeddings rebuild")
    assert "0 of 2" in desk.says("yes")
    (status,) = desk.services.workers.run_until_idle([PIPELINE])
    assert status.done == 2


def test_who_rebuilds_while_the_pipeline_is_off_is_told_that_nothing_will_be_embedded(
    desk: Desk,
) -> None:
    desk.tell("where do cranes fly in the autumn and in the spring of every year")
    assert "pipeline is off" not in desk.says("/embeddings rebuild")
    desk.says("no")
    desk.run("/embeddings off")
    words = desk.says("/embeddings rebuild")
    assert "nothing will be embedded" in words
    assert "until /embeddings on starts it" in words


def test_summaries_of_others_are_made_again_after_a_yes(desk: Desk) -> None:
    desk.tell("where do cranes fly in the autumn and in the spring of every year")
    workers = desk.services.workers
    workers.run_until_idle([EXCHANGE, CONVERSATION])
    assert "nothing to make again" in desk.says("/summarizer rebuild")
    with_other_model(desk)
    words = desk.says("/summarizer rebuild")
    assert "1 summary of exchanges and 1 summary of conversations again: at no cost" in words
    assert "Earlier versions stay" in words
    assert "Nothing was changed" in desk.says("no")
    desk.says("/summarizer rebuild")
    assert desk.says("yes").count("0 of 1") == 2
    workers.run_until_idle([EXCHANGE, CONVERSATION])
    exchange = desk.services.exchanges.of(ConversationId(1))[0].id
    made = [each.model for each in desk.services.summaries.versions("exchange", exchange)]
    assert made == ["extractive", "local:other", "extractive"]
    assert "nothing to make again" in desk.says("/summarizer rebuild")


def with_other_model(desk: Desk) -> None:
    """Let what was summarised so far have been summarised by a model that is chosen no more."""
    store, here = desk.services.store, ConversationId(1)
    rows = store.read(
        lambda cursor: cursor.execute(
            "SELECT kind, source_id, text, source_hash FROM summary WHERE latest"
        ).fetchall()
    )
    for kind, source, text, stamp in rows:
        store.save(SummaryPut(kind, source, here, text, "local:other", stamp, now()))


def test_facts_of_others_are_learned_again_after_a_yes(desk: Desk) -> None:
    desk.tell("I live in Oslo and I love sailing.")
    workers, store = desk.services.workers, desk.services.store
    workers.run_until_idle([EXTRACTOR])
    assert "nothing to read again" in desk.says("/facts rebuild")
    changed = "UPDATE extraction SET model = 'local:other'"
    store.write_derived(lambda connection: connection.execute(changed) and None).result()
    words = desk.says("/facts rebuild")
    assert "The patterns on this computer would read 1 exchange again: at no cost" in words
    assert "2 facts learned there hold until then" in words
    assert "What you wrote, edited, pinned or forgot stays as it is." in words
    assert "extractor is off" not in words
    assert "Nothing was changed" in desk.says("no")
    desk.says("/facts rebuild")
    assert "0 of 1" in desk.says("yes")
    workers.run_until_idle([EXTRACTOR])
    assert "nothing to read again" in desk.says("/facts rebuild")
    assert len(desk.services.facts.ids(FactFilter())) == 2


def test_the_manual_is_switched_on_and_off(desk: Desk) -> None:
    assert "**Manual pages**" in desk.says("/index-man")
    desk.run("/index-man on")
    assert desk.flags(WorkerName.MAN_INDEXER) == [True]
    desk.run("/index-man off")
    assert desk.flags(WorkerName.MAN_INDEXER) == [False]


# -- /rag


def test_recall_is_switched_and_says_what_it_draws_on(desk: Desk) -> None:
    desk.tell("cranes")
    assert desk.says("/rag off") == "Recall is **off**."
    words = desk.says("/rag")
    assert "| Turns | 1 |" in words
    assert (
        "- `rag_min_similarity`: **0.7** \N{MIDDLE DOT} a number from 0 to 1, default 0.7" in words
    )
    assert "off" in words.split("\n")[0]
    assert desk.says("/rag on") == "Recall is **on**."
    assert "`rag_enabled`: **true**" in desk.says("/rag config")
    assert "is 3, was 0." in desk.says("/rag set rag_recency_half_life_days 3")


def test_a_value_out_of_range_names_key_value_and_range(desk: Desk) -> None:
    assert "is 0.25, was 0.7" in desk.says("/rag set rag_min_similarity 0.25")
    assert desk.services.settings.share("rag_min_similarity") == 0.25
    with pytest.raises(InvalidSetting) as refused:
        desk.run("/rag set rag_min_similarity 1.5")
    assert (refused.value.title, refused.value.hint) == (
        "rag_min_similarity cannot be 1.5",
        "Allowed: a number from 0 to 1",
    )
    with pytest.raises(InvalidSetting, match=r"cannot be 3\. Allowed"):
        desk.run("/rag set rag_min_similarity 3")
    with pytest.raises(InvalidSetting, match="no setting 'rag_min'"):
        desk.run("/rag set rag_min 1")
    with pytest.raises(InvalidInput, match="cannot be set here"):
        desk.run("/rag set embedder openai:x")


def test_recall_is_tried_without_saving_and_passages_are_voted_for(desk: Desk) -> None:
    desk.tell(("Which bolt holds the saddle?", "An M8 bolt holds the saddle."))
    desk.services.index_sync.catch_up()
    desk.told = None  # asked in a new conversation
    words = desk.says("/rag try Which bolt holds the saddle?")
    assert "things found" in words or "thing found" in words
    assert "1,200 tokens (rag_max_tokens)" in words
    assert "(commonplace://1/0)" in words
    number = words.partition("| conversation: ")[0].splitlines()[-1].strip("| ")
    passage = PassageId(int(number))

    assert desk.says(f"/rag upvote {number}") == (
        f"Passage {number} (turn of \u201cTea and more\u201d) ranks higher from now on."
    )
    verdicts = Feedback(desk.services.store).verdicts
    assert verdicts() == {passage: Verdict.UP}
    assert "ranks lower from now on" in desk.says(f"/rag downvote {number}")
    assert verdicts() == {passage: Verdict.DOWN}


def test_a_vote_for_nothing_says_where_numbers_stand(desk: Desk) -> None:
    with pytest.raises(NotFound, match="There is no passage 4711") as refused:
        desk.run("/rag upvote 4711")
    assert "/rag try QUESTION" in refused.value.hint
    with pytest.raises(InvalidInput, match="'bicycles' is no passage's number"):
        desk.run("/rag downvote bicycles")
    with pytest.raises(WrongForm):
        desk.run("/rag upvote")


def test_recall_says_what_it_found_last(desk: Desk) -> None:
    assert "Nothing has been looked for yet." in desk.says("/rag")
    talk = desk.tell("Which bolt holds the saddle?")
    exchange = talk.exchanges[0]
    item = RecalledItem(
        RecallLayer.FACT, PassageKind.FACT, PassageId(7), None, None, None, 0.9, None, 1.0, 12,
        injected=True,
    )  # fmt: skip
    desk.services.store.save(
        PromptKept(
            KeptPrompt(
                exchange.id, talk.conversation.id, exchange.started_at, "x:y", 1000, 2000, (),
                (item, replace(item, passage_id=PassageId(8), injected=False, dropped_by="far")),
                "Recall took longer than 0.5 s",
            )
        )
    )  # fmt: skip
    words = desk.says("/rag")
    link = f"(commonplace://{talk.conversation.id}/0)"
    assert f"[Which bolt holds the saddle?]{link}. 1 of 2 things found is brought in." in words
    assert "Recall took longer than 0.5 s" in words
    assert "| 7 | fact: " in words
    assert "| 8 | fact: " not in words


# -- /tag, /export, /import


def test_tags_come_and_go(desk: Desk) -> None:
    desk.tell("cranes")
    assert "no tags" in desk.says("/tag")
    assert desk.says("/tag add Birds of *prey*, sea") == "Tags: Birds of \\*prey\\*, sea"
    assert desk.says("/tag remove SEA") == "Tags: Birds of \\*prey\\*"
    assert desk.says("/tag list") == "Tags: Birds of \\*prey\\*"
    with pytest.raises(NotFound, match="no tag 'sea'"):
        desk.run("/tag remove sea")
    with pytest.raises(WrongForm):
        desk.run("/tag add")


def test_what_needs_a_conversation_says_so_where_there_is_none(desk: Desk) -> None:
    for command in ("/tag add x", "/export"):
        with pytest.raises(InvalidInput) as refused:
            desk.run(command)
        assert refused.value.hint == "Write a message first."


def test_a_conversation_is_written_to_a_file_and_none_is_replaced_unasked(
    desk: Desk, tmp_path: Path
) -> None:
    talk = desk.tell("cranes")
    assert desk.run("/export").action == AskExport(talk.conversation.id)
    path = tmp_path / "a talk.json"
    assert "Written to" in desk.says(f'/export "{path}"')
    assert len(json.loads(path.read_text("utf-8"))["conversations"]) == 1
    path.write_text("mine", "utf-8")
    assert "Type **yes**" in desk.says(f"/export {path}")
    desk.run("no")
    assert path.read_text("utf-8") == "mine"
    desk.run(f"/export {path}")
    desk.run("yes")
    assert "cranes" in path.read_text("utf-8")
    with pytest.raises(InvalidInput, match="in which format"):
        desk.run(f"/export {tmp_path / 'talk.doc'}")


def test_an_import_is_handed_on_once_the_file_is_there(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "my export.zip"
    with pytest.raises(NotFound, match="There is no file"):
        desk.run(f"/import {path}")
    path.write_bytes(b"")
    for words in (str(path), f"'{path}'"):
        assert desk.run(f"/import {words}").action == ImportFiles((path,))


# -- help and slips


def test_every_command_has_a_line_of_help_and_a_page_of_its_own(desk: Desk) -> None:
    overview = desk.says("/help")
    for command in desk.services.commands:
        assert f"`/{command.name}`" in overview
        page = desk.says(f"/help /{command.name}")
        assert command.help in page
        assert all(form.words in page for form in command.forms)
        assert all(str(form).startswith(f"/{command.name}") for form in command.forms)


def test_the_readme_names_every_command(desk: Desk) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    listed = readme.partition("## Typed in the composer")[2].partition("\n## ")[0]
    named = [line.split()[0] for line in listed.splitlines() if line.startswith("/")]
    assert sorted(named) == sorted(f"/{each.name}" for each in desk.services.commands)


def test_a_slip_is_told_with_the_nearest_command(desk: Desk) -> None:
    with pytest.raises(NotFound) as slip:
        desk.run("/embedings on")
    assert slip.value.title == "There is no command '/embedings'"
    assert slip.value.hint.startswith("Did you mean /embeddings?")
    with pytest.raises(NotFound, match="type a space before it"):
        desk.run("/usr/bin/env")


@pytest.mark.parametrize(
    "text",
    ["/new please", "/search", "/open", "/open 1 2", "/summarizer maybe", "/summarizer on off",
     "/embeddings rebuild all", "/embeddings up", "/index-man now", "/rag set rag_enabled", "/rag x",
     "/rag try",
     "/tag paint x", "/import", "/help new open"],
)  # fmt: skip
def test_words_that_make_no_form_are_refused_with_the_forms_there_are(
    desk: Desk, text: str
) -> None:
    desk.tell("cranes")
    with pytest.raises(WrongForm) as refused:
        desk.run(text)
    assert refused.value.hint

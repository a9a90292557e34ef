"""What is sent for a message: what is known in time goes along, nothing waits for what is not."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.chat.exchanges import ExchangeLoop, Models
from app.chat.inspecting import Inspector
from app.chat.looking_up import LookUps
from app.chat.preparing import ContextPrepare
from app.chat.reply import Reply
from app.domain.changes import ConversationEdited, SummaryPut
from app.domain.chat import Finished, FinishReason, MemoryRecalled, TextDelta, ToolCallReady
from app.domain.conversations import Exchange, ExchangeStatus, Text
from app.domain.errors import IndexUnavailable
from app.domain.ids import ConversationId
from app.domain.recalls import KeptPrompt, PlanPartKind
from app.domain.retrieved import RecallOptions, Retrieved, Segment
from app.memory.core_memory import CoreMemoryService
from app.storage.exchanges import Exchanges
from app.storage.forget import forget
from app.storage.prompts import Prompts
from app.storage.recovery import open_store
from app.storage.settings import Settings
from app.storage.store import Store
from app.system.paths import DataPaths
from tests.fakes.found import fact, talk, turn
from tests.fakes.models import ScriptedModel, says
from tests.fakes.stored import AT, tables, told

FOUND = Retrieved(facts=(fact(1, "The user drinks tea."),), conversations=(talk(60, turn(600)),))


@dataclass
class Retrieving:
    """Retrieval that finds `found`, once `go_on` is set, or fails with `error`."""

    found: Retrieved = FOUND
    error: Exception | None = None
    comes_back_in_time: bool = False
    go_on: threading.Event = field(default_factory=threading.Event)
    asked: list[tuple[str, ConversationId, Segment, RecallOptions]] = field(default_factory=list)

    def __call__(
        self, question: str, where: ConversationId, segment: Segment, options: RecallOptions,
        is_cancelled: Callable[[], bool],
    ) -> Retrieved:  # fmt: skip
        self.asked.append((question, where, segment, options))
        if self.comes_back_in_time:
            while not is_cancelled():
                self.go_on.wait(0.01)
            return self.found
        assert self.go_on.wait(10)
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        return self.found


@dataclass
class Talk:
    """A store, a loop over a scripted model, retrieval, and shorthands."""

    store: Store
    settings: Settings
    core: CoreMemoryService
    loop: ExchangeLoop
    model: ScriptedModel
    retrieving: Retrieving
    look_ups: LookUps

    def send(self, text: str, where: int | None = None, **more: object) -> Reply:
        place = None if where is None else ConversationId(where)
        return self.loop.send(place, (Text(text),), **more).result(10)  # type: ignore[arg-type]

    def say(self, text: str, where: int | None = None, **more: object) -> Exchange:
        return self.send(text, where, **more).done.result(10)

    def kept(self, exchange: Exchange) -> KeptPrompt:
        kept = Prompts(self.store).of(exchange.id)
        assert kept is not None
        return kept


@pytest.fixture
def talk_with(tmp_path: Path) -> Iterator[Callable[..., Talk]]:
    made: list[Talk] = []

    def make(
        retrieving: Retrieving, *scripts: list[object], limit_s: float = 10.0,
        context_tokens: int | None = None,
    ) -> Talk:  # fmt: skip
        paths = DataPaths(tmp_path / "data")
        paths.make()
        store = open_store(paths)
        settings, model = Settings(store), ScriptedModel(*scripts)  # type: ignore[arg-type]
        settings.set("default_model", "test:m")
        models = Models(lambda _: model, lambda _: context_tokens, _price, _nothing_to_close)
        core = CoreMemoryService(store, settings)
        look_ups = LookUps(store, core, retrieving, limit_s)
        prepare = ContextPrepare(settings, models.context_tokens, look_ups)
        loop = ExchangeLoop(store, settings, models, prepare)
        made.append(Talk(store, settings, core, loop, model, retrieving, look_ups))
        return made[-1]

    yield make
    for each in made:
        each.retrieving.go_on.set()
        each.loop.close()
        each.look_ups.close()
        each.store.close()


def _price(_ref: object, _tokens: object) -> tuple[float | None, str]:
    return None, ""


async def _nothing_to_close() -> None:
    pass


def ready(**more: object) -> Retrieving:
    retrieving = Retrieving(**more)  # type: ignore[arg-type]
    retrieving.go_on.set()
    return retrieving


def test_what_was_found_goes_along_and_is_stored_nowhere_but_in_the_record(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(ready())
    talk.settings.set("system_prompt", "Be brief.")
    talk.core.set("Lives in Graz.")
    exchange = talk.say("What do I drink?")
    (request,) = talk.model.requests
    assert request.messages[request.asked_at or 0].text == "What do I drink?"
    assert "> The user drinks tea." in request.recalled
    assert request.system.startswith("Be brief.\n\n<core-memory-")
    assert "Lives in Graz." in request.system
    stored = Exchanges(talk.store).messages_of(exchange)
    assert [message.text for message in stored] == ["What do I drink?", "All right."]
    kept = talk.kept(exchange)
    assert [part.kind for part in kept.parts] == [
        PlanPartKind.SYSTEM_PROMPT, PlanPartKind.CORE_MEMORY, PlanPartKind.FACTS,
        PlanPartKind.RELATED, PlanPartKind.QUESTION,
    ]  # fmt: skip
    assert [item.injected for item in kept.items] == [True, True, True]
    assert (kept.model, kept.notice) == ("test:m", "")


def test_retrieval_runs_once_for_a_message_not_for_each_tool_round(
    talk_with: Callable[..., Talk],
) -> None:
    calling = [ToolCallReady("1", "nothing", "{}"), Finished(FinishReason.TOOL_CALLS)]
    talk = talk_with(ready(), calling, says("Done."))
    talk.say("What do I drink?")
    talk.say("And eat?", 1)
    assert [question for question, *_ in talk.retrieving.asked] == ["What do I drink?", "And eat?"]


def test_the_screen_is_told_before_the_answer(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(ready())
    reply = talk.send("What do I drink?")
    reply.done.result(10)
    events = reply.drain()
    assert events[0] == MemoryRecalled(3)
    assert isinstance(events[1], TextDelta)
    assert reply.prompt is not None


def test_the_chat_goes_on_without_what_comes_too_late(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(Retrieving(), limit_s=0.05)
    talk.core.set("Lives in Graz.")
    exchange = talk.say("What do I drink?")
    assert exchange.status is ExchangeStatus.COMPLETED
    (request,) = talk.model.requests
    assert request.recalled == ""
    assert "Lives in Graz." in request.system
    assert "Recall took longer than 0.05 s" in talk.kept(exchange).notice


def test_a_search_is_asked_to_come_back_with_what_it_has_before_the_time_is_over(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(Retrieving(comes_back_in_time=True), limit_s=2.0)
    assert talk.kept(talk.say("What do I drink?")).notice == ""
    assert talk.model.requests[0].recalled


def test_a_search_that_never_ends_does_not_pile_up(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(Retrieving(), limit_s=0.01)
    notices = [talk.kept(talk.say(f"question {each}")).notice for each in range(6)]
    assert "longer than" in notices[0]
    assert notices[-1] == "Recall is still busy with earlier questions"
    assert len(talk.retrieving.asked) < 6


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (IndexUnavailable("The index is gone", "It is rebuilt."), "The index is gone"),
        (ZeroDivisionError(), "Recall failed: ZeroDivisionError"),
    ],
)
def test_the_chat_goes_on_and_says_what_failed(
    talk_with: Callable[..., Talk], error: Exception, words: str
) -> None:
    talk = talk_with(ready(error=error))
    exchange = talk.say("What do I drink?")
    assert exchange.status is ExchangeStatus.COMPLETED
    assert words in talk.kept(exchange).notice


def test_what_retrieval_says_itself_is_passed_on(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(ready(found=Retrieved(notice="The embedder is gone.")))
    assert talk.kept(talk.say("tea?")).notice == "The embedder is gone"


def test_recall_can_be_off_for_all_and_for_one_conversation(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(ready())
    exchange = talk.say("What do I drink?")
    talk.store.save(ConversationEdited(exchange.conversation_id, recalls=False))
    talk.say("And eat?", exchange.conversation_id)
    talk.settings.set("rag_enabled", False)
    talk.say("And read?")
    assert [question for question, *_ in talk.retrieving.asked] == ["What do I drink?"]
    assert [bool(request.recalled) for request in talk.model.requests] == [True, False, False]


def test_settings_choose_and_bound_what_goes_along(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(ready())
    for key, value in (("rag_fact_limit", 0), ("rag_min_similarity", 0.95)):
        talk.settings.set(key, value)
    exchange = talk.say("What do I drink?")
    assert [item.dropped_by for item in talk.kept(exchange).items] == [
        "rag_min_similarity is 0.95", "rag_min_similarity is 0.95", "its conversation was left out",
    ]  # fmt: skip
    ((_, _, _, options),) = talk.retrieving.asked
    assert options.fact_limit == 0


def test_recall_the_model_is_sent_the_question_alone(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(ready())
    exchange = talk.say("What do I drink?", model="recall:")
    (request,) = talk.model.requests
    assert (request.recalled, request.system, len(request.messages)) == ("", "", 1)
    assert Prompts(talk.store).of(exchange.id) is None


def test_a_private_conversation_recalls_and_its_record_leaves_with_it(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(ready())
    exchange = talk.say("What do I drink?", private=True)
    assert talk.model.requests[0].recalled
    assert talk.kept(exchange).items
    forget(talk.store, [exchange.conversation_id])
    left = tables(talk.store)
    assert (left["prompt"], left["recalled"]) == ([], [])


def test_only_a_segment_longer_than_the_window_is_searched(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(ready(), context_tokens=4_000)
    long = told(talk.store, *(("tea " * 60, "house " * 60) for _ in range(40)))
    talk.say("What do I drink?")
    talk.say("What do I drink?", long.conversation.id)
    (_, _, first, alone), (_, _, second, wanted) = talk.retrieving.asked
    assert (first.exchange_ids, alone.is_earlier_wanted) == (frozenset(), False)
    assert second.exchange_ids == {each.id for each in long.exchanges}
    assert wanted.is_earlier_wanted
    assert long.messages[-1].id in second.held
    assert long.messages[0].id not in second.held


def test_the_summary_of_what_no_longer_fits_goes_along(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(ready(), context_tokens=4_000)
    long = told(talk.store, *(("tea " * 60, "house " * 60) for _ in range(40)))
    covered = long.exchanges[29]
    talk.store.save(
        SummaryPut(
            "context", covered.id, long.conversation.id, "They spoke of tea.", "extractive", "h", AT
        )
    )
    talk.say("What do I drink?", long.conversation.id)
    (request,) = talk.model.requests
    assert "> They spoke of tea." in request.system
    assert request.messages[0].id == long.exchanges[30].message_ids[0]


def test_the_window_of_the_next_message_begins_where_this_one_began(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(ready(), context_tokens=16_000)
    long = told(talk.store, *(("tea " * 60, "house " * 60) for _ in range(90)))
    for _ in range(5):
        talk.say("What do I drink?", long.conversation.id)
    starts = {request.messages[0].id for request in talk.model.requests}
    assert len(starts) == 1
    assert starts != {long.messages[0].id}


def test_an_answer_that_is_regenerated_has_a_record_of_its_own(
    talk_with: Callable[..., Talk],
) -> None:
    talk = talk_with(ready())
    first = talk.say("What do I drink?")
    second = talk.loop.regenerate(first.id).result(10).done.result(10)
    assert talk.kept(first).parts == talk.kept(second).parts


def test_a_reply_that_goes_on_is_asked_for_in_our_words(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(ready(), [TextDelta("You drink")], says(" tea."))
    broken = talk.say("What do I drink?")
    assert broken.status is ExchangeStatus.INTERRUPTED
    talk.loop.retry(broken.id).result(10).done.result(10)
    request = talk.model.requests[1]
    assert request.asked_at == 0
    assert request.messages[-1].text.startswith("Continue exactly where")
    newest, first = Prompts(talk.store).history(broken.id)
    assert first.parts[-1].text == ""
    assert newest.parts[-1].text.startswith("Continue exactly where")
    assert len(newest.parts[-1].message_ids) == 2


def test_an_answer_that_never_ends_has_its_record_too(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(ready(), [TextDelta("You"), asyncio.Event()])
    reply = talk.send("What do I drink?")
    while not any(isinstance(event, TextDelta) for event in reply.drain()):
        reply.wait(1)
    talk.store.on_writer(lambda: None).result(10)
    assert talk.kept(reply.plan.exchange).items
    reply.stop()
    reply.done.result(10)


def test_what_was_sent_can_be_shown_part_by_part(talk_with: Callable[..., Talk]) -> None:
    talk = talk_with(ready(), says("Tea, says fact 1."))
    talk.core.set("Lives in Graz.")
    before = told(talk.store, "hello")
    exchange = talk.say("What do I drink?", before.conversation.id)
    inspector = Inspector(talk.store)
    found = inspector.inspect(exchange.id)
    sent = found.sent
    assert sent is not None
    (request,) = talk.model.requests
    assert (sent.system, sent.recalled) == (request.system, request.recalled)
    texts = {part.kind: part.text for part in sent.parts}
    assert texts[PlanPartKind.WINDOW] == "user: hello\n\nassistant: An answer to hello"
    assert texts[PlanPartKind.QUESTION] == "user: What do I drink?"
    assert sum(part.share for part in sent.parts) == pytest.approx(1)
    assert 0 < sent.cacheable_share < 1
    assert [source.cited for source in found.sources] == [True, False, False]
    assert inspector.inspect(before.exchanges[0].id).sent is None

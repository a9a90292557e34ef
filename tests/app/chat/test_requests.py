"""Requests and the records of their prompts: what is found in time is sent, nothing is waited for."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from app.chat.context_fetcher import ContextFetcher, RecallLimits
from app.chat.history import HistoryReader
from app.chat.inspector import InspectionService
from app.chat.planner import Planner
from app.chat.presets import Presets
from app.chat.projects import Projects
from app.chat.request_builder import RequestBuilder
from app.chat.sent_turns import SentTurns
from app.chat.tools.toolbox import Toolbox
from app.chat.typed_recall import RetrievalCache, TypedRecall
from app.domain.changes import (
    ConversationEdited,
    ExchangePut,
    MessagesAdded,
    PromptStored,
    SummaryPut,
)
from app.domain.chat import ChatRequest, RecallCompleted
from app.domain.conversations import (
    Draft,
    Exchange,
    ExchangeStatus,
    Message,
    RecallChoice,
    Role,
    Text,
)
from app.domain.errors import IndexUnavailable
from app.domain.ids import ConversationId, PassageId, new_uid
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecallSettings,
    RetrievalResult,
    SegmentContext,
    StoredPrompt,
    Verdict,
)
from app.domain.records.projects import Project, RecallRule
from app.memory.core_memory import CoreMemoryService
from app.memory.recall.mentions import Mentions
from app.storage.deletion.forget import forget
from app.storage.engine.stamps import now
from app.storage.tables.prompts import Feedback, Prompts
from app.storage.tables.settings import Settings
from tests.fakes.chats import MODEL, Chat, calls, end_of, open_chat, tool, wait_for_text
from tests.fakes.found import fact, talk, turn
from tests.fakes.models import says
from tests.fakes.stored import AT, ConversationRecord, add_conversation, opened, tables

FOUND = RetrievalResult(
    facts=(fact(1, "The user drinks tea."),), conversations=(talk(60, turn(600)),)
)
ASKED = "What do I drink?"
NOTHING = tool("nothing", lambda _: "")


@dataclass
class FakeRetrieval:
    """Retrieval that finds `words`, and by meaning `found` once `go_on` is set, or fails with `error`.

    Without `words` both take the same way.
    """

    found: RetrievalResult = FOUND
    words: RetrievalResult | None = field(default_factory=RetrievalResult)
    error: Exception | None = None
    is_cancellable: bool = False
    go_on: threading.Event = field(default_factory=threading.Event)
    asked: list[tuple[str, ConversationId, SegmentContext, RecallSettings]] = field(
        default_factory=list
    )

    def __call__(
        self, question: str, where: ConversationId, segment: SegmentContext, options: RecallSettings,
        is_cancelled: Callable[[], bool], by_meaning: bool,
    ) -> RetrievalResult:  # fmt: skip
        if not by_meaning and self.words is not None:
            return self.words
        self.asked.append((question, where, segment, options))
        if self.is_cancellable:
            while not is_cancelled():
                self.go_on.wait(0.01)
            return self.found
        assert self.go_on.wait(10)
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        return self.found


@dataclass
class Asker:
    """A chat whose prompts are prepared with a fake retrieval."""

    chat: Chat
    retrieval: FakeRetrieval
    core: CoreMemoryService
    expected: list[StoredPrompt]
    typed: TypedRecall

    def prompt(self, exchange: Exchange) -> StoredPrompt:
        """Return the record of an exchange's last prompt."""
        prompt = Prompts(self.chat.store).of(exchange.id)
        assert prompt is not None
        return prompt

    def notice(self, text: str = ASKED) -> str:
        """Send a message, which must be answered; return the notice of its prompt."""
        exchange = self.chat.say(text)
        assert exchange.status is ExchangeStatus.COMPLETED
        return self.prompt(exchange).notice

    def long_conversation(self, turns: int = 40) -> ConversationRecord:
        """Write a conversation of 120 words a turn."""
        return add_conversation(
            self.chat.store, *(("tea " * 60, "house " * 60) for _ in range(turns))
        )


@pytest.fixture
def asker_with(data_dir: Path) -> Iterator[Callable[..., Asker]]:
    with ExitStack() as stack:

        def make(
            *scripts: list[object], limit_s: float = 10.0, words_s: float | None = None, tokens: int | None = None,
            is_ready: bool = True, keeps: bool = False, **retrieval: Any,
        ) -> Asker:  # fmt: skip
            store = stack.enter_context(opened(data_dir))
            settings, retrieve = Settings(store), FakeRetrieval(**retrieval)
            core = CoreMemoryService(store, settings)
            cache = RetrievalCache(store, retrieve)
            limits = RecallLimits(limit_s, limit_s, words_s or limit_s)
            fetcher = ContextFetcher(store, core, cache if keeps else retrieve, limits)
            stack.callback(fetcher.close)
            expected: list[StoredPrompt] = []
            prepare = RequestBuilder(
                settings, lambda _: tokens, HistoryReader(store), fetcher, Toolbox([NOTHING]),
                Presets(store, settings), Projects(store), expected.append,
            )  # fmt: skip
            chat = stack.enter_context(open_chat(store, scripts, [NOTHING], prepare, settings))
            stack.callback(retrieve.go_on.set)
            if is_ready:
                retrieve.go_on.set()
            typed = TypedRecall(store, settings, prepare, cache, Mentions(store))
            return Asker(chat, retrieve, core, expected, typed)

        yield make


def recalled(request: ChatRequest, message: Message | None = None) -> str:
    """Return what is quoted in a message of a request, by default in its question."""
    text = (message or request.messages[request.history_count]).text
    return text if "<recalled-" in text else ""


def test_what_was_found_is_sent_and_recorded(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with(calls(("1", "nothing", "{}")), says("Tea, says fact 1."))
    asker.chat.settings.set("system_prompt", "Be brief.")
    asker.core.set("Lives in Graz.")
    before = add_conversation(asker.chat.store, "hello")
    reply = asker.chat.send(ASKED, before.conversation.id)
    exchange = reply.done.result(10)
    events = reply.drain()
    assert events[0] == RecallCompleted()
    assert sum(item.injected for item in reply.prompt.items) == 3
    request = asker.chat.model.requests[0]
    question = request.messages[request.history_count]
    assert question.text.endswith(ASKED)
    assert "> The user drinks tea." in recalled(request)
    assert request.system.startswith("Be brief.\n\n<core-memory-")
    assert "Lives in Graz." in request.system
    stored = [message.text for message in asker.chat.messages(exchange)]
    assert (stored[0], stored[-1]) == (ASKED, "Tea, says fact 1.")
    prompt = asker.prompt(exchange)
    assert reply.prompt.parts == prompt.parts
    assert {part.kind for part in prompt.parts} == {
        PlanPartKind.TOOLS, PlanPartKind.SYSTEM_PROMPT, PlanPartKind.CORE_MEMORY,
        PlanPartKind.HISTORY, PlanPartKind.DATE, PlanPartKind.FACTS, PlanPartKind.RELATED,
        PlanPartKind.QUESTION,
    }  # fmt: skip
    assert [item.injected for item in prompt.items] == [True, True, True]
    assert (prompt.model, prompt.notice) == (MODEL, "")
    assert [each.exchange_id for each in asker.expected] == [exchange.id]
    assert [question for question, *_ in asker.retrieval.asked] == [ASKED], "once, for all rounds"

    found = InspectionService(asker.chat.store).inspect(exchange.id)
    assert found.sent is not None
    assert found.sent.system == request.system
    assert question.text.endswith(f"]\n{found.sent.recalled}\n\n{ASKED}")
    texts = {part.kind: part.text for part in found.sent.parts}
    assert texts[PlanPartKind.HISTORY] == "user: hello\n\nassistant: An answer to hello"
    assert texts[PlanPartKind.QUESTION] == f"user: {ASKED}"
    assert sum(part.share for part in found.sent.parts) == pytest.approx(1)
    assert 0 < found.sent.cacheable_share < 1
    assert [source.cited for source in found.sources] == [True, False, False]
    assert InspectionService(asker.chat.store).inspect(before.exchanges[0].id).sent is None


@pytest.mark.parametrize(("tokens", "count"), [(2_048, 0), (8_192, 1), (None, 1)])
def test_a_model_that_reads_little_gets_no_tools(
    asker_with: Callable[..., Asker], tokens: int | None, count: int
) -> None:
    asker = asker_with(says("Yes."), tokens=tokens)
    asker.chat.say(ASKED)
    assert len(asker.chat.model.requests[0].tools) == count


def test_a_message_does_not_wait_for_a_slow_search(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with(limit_s=0.05, is_ready=False, words=None)
    asker.core.set("Lives in Graz.")
    notices = [asker.notice(f"question {each}") for each in range(6)]
    request = asker.chat.model.requests[0]
    assert (recalled(request), "Lives in Graz." in request.system) == ("", True)
    assert "Recall took longer than 0.05 s" in notices[0]
    assert "still busy" in notices[-1]
    assert len(asker.retrieval.asked) < 6, "searches that hang do not pile up"


@pytest.mark.parametrize("is_cancellable", [True, False])
def test_what_words_find_is_sent_when_meaning_takes_too_long(
    asker_with: Callable[..., Asker], is_cancellable: bool
) -> None:
    asker = asker_with(
        is_cancellable=is_cancellable, is_ready=False, limit_s=0.05, words_s=30.0, words=FOUND,
        found=RetrievalResult(),
    )  # fmt: skip
    assert "words only" in asker.notice()
    assert recalled(asker.chat.model.requests[0])


@pytest.mark.parametrize(
    ("retrieval", "notice"),
    [({"error": IndexUnavailable("The index is gone", "It is rebuilt.")}, "The index is gone"),
     ({"error": ZeroDivisionError()}, "Recall could not be read: ZeroDivisionError"),
     ({"found": RetrievalResult(notice="The embedder is gone.")}, "The embedder is gone")],
)  # fmt: skip
def test_a_search_that_fails_is_noted(
    asker_with: Callable[..., Asker], retrieval: dict[str, Any], notice: str
) -> None:
    assert notice in asker_with(**retrieval).notice()


def test_a_plan_that_fails_is_noted(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with()
    asker.retrieval.found = RetrievalResult(facts=(None,))  # type: ignore[arg-type]
    assert "AttributeError" in asker.notice()


def test_recall_is_off_for_all_or_for_one_conversation(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with()
    chat = asker.chat
    exchange = chat.say(ASKED)
    chat.store.save(ConversationEdited(exchange.conversation_id, recalls=False))
    chat.say("And eat?", exchange.conversation_id)
    chat.settings.set("rag_enabled", False)
    chat.say("And read?")
    assert [question for question, *_ in asker.retrieval.asked] == [ASKED]
    found = [recalled(each, each.messages[-1]) for each in chat.model.requests]
    assert [bool(each) for each in found] == [True, False, False]
    sent_to_recall = chat.say("And do?", model="recall:")
    request = chat.model.requests[-1]
    assert (recalled(request), request.system, len(request.messages)) == ("", "", 1)
    assert Prompts(chat.store).of(sent_to_recall.id) is None


def test_settings_limit_what_is_sent(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with()
    for key, value in (
        ("rag_fact_limit", 0), ("rag_min_similarity", 0.95), ("rag_hint_similarity", 0.95)
    ):  # fmt: skip
        asker.chat.settings.set(key, value)
    exchange = asker.chat.say(ASKED)
    assert [item.dropped_by for item in asker.prompt(exchange).items] == [
        "rag_min_similarity is 0.95", "rag_min_similarity is 0.95", "its conversation was left out",
    ]  # fmt: skip
    assert asker.retrieval.asked[0][3].rag_fact_limit == 0


def test_a_private_conversation_recalls_without_a_trace(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with()
    exchange = asker.chat.say(ASKED, private=True)
    assert recalled(asker.chat.model.requests[0])
    assert asker.prompt(exchange).items
    forget(asker.chat.store, [exchange.conversation_id])
    left = tables(asker.chat.store)
    assert (left["prompt"], left["recalled"]) == ([], [])


def test_only_a_segment_longer_than_a_window_is_searched(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with(tokens=4_000)
    long = asker.long_conversation()
    asker.chat.say(ASKED)
    asker.chat.say(ASKED, long.conversation.id)
    (_, _, first, alone), (_, _, second, wanted) = asker.retrieval.asked
    assert (first.exchange_ids, alone.auto_rag_enabled) == (frozenset(), False)
    assert second.exchange_ids == {each.id for each in long.exchanges}
    assert wanted.auto_rag_enabled
    assert long.messages[-1].id in second.held
    assert long.messages[0].id not in second.held


def test_a_search_while_typing_serves_a_cut_conversation(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with(tokens=4_000, keeps=True)
    asker.chat.settings.set("auto_rag_enabled", True)
    long = asker.long_conversation()
    asker.typed.prepare(Draft(ASKED), long.conversation.id)
    asker.chat.say(ASKED, long.conversation.id)
    ((*_, wanted),) = asker.retrieval.asked
    assert wanted.auto_rag_enabled
    assert recalled(asker.chat.model.requests[0])


def test_a_message_is_recalled_with_the_turns_before_it(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with()
    before = add_conversation(asker.chat.store, *((f"asked {n}", f"said {n}") for n in range(5)))
    asker.chat.say("And how long?", before.conversation.id)
    _, _, segment, _ = asker.retrieval.asked[-1]
    assert segment.recent == ("asked 2", "asked 3", "asked 4")


def test_a_compaction_replaces_what_no_longer_fits(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with(tokens=4_000)
    own = asker.long_conversation(80).conversation.id
    whole = SummaryPut("conversation", own, own, "They talked of tea.", "extractive", "h", AT)
    asker.chat.store.save(whole)
    first = asker.chat.say(ASKED, own)
    prompt = asker.prompt(first)
    quoted = (PlanPartKind.FACTS, PlanPartKind.RELATED, PlanPartKind.EARLIER)
    tokens = sum(part.tokens for part in prompt.parts if part.kind not in quoted)
    assert (prompt.limit_tokens, tokens <= 1500) == (3000, True)
    second = asker.chat.say("And now?", own)
    before, after = asker.chat.model.requests
    assert "> Summary: They talked of tea." in before.messages[0].text
    assert "still holds" not in before.messages[0].text
    assert after.messages[: len(before.messages)] == before.messages
    assert PlanPartKind.COMPACTION in {part.kind for part in asker.prompt(second).parts}


@pytest.mark.parametrize("has_prepared", [True, False])
@pytest.mark.parametrize("of_turns", [True, False])
def test_turns_too_many_to_be_read_are_told_by_their_summaries(
    asker_with: Callable[..., Asker], has_prepared: bool, of_turns: bool
) -> None:
    asker = asker_with(tokens=4_000)
    long = asker.long_conversation(80)
    own = long.conversation.id
    texts = ["They spoke of mint."] if has_prepared else []
    if has_prepared:
        asker.chat.store.save(
            SummaryPut("context", long.exchanges[4].id, own, texts[0], "m", "h", AT)
        )
    if of_turns:
        texts.append("They rode to Graz.")
        for each in long.exchanges:
            asker.chat.store.save(SummaryPut("exchange", each.id, own, texts[-1], "m", "h", AT))
    else:
        texts.append("They walked to Linz.")
        asker.chat.store.save(SummaryPut("conversation", own, own, texts[-1], "m", "h", AT))
    asker.chat.say(ASKED, own)
    compaction = asker.chat.model.requests[0].messages[0].text
    assert [each for each in texts if each not in compaction] == []
    assert ("still holds" in compaction) is has_prepared


@pytest.mark.parametrize("model", ["m", "extractive"])
def test_a_full_prompt_takes_a_prepared_compaction(
    asker_with: Callable[..., Asker], model: str
) -> None:
    asker = asker_with(tokens=10_000)
    long = asker.long_conversation(20)
    own = long.conversation.id
    prepared = SummaryPut(
        "context", long.exchanges[9].id, own, "They spoke of tea.", model, "h", AT
    )  # fmt: skip
    asker.chat.store.save(prepared)
    asker.chat.say(ASKED, own)
    request = asker.chat.model.requests[0]
    assert request.messages[0].id == long.messages[0].id, "while it is not full"
    for number in range(15):
        asker.chat.say(f"And {number}? " + "tea " * 240, own)
        text = asker.chat.model.requests[-1].messages[0].text
        if "> They spoke of tea." in text:
            break
    assert number > 3
    assert ("still holds" in text) is (model != "extractive")
    assert sum(part.tokens for part in asker.prompt(last_of(asker, own)).parts) < 7500 * 0.55
    for number in range(30):
        asker.chat.say(f"And then {number}? " + "tea " * 240, own)
        if (later := asker.chat.model.requests[-1].messages[0].text) != text:
            break
    assert later != text, "sentences were added"
    assert ("still holds" in later) is (model != "extractive")


def last_of(asker: Asker, where: ConversationId) -> Exchange:
    return asker.chat.library.open(where).path[-1]


def test_core_memory_stays_as_it_was_unless_edited(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with()
    asker.core.set("Lives in Graz.")
    where = asker.chat.say(ASKED).conversation_id
    asker.core.append("Drinks tea.", MODEL)
    asker.chat.say("And now?", where)
    asker.core.append("Has a dog.")
    asker.chat.say("And then?", where)
    before, same, edited = (each.system for each in asker.chat.model.requests)
    assert before == same
    assert "Has a dog." in edited
    assert "Drinks tea." in edited


@pytest.mark.parametrize("change", ["never", "forget"])
def test_a_rejected_or_forgotten_quotation_leaves_only_its_block(
    asker_with: Callable[..., Asker], change: str
) -> None:
    asker = asker_with()
    source = add_conversation(asker.chat.store, "I drink tea")
    said = turn(600, conversation_id=source.conversation.id)
    quoted = replace(
        FOUND.conversations[0], conversation_id=said.conversation_id, exchanges=(said,)
    )
    asker.retrieval.found = replace(FOUND, conversations=(quoted,))
    where = asker.chat.say(ASKED).conversation_id
    if change == "never":
        Feedback(asker.chat.store).give(quoted.match.passage_id, Verdict.NEVER)
    else:
        forget(asker.chat.store, [source.conversation.id])
    asker.retrieval.found = RetrievalResult()
    asker.chat.say("And now?", where)
    before, after = asker.chat.model.requests
    assert "Talk 60" in before.messages[0].text
    assert "Talk 60" not in after.messages[0].text
    assert "> The user drinks tea." in after.messages[0].text
    assert asker.retrieval.asked[-1][2].quoted == (
        {PassageId(1), said.match.passage_id}
        | (set() if change == "never" else {quoted.match.passage_id})
    )


@pytest.mark.parametrize(
    ("source_project", "moved_to", "is_kept"),
    [(None, "g", False), ("g", None, False), ("g", "h", False), ("g", "g", True),
     (None, "o", True)],
)  # fmt: skip
def test_what_a_moved_conversation_recalled_is_sent_only_within_its_boundary(
    asker_with: Callable[..., Asker],
    source_project: str | None,
    moved_to: str | None,
    is_kept: bool,
) -> None:
    asker = asker_with()
    store, projects = asker.chat.store, Projects(asker.chat.store)
    for uid in "gh":
        projects.save(Project(uid, uid, recall=RecallRule.ONLY))
    projects.save(Project("o", "open"))
    source = add_conversation(store, "I drink tea").conversation.id
    said = turn(600, conversation_id=source)
    quoted = replace(FOUND.conversations[0], conversation_id=source, exchanges=(said,))
    asker.retrieval.found = replace(FOUND, conversations=(quoted,))
    projects.move([source], source_project)
    where = asker.chat.say(ASKED).conversation_id
    projects.move([where], moved_to)
    asker.retrieval.found = RetrievalResult()
    asker.chat.say("And now?", where)
    before, after = asker.chat.model.requests
    assert "Talk 60" in before.messages[0].text
    assert ("Talk 60" in after.messages[0].text) is is_kept
    assert (said.match.passage_id in asker.retrieval.asked[-1][2].quoted) is is_kept


def test_a_hint_in_an_earlier_turn_is_not_given_again(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with(found=RetrievalResult(history=(turn(700, relevance=0.5),)))
    where = asker.chat.say(ASKED).conversation_id
    asker.chat.say("And now?", where)
    asker.retrieval.found = RetrievalResult(history=(turn(700, "Another line", relevance=0.5),))
    asker.chat.say("And then?", where)
    *_, last = asker.chat.model.requests
    hints = ["question 700" in each.text for each in last.messages if each.role is Role.USER]
    assert hints == [True, False, False]
    assert "> Another line" in last.messages[-1].text, "another sentence of the same turn"


def test_a_message_without_memory_stays_so_on_retry(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with(words=None)
    exchange = asker.chat.say(ASKED, choice=RecallChoice(is_on=False))
    end_of(asker.chat.loop.regenerate(exchange.id))
    assert asker.retrieval.asked == []
    assert not any(map(recalled, asker.chat.model.requests))
    asker.chat.say(ASKED, exchange.conversation_id)
    assert recalled(asker.chat.model.requests[-1])


def test_a_continued_or_repeated_answer_has_its_record(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with([Text("You drink")], says(" tea."))
    broken = asker.chat.say(ASKED)
    assert broken.status is ExchangeStatus.INTERRUPTED
    asker.chat.retry(broken)
    first_request, request = asker.chat.model.requests
    assert request.history_count == 0
    assert request.messages[0] == first_request.messages[0]
    assert request.messages[-1].text.startswith("Continue exactly where")
    newest, first = Prompts(asker.chat.store).history(broken.id)
    assert first.parts[-1].text == ""
    assert newest.parts[-1].text == request.messages[-1].text
    assert newest.items == first.items
    assert len(asker.retrieval.asked) == 1, "a turn keeps its block"
    again = end_of(asker.chat.loop.regenerate(broken.id))
    assert [part.kind for part in asker.prompt(again).parts] == [each.kind for each in first.parts]
    assert len(asker.retrieval.asked) == 2


def test_an_earlier_question_keeps_its_block_on_another_branch(
    asker_with: Callable[..., Asker],
) -> None:
    asker = asker_with([], says("Tea."), says("Tea again."), says("Cake."), says("Bye."))
    unanswered = asker.chat.say(ASKED)
    both = asker.chat.say("And with milk?", unanswered.conversation_id)
    end_of(asker.chat.loop.regenerate(both.id))
    second = both.message_ids[1]
    edited = end_of(asker.chat.loop.edit(both.id, second, (Text("And eat?"),)))
    asker.chat.say("Thanks.", edited.conversation_id)
    first, *others = asker.chat.model.requests
    assert recalled(first, first.messages[0])
    assert [each.messages[0] for each in others] == [first.messages[0]] * len(others)
    assert asker.prompt(edited).part(PlanPartKind.QUESTION).message_ids == edited.message_ids[:2]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_what_was_forgotten_of_an_earlier_question_stays_so_on_another_branch(
    data_dir: Path, *, is_reopened: bool
) -> None:
    with ExitStack() as stack:
        store = stack.enter_context(opened(data_dir))
        source, asked = add_conversation(store, "I drink tea"), add_conversation(store, ASKED)
        question, answer = asked.messages
        more = replace(question, id=store.ids.message(), uid=new_uid(), parent_id=question.id)
        answer = replace(answer, id=store.ids.message(), uid=new_uid(), parent_id=more.id)
        both = replace(asked.exchanges[0], message_ids=(question.id, more.id, answer.id))
        passage, own = store.ids.passage(), source.conversation.id
        pieces = (PromptPiece("They drink:\n"), PromptPiece("> Tea\n", own, passage))
        parts = (
            PlanPart(PlanPartKind.RELATED, 9, cacheable=False, pieces=pieces),
            PlanPart(PlanPartKind.QUESTION, 9, cacheable=False, message_ids=(question.id,)),
        )
        prompt = StoredPrompt(both.id, both.conversation_id, AT, MODEL, 1000, 1000, parts, ())
        store.save(MessagesAdded((more, answer)), ExchangePut(both), PromptStored(prompt))
        forget(store, [own])
        if is_reopened:
            stack.close()
            store = stack.enter_context(opened(data_dir))
        plan = Planner(store, Settings(store)).regenerate(both.id)
        store.save(*plan.changes)
        (sent,) = SentTurns(store).of([plan.exchange], now())
        assert sent.whole[0] == question
        assert "" not in store.column("SELECT text FROM prompt_text")
        only = add_conversation(store, ASKED).exchanges[0]
        store.save(PromptStored(replace(prompt, exchange_id=only.id, parts=())))
        changes = Planner(store, Settings(store)).regenerate(only.id).changes
        assert not [each for each in changes if isinstance(each, PromptStored)]


def test_the_block_of_a_resent_turn_is_in_the_budget(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with([Text("You drink")], says(" tea."), tokens=10_000)
    asker.chat.settings.set("rag_fact_limit", 10)
    asker.retrieval.found = RetrievalResult(
        facts=tuple(
            fact(n, f"In town {n} " + f"the user likes tea {n}, " * 12) for n in range(1, 11)
        )
    )
    asker.chat.settings.set("prompt_max_tokens", 6_000)
    broken = asker.chat.say(ASKED, asker.long_conversation(30).conversation.id)
    asker.chat.settings.set("prompt_max_tokens", 2_000)
    asker.chat.retry(broken)
    parts = asker.prompt(broken).parts
    block = sum(each.tokens for each in parts if each.kind is PlanPartKind.FACTS)
    past = (PlanPartKind.SHORTENED, PlanPartKind.HISTORY)
    turns = sum(each.tokens for each in parts if each.kind in past)
    assert block > 500
    assert 0 < turns < 200, "the newest turn"


def test_a_running_answer_has_its_record(asker_with: Callable[..., Asker]) -> None:
    asker = asker_with([Text("You"), asyncio.Event()])
    reply = asker.chat.send(ASKED)
    wait_for_text(reply)
    asker.chat.store.on_writer(lambda: None).result(10)
    assert asker.prompt(reply.plan.exchange).items

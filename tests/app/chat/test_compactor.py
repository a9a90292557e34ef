"""Prepared compactions: before they are needed, once, by the model if there is one, never of private talk."""

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from app.chat.compactor import Compactor
from app.chat.history import extract, joined, markdown_of
from app.chat.sent_turns import SentTurns
from app.domain.changes import ExchangePut, MessagesAdded, PromptStored, SpendAdded
from app.domain.conversations import Attachment, ExchangeStatus
from app.domain.errors import Cancelled, KnownError, RateLimited, Unreachable
from app.domain.ids import ConversationId, ExchangeId
from app.domain.recall import PlanPart, PlanPartKind, StoredPrompt
from app.domain.turns import TurnMarkdown
from app.domain.workers import WorkerName
from app.language.statements.extraction import without_quoted_lines
from app.memory.context.plan import compaction_part, message_tokens
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.tables.summaries import Summaries
from app.workers.background_model import Answer, UnusableAnswer
from app.workers.job_interface import Blocked, IsCancelled
from app.workers.prompts_and_answers import Prompt, fill_prompt
from tests.fakes.jobs import until
from tests.fakes.stored import AT, ConversationRecord, new_conversation, tables

ORIGIN = "https://friend.example"


def long_conversation(
    store: Store, limit_tokens: int, *files: Attachment, private: bool = False
) -> ConversationRecord:
    """Write sixty turns of about 100 tokens each, the first with files; and the last one's prompt."""
    turns = (
        (f"What of walk {each}? " * 9, f"Walk {each} went by the river. " * 7) for each in range(60)
    )
    conversation = new_conversation(store, *turns, private=private)
    first, *others = conversation.messages
    messages = (replace(first, blocks=(*first.blocks, *files)), *others)
    added = (
        MessagesAdded(messages) if type(c) is MessagesAdded else c for c in conversation.changes
    )
    store.save(*added)
    conversation = replace(conversation, messages=messages)
    store.save(PromptStored(prompt_of(conversation, limit_tokens)))
    return conversation


def prompt_of(conversation: ConversationRecord, limit_tokens: int) -> StoredPrompt:
    *past, question, _ = (each.id for each in conversation.messages)
    tokens = sum(map(message_tokens, conversation.messages[:-2]))
    parts = (
        PlanPart(PlanPartKind.SYSTEM_PROMPT, 100, True),
        PlanPart(PlanPartKind.HISTORY, tokens, True, message_ids=tuple(past)),
        PlanPart(PlanPartKind.QUESTION, 50, False, message_ids=(question,)),
    )
    last = conversation.exchanges[-1].id
    return StoredPrompt(
        last, conversation.conversation.id, AT, "openai:m", limit_tokens, 2000, parts, ()
    )


class FakeModel:
    """A background model that counts what it reads; it fails with `error`."""

    model, is_free = "friend:m", False

    def __init__(self, error: KnownError | None = None, context_tokens: int = 100_000) -> None:
        self._error = error
        self._context_tokens = context_tokens
        self.asked: list[Prompt] = []

    def answer_tokens(self) -> int:
        return 1_000

    def context_tokens(self) -> int:
        return self._context_tokens

    def ask(
        self, asked: Prompt, purpose: WorkerName, is_cancelled: IsCancelled, _: object = None
    ) -> Answer:
        if is_cancelled():
            raise Cancelled("Stopped")
        if self._error is not None:
            raise type(self._error)(*self._error.args)
        self.asked.append(asked)
        spent = SpendAdded(AT, purpose.value, self.model, 1, 1, 0, 0.0)
        return Answer(f"Notes {len(self.asked)}.", self.model, spent)

    def write_off(self, answer: Answer) -> None:
        raise NotImplementedError


def compactor_of(store: Store, model: FakeModel | None = None) -> Compactor:
    """Return a compactor whose model gives no usable answer unless one is given."""
    asked = {("openai:m", ORIGIN): model or FakeModel(UnusableAnswer("It gave an empty answer"))}
    return Compactor(
        store, Settings(store), lambda *each: asked[each], {"openai:m": ORIGIN}.__getitem__
    )


def test_a_nearly_full_prompt_is_prepared_once(store: Store) -> None:
    conversation = long_conversation(store, 7_500)
    last = conversation.exchanges[-1].id
    compactor = compactor_of(store)
    assert [compactor.prepare(last, ORIGIN), compactor.prepare(last, ORIGIN)] == [True, False]
    ids = [each.id for each in conversation.exchanges]
    (summary,) = Summaries(store).latest("context", ids).values()
    covered = ids.index(ExchangeId(summary.source_id)) + 1
    assert 25 <= covered <= 32, "of the ceiling as much as lies between 85 % and 50 %"
    assert (summary.model, "walk" in summary.text.casefold()) == ("extractive", True)


@pytest.mark.parametrize(("tokens", "private"), [(50_000, False), (7_500, True)])
def test_short_or_private_ones_are_not_prepared(store: Store, tokens: int, private: bool) -> None:
    conversation = long_conversation(store, tokens, private=private)
    assert not compactor_of(store).prepare(conversation.exchanges[-1].id, ORIGIN)
    assert tables(store)["summary"] == []


def test_the_past_of_a_short_one_is_not_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    last = long_conversation(store, 50_000).exchanges[-1].id
    monkeypatch.setattr(SentTurns, "of", None)
    assert not compactor_of(store).prepare(last, ORIGIN)


@pytest.mark.parametrize(
    "error", [Cancelled("Stopped"), RateLimited("Later"), Unreachable("Away"), Blocked("No money")]
)
def test_what_fails_for_now_is_tried_again(store: Store, error: KnownError) -> None:
    last = long_conversation(store, 7_500).exchanges[-1].id
    with pytest.raises(type(error)):
        compactor_of(store, FakeModel(error)).prepare(last, ORIGIN)
    assert compactor_of(store, FakeModel()).prepare(last, ORIGIN)
    (row,) = tables(store)["summary"]
    assert "friend:m" in row


@pytest.mark.parametrize("is_free", [False, True])
def test_a_model_that_costs_nothing_yields_to_messages_under_way(
    store: Store, *, is_free: bool
) -> None:
    talk = long_conversation(store, 7_500)
    asked = FakeModel()
    asked.is_free = is_free
    compactor = compactor_of(store, asked)
    compactor.expect(replace(prompt_of(talk, 7_500), exchange_id=ExchangeId(999)))
    with pytest.raises(Cancelled) if is_free else nullcontext():
        compactor.prepare(talk.exchanges[-1].id, ORIGIN)
    assert len(asked.asked) == 1 - is_free


def test_exchanges_deleted_or_stopped_at_once_are_not_waited_for(store: Store) -> None:
    talk = long_conversation(store, 7_500)
    asked = FakeModel()
    asked.is_free = True
    compactor = compactor_of(store, asked)
    compactor.start()
    first, *_, last = talk.exchanges
    gone = new_conversation(store, "Hello.")
    running = [replace(each, status=ExchangeStatus.RUNNING) for each in (gone.exchanges[0], last)]
    store.save(*gone.changes, *map(ExchangePut, running))
    for each in (first, *running):  # the first has ended before its prompt is ready
        compactor.expect(replace(prompt_of(talk, 7_500), exchange_id=each.id))
    forget(store, [gone.conversation.id])
    store.save(ExchangePut(gone.exchanges[-1]))
    store.save(ExchangePut(last))
    until(lambda: len(asked.asked) == 1)
    compactor.stop()


def test_what_is_too_long_for_the_model_is_read_in_parts(store: Store) -> None:
    last = long_conversation(store, 7_500).exchanges[-1].id
    model = FakeModel(context_tokens=2_000)
    compactor_of(store, model).prepare(last, ORIGIN)
    assert len(model.asked) > 2
    read = "".join(each.user for each in model.asked)
    assert all(f"What of walk {each}?" in read for each in range(25)), "nothing is left out"
    assert " user, Sunday, 2026-03-01]\nWhat of walk 0?" in read
    assert "Notes 1." in model.asked[1].user
    assert len(tables(store)["spend"]) == 1 or len(tables(store)["spend"]) == len(model.asked)


def test_a_file_is_read_as_a_file_and_its_sentences_are_nobodys(store: Store) -> None:
    file = Attachment("list.txt", "text/plain", text="The walk by the river ends at box 60. " * 9)
    talk = long_conversation(store, 7_500, file)
    assert "box 60" not in extract([markdown_of(talk.messages[:2])])
    model = FakeModel()
    compactor_of(store, model).prepare(talk.exchanges[-1].id, ORIGIN)
    assert re.search(r" attached file\]\nlist.txt\nThe walk by the river", model.asked[0].user)


def test_a_model_that_has_not_answered_receives_nothing(store: Store) -> None:
    talk = long_conversation(store, 7_500)
    last, prompt = talk.exchanges[-1], prompt_of(talk, 7_500)
    model = FakeModel()
    compactor = compactor_of(store, model)
    store.save(ExchangePut(replace(last, message_ids=last.message_ids[:1])))
    assert not compactor.prepare(last.id, ORIGIN), "stopped at once"
    later = talk.messages[-1].created_at + timedelta(minutes=1)
    store.save(ExchangePut(last), PromptStored(replace(prompt, sent_at=later)))
    assert not compactor.prepare(last.id, ORIGIN), "continued in vain, perhaps on another server"
    assert (model.asked, tables(store)["summary"]) == ([], [])


@pytest.mark.parametrize("status", [ExchangeStatus.COMPLETED, ExchangeStatus.INTERRUPTED])
def test_only_expected_turns_are_prepared_when_they_end(
    store: Store, status: ExchangeStatus
) -> None:
    talk = long_conversation(store, 7_500)
    last = talk.exchanges[-1]
    compactor = compactor_of(store)
    compactor.start()
    store.save(ExchangePut(last))
    assert tables(store)["summary"] == []
    store.save(ExchangePut(replace(last, status=ExchangeStatus.RUNNING)))
    compactor.expect(prompt_of(talk, 7_500))
    store.save(ExchangePut(replace(last, status=status)))
    until(lambda: len(tables(store)["summary"]) == 1)
    compactor.stop()


def places(count: int) -> Sequence[TurnMarkdown]:
    return [
        TurnMarkdown(f"Where is place {each}?", f"Place {each} is by the river.")
        for each in range(count)
    ]


def test_sentences_are_extracted_from_all_parts() -> None:
    words = extract(places(9))
    assert 0 <= words.find("lace") < len(words) <= 3 * 541 + 6 * len("User:  Assistant: ")
    assert words.count("\n") > 2
    assert extract([]) == ""


def test_the_introduction_of_notes_names_the_heading_of_what_still_holds() -> None:
    part = compaction_part("Always:\n- in German", ConversationId(1), 1_500, is_notes=True)
    assert '"Always"' in part.text.partition("> Always:")[0]
    assert "\nAlways: " in fill_prompt("compaction", [], words="9").system


@pytest.mark.parametrize("code", ["```\n> npm run build\n```", "~~~\n> make\n"])
def test_code_and_what_is_only_quoted_stay(code: str) -> None:
    text = f"> Old words.\n{code}"
    assert without_quoted_lines(text) == f"\n{code}"
    assert without_quoted_lines(f"Mine.\n{text}") == f"Mine.\n\n{code}"
    only = TurnMarkdown("> What does this say?", "```py\nprint(1)\n```", day="Friday, 2026-11-27")
    assert "What does this say?" in extract([only])


def test_extracted_sentences_say_who_wrote_them_and_when() -> None:
    said = [
        TurnMarkdown(
            "The plumber comes tomorrow.", "I would ask for a quote.", day="Friday, 2026-11-27"
        ),
        TurnMarkdown(
            "The plumber was here.\n> Answer in English from now on.",
            "Then close the valve.",
            day="Monday, 2026-11-30",
        ),
    ]
    assert extract(said).splitlines() == [
        "Friday, 2026-11-27 User: The plumber comes tomorrow. Assistant: I would ask for a quote.",
        "Monday, 2026-11-30 User: The plumber was here. Assistant: Then close the valve.",
    ]
    summary = TurnMarkdown("", "The plumber was called.", day="Friday, 2026-11-27")
    assert extract([summary]) == "Friday, 2026-11-27 The plumber was called."


@pytest.mark.parametrize(
    ("before_lines", "added_lines", "kept_of_added"),
    [(60, 25, 25), (60, 90, 50), (5, 90, 80), (0, 9, 9)],
)
def test_the_newest_points_remain(before_lines: int, added_lines: int, kept_of_added: int) -> None:
    before = "\n".join(
        f"Old point {each:02} is that they walked by the river." for each in range(before_lines)
    )
    added = [
        f"New point {each:02} is that they rested at the big house by the river."
        for each in range(added_lines)
    ]
    part = compaction_part(joined(before, "\n".join(added), 1_500), ConversationId(1), 1_500)
    assert part.tokens <= 1_500
    whole = [each for each in added if f"> {each}" in part.text]
    assert whole == added[len(added) - len(whole) :]
    assert len(whole) >= kept_of_added
    assert ("> Old point 00" in part.text) == bool(before)

"""A scripted summarizer, and additions to stored conversations."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from app.domain.changes import ConversationEdited, ExchangePut, MessagesAdded, PassagesPut
from app.domain.conversations import Conversation, Exchange, ExchangeStatus, Message, Role, Text
from app.domain.ids import PassageId, new_uid
from app.language.extractive.summaries import TurnMarkdown
from app.storage.engine.store import Store
from app.workers.job import IsCancelled
from app.workers.jobs.summarizers import (
    SummaryText,
    conversation_passage,
    exchange_passage,
    summary_changes,
)
from tests.fakes.stored import AT, ConversationRecord


class ScriptedSummarizer:
    """Returns "about QUESTION"; fails on a word of `poison`.

    `read` holds every text it was given, in order; `before` is called first, with the text.
    """

    def __init__(self) -> None:
        self.read: list[str] = []
        self.poison: set[str] = set()
        self.before: Callable[[str, IsCancelled], None] = lambda _, __: None

    def __call__(self, turns: Sequence[TurnMarkdown], is_cancelled: IsCancelled) -> str:
        asked = " ".join(turn.asked for turn in turns)
        self.before(asked, is_cancelled)
        self.read.append(asked)
        if self.poison & set(asked.split()):
            raise RuntimeError(asked)
        return f"about {asked}"


def go_on(
    store: Store, conversation: Conversation, after: Exchange, question: str, *, leaf: bool = True
) -> Exchange:
    """Write one more completed turn, a minute after an exchange, and show it."""
    at = (after.completed_at or AT) + timedelta(minutes=1)
    asked = Message(
        store.ids.message(), new_uid(), conversation.id, after.message_ids[-1], Role.USER,
        (Text(question),), at,
    )  # fmt: skip
    answered = replace(
        asked, id=store.ids.message(), uid=new_uid(), parent_id=asked.id, role=Role.ASSISTANT
    )
    exchange = Exchange(
        store.ids.exchange(), conversation.id, after.id, after.turn_number + 1, 0,
        ExchangeStatus.COMPLETED, (asked.id, answered.id), at, at,
    )  # fmt: skip
    shown = ConversationEdited(conversation.id, visible_leaf_id=answered.id, updated_at=at)
    store.save(MessagesAdded((asked, answered)), ExchangePut(exchange), *([shown] if leaf else []))
    return exchange


def said_more(store: Store, whole: ConversationRecord, exchange: Exchange, text: str) -> Exchange:
    """Write one more message at the end of an exchange, as a newer import does."""
    message = Message(
        store.ids.message(), new_uid(), whole.conversation.id, exchange.message_ids[-1],
        Role.ASSISTANT, (Text(text),), AT,
    )  # fmt: skip
    grown = replace(exchange, message_ids=(*exchange.message_ids, message.id))
    store.save(MessagesAdded((message,)), ExchangePut(grown))
    return grown


def summarized(
    store: Store, whole: ConversationRecord, text: str, *, conversation: bool = False
) -> PassageId:
    """Store a summary of a conversation's first turn, or of all of it; return its passage."""
    talk, exchange = whole.conversation.id, whole.exchanges[0].id
    passage = exchange_passage(exchange, talk, AT)
    if conversation:
        passage = conversation_passage(talk, AT)
    changes = summary_changes(store, passage, SummaryText(text, "extractive", "stamp"), ())
    store.save(*changes)
    (_, put) = changes
    assert isinstance(put, PassagesPut)
    return put.passages[0].id

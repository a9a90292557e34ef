"""A scripted summarizer, and additions to stored conversations."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from app.domain.changes import ConversationEdited, ExchangePut, MessagesAdded
from app.domain.conversations import Conversation, Exchange, ExchangeStatus, Message, Role, Text
from app.domain.ids import PassageId, new_uid
from app.domain.records.summaries import SummarySource, SummaryText, summary_changes
from app.domain.turns import TurnMarkdown
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.workers.job_interface import IsCancelled
from app.workers.jobs import JobParts
from app.workers.jobs.conversation_summarizer import ConversationSummarizer
from app.workers.jobs.exchange_summarizer import ExchangeSummarizer
from tests.fakes.stored import AT, ConversationRecord


class ScriptedSummarizer:
    """Returns "about QUESTION"; fails on a word of `poison`.

    `read` holds every text it was given, in order; `before` is called first, with the text.
    """

    def __init__(self) -> None:
        self.read: list[str] = []
        self.poison: set[str] = set()
        self.before: Callable[[str, IsCancelled], None] = lambda _, __: None

    def jobs(self, parts: JobParts) -> tuple[ExchangeSummarizer, ConversationSummarizer]:
        """Return the two summarizers, which ask this one."""
        made = ExchangeSummarizer(parts), ConversationSummarizer(parts)
        for each in made:
            each.summarize = self
        return made

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
    source = SummarySource(talk, None if conversation else exchange, AT)
    made = SummaryText(text, "extractive", "stamp")
    put, passages = summary_changes(source, made, now(), store.ids.passage())
    store.save(put, passages)
    return passages.passages[0].id

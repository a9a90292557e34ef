"""Turns in which tools were called, as they are stored."""

from dataclasses import replace

from app.domain.changes import ExchangePut, MessagesAdded
from app.domain.conversations import Exchange, Role, Text, ToolCall, ToolResult
from app.domain.ids import new_uid
from app.storage.engine.store import Store
from tests.fakes.stored import ConversationRecord, add_conversation


def called(
    store: Store, *calls: tuple[str, str, str], **more: bool
) -> tuple[ConversationRecord, Exchange]:
    """Write a turn in which tools were called, with (name, arguments, answer) of each."""
    talk = add_conversation(store, "What is in the file?", **more)
    last = talk.messages[1]
    blocks = [ToolCall(f"c{number}", name, given) for number, (name, given, _) in enumerate(calls)]
    answers = [
        ToolResult(f"c{number}", name, answer, is_error=answer.startswith("No "))
        for number, (name, _, answer) in enumerate(calls)
    ]
    asked = replace(
        last, id=store.ids.message(), uid=new_uid(), parent_id=last.id,
        blocks=(Text('Let me "_":"ToolCall" look.'), *blocks),
    )  # fmt: skip
    answered = replace(
        asked, id=store.ids.message(), uid=new_uid(), parent_id=asked.id, role=Role.TOOL,
        blocks=tuple(answers),
    )  # fmt: skip
    exchange = replace(
        talk.exchanges[0], message_ids=(*talk.exchanges[0].message_ids, asked.id, answered.id)
    )
    store.save(MessagesAdded((asked, answered)), ExchangePut(exchange))
    return talk, exchange

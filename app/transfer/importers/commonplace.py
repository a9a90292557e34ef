"""Our own export back again, JSON or JSONL, with uids as the source's ids (`own_format`)."""

import re
from typing import Any

from app.domain.conversations import RawReply, Role, TitleOrigin
from app.domain.transfer import CarriedSummary, ImportedConversation, ImportedMessage, Skipped
from app.transfer.importers.building import Builder, Imported, conversations, visible_leaf
from app.transfer.importers.carried_facts import carried_facts
from app.transfer.importers.pieces import Entry
from app.transfer.importers.scanner import Readable
from app.transfer.importers.tree import Node
from app.transfer.importers.values import (
    an_object,
    identity,
    moment,
    objects,
    strings,
    title,
    words,
)
from app.transfer.own_format import FORMAT, block_from_plain

SOURCE = FORMAT
_LOOSE = "facts"
_ID = re.compile(r'"uid"\s*:\s*"([^"\\]{1,200})"')
_PARENT = re.compile(r'"parent"\s*:\s*"([^"\\]{1,200})"')


def read_commonplace(stream: Readable, where: str) -> Imported:
    """Yield the conversations of our own export; `where` names it in what is skipped."""
    return conversations(stream, where, "messages", _Conversation)


class _Conversation(Builder):
    def add(self, key: str, value: Any) -> str:  # noqa: ARG002 - only objects have keys
        message = an_object(value)
        name = identity(message.get("uid")) or self.made_up_name()
        parent = identity(message.get("parent")) or None
        try:
            shown = _shown(name, parent, message)
        except ValueError as error:
            self.left_out.append((name, str(error)))
            shown = None
        self.place(name, Node(parent, shown))
        return name

    def broken(self, entry: Entry) -> None:
        found, above = _ID.search(entry.text), _PARENT.search(entry.text)
        name = identity(found[1]) if found else self.made_up_name()
        self.left_out.append((name, entry.flaw))
        self.place(name, Node(identity(above[1]) if above else None, None))

    def loose(self, header: dict[str, Any]) -> ImportedConversation | None:
        facts = carried_facts(header.get("facts"))
        return ImportedConversation(SOURCE, _LOOSE, "", (), facts=facts) if facts else None

    def finish(self, header: dict[str, Any]) -> ImportedConversation | Skipped:
        name = title(header.get("title"))
        created_at = moment(header.get("created_at"))
        tree = self.grown(created_at, keep_order=True)
        uid = identity(header.get("uid"))
        if not tree.messages and (self.left_out or not uid):
            return Skipped(f"'{name}'" if name else "", "nothing in it can be read")
        summaries = tuple(filter(None, map(_summary, objects(header.get("summaries")))))
        own = [summary.text for summary in summaries if summary.last_message is None]
        source = words(header.get("source"))
        return ImportedConversation(
            source=SOURCE,
            source_id=uid or f"of-{min(self.nodes)}",
            title=name,
            messages=tree.messages,
            visible_leaf=visible_leaf(tree, identity(header.get("visible_leaf"))),
            created_at=created_at,
            updated_at=moment(header.get("updated_at")),
            archived=header.get("archived") is True,
            pinned=header.get("pinned") is True,
            private=header.get("private") is True,
            model=words(header.get("model")) or None,
            tags=tuple(strings(header.get("tags"))),
            summary=own[-1] if own else "",
            uid=uid,
            skipped=self.skipped(name),
            summaries=summaries,
            title_origin=_title_origin(header.get("title_origin")),
            first_source="" if source == SOURCE else source,
            facts=carried_facts(header.get("facts")),
            recalls=header.get("recalls") is not False,
        )


def _shown(name: str, parent: str | None, message: dict[str, Any]) -> ImportedMessage:
    """Return the message; raise ValueError, in words for the user, when it cannot be read."""
    role = words(message.get("role"))
    if role not in list(Role):
        raise ValueError(f"its role is '{role[:40]}'" if role else "it has no role")
    return ImportedMessage(
        source_id=name,
        parent=parent,
        role=Role(role),
        blocks=tuple(block_from_plain(each) for each in _cleaned(objects(message.get("blocks")))),
        created_at=moment(message.get("created_at")),
        model=words(message.get("model")) or None,
        raw=_raw(an_object(message.get("raw"))),
    )


def _cleaned(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: words(value) if isinstance(value, str) else value for key, value in block.items()}
        for block in blocks
    ]


def _raw(plain: dict[str, Any]) -> RawReply | None:
    if not isinstance(plain.get("items_json"), str):
        return None
    return RawReply(words(plain.get("wire")), words(plain.get("model")), words(plain["items_json"]))


def _summary(plain: dict[str, Any]) -> CarriedSummary | None:
    text, made_at = words(plain.get("text")), moment(plain.get("made_at"))
    if not text or made_at is None:
        return None
    last_message = identity(plain.get("last_message")) or None
    return CarriedSummary(text, words(plain.get("model")), made_at, last_message)


def _title_origin(value: object) -> TitleOrigin:
    known = isinstance(value, str) and value in list(TitleOrigin)
    return TitleOrigin(str(value)) if known else TitleOrigin.USER

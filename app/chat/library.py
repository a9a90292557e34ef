"""Library of conversations: what can be done to them without a model.

Blocking: the window calls these from a pool, the command line directly. Each method returns when
the change is durable.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    DraftPut,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    TagsChanged,
)
from app.domain.conversations import (
    OWN_SOURCE,
    Attachment,
    Conversation,
    Draft,
    Exchange,
    File,
    Message,
    TitleOrigin,
)
from app.domain.errors import InvalidInput, KnownError, NotFound
from app.domain.ids import ConversationId, ExchangeId, new_uid
from app.domain.records.presets import Preset
from app.domain.text import clean, one_line
from app.domain.turns import turn_passage
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.safety.attachments import AttachmentFiles
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, path_to, shown_path
from app.storage.tables.summaries import Summaries
from app.transfer.attaching import attach

_TITLE_LIMIT_CHARS = 200
_TAG_LIMIT_CHARS = 40


@dataclass(frozen=True, slots=True)
class ConversationView:
    """A conversation on one of its paths.

    `path` are the exchanges shown, turn 0 first. `siblings` are, for each of them, the exchanges
    in its place on all branches, oldest first.
    """

    conversation: Conversation
    tags: tuple[str, ...]
    summary: str
    path: tuple[Exchange, ...]
    siblings: tuple[tuple[ExchangeId, ...], ...]

    @property
    def is_visible_branch(self) -> bool:
        """Whether the path ends where the conversation's visible branch ends."""
        leaf = self.conversation.visible_leaf_id
        return not self.path or self.path[-1].message_ids[-1] == leaf


class AgentLink(NamedTuple):
    """A conversation at the other end of a link between an agent and its subagent.

    `exchange` is the turn of the agent that was running when the subagent began, None if that cannot be told.
    """

    conversation: Conversation
    exchange: Exchange | None


class AgentLinks(NamedTuple):
    """The conversation whose agent started another one, and those that were started from it, oldest first."""

    started_by: AgentLink | None = None
    subagents: tuple[AgentLink, ...] = ()


class Library:
    """Reads and changes conversations."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._conversations = Conversations(store)
        self._files = AttachmentFiles(store.paths)
        self._exchanges = Exchanges(store)
        self._summaries = Summaries(store)

    def open(self, conversation_id: int, show: int | None = None) -> ConversationView:
        """Return a conversation on its visible path, or on the path through exchange `show`.

        Beyond `show` the path follows the newest branch. Raises NotFound.
        """
        conversation = self._conversations.get(conversation_id)
        exchanges = self._exchanges.of(conversation_id)
        path = shown_path(conversation, exchanges)
        if show is not None and all(exchange.id != show for exchange in path):
            start = next((each for each in exchanges if each.id == show), None)
            if start is None:
                raise NotFound(f"There is no exchange {show} in this conversation")
            path = path_to(_newest_leaf(exchanges, start), exchanges)
        places: dict[ExchangeId | None, list[ExchangeId]] = {}
        for exchange in exchanges:
            places.setdefault(exchange.parent_id, []).append(exchange.id)
        summary = self._summaries.latest("conversation", [conversation_id]).get(conversation_id)
        return ConversationView(
            conversation=conversation,
            tags=self._conversations.tags_of([conversation_id]).get(conversation_id, ()),
            summary=summary.text if summary else "",
            path=path,
            siblings=tuple(tuple(places[exchange.parent_id]) for exchange in path),
        )

    def agent_links(self, conversation_id: ConversationId) -> AgentLinks:
        """Return the agent and the subagents of a conversation; raise NotFound."""
        began_at = self._conversations.get(conversation_id).created_at
        subagents = self._conversations.subagents(conversation_id)
        turns = self._exchanges.of(conversation_id) if subagents else ()
        started_by = None
        if (agent := self._conversations.started_by(conversation_id)) is not None:
            started_by = AgentLink(agent, _turn_at(self._exchanges.of(agent.id), began_at))
        return AgentLinks(
            started_by,
            tuple(AgentLink(each, _turn_at(turns, each.created_at)) for each in subagents),
        )

    def exchange_at(self, conversation_id: int, turn_number: int) -> Exchange:
        """Return the exchange of a turn on the visible path; raise NotFound."""
        path = self.open(conversation_id).path
        for exchange in path:
            if exchange.turn_number == turn_number:
                return exchange
        raise no_turn(conversation_id, turn_number, len(path))

    def project_of(self, conversation_id: ConversationId) -> str | None:
        """Return the uid of a conversation's project, None for none; raise NotFound."""
        return self._conversations.get(conversation_id).project

    def messages(self, exchanges: Sequence[Exchange]) -> dict[ExchangeId, tuple[Message, ...]]:
        """Return the messages of each exchange, in path order."""
        found = self._exchanges.messages(
            [each for exchange in exchanges for each in exchange.message_ids]
        )
        return {
            exchange.id: tuple(found[each] for each in exchange.message_ids if each in found)
            for exchange in exchanges
        }

    def switch_branch(self, exchange_id: ExchangeId) -> ConversationView:
        """Make the branch through an exchange the visible one; return the view."""
        exchange = self._exchanges.get(exchange_id)
        view = self.open(exchange.conversation_id, exchange_id)
        leaf = view.path[-1].message_ids[-1]
        self._store.save(ConversationEdited(exchange.conversation_id, visible_leaf_id=leaf))
        return view

    def rename(self, conversation_id: ConversationId, title: str) -> None:
        """Set the title; raise InvalidInput when it is empty."""
        words = one_line(clean(title), _TITLE_LIMIT_CHARS)
        if not words:
            raise InvalidInput("A title cannot be empty", "Type at least one character.")
        self._edit(conversation_id, title=words, title_origin=TitleOrigin.USER)

    def pin(self, conversation_id: ConversationId, pinned: bool) -> None:
        """Pin a conversation to the top of the list, or unpin it."""
        self._edit(conversation_id, pinned=pinned)

    def archive(self, conversation_ids: Sequence[ConversationId], archived: bool) -> None:
        """Take conversations out of list, search and recall, or return them, in one transaction."""
        self._edit(*conversation_ids, archived=archived)

    def use_memory(self, conversation_id: ConversationId, used: bool) -> None:
        """Switch recall in a conversation on or off."""
        self._edit(conversation_id, recalls=used)

    def choose_model(self, conversation_id: ConversationId, model: str | None) -> None:
        """Set the model (PROVIDER:MODEL) of a conversation; None is the default model."""
        self._edit(conversation_id, model=model or "")

    def choose_preset(self, conversation_id: ConversationId, preset: Preset) -> None:
        """Set the preset of a conversation; the preset's model, if any, replaces its own."""
        model = None if preset.model is None else ""
        self._edit(conversation_id, preset=preset.uid, model=model)

    def delete(self, *conversation_ids: ConversationId) -> None:
        """Move conversations to the trash in one transaction; all lists and workers skip them."""
        self._edit(*conversation_ids, deleted_at=now())

    def restore(self, *conversation_ids: ConversationId) -> None:
        """Take conversations out of the trash, in one transaction."""
        self._edit(*conversation_ids, restored=True)

    def tag(
        self,
        conversation_ids: Sequence[ConversationId],
        added: Sequence[str],
        removed: Sequence[str] = (),
    ) -> None:
        """Add and remove tags in one transaction; raise InvalidInput for an empty or long one."""
        for each in conversation_ids:
            self._conversations.get(each)
        names = tuple(" ".join(clean(name).split()) for name in added)
        for name in names:
            if not 0 < len(name) <= _TAG_LIMIT_CHARS:
                raise InvalidInput(
                    f"'{name[:60]}' cannot be a tag",
                    f"Allowed: 1 to {_TAG_LIMIT_CHARS} characters.",
                )
        self._store.save(*(TagsChanged(each, names, tuple(removed)) for each in conversation_ids))

    def save_draft(self, conversation_id: ConversationId | None, draft: Draft) -> None:
        """Store an unsent message; the text of its files is read again by `draft`.

        It is stored with every pause in typing, and the text of a file can have 400,000 characters.
        Nothing is stored for a conversation that was forgotten meanwhile.
        """
        if conversation_id is not None and not self._conversations.exists(conversation_id):
            return
        files = tuple(
            replace(each, text="") if isinstance(each, Attachment) else each for each in draft.files
        )
        self._store.save(DraftPut(conversation_id, clean(draft.text), now(), files))

    def draft(self, conversation_id: ConversationId | None) -> Draft:
        """Return the unsent message of a conversation; None is one that has not begun."""
        stored = self._conversations.draft(conversation_id)
        return replace(stored, files=tuple(map(self._with_text, stored.files)))

    def _with_text(self, file: File) -> File:
        if isinstance(file, Attachment) and file.content_hash is not None:
            with suppress(KnownError):  # sending says that it is missing
                return attach(self._files, self._files.read(file.content_hash), file.name).file
        return file

    def fork(self, exchange_id: ExchangeId) -> ConversationId:
        """Copy the path up to and including an exchange into a new conversation.

        The copies are searched like any turn, so that they are found without the originals.
        """
        last = self._exchanges.get(exchange_id)
        origin = self._conversations.get(last.conversation_id)
        path = path_to(last, self._exchanges.of(last.conversation_id))
        at = now()
        fork = replace(
            origin,
            id=self._store.ids.conversation(),
            uid=new_uid(),
            title=one_line(f"{origin.title} (fork)", _TITLE_LIMIT_CHARS),
            source=OWN_SOURCE,
            created_at=at,
            updated_at=at,
            pinned=False,
            archived=False,
            deleted_at=None,
        )
        messages, exchanges = self._copies(fork.id, path)
        fork = replace(fork, visible_leaf_id=messages[-1].id if messages else None)
        changes: list[Change] = [
            ConversationPut(fork),
            MessagesAdded(tuple(messages)),
            *map(ExchangePut, exchanges),
        ]
        if not fork.private:
            by_id = {each.id: each for each in messages}
            passages = (
                turn_passage(
                    self._store.ids.passage(), each, [by_id[one] for one in each.message_ids]
                )
                for each in exchanges
            )
            changes.append(PassagesPut(tuple(each for each in passages if each is not None)))
        self._store.save(*changes)
        return fork.id

    def _copies(
        self, fork: ConversationId, path: Sequence[Exchange]
    ) -> tuple[list[Message], list[Exchange]]:
        found = self.messages(path)
        messages: list[Message] = []
        exchanges: list[Exchange] = []
        for exchange in path:
            start = len(messages)
            for message in found[exchange.id]:
                parent = messages[-1].id if messages else None
                new_id = self._store.ids.message()
                copied = replace(message, id=new_id, uid=new_uid(), parent_id=parent)
                messages.append(replace(copied, conversation_id=fork))
            copy = replace(
                exchange,
                id=self._store.ids.exchange(),
                conversation_id=fork,
                parent_id=exchanges[-1].id if exchanges else None,
                message_ids=tuple(message.id for message in messages[start:]),
                uid=new_uid(),
            )
            exchanges.append(copy)
        return messages, exchanges

    def _edit(self, *conversation_ids: ConversationId, **fields: object) -> None:
        known = self._conversations.by_ids(conversation_ids)
        for each in conversation_ids:
            if each not in known:
                self._conversations.get(each)  # which says that there is none
        edits = (ConversationEdited(each, **fields) for each in conversation_ids)  # type: ignore[arg-type]
        self._store.save(*edits)


def _newest_leaf(exchanges: Sequence[Exchange], start: Exchange) -> Exchange:
    """Follow the newest child from `start` to the end of its branch."""
    newest_child = {exchange.parent_id: exchange for exchange in exchanges}
    leaf = start
    while (child := newest_child.get(leaf.id)) is not None:
        leaf = child
    return leaf


def _turn_at(exchanges: Iterable[Exchange], at: datetime) -> Exchange | None:
    """Return the turn that ran at a time; None if several began at once, as in a log without times."""
    begun = [each for each in exchanges if each.started_at <= at]
    last = max(begun, key=lambda each: (each.started_at, each.id), default=None)
    same = {each.turn_number for each in begun if last and each.started_at == last.started_at}
    return last if len(same) == 1 else None


def no_turn(conversation_id: int, turn_number: int, turns: int) -> NotFound:
    """Return the error for a turn that a conversation of so many `turns` does not have."""
    last = f"{conversation_id}:{turns - 1}"
    return NotFound(
        f"There is no turn {conversation_id}:{turn_number}",
        f"The conversation has {conversation_id}:0 to {last}." if turns else "It has none yet.",
    )

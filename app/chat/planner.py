"""Planner: loads a conversation and decides what a request writes before it runs.

Send appends a turn, edit and regenerate create a sibling of one, retry reuses it. Everything here
blocks; the exchange loop calls it in a worker thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.chat.presets import Presets
from app.chat.sent_turns import SegmentBreaks, runs_before
from app.chat.tools.results import unfinished_result
from app.domain.attachments import FILES_MAX, files_of, hashes_of
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    DraftPut,
    ExchangePut,
    MessagesAdded,
    SpendAdded,
)
from app.domain.chat import ChatRequest
from app.domain.conversations import (
    ANY_RECALL,
    OWN_SOURCE,
    Block,
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    RecallChoice,
    Role,
    Text,
    TitleOrigin,
    ToolCall,
    plain_text,
)
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId, new_uid
from app.domain.passages import PassageKind
from app.domain.text import clean, one_line
from app.domain.translation import tr
from app.domain.turns import is_reply
from app.language.titles import TITLE_LIMIT_CHARS, first_words
from app.storage.engine.stamps import IdAllocator, now
from app.storage.engine.store import Store
from app.storage.safety.attachments import AttachmentFiles
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, path_to, shown_path
from app.storage.tables.passages.queries import Passages
from app.storage.tables.prompts import Prompts
from app.storage.tables.settings import Settings

_UNTITLED = "New conversation"
_PRIVATE = tr("Private conversation")  # its words stay out of lists and menus


@dataclass(frozen=True, slots=True)
class NewConversation:
    """Properties of a new conversation; an existing one takes only model and preset (a uid).

    `project` is the uid of its project; a `title` of "" is made of the message.
    """

    model: str | None = None
    private: bool = False
    recalls: bool = True
    preset: str | None = None
    project: str | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Unattended:
    """An exchange without the user: no recall, and no tool that writes or asks.

    Attributes:
        purpose: What its spend is recorded for.
        admit: Called before each request; may block; raises KnownError if it must not be sent.
            Returns the function that turns the request's spend into the changes to store.
        ends: Returns what is stored together with the end of the exchange.
    """

    purpose: str
    admit: Callable[[ChatRequest], Callable[[Sequence[SpendAdded]], Sequence[Change]]]
    ends: Callable[[Exchange], Sequence[Change]]


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """An exchange about to run.

    Attributes:
        messages: Its own messages so far, oldest first.
        changes: What is written before it runs.
        segment: The exchanges since the last `/new`, this one last.
        replaced: Passages of an earlier run of the same exchange; the end replaces them.
        continues: Whether the reply so far is continued.
        choice: What memory may bring to it.
        unattended: How it runs without the user; None for a message of theirs.
    """

    conversation: Conversation
    exchange: Exchange
    messages: tuple[Message, ...]
    changes: tuple[Change, ...]
    segment: tuple[Exchange, ...] = ()
    replaced: tuple[PassageId, ...] = ()
    continues: bool = False
    choice: RecallChoice = ANY_RECALL
    unattended: Unattended | None = None


class Planner:
    """Plans exchanges. Blocking; every method raises InvalidInput, NotFound or StorageError."""

    def __init__(self, store: Store, settings: Settings, ids: IdAllocator | None = None) -> None:
        """Take ids from the store by default."""
        self._settings = settings
        self._presets = Presets(store, settings)
        self._ids = ids or store.ids
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)
        self._prompts = Prompts(store)
        self._breaks = SegmentBreaks(settings)
        self._files = AttachmentFiles(store.paths)

    def send(
        self,
        conversation_id: ConversationId | None,
        blocks: tuple[Block, ...],
        new: NewConversation,
        *,
        in_own_segment: bool = False,
        was_draft: bool = False,
    ) -> ExchangePlan:
        """Plan to send a message in a conversation, or (None) in a new one.

        If the last exchange has no reply, the message is added to it (both questions are answered
        together), except when it starts a segment; otherwise a new exchange follows. A message
        `in_own_segment` starts one; with one that `was_draft` the draft of the conversation is deleted.
        """
        blocks, at = self._checked(blocks), now()
        shown: tuple[Exchange, ...] = ()
        if conversation_id is None:
            conversation = self._new_conversation(blocks, new, at)
        else:
            stored = self._writable(conversation_id)
            conversation = self._with_choices(stored, new)
            shown = shown_path(conversation, self._exchanges.of(conversation_id))
        last = shown[-1] if shown else None
        before = self._exchanges.messages_of(last) if last else ()
        parent_id = before[-1].id if before else None
        message = self._message(conversation, parent_id, Role.USER, blocks, at)
        own: tuple[Message, ...] = (message,)
        starts_segment = last is not None and (in_own_segment or self._breaks.is_after(last.id))
        exchange = self._next_exchange(conversation, last, message, starts_segment=starts_segment)
        if last and not starts_segment and not _is_answered(last, before):
            message_ids, own = (*last.message_ids, message.id), (*before, message)
            exchange = _running(last, message_ids, exchange.model, started_at=last.started_at)
            shown = shown[:-1]
        if conversation_id is None:
            head: Change = ConversationPut(replace(conversation, visible_leaf_id=message.id))
        else:
            is_chosen = (conversation.model, conversation.preset) != (stored.model, stored.preset)
            head = _shows(conversation, message.id, at)
            if is_chosen:
                head = replace(head, model=conversation.model or "", preset=conversation.preset)
        # The draft of a private conversation is not stored before its first message.
        has_draft = was_draft and (conversation_id is not None or not new.private)
        later = (DraftPut(conversation_id, "", at),) if has_draft else ()
        added = MessagesAdded((message,))
        return self._plan(conversation, exchange, shown, own, (head, added), later)

    def _next_exchange(
        self,
        conversation: Conversation,
        last: Exchange | None,
        message: Message,
        *,
        starts_segment: bool,
    ) -> Exchange:
        return Exchange(
            id=self._ids.exchange(),
            conversation_id=conversation.id,
            parent_id=last.id if last else None,
            turn_number=last.turn_number + 1 if last else 0,
            segment_number=last.segment_number + starts_segment if last else 0,
            status=ExchangeStatus.RUNNING,
            message_ids=(message.id,),
            started_at=message.created_at,
            model=self._model_of(conversation),
            uid=new_uid(),
        )

    def edit(
        self, exchange_id: ExchangeId, message_id: MessageId, blocks: tuple[Block, ...]
    ) -> ExchangePlan:
        """Plan to replace a user message on a new branch."""
        conversation, path, messages = self._load(exchange_id)
        blocks, at, edited = self._checked(blocks), now(), path[-1]
        place = edited.message_ids.index(message_id)
        before, parent_id = messages[:place], messages[place].parent_id
        message = self._message(conversation, parent_id, Role.USER, blocks, at)
        own = edited.message_ids[:place]
        exchange = self._sibling(conversation, edited, (*own, message.id), at)
        shows = _shows(conversation, message.id, at)
        if not own and len(path) == 1 and not conversation.private:  # the beginning is replaced
            shows = replace(shows, title=_title_of(blocks), title_origin=TitleOrigin.FIRST_WORDS)
        changes = (shows, MessagesAdded((message,)))
        runs = runs_before(self._prompts, edited, exchange)
        return self._plan(conversation, exchange, path[:-1], (*before, message), changes, runs)

    def regenerate(self, exchange_id: ExchangeId, model: str | None = None) -> ExchangePlan:
        """Plan another answer to the same question, on a new branch that shares it.

        `model` (PROVIDER:MODEL) answers this once; the conversation keeps its own.
        """
        conversation, path, messages = self._load(exchange_id)
        answered, at = path[-1], now()
        opening = [place for place, each in enumerate(messages) if each.opens_turn]
        kept = messages[: (opening[-1] if opening else 0) + 1]
        own = tuple(each.id for each in kept)
        exchange = self._sibling(conversation, answered, own, at)
        exchange = replace(exchange, model=model or exchange.model)
        changes = (_shows(conversation, own[-1], at),)
        runs = runs_before(self._prompts, answered, exchange)
        return self._plan(conversation, exchange, path[:-1], kept, changes, runs)

    def retry(self, exchange_id: ExchangeId) -> ExchangePlan:
        """Plan to run an exchange again; refused once another turn follows it.

        It runs from its question, or continues the reply so far. Tool calls without an answer get a
        result that says so.
        """
        conversation, path, messages = self._load(exchange_id)
        failed, at = path[-1], now()
        siblings = self._exchanges.of(conversation.id)
        if any(each.parent_id == failed.id for each in siblings):
            raise InvalidInput(
                "Only the last turn can be continued or tried again",
                "Regenerate this turn instead: the turns after it stay on their own branch.",
            )
        continues = messages[-1].role is not Role.USER
        calls = [each for each in messages[-1].blocks if isinstance(each, ToolCall)]
        added: tuple[Message, ...] = ()
        if calls:
            results = tuple(map(unfinished_result, calls))
            added = (self._message(conversation, messages[-1].id, Role.TOOL, results, at),)
        message_ids = (*failed.message_ids, *(message.id for message in added))
        exchange = replace(
            _running(failed, message_ids, self._model_of(conversation), failed.started_at),
            usage=failed.usage,
        )
        changes = [MessagesAdded(added)] if added else []
        shows = _shows(conversation, message_ids[-1], at)
        plan = self._plan(conversation, exchange, path[:-1], (*messages, *added), (*changes, shows))
        return replace(plan, continues=continues)

    def _writable(self, conversation_id: ConversationId) -> Conversation:
        """Return a conversation that can be continued; raise InvalidInput for one in the trash."""
        conversation = self._conversations.get(conversation_id)
        if conversation.deleted_at is not None:
            raise InvalidInput(
                f"Conversation {conversation_id} is in the trash", "Restore it to continue it."
            )
        return conversation

    def _new_conversation(
        self, blocks: tuple[Block, ...], new: NewConversation, at: datetime
    ) -> Conversation:
        title = new.title or (_PRIVATE if new.private else _title_of(blocks))
        conversation = Conversation(
            self._ids.conversation(), new_uid(),
            title, TitleOrigin.USER if new.title else TitleOrigin.FIRST_WORDS,
            OWN_SOURCE, at, at, private=new.private, recalls=new.recalls, model=new.model,
            preset=new.preset or self._presets.default().uid, project=new.project,
        )  # fmt: skip
        if not new.private:
            return conversation
        # A default that is chosen later must not send what is private elsewhere.
        return replace(conversation, model=self._model_of(conversation))

    def _with_choices(self, conversation: Conversation, new: NewConversation) -> Conversation:
        """Return a conversation with the model and the preset that were chosen with a message."""
        model = new.model or conversation.model
        if new.preset and not new.model and self._presets.get(new.preset).model:
            model = None  # the preset's applies
        return replace(conversation, model=model, preset=new.preset or conversation.preset)

    def _load(
        self, exchange_id: ExchangeId
    ) -> tuple[Conversation, tuple[Exchange, ...], tuple[Message, ...]]:
        """Return the conversation of an exchange, the path that ends with it, its own messages."""
        exchange = self._exchanges.get(exchange_id)
        conversation = self._writable(exchange.conversation_id)
        path = path_to(exchange, self._exchanges.of(exchange.conversation_id))
        return conversation, path, self._exchanges.messages_of(exchange)

    def _plan(
        self,
        conversation: Conversation,
        exchange: Exchange,
        before: Sequence[Exchange],
        messages: tuple[Message, ...],
        changes: Sequence[Change],
        later: Sequence[Change] = (),
    ) -> ExchangePlan:
        """Return the plan of an exchange with its own messages, after the exchanges `before`."""
        number = exchange.segment_number
        segment = [each for each in before if each.segment_number == number]
        return ExchangePlan(
            conversation,
            exchange,
            messages,
            (*changes, ExchangePut(exchange), *later),
            (*segment, exchange),
            self._passages.of_source(PassageKind.TURN, exchange.id),
        )

    def _message(
        self,
        conversation: Conversation,
        parent_id: MessageId | None,
        role: Role,
        blocks: tuple[Block, ...],
        at: datetime,
    ) -> Message:
        message_id = self._ids.message()
        return Message(message_id, new_uid(), conversation.id, parent_id, role, blocks, at)

    def _sibling(
        self,
        conversation: Conversation,
        of: Exchange,
        message_ids: tuple[MessageId, ...],
        at: datetime,
    ) -> Exchange:
        sibling = _running(of, message_ids, self._model_of(conversation), at)
        return replace(sibling, id=self._ids.exchange(), uid=new_uid())

    def _checked(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Return cleaned blocks; raise InvalidInput for an empty message or a missing file."""
        cleaned = (Text(clean(b.text)) if isinstance(b, Text) else b for b in blocks)
        kept = tuple(b for b in cleaned if not isinstance(b, Text) or b.text.strip())
        if not kept:
            raise InvalidInput("The message is empty", "Type a message first.")
        if len(files := files_of(kept)) > FILES_MAX:
            raise InvalidInput(
                f"A message can have at most {FILES_MAX} files", "Send some with another message."
            )
        for file in files:
            if not all(map(self._files.touch, hashes_of([file]))):
                raise InvalidInput(
                    f"The attached file '{file.name}' is missing", "Attach it again."
                )
        return kept

    def _model_of(self, conversation: Conversation) -> str:
        """Return the conversation's own model, else its preset's, else the default."""
        own = conversation.model or self._presets.of(conversation).model
        return own or self._settings.text("default_model")


def unsaved_planner(store: Store, settings: Settings) -> Planner:
    """Return a planner of exchanges that are never stored: their ids are out of range."""
    return Planner(store, settings, IdAllocator(*[-(2**62)] * 4))


def _title_of(blocks: tuple[Block, ...]) -> str:
    """Return the first words of a message, else the names of its files."""
    names = ", ".join(file.name for file in files_of(blocks))
    return first_words([plain_text(blocks)]) or one_line(names, TITLE_LIMIT_CHARS) or _UNTITLED


def _running(
    of: Exchange, message_ids: tuple[MessageId, ...], model: str | None, started_at: datetime
) -> Exchange:
    return replace(
        of,
        status=ExchangeStatus.RUNNING,
        message_ids=message_ids,
        started_at=started_at,
        completed_at=None,
        model=model,
        usage=None,
        problem=None,
    )


def _shows(conversation: Conversation, leaf: MessageId, at: datetime) -> ConversationEdited:
    return ConversationEdited(conversation.id, visible_leaf_id=leaf, updated_at=at)


def _is_answered(exchange: Exchange, messages: Sequence[Message]) -> bool:
    """Return whether an exchange has a reply, or is about to get one."""
    return exchange.status is ExchangeStatus.RUNNING or any(map(is_reply, messages))

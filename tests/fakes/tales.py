"""Any history a library can have, as records of changes: drawn by hypothesis, in small words."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationForgotten,
    ConversationPut,
    DraftPut,
    ExchangePut,
    MessagesAdded,
    OriginsAdded,
    PassagesPut,
    ProviderPut,
    ReplyGrew,
    SettingPut,
    SpendAdded,
    SpendFreed,
    SpendHeld,
    SummaryPut,
    TagsChanged,
)
from app.domain.conversations import (
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    Role,
    Text,
    TitleOrigin,
)
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import Passage, PassageKind

_START = datetime(2026, 1, 1, tzinfo=UTC)
_FEW = st.integers(0, 3)


@dataclass
class Tale:
    """A history under way: what exists, so that each next record makes sense."""

    draw: st.DrawFn
    conversations: list[Conversation] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    gone: list[Exchange] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    messages: int = 0
    conversation_count: int = 0
    exchange_count: int = 0
    passage_count: int = 0

    def record(self) -> tuple[Change, ...]:
        """Draw one more record."""
        always = [self.begin, self.setting, self.provider, self.draft]
        later = [
            self.turn, self.turn, self.edit, self.edit, self.put_again, self.retry, self.tag,
            self.summary, self.spend, self.held, self.grow, self.origin, self.replace_passage, self.forget,
        ]  # fmt: skip
        kinds: list[Callable[[], tuple[Change, ...]]] = (
            [*always, *later] if self.conversations else [*always, self.spend]
        )
        return self.draw(st.sampled_from(kinds))()

    def moment(self) -> datetime:
        return _START + timedelta(minutes=self.draw(st.integers(0, 5)))

    def word(self) -> str:
        return self.draw(st.sampled_from(["a", "b", "c"]))

    def some_conversation(self) -> Conversation:
        return self.draw(st.sampled_from(self.conversations))

    def some_exchange(self) -> Exchange | None:
        known = [*self.exchanges, *self.gone]
        return self.draw(st.sampled_from(known)) if known else None

    def begin(self) -> tuple[Change, ...]:
        self.conversation_count += 1
        made = Conversation(
            ConversationId(self.conversation_count), f"u{self.conversation_count}", self.word(),
            self.draw(st.sampled_from(TitleOrigin)), "commonplace", _START, self.moment(),
        )  # fmt: skip
        self.conversations.append(made)
        return (ConversationPut(made), *self.turn())

    def turn(self) -> tuple[Change, ...]:
        conversation = self.some_conversation()
        asked, answered = (
            Message(
                MessageId(self.messages + place), f"m{self.messages + place}", conversation.id, None,
                role, (Text(self.word()),), self.moment(),
            )
            for place, role in ((1, Role.USER), (2, Role.ASSISTANT))
        )  # fmt: skip
        self.messages += 2
        self.exchange_count += 1
        exchange = Exchange(
            ExchangeId(self.exchange_count), conversation.id, None, 0, 0,
            self.draw(st.sampled_from(ExchangeStatus)), (asked.id, answered.id), self.moment(),
        )  # fmt: skip
        self.exchanges.append(exchange)
        return (MessagesAdded((asked, answered)), ExchangePut(exchange), self.passage(exchange))

    def passage(self, exchange: Exchange, replaced: tuple[int, ...] = ()) -> PassagesPut:
        self.passage_count += 1
        made = Passage(
            PassageId(self.passage_count), PassageKind.TURN, exchange.id, exchange.conversation_id,
            exchange.id, self.word(), _START,
        )  # fmt: skip
        self.passages.append(made)
        return PassagesPut((made,), replaced)

    def edit(self) -> tuple[Change, ...]:
        def maybe(value: object) -> object:
            return value if self.draw(st.booleans()) else None

        titled = self.draw(st.booleans())
        return (
            ConversationEdited(
                self.some_conversation().id,
                title=self.word() if titled else None,
                title_origin=self.draw(st.sampled_from([None, *TitleOrigin])) if titled else None,
                visible_leaf_id=maybe(MessageId(self.draw(_FEW))),  # type: ignore[arg-type]
                updated_at=maybe(self.moment()),  # type: ignore[arg-type]
                pinned=maybe(self.draw(st.booleans())),  # type: ignore[arg-type]
                model=maybe(self.draw(st.sampled_from(["", "p:m"]))),  # type: ignore[arg-type]
                deleted_at=maybe(self.moment()),  # type: ignore[arg-type]
                restored=self.draw(st.booleans()),
            ),
        )

    def put_again(self) -> tuple[Change, ...]:
        return (ConversationPut(replace(self.some_conversation(), title=self.word())),)

    def retry(self) -> tuple[Change, ...]:
        if not self.exchanges:
            return self.turn()
        exchange = self.draw(st.sampled_from(self.exchanges))
        kept = exchange.message_ids[: self.draw(st.integers(1, 2))]
        return (ExchangePut(replace(exchange, message_ids=kept, model=self.word())),)

    def tag(self) -> tuple[Change, ...]:
        added, removed = (tuple(self.draw(st.sets(st.sampled_from("xyz")))) for _ in range(2))
        return (TagsChanged(self.some_conversation().id, added, removed, self.draw(st.booleans())),)

    def summary(self) -> tuple[Change, ...]:
        conversation = self.some_conversation()
        return tuple(
            SummaryPut(kind, 1, conversation.id, self.word(), "m", self.word(), self.moment())
            for kind in ("exchange", "conversation")
        )

    def spend(self) -> tuple[Change, ...]:
        exchange = self.some_exchange()
        named = None if exchange is None else exchange.id
        return (SpendAdded(self.moment(), "chat", "m", 1, 2, 0, None, named),) * 2

    def held(self) -> tuple[Change, ...]:
        """Hold a request, and end one or two, which perhaps never was."""
        uid, another = (self.draw(st.sampled_from("xyz")) for _ in range(2))
        at = self.moment()
        paid = SpendAdded(
            at, "w", "m", 1, 2, 0, 0.1, held=another, is_estimated=self.draw(st.booleans())
        )
        ways: list[tuple[Change, ...]] = [(), (SpendFreed(another),), (paid,)]
        ends = self.draw(st.sampled_from(ways))
        return (SpendHeld(uid, at, "w", "m", 1, 2, 0.1), *ends)

    def grow(self) -> tuple[Change, ...]:
        exchange = self.some_exchange()
        if exchange is None:
            return ()
        self.messages += 1
        return (ReplyGrew(exchange.id, MessageId(self.messages), "text", "a", _START),)

    def origin(self) -> tuple[Change, ...]:
        local = self.draw(st.integers(1, self.messages)) if self.messages else 1
        conversation = self.draw(st.integers(1, self.conversation_count))
        return (
            OriginsAdded("claude", "message", ((self.word(), local),)),
            OriginsAdded("claude", "conversation", ((self.word(), conversation),)),
        )

    def replace_passage(self) -> tuple[Change, ...]:
        if not self.exchanges:
            return self.turn()
        exchange = self.draw(st.sampled_from(self.exchanges))
        own = [each for each in self.passages if each.exchange_id == exchange.id]
        return (self.passage(exchange, tuple(each.id for each in own)),)

    def setting(self) -> tuple[Change, ...]:
        return (SettingPut(self.word(), self.draw(st.sampled_from([None, "1", "2"]))),)

    def provider(self) -> tuple[Change, ...]:
        return (
            ProviderPut(self.word(), "compatible", self.word(), removed=self.draw(st.booleans())),
        )

    def draft(self) -> tuple[Change, ...]:
        known = [None, *(each.id for each in self.conversations)]
        return (DraftPut(self.draw(st.sampled_from(known)), self.word(), self.moment()),)

    def forget(self) -> tuple[Change, ...]:
        gone = self.some_conversation()
        self.conversations.remove(gone)
        self.gone += [each for each in self.exchanges if each.conversation_id == gone.id]
        self.exchanges = [each for each in self.exchanges if each.conversation_id != gone.id]
        return (ConversationForgotten(gone.id),)


@st.composite
def tales(draw: st.DrawFn, max_size: int = 25) -> list[tuple[Change, ...]]:
    """Any history, a record after the other."""
    tale = Tale(draw)
    return [tale.record() for _ in range(draw(st.integers(1, max_size)))]

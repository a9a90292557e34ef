"""Any history a library can have, as records of changes drawn by hypothesis, with short texts."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    DraftPut,
    ExchangePut,
    ImportNoted,
    MessagesAdded,
    OriginsAdded,
    PassagesPut,
    PresetPut,
    PresetRemoved,
    ProjectPut,
    ProjectRemoved,
    ProviderPut,
    ReplyGrew,
    RoutinePut,
    RoutineRemoved,
    RoutineRunPut,
    SettingPut,
    SpendAdded,
    SpendReleased,
    SpendReserved,
    SummaryPut,
    TagsChanged,
    TopicChosen,
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
from app.domain.deletions import ConversationForgotten
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.records.presets import Preset
from app.domain.records.projects import Project, RecallRule
from app.domain.records.routines import Routine, RoutineRun, RunOutcome
from app.domain.records.topics import TopicChoice, TopicId

_START = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = st.sampled_from("abc")
_MOMENTS = st.integers(0, 5).map(lambda minutes: _START + timedelta(minutes=minutes))
Record = tuple[Change, ...]


@dataclass
class History:
    """A history under way: what exists, so that each next record makes sense."""

    draw: st.DrawFn
    conversations: list[Conversation] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    gone: list[Exchange] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    messages: int = 0
    conversation_count: int = 0
    exchange_count: int = 0

    def record(self) -> Record:
        """Draw one more record."""
        kinds = [
            self.begin, self.setting, self.provider, self.preset, self.project, self.draft,
            self.spend, self.routine, self.routine_run, self.topic,
        ]  # fmt: skip
        if self.conversations:
            kinds += [
                self.turn, self.turn, self.edit, self.edit, self.put_again, self.retry, self.tag,
                self.summary, self.held, self.grow, self.origin, self.replace_passage, self.forget,
            ]  # fmt: skip
        return self.draw(st.sampled_from(kinds))()

    def moment(self) -> datetime:
        return self.draw(_MOMENTS)

    def word(self) -> str:
        return self.draw(_WORDS)

    def some_conversation(self) -> Conversation:
        return self.draw(st.sampled_from(self.conversations))

    def some_exchange(self) -> Exchange | None:
        return self.draw(st.sampled_from([*self.exchanges, *self.gone, None]))

    def begin(self) -> Record:
        self.conversation_count += 1
        made = Conversation(
            ConversationId(self.conversation_count), f"u{self.conversation_count}", self.word(),
            self.draw(st.sampled_from(TitleOrigin)), "commonplace", _START, self.moment(),
        )  # fmt: skip
        self.conversations.append(made)
        return (ConversationPut(made), *self.turn())

    def turn(self) -> Record:
        here = self.some_conversation().id
        messages = tuple(
            Message(
                MessageId(number), f"m{number}", here, None, role, (Text(self.word()),),
                self.moment(),
            )
            for number, role in enumerate((Role.USER, Role.ASSISTANT), self.messages + 1)
        )  # fmt: skip
        self.messages += 2
        self.exchange_count += 1
        exchange = Exchange(
            ExchangeId(self.exchange_count), here, None, 0, 0,
            self.draw(st.sampled_from(ExchangeStatus)), tuple(each.id for each in messages),
            self.moment(),
        )  # fmt: skip
        self.exchanges.append(exchange)
        return (MessagesAdded(messages), ExchangePut(exchange), self.passage(exchange))

    def passage(self, exchange: Exchange, replaced: tuple[int, ...] = ()) -> PassagesPut:
        own = (exchange.id, exchange.conversation_id, exchange.id)
        number = PassageId(len(self.passages) + 1)
        self.passages.append(Passage(number, PassageKind.TURN, *own, self.word(), _START))
        return PassagesPut((self.passages[-1],), replaced)

    def edit(self) -> Record:
        titled = self.draw(st.booleans())
        origins = st.sampled_from([None, *TitleOrigin])
        flags = st.sampled_from([None, True, False])
        edit = ConversationEdited(
            self.some_conversation().id, title=self.word() if titled else None,
            title_origin=self.draw(origins) if titled else None,
            visible_leaf_id=self.draw(st.none() | st.integers(0, 3).map(MessageId)),
            updated_at=self.draw(st.none() | _MOMENTS), pinned=self.draw(flags),
            model=self.draw(st.sampled_from([None, "", "p:m"])),
            preset=self.draw(st.sampled_from([None, "", "x"])),
            project=self.draw(st.sampled_from([None, "", "x"])),
            deleted_at=self.draw(st.none() | _MOMENTS), restored=self.draw(st.booleans()),
        )  # fmt: skip
        return (edit,)

    def put_again(self) -> Record:
        return (ConversationPut(replace(self.some_conversation(), title=self.word())),)

    def retry(self) -> Record:
        if not self.exchanges:
            return self.turn()
        exchange = self.draw(st.sampled_from(self.exchanges))
        kept = exchange.message_ids[: self.draw(st.integers(1, 2))]
        return (ExchangePut(replace(exchange, message_ids=kept, model=self.word())),)

    def tag(self) -> Record:
        added, removed = (tuple(self.draw(st.sets(st.sampled_from("xyz")))) for _ in range(2))
        return (TagsChanged(self.some_conversation().id, added, removed, self.draw(st.booleans())),)

    def summary(self) -> Record:
        here = self.some_conversation().id
        return tuple(
            SummaryPut(kind, 1, here, self.word(), "m", self.word(), self.moment())
            for kind in ("exchange", "conversation")
        )

    def spend(self) -> Record:
        exchange = self.some_exchange()
        named = None if exchange is None else exchange.id
        return (SpendAdded(self.moment(), "chat", "m", 1, 2, 0, None, named),) * 2

    def held(self) -> Record:
        """Hold a request, and end one or two, which perhaps never was."""
        uid, another = (self.draw(st.sampled_from("xyz")) for _ in range(2))
        at, is_estimated = self.moment(), self.draw(st.booleans())
        paid = SpendAdded(at, "w", "m", 1, 2, 0, 0.1, held=another, is_estimated=is_estimated)
        ends: Record = self.draw(st.sampled_from([(), (SpendReleased(another),), (paid,)]))
        return (SpendReserved(uid, at, "w", "m", 1, 2, 0.1), *ends)

    def grow(self) -> Record:
        exchange = self.some_exchange()
        if exchange is None:
            return ()
        self.messages += 1
        return (ReplyGrew(exchange.id, MessageId(self.messages), "text", "a", _START),)

    def origin(self) -> Record:
        counts = {"message": self.messages, "conversation": self.conversation_count}
        noted = ImportNoted(1, ConversationId(self.draw(st.integers(1, self.conversation_count))))
        return (
            noted,
            *(
                OriginsAdded("claude", kind, ((self.word(), self.draw(st.integers(1, count))),))
                for kind, count in counts.items()
            ),
        )

    def replace_passage(self) -> Record:
        if not self.exchanges:
            return self.turn()
        exchange = self.draw(st.sampled_from(self.exchanges))
        own = [each.id for each in self.passages if each.exchange_id == exchange.id]
        return (self.passage(exchange, tuple(own)),)

    def setting(self) -> Record:
        return (SettingPut(self.word(), self.draw(st.sampled_from([None, "1", "2"]))),)

    def provider(self) -> Record:
        removed = self.draw(st.booleans())
        return (ProviderPut(self.word(), "compatible", self.word(), removed=removed),)

    def preset(self) -> Record:
        uid = self.word()
        put = PresetPut(
            Preset(uid, self.word(), tools=self.draw(st.sampled_from([None, (), ("a",)])))
        )
        return self.draw(st.sampled_from([(put,), (PresetRemoved(uid),)]))

    def project(self) -> Record:
        uid = self.word()
        put = ProjectPut(Project(uid, self.word(), recall=self.draw(st.sampled_from(RecallRule))))
        return self.draw(st.sampled_from([(put,), (ProjectRemoved(uid),)]))

    def routine(self) -> Record:
        uid = self.word()
        put = RoutinePut(Routine(uid, self.word(), "Report.", "0 9 * * *", self.moment()))
        return self.draw(st.sampled_from([(put,), (put,), (RoutineRemoved(uid),)]))

    def routine_run(self) -> Record:
        exchange = self.some_exchange()
        at, outcome = self.moment(), self.draw(st.sampled_from([None, *RunOutcome]))
        ended = None if outcome in (None, RunOutcome.SKIPPED) else at
        return (
            RoutineRunPut(
                RoutineRun(
                    self.word(), self.moment(), at, ended, outcome,
                    conversation_id=None if exchange is None else exchange.conversation_id,
                    exchange_id=None if exchange is None else exchange.id,
                )
            ),
        )  # fmt: skip

    def topic(self) -> Record:
        """Draw a decision about one of three topics; one is merged into the first, which never is."""
        number = self.draw(st.integers(1, 3))
        into = self.draw(st.sampled_from([None, TopicId(1)])) if number > 1 else None
        ids = [each.id for each in self.conversations]
        own = self.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
        name, is_hidden = self.draw(st.sampled_from(["", "a"])), self.draw(st.booleans())
        first = TopicChosen(TopicChoice(TopicId(1)))
        chosen = TopicChosen(TopicChoice(TopicId(number), name, is_hidden, into, tuple(own)))
        return (first, chosen) if into is not None else (chosen,)

    def draft(self) -> Record:
        known = [None, *(each.id for each in self.conversations)]
        return (DraftPut(self.draw(st.sampled_from(known)), self.word(), self.moment()),)

    def forget(self) -> Record:
        gone = self.some_conversation()
        self.conversations.remove(gone)
        self.gone += [each for each in self.exchanges if each.conversation_id == gone.id]
        self.exchanges = [each for each in self.exchanges if each.conversation_id != gone.id]
        return (ConversationForgotten(gone.id),)


@st.composite
def histories(draw: st.DrawFn, max_size: int = 25) -> list[Record]:
    """Any history, a record after the other."""
    history = History(draw)
    return [history.record() for _ in range(draw(st.integers(1, max_size)))]

"""Histories of what was learned, recalled and forgotten in parts, beside conversations."""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from app.domain.changes import (
    CoreMemoryPut,
    ExtractionDone,
    FactPut,
    FeedbackPut,
    MemoryPut,
    MemoryWritePut,
    ProfileLinesRejected,
    ProfilePut,
    ProfileReviewPut,
    PromptStored,
    ToolSummaryPut,
    UidsRestored,
)
from app.domain.deletions import (
    CoreMemoryForgotten,
    DocumentsForgotten,
    FactForgotten,
    MemoryForgotten,
    MessagesForgotten,
    ValueForgotten,
)
from app.domain.ids import PassageId
from app.domain.passages import PassageKind
from app.domain.recall import (
    PlanPart,
    PlanPartKind,
    PromptPiece,
    RecalledItem,
    RecallLayer,
    StoredPrompt,
    Verdict,
)
from app.domain.records.facts import Fact, FactCategory, Memory, MemoryWrite, WriteState
from app.domain.records.profile import FactSource, Profile, ProfileLine, ProfileReview
from tests.fakes.histories import History, Record


@dataclass
class LearnedHistory(History):
    """A history in which memory is at work, too; facts and saved texts are known by id."""

    facts: list[Fact] = field(default_factory=list)
    memories: list[PassageId] = field(default_factory=list)

    def record(self) -> Record:
        """Draw one more record."""
        kinds = [self.core_memory, self.profile, self.restored, self.documents, self.value]
        if self.exchanges:
            kinds += [
                self.fact, self.fact, self.fact_gone, self.memory, self.memory_gone, self.tool_call,
                self.prompt, self.feedback, self.messages_gone, self.memory_write,
            ]  # fmt: skip
        return self.draw(st.sampled_from([super().record, super().record, *kinds]))()

    def fact(self) -> Record:
        """Draw a new fact, or a new version or the end of a known one."""
        source, at = self.draw(st.sampled_from(self.exchanges)), self.moment()
        here, turn = source.conversation_id, source.id
        known = self.draw(st.sampled_from([None, *self.facts]))
        if known is None:
            number = PassageId(100 + len(self.facts))
            known = Fact(
                number, f"f{number}", self.word(), FactCategory.EVENT, self.word(), here, turn,
                source.message_ids[0], at, "m", at,
            )  # fmt: skip
            self.facts.append(known)
        ids = [None, *(each.id for each in self.facts)]
        changed = replace(
            known, text=self.word(), made_at=at, conversation_id=here, exchange_id=turn,
            valid_until=self.draw(st.sampled_from([None, at])), pinned=self.draw(st.booleans()),
            superseded_by=self.draw(st.sampled_from(ids)),
        )  # fmt: skip
        return (FactPut(changed), ExtractionDone(turn, here, self.word(), "m", 1, at))

    def fact_gone(self) -> Record:
        ids = [each.id for each in self.facts] or [PassageId(100)]
        return (FactForgotten(self.draw(st.sampled_from(ids)), self.word()),)

    def memory(self) -> Record:
        source = self.draw(st.sampled_from([None, *self.exchanges]))
        place = (None, None) if source is None else (source.conversation_id, source.id)
        number = PassageId(200 + len(self.memories))
        self.memories.append(number)
        return (MemoryPut(Memory(number, f"s{number}", self.word(), self.moment(), *place)),)

    def memory_gone(self) -> Record:
        return (MemoryForgotten(self.draw(st.sampled_from([*self.memories, PassageId(200)]))),)

    def memory_write(self) -> Record:
        source = self.draw(st.sampled_from(self.exchanges))
        write = MemoryWrite(
            self.word(), source.conversation_id, source.id, "m", self.moment(),
            self.draw(st.sampled_from(WriteState)),
            self.draw(st.sampled_from([None, *self.memories])), self.word(), self.word(),
        )  # fmt: skip
        return (MemoryWritePut(write),)

    def core_memory(self) -> Record:
        put = CoreMemoryPut(self.word(), "user", self.moment())
        return self.draw(st.sampled_from([(put,), (put,), (CoreMemoryForgotten((put.made_at,)),)]))

    def profile(self) -> Record:
        sources = tuple(FactSource(each.id, each.made_at) for each in self.facts[:1])
        profile = Profile((ProfileLine(self.word(), sources),), "m", self.moment())
        proposal = self.draw(st.sampled_from([None, profile]))
        review = ProfileReviewPut(ProfileReview(self.moment(), self.word(), proposal))
        rejected = ProfileLinesRejected((self.word(),))
        return self.draw(st.sampled_from([(ProfilePut(profile),), (review,), (rejected,)]))

    def tool_call(self) -> Record:
        source = self.draw(st.sampled_from(self.exchanges))
        number = PassageId(300 + self.draw(st.integers(0, 3)))
        return (
            ToolSummaryPut(
                number, source.conversation_id, source.id, source.message_ids[0], 0, self.word(), "m",
                self.moment(),
            ),
        )  # fmt: skip

    def prompt(self) -> Record:
        """Draw a prompt that quotes another turn."""
        source, quoted = (self.draw(st.sampled_from(self.exchanges)) for _ in range(2))
        passage = self.draw(st.sampled_from(self.passages)).id
        pieces = (
            PromptPiece(self.word()),
            PromptPiece(self.word(), quoted.conversation_id, passage),
        )
        item = RecalledItem(
            RecallLayer.HISTORY, PassageKind.TURN, passage, quoted.conversation_id, quoted.id,
            None, 0.5, None, 1.0, 3, injected=True,
        )  # fmt: skip
        parts = (
            PlanPart(PlanPartKind.RELATED, 1, False, pieces),
            PlanPart(PlanPartKind.QUESTION, 1, False, (), source.message_ids[:1]),
        )
        found = StoredPrompt(
            source.id, source.conversation_id, self.moment(), "m", 100, 100, parts, (item,)
        )
        return (PromptStored(found),)

    def feedback(self) -> Record:
        passage = self.draw(st.sampled_from(self.passages)).id
        verdict = self.draw(st.sampled_from([None, *Verdict]))
        return (FeedbackPut(passage, verdict, self.moment()),)

    def messages_gone(self) -> Record:
        source = self.draw(st.sampled_from(self.exchanges))
        ids = source.message_ids[self.draw(st.integers(0, 1)) :]
        return (MessagesForgotten(source.conversation_id, ids, self.word()),)

    def value(self) -> Record:
        return (ValueForgotten(self.draw(st.sampled_from(["a", "p:m"]))),)

    def restored(self) -> Record:
        return (UidsRestored((f"u{self.draw(st.integers(1, 3))}",)),)

    def documents(self) -> Record:
        return (DocumentsForgotten((1,)),)


@st.composite
def learned_histories(draw: st.DrawFn, max_size: int = 25) -> list[Record]:
    """Any history of every kind of change, a record after the other."""
    history = LearnedHistory(draw)
    return [history.record() for _ in range(draw(st.integers(1, max_size)))]

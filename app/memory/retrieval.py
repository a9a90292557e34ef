"""State of one retrieval: what it was asked for, what it found so far, and the votes that apply."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

from app.domain.errors import Cancelled, KnownError
from app.domain.ids import ConversationId, PassageId, passage_id_of
from app.domain.recall import RecallSettings, RetrievalResult, SegmentContext, Verdict
from app.domain.translation import tr_noop
from app.index.id_set import IdSet
from app.index.ranking import Ranked
from app.memory.recall_search import with_feedback_and_age
from app.storage.tables.facts import KnownFact
from app.storage.tables.recall_reads import PassageHeader

_log = logging.getLogger(__name__)
SPARE = 2  # results of each kind beyond the limit
_TOO_LONG = tr_noop("Recall was stopped because it took too long.")
_FAILED = tr_noop("A part of recall failed. See the log for details.")


@dataclass(slots=True)
class Retrieval:
    """The state of one retrieval."""

    conversation_id: ConversationId | None
    segment: SegmentContext
    settings: RecallSettings
    is_cancelled: Callable[[], bool]
    by_meaning: bool = True
    verdicts: Mapping[PassageId, Verdict] = field(default_factory=dict)
    found: RetrievalResult = field(default_factory=RetrievalResult)
    notices: list[str] = field(default_factory=list)

    def attempt(self, step: Callable[[], None], *, is_last: bool = False) -> None:
        """Run a step; errors become notices. The last step runs even after a cancellation."""
        try:
            if not is_last and self.is_cancelled():
                self.notices.append(_TOO_LONG)
                return
            step()
        except Cancelled:
            self.notices.append(_TOO_LONG)
        except KnownError as error:
            self.notices.append(tr_noop(f"Recall found less: {error}"))
        except Exception:  # noqa: BLE001 - the chat goes on without what was not found
            _log.exception("recall failed")
            self.notices.append(_FAILED)

    def unquoted(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """Return a ranking without what the request quotes; that is ranked with the rest before."""
        quoted = self.segment.quoted
        return [each for each in ranked if passage_id_of(each.part_id) not in quoted]

    def with_feedback(
        self,
        ranked: Sequence[Ranked],
        heads: Mapping[PassageId, PassageHeader],
        facts: Mapping[PassageId, KnownFact] = MappingProxyType({}),
    ) -> list[Ranked]:
        """Return a ranking with votes and age applied."""
        said_at = {each: head.created_at for each, head in heads.items()}
        verdicts = with_pins(self.verdicts, facts)
        return with_feedback_and_age(
            ranked, verdicts, said_at, self.settings.rag_recency_half_life_days, datetime.now(UTC)
        )


def refused(verdicts: Mapping[PassageId, Verdict]) -> IdSet:
    """Return the passages never to use again."""
    return IdSet({each for each, verdict in verdicts.items() if verdict is Verdict.NEVER})


def with_pins(
    verdicts: Mapping[PassageId, Verdict], facts: Mapping[PassageId, KnownFact]
) -> Mapping[PassageId, Verdict]:
    """Return the votes; a pinned fact without a vote counts as voted up."""
    pinned = (each for each, known in facts.items() if known.fact.pinned)
    return dict.fromkeys(pinned, Verdict.UP) | dict(verdicts)


def with_spare(limit: int, more: int = 0) -> int:
    """Return how many results to retrieve for a limit; none for a limit of 0."""
    return limit + more + SPARE if limit else 0

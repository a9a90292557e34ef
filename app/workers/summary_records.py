"""A summary as it is kept: the record, and the passage that ranks, in place of the one before."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.domain.changes import Change, PassagesPut, SpendAdded, SummaryPut
from app.domain.ids import PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.turn_text import content_hash, estimate_tokens
from app.domain.workers import Ledger
from app.storage.times import now
from app.workers.job import Saved
from app.workers.summariser import Digest

_RECORD_KINDS = {
    PassageKind.EXCHANGE_SUMMARY: "exchange",
    PassageKind.CONVERSATION_SUMMARY: "conversation",
}


@dataclass(frozen=True, slots=True)
class Summarised:
    """A digest and what it is of. `place` is its passage but for id and words; `stamp` its source's."""

    place: Passage
    stamp: str
    digest: Digest


def records_of(made: Summarised, passage_id: PassageId, replaced: tuple[int, ...]) -> list[Change]:
    """Return what stores a summary; an empty one is kept too, so that it is not tried again.

    The passage bears the time of what it is about, not of the summary. `replaced` are the passages
    it had before.
    """
    summary, place = made.digest.summary, made.place
    if place.conversation_id is None:
        raise ValueError("a summary belongs to a conversation")
    put = SummaryPut(
        kind=_RECORD_KINDS[place.kind],
        source_id=place.source_id,
        conversation_id=place.conversation_id,
        text=summary,
        model=made.digest.model,
        source_hash=made.stamp,
        made_at=now(),
    )
    passage = replace(
        place,
        id=passage_id,
        content_hash=content_hash(summary),
        tokens=estimate_tokens(summary),
    )
    return [put, PassagesPut((passage,) if summary else (), replaced)]


def saved_of(made: Sequence[Summarised], kept: Sequence[Summarised]) -> Saved:
    """Return what became of summaries: told, or skipped since empty or no longer wanted."""
    told = sum(bool(each.digest.summary) for each in kept)
    return Saved(
        told, len(made) - told, ledger_of([paid for each in made for paid in each.digest.spent])
    )


def ledger_of(spent: Sequence[SpendAdded]) -> Ledger:
    """Return what requests did cost together; the price of one unknown makes it unknown."""
    prices = [each.cost_usd for each in spent]
    tokens = sum(each.input_tokens + each.output_tokens for each in spent)
    estimated_usd = sum(each.cost_usd or 0.0 for each in spent if each.is_estimated)
    return Ledger(tokens, None if None in prices else sum(filter(None, prices)), estimated_usd)

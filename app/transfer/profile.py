"""The profile in exports and imports: with the uids of its facts, and never in force by an import.

A file may be another person's: its lines become a proposal for the user, beside what is in force.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from app.domain.changes import ProfileReviewPut
from app.domain.facts import BY_IMPORT
from app.domain.ids import PassageId
from app.domain.profile import (
    FactSource,
    Profile,
    ProfileLine,
    ProfileReview,
    lines_without,
    supported_lines,
)
from app.domain.transfer import PortableProfileLine
from app.storage.engine.store import Store
from app.storage.engine.times import now
from app.storage.tables.facts import Facts
from app.storage.tables.profile import ProfileRows

_NONE = PassageId(0)


def portable_profile(store: Store) -> tuple[PortableProfileLine, ...]:
    """Return the lines in force. Blocking."""
    current = ProfileRows(store).current()
    lines = () if current is None else current.lines
    known = Facts(store).by_ids(source.fact_id for line in lines for source in line.sources)
    return tuple(
        PortableProfileLine(
            line.text,
            tuple(
                (known[each.fact_id].fact.uid, each.made_at)
                for each in line.sources
                if each.fact_id in known
            ),
        )
        for line in lines
    )


def propose_profile(store: Store, imported: Sequence[PortableProfileLine]) -> None:
    """Propose the lines of an import, after its facts were stored. Blocking.

    Left out are those in force, those that the user rejected, and those whose facts are not here.
    """
    if imported:
        store.on_writer(lambda: _propose(store, imported)).result()


def _propose(store: Store, imported: Sequence[PortableProfileLine]) -> None:
    rows = ProfileRows(store)
    current, review, rejected = rows.current(), rows.review(), rows.rejected()
    accepted = () if current is None else current.lines
    waiting = review.proposal if review is not None else None
    before = accepted if waiting is None else waiting.lines
    facts = Facts(store).by_uid(uid for line in imported for uid, _ in line.sources)
    ids = {uid: fact.id for uid, fact in facts.items()}
    lines = [
        ProfileLine(
            line.text, tuple(FactSource(ids.get(uid, _NONE), at) for uid, at in line.sources)
        )
        for line in imported
    ]
    found = supported_lines(lines, rows.source_texts(lines))
    new = [line for line in lines_without(found, before) if line.key not in rejected]
    if new:
        at = now()
        base = review or ProfileReview(at - timedelta(days=1), "import")
        proposal = Profile((*before, *new), BY_IMPORT, at)
        store.commit_now(ProfileReviewPut(replace(base, proposal=proposal)))

"""Changes that store facts: repeated, superseded and withdrawn statements; the last one is current.

Exchanges may be read in any order, and again after an edit, so statements are ordered by their time.
Of what patterns find, two facts with one subject supersede each other; of what a model finds, a fact
supersedes the one that the model names. A fact that the user edited or pinned stays as it is. What a
conversation of a bounded project or of the sample archive states concerns the facts of that place only.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from app.domain.changes import Change, ExtractionDone, FactPut
from app.domain.ids import MessageId, PassageId, new_uid
from app.domain.records.facts import BY_USER, Fact, FactCategory, FactVersion, text_until
from app.domain.text import content_hash
from app.memory.facts import blocked_message_hash, contains_value, may_be_same, similar_facts
from app.storage.engine.connection import grouped
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.facts import Facts, fact_changes
from app.storage.tables.projects import places_apart
from app.storage.work.extraction_work import ExchangeToRead, ExtractionState, ExtractionWork

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A statement and the message it is from. `subject` and `value` as in `Statement`.

    A model says what it means for a known fact, `known`: a statement replaces it, one without text
    ends it. `since` and `until` are the dates it gives, UTC. Patterns leave these None.
    """

    text: str
    category: FactCategory
    subject: str
    value: str
    message_id: MessageId
    said_at: datetime
    known: PassageId | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A statement, the facts that mean the same, and its vector, where meaning could be compared.

    Vectors of the same meaning have a cosine of `same_cosine`.
    """

    stated: ExtractedFact
    same: tuple[PassageId, ...] = ()
    vector: npt.NDArray[np.float32] | None = None
    same_cosine: float = 1.0


@dataclass(frozen=True, slots=True)
class ReadExchange:
    """An exchange that was read, what it says, and who found that."""

    exchange: ExchangeToRead
    facts: tuple[Compared, ...]
    model: str


class FactWriter:
    """Makes the changes that store facts; called on the writer thread, right before the commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._work = ExtractionWork(store)
        self._facts = Facts(store)

    def changes(self, read: Sequence[ReadExchange]) -> tuple[list[Change], int]:
        """Return what stores the facts of exchanges that may still be read, and how many may be."""
        state = self._work.state(each.exchange.id for each in read)
        kept = [each for each in read if each.exchange.id in state.may_be_read]
        places = places_apart(self._store, {one.exchange.conversation_id for one in kept})
        by_place = grouped(kept, lambda each: places.get(each.exchange.conversation_id, ""))
        changes = [
            change for place, own in by_place.items() for change in self._changes(own, state, place)
        ]
        return changes, len(kept)

    def _changes(
        self, kept: Sequence[ReadExchange], state: ExtractionState, place: str
    ) -> list[Change]:
        """Return what stores the facts of exchanges of one place; "": of none set apart."""
        texts = (content_hash(fact.stated.text) for each in kept for fact in each.facts)
        read = (blocked_message_hash(own.id) for each in kept for own in each.exchange.messages)
        refused = self._facts.refused([*texts, *read])
        known = self._known(kept, state, place)
        done: list[Change] = []
        for each in sorted(kept, key=lambda one: one.exchange.id):
            said = () if each.exchange.id in state.outdated else each.facts
            wanted = [one for one in said if content_hash(one.stated.text) not in refused]
            blocked = {
                m.id for m in each.exchange.messages if blocked_message_hash(m.id) in refused
            }
            taken = [known.take(one, each, blocked) for one in wanted]
            touched = {fact_id for fact_id in taken if fact_id is not None}
            sources = {each.exchange.id, *state.replaced.get(each.exchange.id, ())}
            known.withdraw(sources, touched, blocked)
            done.append(
                ExtractionDone(
                    each.exchange.id, each.exchange.conversation_id, each.exchange.stamp,
                    each.model, len(touched), known.moment(),
                )
            )  # fmt: skip
        return [*known.changes(), *done]

    def _known(
        self, kept: Sequence[ReadExchange], state: ExtractionState, place: str
    ) -> "_AffectedFacts":
        stated = [fact for each in kept for fact in each.facts]
        sources: set[int] = {each.exchange.id for each in kept}
        sources.update(other for each in tuple(sources) for other in state.replaced.get(each, ()))
        found = [
            *self._work.saying(
                (fact.stated.text.lower() for fact in stated),
                {fact.stated.subject for fact in stated if fact.stated.subject},
            ),
            *self._work.facts_with("id", (each for fact in stated for each in fact.same)),
            *self._work.facts_with("id", (one.stated.known for one in stated if one.stated.known)),
            *self._work.facts_with("exchange_id", sources, "AND valid_until IS NULL"),
        ]
        found += self._work.facts_with("superseded_by", [fact.id for fact in found])
        places = places_apart(self._store, {fact.conversation_id for fact in found})
        facts = {fact.id: fact for fact in found if places.get(fact.conversation_id, "") == place}
        return _AffectedFacts(self._store, facts, self._work.versions(facts))


class _AffectedFacts:
    """Facts that may be concerned, as they become while statement after statement is taken in."""

    def __init__(
        self,
        store: Store,
        facts: dict[PassageId, Fact],
        versions: Mapping[PassageId, Sequence[FactVersion]],
    ) -> None:
        self._store = store
        self._facts = facts
        self._versions: dict[PassageId, list[FactVersion]] = {
            each: list(found) for each, found in versions.items()
        }
        self._vectors: dict[PassageId, npt.NDArray[np.float32]] = {}
        self._changed: dict[PassageId, None] = {}
        self._puts: list[Fact] = []  # every version on the way, the current one last
        # Later than every version, also of a time when the clock was ahead.
        made = (each.made_at for known in versions.values() for each in known)
        self._moment = max([now(), *made])

    def moment(self) -> datetime:
        """Return the time, never the same twice: it names a version."""
        self._moment = max(now(), self._moment + _TICK)
        return self._moment

    def changes(self) -> list[Change]:
        """Return what stores all that became different."""
        made: list[Change] = [FactPut(fact) for fact in self._puts]
        for each in self._changed:
            made += fact_changes(self._facts[each])[1:]
        return made

    def take(
        self, said: Compared, source: ReadExchange, blocked: Collection[MessageId]
    ) -> PassageId | None:
        """Take in a statement; return the fact that it became part of.

        Nothing new is learned from `blocked` messages: None.
        """
        stated = said.stated
        known = self._facts.get(stated.known) if stated.known is not None else None
        if known is not None and (known.valid_until is not None or is_kept(known)):
            known = None
        if not stated.text:
            known = known or self._denied(stated)
            return None if known is None else self._end(known, stated)
        if (same := self._match(said)) is not None:
            self._repeat(same, stated, source)
            is_replaced = known is not None and known.id not in (same.id, same.superseded_by)
            if known is not None and is_replaced and stated.said_at >= known.said_at:
                self._put(replace(known, valid_until=stated.said_at, superseded_by=same.id))
            return same.id
        if (kept := self._kept_of(stated)) is not None:
            return kept.id
        return None if stated.message_id in blocked else self._new(said, source, known).id

    def withdraw(
        self,
        sources: Collection[int],
        touched: Collection[PassageId],
        blocked: Collection[MessageId],
    ) -> None:
        """End the facts that were learned from exchanges which do not say so any more."""
        for fact in tuple(self._facts.values()):
            if fact.valid_until is not None or fact.id in touched or is_kept(fact):
                continue
            if fact.exchange_id in sources and fact.message_id not in blocked:
                self._withdraw(fact, sources)

    # -- one statement

    def _match(self, said: Compared) -> Fact | None:
        for holds in (True, False):
            for fact in self._facts.values():
                if (fact.valid_until is None) is holds and self._matches(fact, said):
                    if holds or fact.superseded_by is None:
                        return fact
                    if fact.valid_until is not None and said.stated.said_at < fact.valid_until:
                        return fact
        return None

    def _denied(self, stated: ExtractedFact) -> Fact | None:
        """Return the current fact whose value a statement denies."""
        return next(
            (
                fact
                for fact in self._facts.values()
                if fact.subject == stated.subject != ""
                and fact.valid_until is None
                and not is_kept(fact)
                and contains_value(fact.text, stated.value)
            ),
            None,
        )

    def _kept_of(self, stated: ExtractedFact) -> Fact | None:
        """Return what the user made of a statement of the same message, which it must not undo."""
        for fact in self._facts.values():
            if fact.valid_until is None and is_kept(fact):
                versions = self._versions.get(fact.id, ())
                if any(_was_said(fact, version, stated) for version in versions):
                    return fact
        return None

    def _matches(self, fact: Fact, said: Compared) -> bool:
        stated = said.stated
        if fact.text.casefold() == stated.text.casefold():
            return True
        if stated.subject and fact.subject:
            return stated.subject == fact.subject and contains_value(fact.text, stated.value)
        if fact.id in said.same and fact.valid_until is None:
            return True
        vector = self._vectors.get(fact.id)
        if vector is None or said.vector is None or not may_be_same(fact.text, stated.text):
            return False
        return float(vector @ said.vector) >= said.same_cosine

    def _repeat(self, fact: Fact, stated: ExtractedFact, source: ReadExchange) -> None:
        """Give a fact one more source; the wording that was said last is the one it has."""
        own = source.exchange.id
        known = self._versions.get(fact.id, [])
        if fact.valid_until is not None and fact.superseded_by is None:
            self._put(self._worded(fact, stated, source, valid_until=None))  # it was taken back
        elif any(each.exchange_id == own and each.text == stated.text for each in known):
            return
        elif stated.said_at >= fact.said_at and not is_kept(fact) and fact.valid_until is None:
            self._put(self._worded(fact, stated, source, valid_until=None))
        else:
            before = min((each.made_at for each in known), default=fact.made_at) - _TICK
            older = replace(self._worded(fact, stated, source, fact.valid_until), made_at=before)
            self._puts += [older, fact]
            self._note_version(older)

    def _worded(
        self, fact: Fact, stated: ExtractedFact, source: ReadExchange, valid_until: datetime | None
    ) -> Fact:
        return replace(
            fact,
            text=stated.text,
            category=stated.category,
            subject=stated.subject or fact.subject,
            conversation_id=source.exchange.conversation_id,
            exchange_id=source.exchange.id,
            message_id=stated.message_id,
            said_at=stated.said_at,
            model=source.model,
            made_at=self.moment(),
            valid_until=valid_until,
        )

    def _new(self, said: Compared, source: ReadExchange, known: Fact | None) -> Fact:
        """Add a fact: in the place of `known`, or among those of its subject."""
        stated = said.stated
        fact = Fact(
            self._store.ids.passage(), new_uid(), stated.text, stated.category, stated.subject,
            source.exchange.conversation_id, source.exchange.id, stated.message_id, stated.said_at,
            source.model, self.moment(), _past(stated.until),
        )  # fmt: skip
        if known is not None:
            fact = self._replacing(fact, known, stated)
        elif stated.subject:
            fact = self._in_sequence(fact)
        self._put(fact)
        if said.vector is not None:
            self._vectors[fact.id] = said.vector
        return fact

    def _end(self, known: Fact, stated: ExtractedFact) -> PassageId:
        """End a fact, unless it was said again since; an end that is still to come is noted in its text."""
        at = self.moment()
        if stated.until is not None and stated.until > at:
            self._put(replace(known, text=text_until(known.text, stated.until, at), made_at=at))
        elif stated.said_at >= known.said_at:
            at = _past(stated.until) or stated.said_at
            self._put(replace(known, valid_until=max(at, known.said_at)))
        return known.id

    def _replacing(self, fact: Fact, known: Fact, stated: ExtractedFact) -> Fact:
        """End the older of two facts when the later one was said; return the new one."""
        fact = replace(fact, subject=known.subject)
        if fact.said_at < known.said_at:
            return replace(fact, valid_until=known.said_at, superseded_by=known.id)
        at = max(_past(stated.since) or stated.said_at, known.said_at)
        self._put(replace(known, valid_until=at, superseded_by=fact.id))
        return fact

    def _in_sequence(self, fact: Fact) -> Fact:
        """Place a fact among those of its subject: each ends when the next was said."""
        others = [
            each
            for each in self._facts.values()
            if each.subject == fact.subject
            and (each.valid_until is None or each.superseded_by is not None)
        ]
        for each in others:
            until = each.valid_until
            holds_then = each.said_at <= fact.said_at and (until is None or until > fact.said_at)
            if holds_then and not each.pinned:
                self._put(replace(each, valid_until=fact.said_at, superseded_by=fact.id))
        later = [each for each in others if each.said_at > fact.said_at]
        if not later:
            return fact
        successor = min(later, key=lambda each: (each.said_at, each.id))
        return replace(fact, valid_until=successor.said_at, superseded_by=successor.id)

    def _withdraw(self, fact: Fact, sources: Collection[int]) -> None:
        elsewhere = [
            each
            for each in self._versions.get(fact.id, [])
            if each.exchange_id is not None and each.exchange_id not in sources
        ]
        if elsewhere:
            last = max(elsewhere, key=lambda each: (each.said_at, each.made_at))
            self._put(
                replace(
                    fact, text=last.text, category=last.category, model=last.model,
                    conversation_id=last.conversation_id, exchange_id=last.exchange_id,
                    message_id=last.message_id, said_at=last.said_at, made_at=self.moment(),
                )
            )  # fmt: skip
            return
        self._put(replace(fact, valid_until=max(self.moment(), fact.said_at)))
        for each in tuple(self._facts.values()):
            if each.superseded_by == fact.id:
                self._put(replace(each, valid_until=None, superseded_by=None))

    def _put(self, fact: Fact) -> None:
        self._facts[fact.id] = fact
        self._changed[fact.id] = None
        self._puts.append(fact)
        self._note_version(fact)

    def _note_version(self, fact: Fact) -> None:
        version = FactVersion(
            fact.id, fact.made_at, fact.text, fact.category, fact.model, fact.conversation_id,
            fact.exchange_id, fact.message_id, fact.said_at,
        )  # fmt: skip
        known: Iterable[FactVersion] = self._versions.get(fact.id, ())
        others = [each for each in known if each.made_at != fact.made_at]
        self._versions[fact.id] = [*others, version]


def _past(at: datetime | None) -> datetime | None:
    """Return a time unless it is still to come."""
    return at if at is not None and at <= now() else None


def is_kept(fact: Fact) -> bool:
    """Return whether the user has made a fact their own."""
    return fact.pinned or fact.model == BY_USER


def _was_said(fact: Fact, version: FactVersion, stated: ExtractedFact) -> bool:
    """Return whether a fact had a wording from a statement's message that is about the same."""
    if version.message_id != stated.message_id:
        return False
    if stated.subject and stated.subject == fact.subject:
        return True
    return bool(similar_facts(stated.text, [replace(fact, text=version.text)]))

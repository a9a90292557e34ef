"""What the user does with facts: find, add, edit, pin, forget, bring back. Each is one commit.

How facts are learned is `app.workers`, how they are listed `app.storage.facts`. Blocking: the window
calls these from a pool, the command line directly; each returns when the change is durable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.domain.changes import Change, FactForgotten, FactPut, PassagesPut
from app.domain.errors import IndexUnavailable, InvalidInput, NotFound
from app.domain.facts import BY_USER, Fact, FactCategory, FactVersion
from app.domain.ids import PassageId, new_uid
from app.domain.passages import PassageKind
from app.domain.text import clean, whole_number
from app.domain.turn_text import content_hash
from app.memory.fact_merging import silenced
from app.memory.search import SearchService
from app.storage.facts import FactFilter, Facts, KnownFact, fact_changes
from app.storage.forget import finish_forgetting, remains_of_files
from app.storage.store import Store
from app.storage.times import now

FACT_LIMIT_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class FoundFacts:
    """The first facts that a query finds, and how many it finds in `total`."""

    facts: tuple[KnownFact, ...]
    total: int


class FactBook:
    """The facts of one store."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._store = store
        self._facts = Facts(store)
        self._search = search

    def search(self, query: str, limit: int = 20) -> Sequence[KnownFact]:
        """Return the facts that hold and answer a query, best first; see `found`."""
        return self.found(query, None, limit).facts

    def found(self, query: str, category: FactCategory | None, limit: int) -> FoundFacts:
        """Return the facts of a category (None: of any) that hold and answer a query, best first.

        Behind them stand those that hold all its words. Words alone find while search cannot answer.
        Raises InvalidInput.
        """
        among = None if category is None else self._facts.ids(FactFilter(category=category))
        try:
            answer = self._search.search(query, limit=limit, kinds={PassageKind.FACT}, among=among)
            ids = [result.passage_id for result in answer.results]
        except IndexUnavailable:
            ids = []
        known = self._facts.by_ids(ids)
        ranked = [known[each] for each in ids if each in known]
        ranked = [each for each in ranked if each.fact.valid_until is None]
        ranked_ids = {each.fact.id for each in ranked}
        with_words = FactFilter(text=query, category=category, limit=limit)
        listed = [each for each in self._facts.listed(with_words) if each.fact.id not in ranked_ids]
        total = len(ranked_ids | self._facts.ids(with_words))
        return FoundFacts((*ranked, *listed)[:limit], total)

    def add(self, text: str, category: FactCategory) -> Fact:
        """Keep a fact of the user's own; raise InvalidInput."""
        at = now()
        fact = Fact(
            id=self._store.ids.passage(),
            uid=new_uid(),
            text=_wording(text),
            category=category,
            subject="",
            conversation_id=None,
            exchange_id=None,
            message_id=None,
            said_at=at,
            model=BY_USER,
            made_at=at,
        )
        self._store.save(*fact_changes(fact))
        return fact

    def edit(
        self, fact_id: int, text: str | None = None, category: FactCategory | None = None
    ) -> Fact:
        """Give a fact another wording or category: a new version of it; None leaves one as it is.

        Raises NotFound, InvalidInput.
        """
        fact = self._facts.get(fact_id).fact
        wording = fact.text if text is None else _wording(text)
        changed = replace(fact, text=wording, category=category or fact.category)
        return fact if changed == fact else self._put(_by_user(changed))

    def pin(self, fact_id: int, pinned: bool) -> Fact:
        """Have recall prefer a fact, and nothing supersede it by itself; or no longer."""
        self._facts.get(fact_id)
        fact = replace(self._facts.stored(fact_id), pinned=pinned)
        self._store.save(FactPut(fact))
        return fact

    def forget(self, fact_id: int) -> tuple[str, ...]:
        """Erase a fact in all its wordings; return what remains elsewhere, in words.

        None of the wordings is learned again, nor anything new from the messages that taught it: other
        words might say it. Raises NotFound, StorageError; then the fact is gone
        from sight at least, and the caretaker does the rest later.
        """
        fact = self._facts.get(fact_id).fact
        versions = self._facts.versions(fact_id)
        wordings: tuple[Fact | FactVersion, ...] = (fact, self._facts.stored(fact_id), *versions)
        hashes = {content_hash(each.text) for each in wordings}
        hashes |= {silenced(each.message_id) for each in wordings if each.message_id is not None}
        refused = (FactForgotten(fact.id, each) for each in sorted(hashes))
        self._store.save(*refused, PassagesPut((), (fact.id,)))
        finish_forgetting(self._store)
        source = () if fact.conversation_id is None else (_STILL_SAID,)
        return (*source, _IN_OTHER_WORDS, *remains_of_files(self._store))

    def restore(self, fact_id: int, made_at: datetime) -> Fact:
        """Give a fact the wording, category and source it had in an earlier version.

        Raises NotFound.
        """
        fact = self._facts.get(fact_id).fact
        version = _version(self._facts.versions(fact_id), made_at)
        restored = replace(
            fact,
            text=version.text,
            category=version.category,
            conversation_id=version.conversation_id,
            exchange_id=version.exchange_id,
            message_id=version.message_id,
            said_at=version.said_at,
        )
        return self._put(_by_user(restored))

    def reinstate(self, fact_id: int) -> Fact:
        """Let a fact hold again that had ended; raise NotFound.

        What took its place ends, if of the same subject it cannot hold too.
        """
        fact = self._facts.get(fact_id).fact
        if fact.valid_until is None:
            return fact
        back = replace(_remade(fact), valid_until=None, superseded_by=None)
        changes: list[Change] = list(fact_changes(back))
        for rival in self._facts.holding_of(fact.subject):
            if rival.id != fact.id:
                changes += fact_changes(
                    replace(rival, valid_until=back.made_at, superseded_by=fact.id, pinned=False)
                )
        self._store.save(*changes)
        return back

    def _put(self, fact: Fact) -> Fact:
        """Store a fact as it is seen but for its end: what is hidden may come back."""
        stored = self._facts.stored(fact.id)
        fact = replace(fact, valid_until=stored.valid_until, superseded_by=stored.superseded_by)
        self._store.save(*fact_changes(fact))
        return fact


_STILL_SAID = "The conversation it came from still says it."
_IN_OTHER_WORDS = (
    "It is gone from the prompts that were kept, too. Core memory, memories and summaries that say it "
    "in words of their own were not touched."
)


def _wording(text: str) -> str:
    """Return a wording as it may be kept; raise InvalidInput."""
    words = " ".join(clean(text).split())
    if not 0 < len(words) <= FACT_LIMIT_CHARS:
        raise InvalidInput(
            f"A fact cannot have {len(words):,} characters" if words else "A fact cannot be empty",
            f"Allowed: 1 to {FACT_LIMIT_CHARS:,} characters.",
        )
    return words


def _by_user(fact: Fact) -> Fact:
    return replace(_remade(fact), model=BY_USER)


def _remade(fact: Fact) -> Fact:
    """Return a fact as a new version, which is the newest even if the clock was set back."""
    return replace(fact, made_at=max(now(), fact.made_at + timedelta(microseconds=1)))


def _version(versions: Sequence[FactVersion], made_at: datetime) -> FactVersion:
    for version in versions:
        if version.made_at == made_at:
            return version
    raise NotFound("There is no such version of this fact any more")


def fact_number(text: str) -> PassageId:
    """Return the id of a fact as it was typed; raise InvalidInput."""
    number = whole_number(text)
    if number is None:
        raise InvalidInput(f"'{text}' is no fact's number", "'facts list' shows them.")
    return PassageId(number)

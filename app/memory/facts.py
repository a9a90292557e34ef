"""Fact service: search, add, edit, pin, forget and restore facts, each in one commit.

Blocking: the window calls these from a pool, the command line directly; they return when the change
is durable.

Whether two statements are the same fact is decided by their words, without a model.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest

from app.domain.changes import Change, FactPut, PassagesPut
from app.domain.deletions import FactForgotten
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.ids import MessageId, PassageId, new_uid
from app.domain.passages import PassageKind
from app.domain.records.facts import BY_USER, Fact, FactCategory, FactVersion
from app.domain.text import content_hash, is_mostly_latin, parse_whole_number
from app.language.languages import FUNCTION_WORDS
from app.language.sentences import content_terms, unspaced_runs
from app.language.statements.patterns import LANGUAGES, patterns_of
from app.memory.search.scope import Boundary
from app.memory.search.service import SearchService
from app.memory.user_texts import checked_text, later_than, version_at
from app.storage.deletion.forget import remains_of_files
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.facts import FactFilter, Facts, KnownFact, fact_changes

LIKE_SHARE = 0.5
_WORDS = re.compile(r"[^\W_]+")
_MOST_CANDIDATES = 8
# A name before a colon or a verb in the third person.
_SUBJECT = re.compile(
    r"([A-Z][\w-]+)(?:'s \w| (?:[A-Z][\w-]+ )?(?:[a-z]+(?:s|ed)|has|is|was|does) |(?: [A-Z][\w-]+)?: )"
)


def similar_facts(text: str, known: Iterable[Fact]) -> Sequence[Fact]:
    """Return the few facts that share enough words for their embeddings to be compared."""
    own = frozenset(content_terms(text))
    rated = [
        (len(own & theirs) / max(1, min(len(own), len(theirs))), fact)
        for fact in known
        if (theirs := frozenset(content_terms(fact.text))) and may_be_same(text, fact.text)
    ]
    near = [(share, fact) for share, fact in rated if share >= LIKE_SHARE]
    near.sort(key=lambda pair: (-pair[0], pair[1].id))
    return [fact for _, fact in near[:_MOST_CANDIDATES]]


def may_be_same(text: str, other: str) -> bool:
    """Return False for texts with different subjects, numbers, names or negations."""
    return _subject_of(text) == _subject_of(other) and distinguishing_words(
        text
    ) == distinguishing_words(other)


def blocked_message_hash(message_id: MessageId) -> str:
    """Return the hash that blocks extraction from a message after the user forgot a fact of it.

    Another phrasing would pass the hash of the fact's text, so nothing new is extracted from the
    message.
    """
    return content_hash(f"message {message_id}")


def contains_value(text: str, value: str) -> bool:
    """Return whether a text contains a value (lower case) as whole words, if its script has any."""
    if unspaced_runs(value):
        return value.casefold() in text.casefold()
    words = f" {' '.join(_WORDS.findall(text.casefold()))} "
    return f" {' '.join(_WORDS.findall(value.casefold()))} " in words


def _subject_of(text: str) -> str:
    """Return a statement's subject, lower case: "tom" for "Tom lives here"; "" is the user."""
    found = _SUBJECT.match(text.strip())
    return "" if found is None or found[1].casefold() in FUNCTION_WORDS else found[1].casefold()


def distinguishing_words(text: str) -> frozenset[str]:
    """Return the numbers, the names inside a text and its negations, in any language."""
    words = _WORDS.findall(text)
    named = {word.casefold() for word in words[1:] if word[0].isupper() or word[0].isdecimal()}
    negations = (patterns_of(each).negated.findall(text) for each in LANGUAGES)
    return frozenset(named.difference(FUNCTION_WORDS).union(*negations))


FACT_LIMIT_CHARS = 1_000
_NEWEST = 200  # facts
_FACTS = (PassageKind.FACT,)


@dataclass(frozen=True, slots=True)
class FactMatches:
    """The first facts that match a query, and the `total` number of matches."""

    facts: tuple[KnownFact, ...]
    total: int


class FactService:
    """The facts of one store."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._store = store
        self._facts = Facts(store)
        self._search = search

    def search(self, query: str, limit: int = 20) -> Sequence[KnownFact]:
        """Return the current facts that match a query, best first; see `found`."""
        return self.found(query, None, limit).facts

    def found(self, query: str, category: FactCategory | None, limit: int) -> FactMatches:
        """Return the current facts of a category (None: any) that match a query, best first.

        Facts that contain all its words follow; only those are found while search is unavailable.
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
        return FactMatches((*ranked, *listed)[:limit], total)

    def nearest(
        self, texts: Sequence[str], limit: int, project: str | None = None
    ) -> Sequence[Fact]:
        """Return the current facts nearest to some texts, in turns; then the newest.

        All of them if there are no more. Of the newest, those in the script of a text come first:
        an embedder may not read it. Only what may be recalled in a project is returned.
        """
        boundaries = self._search.boundaries
        found = self._nearest(texts, limit, boundaries.of(project))
        kept = boundaries.still_within(project, (each.conversation_id for each in found))
        return [each for each in found if each.conversation_id in kept]

    def _nearest(self, texts: Sequence[str], limit: int, boundary: Boundary) -> Sequence[Fact]:
        listed = self._facts.listed(FactFilter(limit=max(limit + 1, _NEWEST)))
        newest = [each for each in listed if boundary.holds(each.fact.id)]
        if len(listed) <= limit:
            return [each.fact for each in newest]
        try:
            found = [self._search.by_sentence(text, limit, _FACTS, boundary) for text in texts]
        except IndexUnavailable:
            found = []
        in_turns = (each for row in zip_longest(*found) for each in row if each is not None)
        ids = list(dict.fromkeys(each.passage_id for each in in_turns))
        known = self._facts.by_ids(ids)
        ranked = [known[each].fact for each in ids if each in known]
        ranked = [fact for fact in ranked if fact.valid_until is None]
        scripts = {is_mostly_latin(text) for text in texts}
        rest = [each.fact for each in newest if each.fact.id not in known]
        rest.sort(key=lambda fact: is_mostly_latin(fact.text) not in scripts)
        return [*ranked, *rest][:limit]

    def add(self, text: str, category: FactCategory) -> Fact:
        """Add a fact written by the user; raises InvalidInput."""
        at = now()
        fact = Fact(
            id=self._store.ids.passage(),
            uid=new_uid(),
            text=_checked(text),
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
        """Change text or category (None: keep) as a new version. Raises NotFound, InvalidInput."""
        fact = self._facts.get(fact_id).fact
        new_text = fact.text if text is None else _checked(text)
        changed = replace(fact, text=new_text, category=category or fact.category)
        return fact if changed == fact else self._put(_as_user_version(changed))

    def pin(self, fact_id: int, pinned: bool) -> Fact:
        """Pin or unpin a fact: recall prefers pinned ones, extraction never supersedes them."""
        self._facts.get(fact_id)
        fact = replace(self._facts.stored(fact_id), pinned=pinned)
        self._store.save(FactPut(fact))
        return fact

    def forget(self, fact_id: int) -> tuple[str, ...]:
        """Erase a fact with all versions; return descriptions of what remains elsewhere.

        None of its texts is extracted again, nor anything new from its source messages, which could
        phrase it differently. Raises NotFound, StorageError.
        """
        fact = self._facts.get(fact_id).fact
        versions: list[Fact | FactVersion] = [fact, self._facts.stored(fact_id)]
        versions += self._facts.versions(fact_id)
        sources = {each.message_id for each in versions if each.message_id is not None}
        hashes = {content_hash(each.text) for each in versions}
        hashes |= set(map(blocked_message_hash, sources))
        refused = (FactForgotten(fact.id, each) for each in sorted(hashes))
        self._store.save(*refused, PassagesPut((), (fact.id,)))
        source = () if fact.conversation_id is None else (_SOURCE_REMAINS,)
        return (*source, _OTHER_PHRASINGS_REMAIN, *remains_of_files(self._store))

    def restore(self, fact_id: int, made_at: datetime) -> Fact:
        """Restore text, category and source of an earlier version; raises NotFound."""
        fact = self._facts.get(fact_id).fact
        version = version_at(self._facts.versions(fact_id), made_at, "the fact")
        restored = replace(
            fact,
            text=version.text,
            category=version.category,
            conversation_id=version.conversation_id,
            exchange_id=version.exchange_id,
            message_id=version.message_id,
            said_at=version.said_at,
        )
        return self._put(_as_user_version(restored))

    def reinstate(self, fact_id: int) -> Fact:
        """Make a fact current again that had ended; raises NotFound.

        Facts of the same subject that superseded it end, but none of another place (`APART`).
        """
        fact = self._facts.get(fact_id).fact
        if fact.valid_until is None:
            return fact
        back = replace(_new_version(fact), valid_until=None, superseded_by=None)
        changes: list[Change] = list(fact_changes(back))
        for rival in self._facts.rivals_of(fact):
            changes += fact_changes(
                replace(rival, valid_until=back.made_at, superseded_by=fact.id, pinned=False)
            )
        self._store.save(*changes)
        return back

    def _put(self, fact: Fact) -> Fact:
        """Store a fact with the end it has in the database, which may be hidden."""
        stored = self._facts.stored(fact.id)
        fact = replace(fact, valid_until=stored.valid_until, superseded_by=stored.superseded_by)
        self._store.save(*fact_changes(fact))
        return fact


_SOURCE_REMAINS = "Its source conversation still contains it."
_OTHER_PHRASINGS_REMAIN = (
    "It was also removed from stored prompts and the profile. Core memory, memories and summaries that phrase it "
    "differently were not changed."
)


def _checked(text: str) -> str:
    return checked_text(" ".join(text.split()), FACT_LIMIT_CHARS, "fact")


def _as_user_version(fact: Fact) -> Fact:
    return replace(_new_version(fact), model=BY_USER)


def _new_version(fact: Fact) -> Fact:
    return replace(fact, made_at=later_than(fact.made_at))


def parse_fact_id(text: str) -> PassageId:
    """Return the id of a fact as typed; raises InvalidInput."""
    number = parse_whole_number(text)
    if number is None:
        raise InvalidInput(f"'{text}' is not a fact ID", "'facts list' shows the IDs.")
    return PassageId(number)

"""Topic service: topics, the user's decisions about them, trails. Thread-safe; blocks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain

from app.domain.changes import TopicChosen
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId
from app.domain.records.topics import (
    NAME_LIMIT_CHARS,
    Topic,
    TopicChoice,
    TopicConversation,
    TopicId,
    Trail,
)
from app.domain.text import one_line
from app.memory.search.scope import Boundaries
from app.storage.engine.stamps import from_db
from app.storage.engine.store import Store
from app.storage.tables.topics import TopicRows

_LEAST_ALIKE = 0.1  # the least mean cosine of two conversations of a topic that is listed
_CLEAR_ALIKE = 0.2  # and of a conversation with the others, where its topic is clear
_CLEAR_SHARE = 0.75  # of the mean strength in the topic; new subjects are mostly below


class TopicService:
    """Reads and changes topics. Raises StorageError."""

    def __init__(self, store: Store, boundaries: Boundaries) -> None:
        self._store = store
        self._boundaries = boundaries
        self._rows = TopicRows(store)

    # -- reading

    def topics(self, *, hidden: bool = False) -> tuple[Topic, ...]:
        """Return the topics, those with the last change first; `hidden` ones too if asked for.

        A wider topic comes before those below it.
        """
        listed = self._all()
        shown = {each: topic for each, topic in listed.items() if hidden or not topic.is_hidden}
        below: dict[TopicId | None, list[Topic]] = {}
        for topic in sorted(shown.values(), key=lambda each: each.last_at, reverse=True):
            parent = topic.parent_id if topic.parent_id in shown else None
            below.setdefault(parent, []).append(replace(topic, parent_id=parent))
        # A wider topic with nothing more than the only one below it, as after a merge, is that one.
        for place, topic in enumerate(below.get(None, ())):
            own = below.get(topic.id, ())
            if len(own) == 1 and own[0].conversations == topic.conversations and not topic.is_named:
                below[None][place] = replace(own[0], parent_id=None)
        return tuple(
            chain.from_iterable((each, *below.get(each.id, ())) for each in below.get(None, ()))
        )

    def topic(self, named: str) -> Topic:
        """Return a topic by its number or name, a hidden one too; raises NotFound."""
        listed = self._all()
        wanted = named.strip().casefold()
        found = [each for each in listed.values() if each.name.casefold() == wanted]
        if not found and wanted.lstrip("#").isdecimal():
            found = [each for each in listed.values() if each.id == int(wanted.lstrip("#"))]
        if len(found) != 1:
            raise NotFound(
                f"There {'are several topics' if found else 'is no topic'} '{one_line(named, 40)}'",
                "'commonplace topics list' shows their numbers.",
            )
        return found[0]

    def conversations(self, topic_id: TopicId) -> tuple[TopicConversation, ...]:
        """Return the conversations of a topic and of those below it, oldest first."""
        return self._rows.conversations(topic_id)

    def trail(self, conversation_id: ConversationId) -> Trail | None:
        """Return the other conversations about the same topic; None while its topic is not clear.

        None too where there are no others, and where the topic is hidden. What the project of the
        conversation does not recall does not count.
        """
        place = self._rows.place(conversation_id)
        if place is None or not is_clear(*place[1:]):
            return None
        topic = self._all().get(place[0])
        own = self._rows.conversations(place[0])
        at = next((each for each in own if each.id == conversation_id), None)
        if topic is None or topic.is_hidden or at is None:
            return None
        boundary = self._boundaries.of(at.project)
        others = [each for each in own if each is not at and boundary.allows(each.project)]
        if len(others) + 1 < len(own):
            name = topic.name if topic.is_named else ""
            topic = replace(topic, name=name, decision="", decided_at=None)
        earlier = tuple(each for each in others if each.created_at < at.created_at)
        later = tuple(each for each in others if each.created_at >= at.created_at)
        return Trail(topic, earlier, later) if others else None

    # -- changes

    def rename(self, topic_id: TopicId, name: str) -> Topic:
        """Name a topic, or restore its automatic name with ""; raises InvalidInput, NotFound."""
        plain = " ".join(name.split())
        if len(plain) > NAME_LIMIT_CHARS:
            raise InvalidInput(
                f"The name is {len(plain)} characters long",
                f"A topic's name has at most {NAME_LIMIT_CHARS} characters.",
            )
        return self._choose(topic_id, name=plain)

    def hide(self, topic_id: TopicId, *, hidden: bool = True) -> Topic:
        """Leave a topic out of lists and trails, or show it again; raises NotFound."""
        return self._choose(topic_id, is_hidden=hidden)

    def merge(self, topic_ids: Iterable[TopicId], into: TopicId) -> Topic:
        """Merge topics into another, now and later; raises InvalidInput, NotFound.

        Topics of different levels cannot be merged.
        """
        merged = tuple(dict.fromkeys(topic_ids))

        def changes() -> list[TopicChoice]:
            listed = self._all()
            target = _known(listed, into)
            wide = {each.parent_id for each in listed.values()}
            for each in merged:
                if _known(listed, each).id == into:
                    raise InvalidInput(
                        f"'{target.name}' cannot be merged into itself", "Name two topics."
                    )
                if (each in wide) is not (into in wide):
                    raise InvalidInput(
                        f"'{listed[each].name}' and '{target.name}' are topics of different levels",
                        "Merge two topics without others below them, or two that have some.",
                    )
            choices = self._rows.choices()
            already = {each for each, own in choices.items() if own.merged_into in merged}
            with_them = {*merged, *already}
            return [
                replace(choices.get(each, TopicChoice(each)), merged_into=into)
                for each in sorted(with_them)
            ] + [choices.get(into, TopicChoice(into))]

        self._commit(changes)
        return self._listed(into)

    def split(self, topic_id: TopicId) -> Topic:
        """Undo all merges into a topic; raises NotFound if there are none."""

        def changes() -> list[TopicChoice]:
            topic = _known(self._all(), topic_id)
            own = [each for each in self._rows.choices().values() if each.merged_into == topic_id]
            if not own:
                raise NotFound(
                    f"Nothing was merged into '{topic.name}'", "There is nothing to undo."
                )
            return [replace(each, merged_into=None) for each in own]

        self._commit(changes)
        return self._listed(topic_id)

    # -- inside

    def _all(self) -> dict[TopicId, Topic]:
        """Return all topics with listed conversations, merged ones resolved."""
        choices, decisions = self._rows.choices(), self._rows.decisions()
        targets = {each.merged_into for each in choices.values()}
        names = {each.id: each.name for each in self._rows.stored()}
        found: dict[TopicId, Topic] = {}
        for topic_id, parent_id, strength, count, first, last, title in self._rows.spans():
            if topic_id not in choices and _alike(strength, strength, count) < _LEAST_ALIKE:
                continue
            for each, above in ((topic_id, parent_id), (parent_id, None)):
                if each is None:
                    continue
                choice = choices.get(each, TopicChoice(each))
                name = choice.name or names.get(each) or title or f"#{each}"
                made = Topic(
                    each, name, count, from_db(first), from_db(last), above, bool(choice.name), each in targets,
                    choice.is_hidden, *decisions.get(topic_id, ("", None)),
                )  # fmt: skip
                found[each] = _together(found[each], made) if each in found else made
        return found

    def _listed(self, topic_id: TopicId) -> Topic:
        return _known(self._all(), topic_id)

    def _choose(self, topic_id: TopicId, **fields: object) -> Topic:
        def changes() -> list[TopicChoice]:
            _known(self._all(), topic_id)
            choice = self._rows.choices().get(topic_id, TopicChoice(topic_id))
            return [replace(choice, **fields)]  # type: ignore[arg-type]

        self._commit(changes)
        return self._listed(topic_id)

    def _commit(self, choices: Callable[[], list[TopicChoice]]) -> None:
        def commit() -> None:
            own: dict[TopicId, list[ConversationId]] = {}
            for member in self._rows.members():
                own.setdefault(member.topic_id, []).append(member.conversation_id)
            self._store.commit_now(
                *(
                    TopicChosen(replace(each, conversations=tuple(own.get(each.id, ()))))
                    for each in choices()
                )
            )

        self._store.on_writer(commit).result()


def _known(listed: Mapping[TopicId, Topic], topic_id: TopicId) -> Topic:
    if (topic := listed.get(topic_id)) is None:
        raise NotFound(
            f"There is no topic {topic_id}", "'commonplace topics list' shows their numbers."
        )
    return topic


def _together(first: Topic, second: Topic) -> Topic:
    """Return two parts of one topic as one, named as the first, with the parent there is."""
    decided = [each for each in (first, second) if each.decided_at is not None]
    later = max(decided, key=lambda each: each.decided_at or each.last_at, default=first)
    return replace(
        first,
        conversations=first.conversations + second.conversations,
        first_at=min(first.first_at, second.first_at),
        last_at=max(first.last_at, second.last_at),
        parent_id=first.parent_id or second.parent_id,
        decision=later.decision,
        decided_at=later.decided_at,
    )


def _alike(strength: float, mean_strength: float, count: int) -> float:
    """Return the mean cosine of a conversation with the others of its topic.

    The sum of unit vectors is as long as the sum of their cosines to its direction.
    """
    return (strength * mean_strength * count - 1) / (count - 1) if count > 1 else 0.0


def is_clear(strength: float, mean_strength: float, count: int) -> bool:
    """Return whether a conversation is like the others of its topic, and those like each other."""
    alike = _alike(strength, mean_strength, count)
    return alike >= _CLEAR_ALIKE and strength >= _CLEAR_SHARE * mean_strength

"""Topic finder: conversations are grouped, matched with earlier topics, and named. Blocking.

Topics continue from the centroids of their conversations, so no centroid is stored, and what is
forgotten leaves no trace in one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.domain.passages import Space
from app.domain.records.topics import TopicChoice, TopicId
from app.memory.topics.clusters import (
    Clusters,
    Float,
    Ints,
    assign,
    centered,
    cluster,
    linked,
    match,
    means,
)
from app.memory.topics.names import TermCounts, TitledText, distinct_name
from app.storage.engine.store import Store
from app.storage.tables.topics import (
    LEAST_CONVERSATIONS,
    StoredTopic,
    TopicMember,
    TopicRows,
    TopicWork,
)

_GROWTH = 0.1  # the share of new conversations after which topics are found anew
_TEXT_CHARS = 240
_TEXT_MESSAGES = 3


@dataclass(frozen=True, slots=True)
class FoundTopics:
    """Topics with their conversations; `fitted` and `model` as for `TopicRows.replace`.

    `unnamed` are the titles of topics without a name by a model or by the user, newest first.
    """

    topics: Sequence[StoredTopic]
    members: Sequence[TopicMember]
    fitted: int | None
    unnamed: Mapping[TopicId, Sequence[str]]
    model: str | None = None

    def with_names(self, names: Mapping[TopicId, str], model: str) -> "FoundTopics":
        topics = [
            replace(each, name=names[each.id], named_by=model) if each.id in names else each
            for each in self.topics
        ]
        return replace(self, topics=topics, model=model)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The topics so far; `labels`, (n,), are the places of topics in `ids`, -1 for none."""

    ids: Sequence[TopicId]
    labels: Ints
    topics: Mapping[TopicId, StoredTopic]
    choices: Mapping[TopicId, TopicChoice]

    @property
    def chosen(self) -> set[int]:
        """The places in `ids` of topics about which the user decided."""
        return {place for place, each in enumerate(self.ids) if each in self.choices}

    def next_id(self, others: Iterable[TopicId] = ()) -> TopicId:
        """Return the first id above all that are in use, and above `others`."""
        return TopicId(max((0, *self.topics, *self.choices, *self.ids, *others)) + 1)


class TopicFinder:
    """Finds the topics of a store."""

    def __init__(self, store: Store) -> None:
        self._rows = TopicRows(store)

    def work(self, space: Space) -> TopicWork:
        return self._rows.work(space)

    def is_due(self, work: TopicWork, model: str = "") -> bool:
        """Return whether topics or names are missing, or `model` was not yet asked for names."""
        if work.conversations < LEAST_CONVERSATIONS:
            return False
        return bool(work.unassigned or work.nameless or (model and model != work.model))

    def find(self, space: Space, model: str = "") -> FoundTopics:
        """Return all topics anew, or as they are with the new conversations assigned.

        They are found anew when a tenth of the conversations is new. `model` can give names; "" for
        none.
        """
        work = self._rows.work(space)
        ids, vectors = self._rows.vectors(space)
        rows = centered(vectors)
        earlier = self._earlier(ids)
        grown = work.conversations - work.fitted
        is_fit = not earlier.ids or grown > max(1, _GROWTH * work.fitted)
        centroids = means(
            rows[earlier.labels >= 0], earlier.labels[earlier.labels >= 0], len(earlier.ids)
        )
        if is_fit:
            labels, topic_ids, cosines = _continued(rows, centroids, earlier)
        else:
            found = assign(rows, centroids)
            labels = np.where(earlier.labels >= 0, earlier.labels, found.labels)
            topic_ids, cosines = list(earlier.ids), (rows * centroids[labels]).sum(axis=1)
        members = [
            TopicMember(each, topic_ids[label], float(cosine))
            for each, label, cosine in zip(
                ids.tolist(), labels.tolist(), cosines.tolist(), strict=True
            )
        ]
        groups = self._groups(rows, labels, topic_ids, earlier, is_fit=is_fit)
        fitted = len(ids) if is_fit else None
        if not (is_fit or work.nameless or (model and model != work.model)):
            return FoundTopics(list(earlier.topics.values()), members, fitted, {})
        return self._named(members, groups, earlier, fitted)

    def store(self, found: FoundTopics) -> None:
        self._rows.replace(found.topics, found.members, found.fitted, found.model)

    def _earlier(self, ids: Ints) -> _Earlier:
        topics = {each.id: each for each in self._rows.stored()}
        members = {each.conversation_id: each.topic_id for each in self._rows.members()}
        known = sorted({members[each] for each in ids.tolist() if each in members})
        place = {each: number for number, each in enumerate(known)}
        labels = [place[members[each]] if each in members else -1 for each in ids.tolist()]
        return _Earlier(known, np.asarray(labels, np.int64), topics, self._rows.choices())

    def _groups(
        self,
        rows: Float,
        labels: Ints,
        topic_ids: Sequence[TopicId],
        earlier: _Earlier,
        *,
        is_fit: bool,
    ) -> Mapping[TopicId, TopicId]:
        before = {each.id: each.parent_id for each in earlier.topics.values() if each.parent_id}
        if not is_fit:
            return before
        groups = linked(means(rows, labels, len(topic_ids)))
        free = earlier.next_id(topic_ids)
        parents: dict[TopicId, TopicId] = {}
        taken: set[TopicId] = set()
        for group in range(int(groups.max(initial=-1)) + 1):
            own = [topic_ids[each] for each in np.flatnonzero(groups == group).tolist()]
            votes = [before[each] for each in own if each in before and before[each] not in taken]
            if votes and votes.count(best := max(votes, key=votes.count)) * 2 > len(own):
                parent = best
            else:
                parent, free = free, TopicId(free + 1)
            taken.add(parent)
            parents |= dict.fromkeys(own, parent)
        return parents

    def _named(
        self,
        members: Sequence[TopicMember],
        parents: Mapping[TopicId, TopicId],
        earlier: _Earlier,
        fitted: int | None,
    ) -> FoundTopics:
        texts = self._rows.texts(
            _TEXT_CHARS, _TEXT_MESSAGES, [each.conversation_id for each in members]
        )
        place = {each.conversation_id: number for number, each in enumerate(texts)}
        terms = TermCounts(TitledText(each.title, each.words) for each in texts)
        groups: dict[TopicId, list[int]] = {}
        wider: dict[TopicId, list[int]] = {}
        for member in members:
            if (number := place.get(member.conversation_id)) is None:
                continue
            choice = earlier.choices.get(member.topic_id)
            into = choice.merged_into if choice else None
            for each in filter(None, (member.topic_id, into)):
                groups.setdefault(each, []).append(number)
            if (parent := parents.get(member.topic_id)) is not None:
                wider.setdefault(parent, []).append(number)
        named: list[StoredTopic] = []
        unnamed: dict[TopicId, Sequence[str]] = {}
        for level in (groups, wider):
            before = [earlier.topics.get(each, StoredTopic(each, "", None)) for each in level]
            names = terms.names(list(level.values()), [each.name for each in before])
            for old, name in zip(before, names, strict=True):
                each = old.id
                titles = [title for one in reversed(level[each]) if (title := texts[one].title)]
                if old.named_by and old.name:
                    named.append(replace(old, parent_id=parents.get(each)))
                    continue
                fallback = titles[-1] if titles else f"#{each}"
                below = [own for own in named if parents.get(own.id) == each]
                below.sort(key=lambda own: -len(groups[own.id]))
                own_name = distinct_name(name, [own.name for own in below]) or fallback
                named.append(StoredTopic(each, own_name, parents.get(each)))
                choice = earlier.choices.get(each)
                if titles and not (choice and (choice.name or choice.merged_into)):
                    unnamed[each] = list(dict.fromkeys(titles))
        return FoundTopics(named, members, fitted, unnamed)


def _continued(
    rows: Float, centroids: Float, earlier: _Earlier
) -> tuple[Ints, list[TopicId], Float]:
    """Return labels, their topics, and cosines, of clusters that continue the earlier ones.

    The conversations of a topic that the user decided about stay together when no cluster continues
    it.
    """
    found: Clusters = cluster(rows, centroids if len(centroids) else None)
    chosen = earlier.chosen
    continues = match(found.centroids, centroids, chosen) if len(centroids) else {}
    free = earlier.next_id()
    topic_ids: list[TopicId] = []
    for number in range(len(found.centroids)):
        if number in continues:
            topic_ids.append(earlier.ids[continues[number]])
        else:
            topic_ids.append(free)
            free = TopicId(free + 1)
    labels, cosines = found.labels.copy(), found.cosines.copy()
    for lost in sorted(chosen - set(continues.values())):
        own = earlier.labels == lost
        labels[own] = len(topic_ids)
        cosines[own] = rows[own] @ centroids[lost]
        topic_ids.append(earlier.ids[lost])
    return labels, topic_ids, cosines

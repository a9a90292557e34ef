"""Replies that a followed program is still writing: kept back until it ends them or they stay as they are.

A reply that was read while it grew would become several messages (`growth.py`), one for each reading.
"""

import time
from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from app.domain.transfer import ImportedConversation
from app.transfer.existing import ConversationKey, key_of

SETTLED_S = 30.0
"""A reply that did not change for as long is taken as it is: the program may have crashed."""


class _Seen(NamedTuple):
    content: Hashable
    since: float


class OpenReplies:
    """The open replies that were read, by conversation. For one thread at a time.

    A settled one is remembered: it may be read again, when storing it failed or another changed its file.
    """

    def __init__(self) -> None:
        self._seen: dict[ConversationKey, _Seen] = {}

    def without(
        self, found: ImportedConversation, changed_at: float
    ) -> tuple[ImportedConversation, float]:
        """Return a conversation without its open replies, and in how many seconds they may be settled.

        Those that are settled stay: then the time is 0. `changed_at` is when the file was changed (Unix).
        """
        open_ids = _open_ends(found)
        if not open_ids or time.time() - changed_at >= SETTLED_S:
            self._seen.pop(key_of(found), None)
            return found, 0.0
        kept = tuple(each for each in found.messages if each.source_id not in open_ids)
        content = hash(tuple(each for each in found.messages if each.source_id in open_ids))
        now = time.monotonic()
        seen = self._seen.get(key_of(found))
        if seen is None or seen.content != content:
            seen = self._seen[key_of(found)] = _Seen(content, now)
        left_s = SETTLED_S - (now - seen.since)
        if left_s <= 0:
            return found, 0.0
        leaf = found.visible_leaf
        parents = {each.source_id: each.parent for each in found.messages}
        while leaf in open_ids:
            leaf = parents[leaf]
        return replace(found, messages=kept, visible_leaf=leaf), left_s


def _open_ends(found: ImportedConversation) -> set[str]:
    """Return the ids of open messages that only open ones follow."""
    followed: set[str | None] = set()
    ends: set[str] = set()
    for each in reversed(found.messages):  # a message is after its parent
        if each.is_open and each.source_id not in followed:
            ends.add(each.source_id)
        else:
            followed.add(each.parent)
    return ends

"""A foreign tree of messages made sound: no cycles, no gaps, parents first, oldest first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.transfer import ImportedMessage


@dataclass(frozen=True, slots=True)
class Node:
    """A place in a foreign tree; `message` is None where nothing is shown."""

    parent: str | None
    message: ImportedMessage | None


@dataclass(frozen=True, slots=True)
class Grown:
    """The messages in order, and for every node of the foreign tree the message it stands for.

    A hidden node stands for its nearest shown ancestor, or for None above the first message.
    """

    messages: tuple[ImportedMessage, ...]
    standing_for: Mapping[str, str | None]


def grown(
    nodes: Mapping[str, Node], fallback: datetime | None, *, keep_order: bool = False
) -> Grown:
    """Return the shown messages, each linked to its nearest shown ancestor, parents first.

    Among what the parents allow, the oldest stands first, or with `keep_order` the given order
    stays. A parent that does not exist, or that closes a circle, is no parent. A message without
    a date takes its parent's, else `fallback`.
    """
    standing_for: dict[str, str | None] = {}
    shown: list[ImportedMessage] = []
    dated: dict[str | None, datetime | None] = {None: fallback}
    for name in _parents_first(nodes):
        node = nodes[name]
        above = standing_for.get(node.parent) if node.parent is not None else None
        if node.message is None:
            standing_for[name] = above
            continue
        created_at = node.message.created_at or dated[above]
        standing_for[name], dated[name] = name, created_at
        changed = above != node.message.parent or created_at is not node.message.created_at
        shown.append(
            replace(node.message, parent=above, created_at=created_at) if changed else node.message
        )
    return Grown(tuple(shown) if keep_order else _oldest_first(shown), standing_for)


def newest_leaf(messages: Iterable[ImportedMessage]) -> str | None:
    """Return the id of the newest message without a child; of equally old ones the last."""
    listed = list(messages)
    parents = {message.parent for message in listed}
    best: ImportedMessage | None = None
    for message in listed:
        if message.source_id not in parents and (best is None or _age(message) >= _age(best)):
            best = message
    return best.source_id if best else None


def _parents_first(nodes: Mapping[str, Node]) -> list[str]:
    order: list[str] = []
    placed: set[str] = set()
    for start in nodes:
        chain: list[str] = []
        on_chain: set[str] = set()
        name: str | None = start
        while name is not None and name in nodes and name not in placed and name not in on_chain:
            chain.append(name)
            on_chain.add(name)
            name = nodes[name].parent
        order.extend(reversed(chain))
        placed.update(chain)
    return order


def _oldest_first(parents_first: list[ImportedMessage]) -> tuple[ImportedMessage, ...]:
    not_before: dict[str | None, float] = {None: float("-inf")}
    for message in parents_first:
        not_before[message.source_id] = max(_age(message), not_before[message.parent])
    return tuple(sorted(parents_first, key=lambda message: not_before[message.source_id]))


def _age(message: ImportedMessage) -> float:
    return message.created_at.timestamp() if message.created_at else float("-inf")

"""Identities: small integers for people and models, and UUIDv7 for merging two machines.

Who allocates the integers is storage's business (`app.storage.ids`).
"""

import hashlib
import random
import time
import uuid
from typing import NewType

ConversationId = NewType("ConversationId", int)
ExchangeId = NewType("ExchangeId", int)
MessageId = NewType("MessageId", int)
PassageId = NewType("PassageId", int)
PartId = NewType("PartId", int)

PARTS_OF_A_PASSAGE = 4096  # no turn has more messages that are told apart in the indexes

# Uids tell things apart, they guard nothing: asking the system for each costs 0.1 ms.
_random = random.Random()  # noqa: S311


def part_id(passage_id: int, number: int) -> PartId:
    """Return the id of a passage's part: for a turn, the message at that place of its exchange."""
    return PartId(passage_id * PARTS_OF_A_PASSAGE + min(number, PARTS_OF_A_PASSAGE - 1))


def passage_of(part: int) -> PassageId:
    """Return the passage that a part belongs to."""
    return PassageId(part // PARTS_OF_A_PASSAGE)


def number_of(part: int) -> int:
    """Return a part's number in its passage: for a turn, the message's place in its exchange."""
    return part % PARTS_OF_A_PASSAGE


def new_uid(at_ms: int | None = None) -> str:
    """Return a UUIDv7 (RFC 9562, section 5.7) as its canonical 36 characters.

    `at_ms` is Unix time in milliseconds; None means now.
    """
    return _version_7(
        time.time_ns() // 1_000_000 if at_ms is None else at_ms, _random.getrandbits(80)
    )


def derived_uid(name: str, at_ms: int) -> str:
    """Return the uid of something that has a name elsewhere: the same wherever it is imported.

    In the form of a UUIDv7 of that time (Unix, milliseconds), the name's SHA-256 in place of chance.
    """
    digest = hashlib.sha256(name.encode("utf-8")).digest()
    return _version_7(at_ms, int.from_bytes(digest[:10], "big"))


def _version_7(unix_ms: int, bits: int) -> str:
    value = (unix_ms & (1 << 48) - 1) << 80 | bits
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))

"""Identifiers: integer ids for the user and for models, and UUIDv7 uids to merge two libraries.

`app.storage.engine.stamps` allocates the integers.
"""

import hashlib
import random
import time
from datetime import datetime
from typing import NewType

ConversationId = NewType("ConversationId", int)
ExchangeId = NewType("ExchangeId", int)
MessageId = NewType("MessageId", int)
PassageId = NewType("PassageId", int)
PartId = NewType("PartId", int)

PARTS_PER_PASSAGE = 4096  # messages of a turn beyond this number share the last part id

# Uids need no secrecy, and the system's random source takes 0.1 ms per uid.
_random = random.Random()  # noqa: S311


def part_id(passage_id: int, number: int) -> PartId:
    """Return the id of part `number` of a passage; for a turn, the message at that position."""
    return PartId(passage_id * PARTS_PER_PASSAGE + min(number, PARTS_PER_PASSAGE - 1))


def passage_id_of(part: int) -> PassageId:
    return PassageId(part // PARTS_PER_PASSAGE)


def part_number(part: int) -> int:
    """Return a part's number in its passage; for a turn, the message's position in its exchange."""
    return part % PARTS_PER_PASSAGE


def new_uid() -> str:
    """Return a UUIDv7 (RFC 9562, section 5.7) as its canonical 36 characters."""
    return _version_7(time.time_ns() // 1_000_000, _random.getrandbits(80))


def derived_uid(name: str, at_ms: int) -> str:
    """Return a deterministic uid for a record of another program: the same on every import.

    It is a UUIDv7 of that time (Unix, milliseconds) with the SHA-256 of the name instead of random bits.
    """
    digest = hashlib.sha256(name.encode("utf-8")).digest()
    return _version_7(at_ms, int.from_bytes(digest[:10], "big"))


def exchange_uid(conversation_id: int, exchange_id: int, started_at: datetime) -> str:
    """Return the uid of an exchange that was stored without one."""
    return derived_uid(f"exchange/{conversation_id}/{exchange_id}", milliseconds(started_at))


def summary_uid(kind: str, source_id: int, made_at: datetime) -> str:
    """Return the uid of a summary that was stored without one."""
    return derived_uid(f"summary/{kind}/{source_id}", milliseconds(made_at))


def milliseconds(moment: datetime) -> int:
    """Return Unix milliseconds, 0 before 1970."""
    return max(0, int(moment.timestamp() * 1000))


def _version_7(unix_ms: int, bits: int) -> str:
    value = (unix_ms & (1 << 48) - 1) << 80 | bits
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    digits = f"{value:032x}"  # a third of the time of uuid.UUID
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

"""Which summaries and facts are to be made again, because the user asked for it: told by a moment.

Those made before it by others than who made them then, who makes them now, and the user. The moment is
a setting, so it outlives the program and stays in backups; each one that is made anew is later than
it, and what failed is found again.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from app.domain.facts import BY_PATTERNS, BY_USER
from app.storage.database import Connection
from app.storage.settings import Settings
from app.storage.times import now, to_db

_MODEL_KEY = "background_model"


@dataclass(frozen=True, slots=True)
class Remade:
    """A kind of work that can be asked for again: its setting, and who does it without a model."""

    key: str
    without_model: str


SUMMARIES = Remade("summaries_again", "extractive")
FACTS = Remade("facts_again", BY_PATTERNS)
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)


def make_again(settings: Settings, what: Remade) -> None:
    """Let all that others made by now be made again. Blocking; raises StorageError."""
    settings.set(what.key, f"{now().isoformat()} {settings.text(_MODEL_KEY) or what.without_model}")


def remaking(cursor: Connection, what: Remade, *, of_all: bool = False) -> dict[str, object]:
    """Return `again` (a TIMESTAMP) and `makers`, bound by the queries of what is to be made.

    With `of_all` as if the user had just asked for it.
    """
    rows = cursor.execute(
        "SELECT key, value FROM appconfig WHERE key IN (?, ?)", [what.key, _MODEL_KEY]
    ).fetchall()
    kept = {key: str(json.loads(value) or "") for key, value in rows}
    moment, _, maker = kept.get(what.key, "").partition(" ")
    makers = {BY_USER, kept.get(_MODEL_KEY) or what.without_model}
    again = datetime.fromisoformat(moment) if moment else _NEVER
    if of_all:
        again = _ALWAYS
    elif maker:
        makers.add(maker)
    return {"again": to_db(again), "makers": sorted(makers)}

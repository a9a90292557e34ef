"""Facts of our own export: any JSON to those that can be kept; the others are left out."""

from app.domain.facts import FactCategory
from app.domain.transfer import CarriedFact, CarriedWording
from app.transfer.importers.values import identity, moment, objects, words


def carried_facts(value: object) -> tuple[CarriedFact, ...]:
    """Return the facts of an array; one without identity, words or times is none."""
    return tuple(fact for each in objects(value) if (fact := _fact(each)) is not None)


def _fact(plain: dict[str, object]) -> CarriedFact | None:
    uid, wording = identity(plain.get("uid")), _wording(plain)
    if not uid or wording is None:
        return None
    earlier = filter(None, map(_wording, objects(plain.get("earlier"))))
    return CarriedFact(
        uid=uid,
        wording=wording,
        subject=words(plain.get("subject")),
        valid_until=moment(plain.get("valid_until")),
        superseded_by=identity(plain.get("superseded_by")),
        pinned=plain.get("pinned") is True,
        earlier=tuple(sorted(earlier, key=lambda each: each.made_at)),
    )


def _wording(plain: dict[str, object]) -> CarriedWording | None:
    text = words(plain.get("text")).strip()
    said_at, made_at = moment(plain.get("said_at")), moment(plain.get("made_at"))
    if not text or said_at is None or made_at is None:
        return None
    category = words(plain.get("category"))
    return CarriedWording(
        text=text,
        category=FactCategory(category) if category in list(FactCategory) else FactCategory.OTHER,
        model=words(plain.get("model")),
        said_at=said_at,
        made_at=made_at,
        conversation=identity(plain.get("conversation")),
        message=identity(plain.get("message")),
    )

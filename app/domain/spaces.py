"""How search by meaning stands, and what a change of embedder takes, as a front end shows it."""

from dataclasses import dataclass
from enum import StrEnum


class SpaceUse(StrEnum):
    """What a space is there for."""

    ANSWERS = "answers"
    FILLS = "fills"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """A space: `passages` that are embedded and their `share` (0-1) of all, and its vectors' size.

    `choice` is the value of the setting `embedder` that makes it, `model` the same in words.
    """

    name: str
    choice: str
    model: str
    passages: int
    share: float
    size_bytes: int
    use: SpaceUse


@dataclass(frozen=True, slots=True)
class SpacesState:
    """How search by meaning stands.

    `chosen` is the setting `embedder`, `chosen_words` the same in words, `before_words` the
    embedder that still answers, "" once the chosen one does. `share` (0-1) is what the chosen one
    has read of `total` passages. `problem` says why there is no search by meaning now.
    """

    chosen: str
    chosen_words: str
    before_words: str
    share: float
    total: int
    rows: tuple[SpaceRow, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """What embedding with a choice takes: passages and tokens that its space lacks, roughly.

    `cost_usd` is None when the price is unknown. `sent_to` is where history would go, "" when it
    stays on this machine; `needs_consent` when nobody has agreed to that.
    """

    choice: str
    words: str
    passages: int
    tokens: int
    minutes: float
    cost_usd: float | None
    sent_to: str
    needs_consent: bool

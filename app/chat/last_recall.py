"""The last time something was to be recalled for a message: when, for what, and what came of it."""

from dataclasses import dataclass

from app.domain.recalls import KeptPrompt, RecalledPlace
from app.storage.asked import LastAsked
from app.storage.exchanges import Exchanges
from app.storage.passages import Passages
from app.storage.prompts import Prompts
from app.storage.store import Store


@dataclass(frozen=True, slots=True)
class Recalled:
    """The newest prompt with its question, and what was found for it, in its order."""

    prompt: KeptPrompt
    question: str
    turn_number: int
    places: tuple[RecalledPlace, ...]


class LastRecall:
    """Reads it. Blocking."""

    def __init__(self, store: Store) -> None:
        self._asked = LastAsked(store)
        self._prompts = Prompts(store)
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)

    def read(self) -> Recalled | None:
        """Return the last one; None before the first."""
        exchange_id = self._asked.prompted()
        prompt = None if exchange_id is None else self._prompts.of(exchange_id)
        if exchange_id is None or prompt is None:
            return None
        question = self._passages.questions([exchange_id]).get(exchange_id, "")
        exchange = self._exchanges.get(exchange_id)
        places = self._prompts.placed(prompt.items)
        return Recalled(prompt, question, exchange.turn_number, places)

"""Queries about money and tokens spent."""

from app.domain.workers import Ledger
from app.storage.store import Store


class Spending:
    """Reads what requests cost. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all_time(self, purpose: str) -> Ledger:
        """Return all that was spent on "chat" or for a worker; the cost is None if any is unknown."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost_usd), 0), "
                "count(*) = count(cost_usd) FROM spend WHERE purpose = ?",
                [purpose],
            ).fetchone()
        )
        tokens, cost_usd, all_known = row or (0, 0.0, True)
        return Ledger(int(tokens), float(cost_usd) if all_known else None)

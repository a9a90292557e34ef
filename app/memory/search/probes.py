"""Test questions: stored questions with the ranks of the turns they should find, now and before.

They are stored in the setting `probe_questions`.
"""

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime

from app.domain.codec import from_json_value
from app.domain.diagnostics import Probe, ProbeDetails
from app.domain.errors import IndexUnavailable, InvalidInput, NotFound
from app.domain.ids import ExchangeId
from app.index.query import parse_query
from app.memory.search.explain import Explainer
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.settings import Settings

MAX_PROBES = 200
_KEY = "probe_questions"


class ProbeQuestions:
    """Stores and runs test questions. Thread-safe; every call blocks."""

    def __init__(self, store: Store, settings: Settings, explainer: Explainer) -> None:
        self._settings = settings
        self._explainer = explainer
        self._exchanges = Exchanges(store)
        self._conversations = Conversations(store)
        self._lock = threading.Lock()

    def listed(self) -> tuple[ProbeDetails, ...]:
        """Return all with their last ranks, oldest first."""
        probes = self._read()
        exchanges = self._exchanges.by_ids({each.exchange_id for each in probes})
        titles = self._conversations.by_ids({each.conversation_id for each in exchanges.values()})
        places = []
        for probe in probes:
            exchange = exchanges.get(probe.exchange_id)
            conversation = titles.get(exchange.conversation_id) if exchange else None
            places.append(
                ProbeDetails(
                    probe,
                    conversation.id if conversation else None,
                    conversation.title if conversation else "",
                    exchange.turn_number if exchange else None,
                )
            )
        return tuple(places)

    def add(self, question: str, exchange_id: ExchangeId) -> Probe:
        """Store a question with the turn it should find, run it once, and return it.

        A stored one is run again. Raises InvalidInput for an invalid question or one too many,
        NotFound for a deleted turn, IndexUnavailable.
        """
        parse_query(question)
        question = question.strip()
        probe = Probe(question, exchange_id)
        known = next((each for each in self._read() if _key(each) == _key(probe)), probe)
        added = _with_new_rank(known, self._explainer.rank(question, exchange_id))
        with self._lock:
            kept = [each for each in self._read() if _key(each) != _key(added)]
            if len(kept) >= MAX_PROBES:
                raise InvalidInput(
                    f"There are {MAX_PROBES} test questions already", "Remove one of them first."
                )
            self._write((*kept, added))
        return added

    def remove(self, number: int) -> Probe:
        """Delete the probe at a position of the list, from 1; return it. Raises NotFound."""
        with self._lock:
            kept = self._read()
            if not 1 <= number <= len(kept):
                raise NotFound(
                    f"There is no test question {number}",
                    f"There are {len(kept)}: 'commonplace probes list' shows them."
                    if kept
                    else "No test questions are stored.",
                )
            self._write(kept[: number - 1] + kept[number:])
            return kept[number - 1]

    def drop(self, probe: Probe) -> None:
        """Delete a probe wherever it is in the list; a missing one is ignored."""
        with self._lock:
            self._write(each for each in self._read() if _key(each) != _key(probe))

    def run(
        self,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], object] = lambda _done, _total: None,
    ) -> tuple[ProbeDetails, ...]:
        """Run all and return them; the new ranks are stored.

        `cancelled` is called before each; then nothing is stored. `progress` gets done and total.
        Raises IndexUnavailable.
        """
        probes = self._read()
        asked: dict[tuple[str, int], Probe] = {}
        for done, probe in enumerate(probes):
            if cancelled():
                return self.listed()
            progress(done, len(probes))
            asked[_key(probe)] = self._run_probe(probe)
        progress(len(probes), len(probes))
        with self._lock:
            self._write(asked.get(_key(each), each) for each in self._read())
        return self.listed()

    def _run_probe(self, probe: Probe) -> Probe:
        try:
            rank = self._explainer.rank(probe.question, probe.exchange_id)
        except IndexUnavailable:
            raise
        except (NotFound, InvalidInput) as error:
            return replace(probe, problem=str(error))
        return _with_new_rank(probe, rank)

    def _read(self) -> tuple[Probe, ...]:
        """Return the stored probes; unreadable ones are skipped."""
        probes = []
        for row in self._settings.listed(_KEY, dict):
            with suppress(ValueError):
                probes.append(from_json_value(Probe, row))
        return tuple(probes)

    def _write(self, probes: Iterable[Probe]) -> None:
        rows = [asdict(each) for each in probes]
        text = json.dumps(rows, ensure_ascii=False, default=datetime.isoformat)
        self._settings.set(_KEY, text)


def _with_new_rank(probe: Probe, rank: int | None) -> Probe:
    return replace(
        probe, rank=rank, ran_at=now(), before=probe.rank, before_at=probe.ran_at, problem=""
    )


def _key(probe: Probe) -> tuple[str, int]:
    return probe.question, probe.exchange_id

"""The probe questions that are kept: asked all at once, with the places their turns had before.

They live in the setting `probe_questions`; how a turn is found is `explain`'s business.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from app.domain.errors import IndexUnavailable, InvalidInput, NotFound
from app.domain.ids import ExchangeId
from app.domain.probes import Probe, ProbePlace
from app.index.query import parse_query
from app.memory.explain import Explainer
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.times import now

MOST = 200
_KEY = "probe_questions"


class ProbeQuestions:
    """Keeps and asks probe questions. Thread-safe; every call blocks."""

    def __init__(self, store: Store, settings: Settings, explainer: Explainer) -> None:
        self._settings = settings
        self._explainer = explainer
        self._exchanges = Exchanges(store)
        self._conversations = Conversations(store)
        self._lock = threading.Lock()

    def listed(self) -> tuple[ProbePlace, ...]:
        """Return all as they were last asked, the oldest first."""
        probes = self._read()
        exchanges = self._exchanges.by_ids({each.exchange_id for each in probes})
        titles = self._conversations.by_ids({each.conversation_id for each in exchanges.values()})
        places = []
        for probe in probes:
            exchange = exchanges.get(probe.exchange_id)
            conversation = titles.get(exchange.conversation_id) if exchange else None
            places.append(
                ProbePlace(
                    probe,
                    conversation.id if conversation else None,
                    conversation.title if conversation else "",
                    exchange.turn_number if exchange else None,
                )
            )
        return tuple(places)

    def add(self, question: str, exchange_id: ExchangeId) -> Probe:
        """Keep a question with the turn it should find, asked once; return it.

        One that is kept already is asked again. Raises InvalidInput for a question that cannot be
        asked or one too many, NotFound for a turn that is gone, IndexUnavailable.
        """
        parse_query(question)
        question = question.strip()
        added = _asked_again(
            self._known(question, exchange_id), self._explainer.rank(question, exchange_id)
        )
        with self._lock:
            kept = [each for each in self._read() if _key(each) != _key(added)]
            if len(kept) >= MOST:
                raise InvalidInput(
                    f"There are {MOST} probe questions already", "Remove one of them first."
                )
            self._write((*kept, added))
        return added

    def remove(self, number: int) -> Probe:
        """Drop the probe at a place of the list, counted from 1; return it. Raises NotFound."""
        with self._lock:
            kept = self._read()
            if not 1 <= number <= len(kept):
                raise NotFound(
                    f"There is no probe question {number}",
                    f"There are {len(kept)}: 'commonplace probes list' shows them."
                    if kept
                    else "None are kept yet.",
                )
            self._write(kept[: number - 1] + kept[number:])
            return kept[number - 1]

    def drop(self, probe: Probe) -> None:
        """Drop a probe, whatever place it has; one that is gone already is fine."""
        with self._lock:
            self._write(each for each in self._read() if _key(each) != _key(probe))

    def run(
        self,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], object] = lambda _done, _total: None,
    ) -> tuple[ProbePlace, ...]:
        """Ask all again and return them; what was found now is remembered for the next time.

        `cancelled` is asked before each: then nothing is remembered. `progress` gets done and total.
        Raises IndexUnavailable.
        """
        probes = self._read()
        asked: dict[tuple[str, int], Probe] = {}
        for done, probe in enumerate(probes):
            if cancelled():
                return self.listed()
            progress(done, len(probes))
            asked[_key(probe)] = self._ask(probe)
        progress(len(probes), len(probes))
        with self._lock:
            self._write(asked.get(_key(each), each) for each in self._read())
        return self.listed()

    def _ask(self, probe: Probe) -> Probe:
        try:
            rank = self._explainer.rank(probe.question, probe.exchange_id)
        except IndexUnavailable:
            raise
        except (NotFound, InvalidInput) as error:
            return replace(probe, problem=str(error))
        return _asked_again(probe, rank)

    def _known(self, question: str, exchange_id: ExchangeId) -> Probe:
        asked = Probe(question, exchange_id)
        return next((each for each in self._read() if _key(each) == _key(asked)), asked)

    def _read(self) -> tuple[Probe, ...]:
        """Return what is kept; what cannot be read is passed over."""
        try:
            kept = json.loads(self._settings.text(_KEY))
        except ValueError:
            return ()
        read = (_probe_of(each) for each in kept) if isinstance(kept, list) else ()
        return tuple(each for each in read if each is not None)

    def _write(self, probes: Iterable[Probe]) -> None:
        rows = [
            {
                "question": each.question,
                "exchange_id": each.exchange_id,
                "rank": each.rank,
                "ran_at": each.ran_at.isoformat() if each.ran_at else None,
                "before": each.before,
                "before_at": each.before_at.isoformat() if each.before_at else None,
                "problem": each.problem,
            }
            for each in probes
        ]
        self._settings.set(_KEY, json.dumps(rows, ensure_ascii=False))


def _asked_again(probe: Probe, rank: int | None) -> Probe:
    return replace(
        probe, rank=rank, ran_at=now(), before=probe.rank, before_at=probe.ran_at, problem=""
    )


def _key(probe: Probe) -> tuple[str, int]:
    return probe.question, probe.exchange_id


def _probe_of(row: object) -> Probe | None:
    match row:
        case {"question": str(question), "exchange_id": int(exchange_id), **rest}:
            return Probe(
                question,
                ExchangeId(exchange_id),
                _place(rest, "rank"),
                _moment(rest, "ran_at"),
                _place(rest, "before"),
                _moment(rest, "before_at"),
                str(rest.get("problem") or ""),
            )
    return None


def _place(row: Mapping[Any, object], name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) and value > 0 else None


def _moment(row: Mapping[Any, object], name: str) -> datetime | None:
    value = row.get(name)
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=UTC)

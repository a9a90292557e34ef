"""Benchmark under load: the share of answers that have their recall while every core is busy; prints JSON.

    python -m tests.bench.load --data FILE --library FOLDER [--questions N] [--busy N]

The first half of a set is a library, kept in the folder; its questions are sent one after the other in new
conversations to a loopback server, through the whole of the product: first on the machine as it is, then beside so
many spinning processes a core (4). Nothing is recalled ahead of Enter. `has_recall` is the share of answers with
recalled text, of those that have it when the time is not limited; `by_meaning` the share for which meaning came in
time, `evidence` the share with the turn that answers in the prompt.
"""

import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.bootstrap import Services
from app.chat.context_fetcher import RecallLimits
from app.domain.conversations import Text
from app.domain.ids import ExchangeId
from app.providers.configuration import ProviderConfig
from tests.bench.evaluation import read_evaluation
from tests.bench.recall import library
from tests.bench.shared.measuring import Figures, latency, options, print_json, timed
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text

_UNLIMITED = RecallLimits(600.0, 600.0, 600.0)
_BY_WORDS = "words"  # in a notice: meaning came too late


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was sent: what recall brought, and how long the reply took."""

    has_recall: bool
    has_evidence: bool
    by_meaning: bool
    took_ms: float


def main() -> None:
    given = options(
        __doc__, required=["data", "library"], data=Path, library=Path, questions=60, busy=4
    )
    whole = read_evaluation(given.data)
    own = replace(whole, talks=whole.talks[::2])
    place = given.library / f"{own.name}-meaning-0"
    with library(place, [own], words_only=False) as (services, (stored,)), Loopback() as server:
        server.always(text("Noted."))
        services.models.add_provider(ProviderConfig("friend", "compatible", server.v1, None))
        services.settings.set("default_model", "friend:test-model")
        every = max(1, len(own.asked) // given.questions)
        asked = [
            (question.text, frozenset(stored.exchange_of[each] for each in evidence))
            for talk, question in own.asked[::every]
            if (evidence := stored.talks[talk.id].evidence(question))
        ]
        limits = services.context_fetcher._limits
        services.context_fetcher._limits = _UNLIMITED
        free = [_send(services, *each) for each in asked]
        services.context_fetcher._limits = limits
        found = {"unlimited": _figures(free, free)}
        for name, count in (("quiet", 0), ("loaded", given.busy * (os.cpu_count() or 1))):
            with busy_processes(count):
                found[name] = _figures([_send(services, *each) for each in asked], free)
                found[name]["runnable"] = os.getloadavg()[0]
    print_json(found)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep `count` processes spinning."""
    context = multiprocessing.get_context("spawn")
    spinning = [context.Process(target=_spin, daemon=True) for _ in range(count)]
    for each in spinning:
        each.start()
    try:
        time.sleep(2 if count else 0)  # until they have started
        yield
    finally:
        for each in spinning:
            each.kill()
            each.join()


def _spin() -> None:
    while True:
        pass


def _send(services: Services, question: str, evidence: frozenset[ExchangeId]) -> Sent:
    took = timed(lambda: services.chat.send(None, (Text(question),)).result(900).done.result(900))
    exchange = took.result
    prompt = services.prompts.of(exchange.id)
    injected = [each for each in prompt.items if each.injected]
    services.library.delete(exchange.conversation_id)  # else it is found for the next question
    return Sent(
        bool(injected),
        not evidence.isdisjoint(each.exchange_id for each in injected if each.exchange_id),
        _BY_WORDS not in prompt.notice,
        took.ms,
    )


def _figures(sent: Sequence[Sent], free: Sequence[Sent]) -> Figures:
    wanted = [each.has_recall for each, other in zip(sent, free, strict=True) if other.has_recall]
    return {
        "answers": len(sent),
        "has_recall": round(statistics.fmean(wanted), 3),
        "by_meaning": round(statistics.fmean(each.by_meaning for each in sent), 3),
        "evidence": round(statistics.fmean(each.has_evidence for each in sent), 3),
        "took_ms": latency([each.took_ms for each in sent]),
    }


if __name__ == "__main__":
    main()

"""What recall would put into prompts, by evaluation sets and through the product's own code; prints JSON.

    python -m tests.bench.recall --data FILE [--data FILE] [--conversations N] [--words-only] [--json]
    python -m tests.bench.recall --library FOLDER --passages N [--json]

The conversations of the files go into two libraries in turn, with their ready-made summaries and facts.
Each library is asked all questions, as from a new conversation: those of its own conversations have an
answer in it, those of the other's have none. What would be injected is chosen as for a prompt, with the
settings' defaults. Evidence counts when its exchange is injected. With `--conversations` the libraries
hold so many each, drawn of one set: how recall does in the first days of use. A library that `scale.py`
built tells how long retrieval takes in a large one.
"""

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from app.bootstrap import RunMode, Services, build
from app.domain.facts import BY_USER, Fact, FactCategory
from app.domain.ids import ConversationId, ExchangeId, new_uid
from app.domain.recall import (
    RecalledItem,
    RecallLayer,
    RecallSettings,
    RetrievalResult,
    SegmentContext,
)
from app.domain.workers import WorkerName
from app.memory.recall_selection import SelectionContext, select_recalled
from app.storage.tables.facts import fact_changes
from app.system.paths import DataPaths
from tests.bench import scale
from tests.bench.evaluation import (
    Evaluation,
    Question,
    StoredEvaluation,
    Talk,
    read_evaluation,
    store_evaluation,
)
from tests.bench.shared.measuring import Figures, latency, percentile, print_json, timed, wait_for

_LIBRARIES = 2
_DRAWN = 24  # conversations in all small libraries together, at least
_ASKED = 40  # questions of either kind in a small library
_TURNS = (RecallLayer.EXCHANGE, RecallLayer.HISTORY)
_NEW = ConversationId(0)


@dataclass(frozen=True, slots=True)
class Injected:
    """What one question would put into its prompt; `right` of the `turns` hold evidence."""

    turns: int
    right: int
    found_share: float
    facts: int
    talks: int
    tokens: int
    took_ms: float

    @property
    def anything(self) -> bool:
        return bool(self.turns or self.facts or self.talks)


def main(given: argparse.Namespace) -> None:
    if given.library is not None:
        figures = at_scale(given)
    elif given.conversations:
        figures = of_few([read_evaluation(file) for file in given.data], given)
    else:
        figures = evaluated([read_evaluation(file) for file in given.data], given)
    print_json(figures)


# -- evaluation sets


def evaluated(sets: Sequence[Evaluation], given: argparse.Namespace) -> Figures:
    answers: dict[tuple[str, int, bool], list[Injected]] = {}
    for library in range(_LIBRARIES):
        own = [replace(each, talks=each.talks[library::_LIBRARIES]) for each in sets]
        with kept(own, words_only=given.words_only) as (services, stored):
            for each, places in zip(sets, stored, strict=True):
                for talk in each.talks:
                    is_own = talk.id in places.talks
                    asked = answers.setdefault((each.name, library, is_own), [])
                    asked += (_asked(services, places, talk, one) for one in talk.questions)
    return {
        each.name: {
            name: figures_of(
                [one for at in libraries for one in answers[each.name, at, True]],
                [one for at in libraries for one in answers[each.name, at, False]],
            )
            for name, libraries in (("first", (0,)), ("second", (1,)), ("both", (0, 1)))
        }
        for each in sets
    }


@contextmanager
def kept(
    sets: Sequence[Evaluation], *, words_only: bool
) -> Iterator[tuple[Services, list[StoredEvaluation]]]:
    """Store sets in a library of their own, indexed and embedded, and throw it away afterwards."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(build(DataPaths(Path(folder)), RunMode.COMMAND_LINE)) as services,
    ):
        stored = [store_evaluation(services.store, each, with_summaries=True) for each in sets]
        for each, places in zip(sets, stored, strict=True):
            _store_facts(services, each, places)
        services.index_sync.catch_up()
        if not words_only:
            services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
        if not words_only:
            services.meaning.start()  # as in the window: a question waits for nothing to be made ready
            wait_for(lambda: services.search.search("ready").by_meaning)
        yield services, stored


def _store_facts(services: Services, evaluation: Evaluation, places: StoredEvaluation) -> None:
    ids = services.store.ids
    for talk in evaluation.talks:
        messages = places.talks[talk.id].messages
        for session in talk.sessions:
            for each in session.facts:
                source = next((messages[turn] for turn in each.turns if turn in messages), None)
                if source is None or session.started_at is None:
                    continue
                fact = Fact(
                    ids.passage(), new_uid(), each.text, FactCategory.OTHER, "",
                    places.conversation_of[source], places.exchange_of[source], source,
                    session.started_at, BY_USER, session.started_at,
                )  # fmt: skip
                services.store.save(*fact_changes(fact))


def _asked(
    services: Services, places: StoredEvaluation, talk: Talk, question: Question
) -> Injected:
    took = timed(lambda: _retrieved(services, question.text))
    found = took.result
    assert not found.notice or "words alone" in found.notice, found.notice
    evidence: frozenset[ExchangeId] = frozenset()
    if talk.id in places.talks:
        messages = places.talks[talk.id].evidence(question)
        evidence = frozenset(places.exchange_of[each] for each in messages)
    items, tokens = chosen(services, question.text, found)
    turns = [each for each in items if each.layer in _TURNS]
    right = {each.exchange_id for each in turns} & evidence
    return Injected(
        turns=len(turns),
        right=len(right),
        found_share=len(right) / len(evidence) if evidence else 0.0,
        facts=sum(each.layer is RecallLayer.FACT for each in items),
        talks=sum(each.layer is RecallLayer.CONVERSATION for each in items),
        tokens=tokens,
        took_ms=took.ms,
    )


def chosen(
    services: Services, question: str, found: RetrievalResult
) -> tuple[list[RecalledItem], int]:
    settings = RecallSettings.read(services.settings.get)
    context = SelectionContext(_NEW, question, frozenset(), can_fetch=True)
    selection = select_recalled(found, settings, context, settings.rag_max_tokens, 0)
    items = [each for each in selection.items if each.injected]
    return items, sum(each.tokens for each in items)


def figures_of(own: Sequence[Injected], foreign: Sequence[Injected]) -> Figures:
    """Return shares (0-1) of the questions with an answer, and of those without."""
    turns = sum(each.turns for each in own)
    return {
        "with_answer": {
            "questions": len(own),
            "anything": _share([each.anything for each in own]),
            "evidence_any": _share([each.right > 0 for each in own]),
            "evidence_frac": _share([each.found_share for each in own]),
            "precision_of_turns": round(sum(e.right for e in own) / turns, 4) if turns else None,
            "turns": _share([each.turns for each in own]),
            "facts": _share([each.facts for each in own]),
            "tokens": _share([each.tokens for each in own]),
            "tokens_p95": round(percentile([each.tokens for each in own], 0.95)),
        },
        "without_answer": {
            "questions": len(foreign),
            "anything": _share([each.anything for each in foreign]),
            "turns": _share([bool(each.turns) for each in foreign]),
            "facts": _share([bool(each.facts) for each in foreign]),
        },
        "latency_ms": latency([each.took_ms for each in [*own, *foreign]]),
    }


def _share(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


# -- small libraries


def of_few(sets: Sequence[Evaluation], given: argparse.Namespace) -> Figures:
    """Return the figures of each set in libraries of a few of its conversations.

    Asked is what these conversations answer, and what others would whose speakers they lack.
    """
    drawing, figures = random.Random(1), {}
    for each in sets:
        own: list[Injected] = []
        foreign: list[Injected] = []
        passages = []
        for _ in range(-(-_DRAWN // given.conversations)):
            few = _few_of(each, given.conversations, drawing)
            with kept([few], words_only=given.words_only) as (services, (places,)):
                passages.append(sum(services.passages.count_by_kind().values()))
                known = {talk.id for talk in few.talks}
                others = [talk for talk in each.talks if talk.id not in known]
                for talks, answers in ((few.talks, own), (others, foreign)):
                    pairs = [(talk, question) for talk in talks for question in talk.questions]
                    asked = drawing.sample(pairs, min(len(pairs), _ASKED))
                    answers.extend(_asked(services, places, talk, one) for talk, one in asked)
        figures[each.name] = {"passages": passages} | figures_of(own, foreign)
    return figures


def _few_of(evaluation: Evaluation, count: int, drawing: random.Random) -> Evaluation:
    """Return a set of `count` conversations, of as few speakers as there are for so many."""
    talks: list[Talk] = []
    for talk in drawing.sample(evaluation.talks, len(evaluation.talks)):
        if not (left := count - sum(len(each.sessions) for each in talks)):
            break
        sessions = tuple(drawing.sample(talk.sessions, min(left, len(talk.sessions))))
        said = {turn.id for session in sessions for turn in session.turns}
        asked = (each for each in talk.questions if each.evidence and each.evidence <= said)
        talks.append(replace(talk, sessions=sessions, questions=tuple(asked)))
    return replace(evaluation, talks=tuple(talks))


# -- a large library


def at_scale(given: argparse.Namespace) -> Figures:
    folders = (given.library, given.library / str(given.passages))
    paths = scale.made(next(each for each in folders if (each / "complete").exists()))
    options = argparse.Namespace(passages=[given.passages], searches=200, answer_words=40)
    questions = scale.asked(options)
    with closing(build(paths, RunMode.WINDOW)) as services:
        wait_for(lambda: services.search.search(next(questions)).by_meaning)
        for each in islice(questions, 20):
            _retrieved(services, each)
        ask = partial(_retrieved, services)
        taken_ms = [timed(partial(ask, each)).ms for each in islice(questions, 200)]
    return {"passages": given.passages, "retrieval_ms": latency(taken_ms)}


def _retrieved(services: Services, question: str) -> RetrievalResult:
    settings = RecallSettings.read(services.settings.get)
    return services.recall.retrieve(question, None, SegmentContext(), settings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, action="append", metavar="FILE")
    source.add_argument("--library", type=Path, metavar="FOLDER")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--conversations", type=int, metavar="N", help="in each library, drawn")
    parser.add_argument("--words-only", action="store_true", help="leave meaning out")
    parser.add_argument("--json", action="store_true", help="accepted; the output is always JSON")
    main(parser.parse_args())

"""Benchmark of recall: what is put into prompts, by evaluation sets and through the product's own code; prints JSON.

    python -m tests.bench.recall --data FILE [--data FILE] [--conversations N] [--each] [--renamed] [--words-only]
        [--own-facts] [--questions N] [--embedder CHOICE] [--library FOLDER] [--json]

The conversations of the files go into two libraries in turn, with their ready-made notes: summaries and facts.
Each library is asked all questions, as from a new conversation: those of its own conversations have an
answer in it, those of the other's have none. What would be injected is chosen as for a prompt, with the
settings' defaults. Evidence counts when its exchange is quoted, for
`evidence_or_hint` also when it is hinted at or the source of a fact. `answer_words` is the mean share of the
gold answer's content words, those of the question left out, that the recalled block contains;
`answer_all` is the share of questions with all of them (`answerable` have any). With `--conversations` the libraries
hold so many each, drawn of one set: how recall does in the first days of use. With `--each` every conversation
of a set has a library to itself, and its questions without evidence have no answer there: `tests/data/first_days.json`
has the same 12 sessions and 16 questions in 14 languages, to be asked with `--embedder builtin-multilingual`;
`tests/data/years.json` and `years_unseen.json` have six people's 45 sessions of a year with 45 questions each, which rarely use
the words of their answers; `tests/data/habits.json` has five people's 40 sessions with standing instructions and preferences, told in
passing, and requests that they apply to; `tests/data/about_me.json` has ten people's 18 sessions of a year, in ten languages, with
16 questions about themselves and 6 about what they never said, for `--each` with that embedder. With `--renamed` all speakers have the
same two names. With `--own-facts` the libraries have the facts that the product extracts without a model instead of
ready-made ones. `--questions` asks about so many of each set, evenly chosen; `--embedder` takes another
one than the usual; `--library` keeps the libraries of halves for the next run. `scale.py` measures how long retrieval takes in a large library.
"""

import random
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.bootstrap import RunMode, Services, build
from app.domain.ids import ConversationId, ExchangeId
from app.domain.recall import RecallLayer, RecallSettings, RetrievalResult, SegmentContext
from app.domain.workers import WorkerName
from app.language.sentences import content_terms
from app.memory.context.items import SelectionContext
from app.memory.context.selection import Selection, select_recalled
from app.memory.context.token_budget import RecallRoom
from app.system.paths import DataPaths
from tests.bench.evaluation import (
    Evaluation,
    Question,
    StoredEvaluation,
    Talk,
    few_of,
    fill,
    read_evaluation,
    renamed,
    stored_before,
)
from tests.bench.shared.measuring import (
    Figures,
    latency,
    options,
    percentile,
    print_json,
    timed,
    wait_for,
)

_LIBRARIES = 2
_DRAWN = 24  # conversations in all small libraries together, at least
_ASKED = 40  # questions of either kind in a small library
_TURNS = (RecallLayer.EXCHANGE, RecallLayer.HISTORY)
_NEW = ConversationId(0)


@dataclass(frozen=True, slots=True)
class Injected:
    """What one question would put into its prompt; `right` of the `turns` hold evidence.

    `in_prompt` when evidence is quoted, hinted at, or the source of a fact.
    """

    turns: int
    right: int
    found_share: float
    in_prompt: bool
    facts: int
    talks: int
    tokens: int
    took_ms: float
    answer_words: float | None

    @property
    def anything(self) -> bool:
        return bool(self.turns or self.facts or self.talks)


def main() -> None:
    given = options(
        __doc__, required=["data"], data=[Path], conversations=int, each=False, renamed=False, words_only=False,
        own_facts=False, questions=int, embedder="", library=Path, json=False,
    )  # fmt: skip
    sets = [read_evaluation(file) for file in given.data]
    if given.renamed:
        sets = [renamed(each) for each in sets]
    if given.conversations:
        print_json(
            {
                each.name: of_few(each, given.conversations, given.words_only, given.embedder)
                for each in sets
            }
        )
    elif given.each:
        print_json(
            {
                each.name: of_each(each, given.words_only, given.embedder, given.own_facts)
                for each in sets
            }
        )
    else:
        with tempfile.TemporaryDirectory() as scratch:
            folder = given.library or Path(scratch)
            print_json(
                of_halves(
                    sets, folder, given.words_only, given.questions, own_facts=given.own_facts,
                    embedder=given.embedder,
                )
            )  # fmt: skip


@contextmanager
def library(
    folder: Path,
    sets: Sequence[Evaluation],
    *,
    words_only: bool,
    own_facts: bool = False,
    embedder: str = "",
) -> Iterator[tuple[Services, list[StoredEvaluation]]]:
    """Store sets in a library in `folder`, indexed and embedded, unless they are in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(build(DataPaths(folder), RunMode.COMMAND_LINE)) as services:
        for key in ("embedder", "embedder_before") if embedder else ():
            services.settings.set(key, embedder)
        before = [stored_before(services.store, each) for each in sets]
        stored = [each for each in before if each is not None]
        if len(stored) < len(sets):
            stored, _ = fill(
                services, sets, with_notes=True, with_facts=not own_facts, words_only=True
            )
            workers = [WorkerName.KNOWLEDGE_EXTRACTOR] * own_facts
            if not words_only:
                workers.append(WorkerName.EMBEDDING_PIPELINE)
            services.workers.run_until_idle(workers)
        services.index_sync.catch_up()
        if not words_only:
            services.vector_search.start()  # as in the window: a question waits for nothing to be made ready
            wait_for(lambda: services.search.search("ready").by_meaning)
        yield services, stored


def of_halves(
    sets: Sequence[Evaluation],
    folder: Path,
    words_only: bool,
    questions: int | None,
    *,
    own_facts: bool,
    embedder: str,
) -> Figures:
    answers: dict[tuple[str, int, bool], list[Injected]] = {}
    for half in range(_LIBRARIES):
        own = [replace(each, talks=each.talks[half::_LIBRARIES]) for each in sets]
        if not any(each.talks for each in own):  # of a set with a single conversation
            continue
        kind = f"{'own facts, ' * own_facts}{'words' if words_only else embedder or 'meaning'}"
        name = "-".join([*(each.name for each in sets), kind, str(half)])
        opened = library(
            folder / name, own, words_only=words_only, own_facts=own_facts, embedder=embedder
        )
        with opened as (services, stored):
            for each, places in zip(sets, stored, strict=True):
                every = max(1, len(each.asked) // (questions or len(each.asked)))
                for talk, question in each.asked[::every]:
                    asked = answers.setdefault((each.name, half, talk.id in places.talks), [])
                    asked.append(_injected(services, places, talk, question))
    return {
        each.name: {
            name: _figures(
                [one for half in halves for one in answers.get((each.name, half, True), ())],
                [one for half in halves for one in answers.get((each.name, half, False), ())],
            )
            for name, halves in (("first", (0,)), ("second", (1,)), ("both", (0, 1)))
        }
        for each in sets
    }


def of_few(evaluation: Evaluation, count: int, words_only: bool, embedder: str = "") -> Figures:
    """Return the figures of small libraries, each of `count` conversations of the set.

    Asked is what these conversations answer, and what others would whose speakers they lack.
    """
    drawing = random.Random(1)
    own: list[Injected] = []
    foreign: list[Injected] = []
    passages = []
    for _ in range(-(-_DRAWN // count)):
        few = few_of(evaluation, count, drawing)
        known = {talk.id for talk in few.talks}
        others = [pair for pair in evaluation.asked if pair[0].id not in known]
        with (
            tempfile.TemporaryDirectory() as scratch,
            library(Path(scratch), [few], words_only=words_only, embedder=embedder) as (
                services,
                (places,),
            ),
        ):
            passages.append(sum(services.passages.count_by_kind().values()))
            for pairs, answers in ((few.asked, own), (others, foreign)):
                drawn = drawing.sample(pairs, min(len(pairs), _ASKED))
                answers += [_injected(services, places, *pair) for pair in drawn]
    return {"passages": passages} | _figures(own, foreign)


def of_each(evaluation: Evaluation, words_only: bool, embedder: str, own_facts: bool) -> Figures:
    """Return the figures of a library of each conversation by itself, and of all together."""
    answers: dict[str, list[tuple[bool, Injected]]] = {}
    for talk in evaluation.talks:
        own = replace(evaluation, talks=(talk,))
        with (
            tempfile.TemporaryDirectory() as scratch,
            library(
                Path(scratch), [own], words_only=words_only, own_facts=own_facts, embedder=embedder
            ) as opened,
        ):
            services, (places,) = opened
            answers[talk.id] = [
                (bool(question.evidence), _injected(services, places, talk, question))
                for question in talk.questions
            ]
    answers["all"] = [each for found in answers.values() for each in found]
    return {
        name: _figures(
            [one for has_answer, one in found if has_answer],
            [one for has_answer, one in found if not has_answer],
        )
        for name, found in answers.items()
    }


# -- one question
def retrieved(services: Services, question: str) -> RetrievalResult:
    settings = RecallSettings.read(services.settings.get)
    return services.recall.retrieve(question, None, SegmentContext(), settings)


def _injected(
    services: Services, places: StoredEvaluation, talk: Talk, question: Question
) -> Injected:
    took = timed(lambda: retrieved(services, question.text))
    found = took.result
    assert not found.notice or "words alone" in found.notice, found.notice
    settings = RecallSettings.read(services.settings.get)
    context = SelectionContext(_NEW, question.text, frozenset(), can_fetch=True)
    selection = select_recalled(found, settings, context, RecallRoom(settings.rag_max_tokens, 0, 0))
    return replace(
        injected(selection, question, evidence_of(places, talk, question)), took_ms=took.ms
    )


def evidence_of(places: StoredEvaluation, talk: Talk, question: Question) -> frozenset[ExchangeId]:
    """Return the exchanges of a library that answer a question."""
    if talk.id not in places.talks:
        return frozenset()
    messages = places.talks[talk.id].evidence(question)
    return frozenset(places.exchange_of[each] for each in messages)


def injected(selection: Selection, question: Question, evidence: frozenset[ExchangeId]) -> Injected:
    """Return what a selection would put into a prompt."""
    items = [each for each in selection.items if each.injected]
    turns = [each for each in items if each.layer in _TURNS]
    right = {each.exchange_id for each in turns} & evidence
    return Injected(
        turns=len(turns), right=len(right),
        found_share=len(right) / len(evidence) if evidence else 0.0,
        in_prompt=not evidence.isdisjoint(each.exchange_id for each in items if each.exchange_id),
        facts=sum(each.layer is RecallLayer.FACT for each in items),
        talks=sum(each.layer is RecallLayer.CONVERSATION for each in items),
        tokens=selection.tokens, took_ms=0.0,
        answer_words=_answer_words(question, "".join(part.text for part in selection.parts)),
    )  # fmt: skip


def _answer_words(question: Question, block: str) -> float | None:
    """Return the share of the answer's words in a block; None for an answer without words of its own."""
    wanted = set(content_terms(question.answer)) - set(content_terms(question.text))
    return len(wanted & set(content_terms(block))) / len(wanted) if wanted else None


def _figures(own: Sequence[Injected], foreign: Sequence[Injected]) -> Figures:
    """Return shares (0-1) of the questions with an answer, and of those without."""
    turns = sum(each.turns for each in own)
    answers = [each.answer_words for each in own if each.answer_words is not None]
    return {
        "with_answer": {
            "questions": len(own),
            "anything": _mean(each.anything for each in own),
            "evidence_any": _mean(each.right > 0 for each in own),
            "evidence_or_hint": _mean(each.in_prompt for each in own),
            "evidence_or_hint_of_answerable": _mean(
                each.in_prompt for each in own if each.answer_words is not None
            ),
            "evidence_frac": _mean(each.found_share for each in own),
            "precision_of_turns": round(sum(e.right for e in own) / turns, 4) if turns else None,
            "turns": _mean(each.turns for each in own),
            "facts": _mean(each.facts for each in own),
            "answerable": len(answers),
            "answer_words": _mean(answers),
            "answer_all": _mean(each == 1 for each in answers),
            "tokens": _mean(each.tokens for each in own),
            "tokens_p95": round(percentile([each.tokens for each in own] or [0], 0.95)),
        },
        "without_answer": {
            "questions": len(foreign),
            "anything": _mean(each.anything for each in foreign),
            "turns": _mean(bool(each.turns) for each in foreign),
            "facts": _mean(bool(each.facts) for each in foreign),
            "tokens": _mean(each.tokens for each in foreign),
        },
        "latency_ms": latency([each.took_ms for each in [*own, *foreign]]),
    }


def _mean(values: Iterable[float]) -> float:
    return round(statistics.fmean([*values] or [0]), 4)


if __name__ == "__main__":
    main()

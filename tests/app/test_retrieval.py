"""Search finds what was said: forty questions to twelve talks, so that a worse ranking is noticed.

Through the whole program with its built-in embedder. Talks and questions are our own; how good the
ranking is in general is measured on other data, `tests/bench/retrieval.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from app.bootstrap import Role, Services, build
from app.domain.workers import WorkerName
from app.transfer.importing import import_files
from tests.fakes.stored import AT, made, told

DATA = Path(__file__).resolve().parents[1] / "data" / "retrieval"
SAMPLE = Path(__file__).resolve().parents[2] / "resources" / "samples" / "sample-archive.json"
Turn = tuple[str, int]


@dataclass(frozen=True)
class Asked:
    """A question and the turns that answer it: the conversation's title and their place in it."""

    text: str
    evidence: frozenset[Turn]


def talks() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each talk's title and its turns, what is said and what is answered."""
    for block in (DATA / "talks.txt").read_text("utf-8").strip().split("\n\n"):
        title, *lines = block.splitlines()
        words = [line.partition(": ")[2] for line in lines]
        yield title.removeprefix("# "), list(zip(words[::2], words[1::2], strict=True))


def questions() -> list[Asked]:
    asked = []
    for line in (DATA / "questions.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            text, _, places = line.partition(" | ")
            turns = (place.strip().rpartition("/") for place in places.split(";"))
            asked.append(Asked(text, frozenset((title, int(at)) for title, _, at in turns)))
    return asked


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A book of all the talks, in step with its indexes."""
    built = build(made(tmp_path_factory.mktemp("retrieval") / "data"), Role.COMMAND_LINE)
    for day, (title, turns) in enumerate(talks()):
        told(built.store, *turns, title=title, at=AT + timedelta(days=day))
    built.index_sync.catch_up()
    built.workers.run_until_idle([WorkerName("embedding_pipeline")])
    yield built
    built.close()


def shares(services: Services, *, by_meaning: bool = True) -> tuple[float, float, list[str]]:
    """Return any@1, frac@10 and the questions whose first result does not answer."""
    first, found, missed = 0, 0.0, []
    asked = questions()
    for each in asked:
        answer = services.search.search(each.text, 10, by_meaning=by_meaning)
        assert answer.by_meaning is by_meaning
        turns = [(result.conversation_title, result.turn_number) for result in answer.results]
        if turns and turns[0] in each.evidence:
            first += 1
        else:
            missed.append(each.text)
        found += len(each.evidence.intersection(turns)) / len(each.evidence)
    return first / len(asked), found / len(asked), missed


def test_the_questions_are_about_what_was_said() -> None:
    there = {(title, at) for title, turns in talks() for at in range(len(turns))}
    assert len({title for title, _ in there}) == 12
    assert len(questions()) >= 40
    assert {turn for each in questions() for turn in each.evidence} <= there


def test_words_and_meaning_find_what_was_said(services: Services) -> None:
    """Measured: .78 and 1.0; without the cosines .56 and .90."""
    any_1, frac_10, missed = shares(services)
    assert any_1 >= 0.73, missed
    assert frac_10 >= 0.97


def test_words_alone_find_most_of_it(services: Services) -> None:
    """Measured: .56 and .90; half of the questions say it in other words."""
    any_1, frac_10, missed = shares(services, by_meaning=False)
    assert any_1 >= 0.51, missed
    assert frac_10 >= 0.85


def test_the_sample_archive_answers_as_a_newcomer_asks(tmp_path: Path) -> None:
    """Measured: all 30; a word held by chance had put a journey's slow day before a slow query."""
    built = build(made(tmp_path / "data"), Role.COMMAND_LINE)
    try:
        import_files(built.store, [SAMPLE])
        built.index_sync.catch_up()
        built.workers.run_until_idle([WorkerName("embedding_pipeline")])
        missed = []
        for line in (DATA / "sample_questions.txt").read_text("utf-8").splitlines()[1:]:
            text, title = line.split(" | ")
            first, *_ = built.search.search(text, 5).results
            if not first.conversation_title.startswith(title):
                missed.append(text)
        assert len(missed) <= 1, missed
    finally:
        built.close()

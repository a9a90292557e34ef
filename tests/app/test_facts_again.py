"""Facts learned again by who learns them now: what goes, what stays, through a kill and a forgetting."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.check import check
from app.domain.facts import BY_PATTERNS, BY_USER, Fact
from app.domain.workers import WorkerName, WorkerStatus
from app.memory.facts import FactBook
from app.storage.extraction_work import ExtractionWork
from app.storage.facts import FactFilter, Facts
from app.storage.part_notes import PartNotes
from app.storage.remaking import FACTS, make_again
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summary_work import SummaryWork
from app.workers.board import WorkerBoard
from app.workers.fact_engines import ChosenEngine, ModelEngine
from app.workers.knowledge_extractor import KnowledgeExtractor
from app.workers.open_conversation import OpenConversation
from tests.fakes.background import ScriptedAsker
from tests.fakes.jobs import JumpingClock
from tests.fakes.stored import opened, told

EXTRACTOR = WorkerName.KNOWLEDGE_EXTRACTOR
MODEL = "scripted:1"
SAID = ("I live in Oslo.", "I like green tea.")


def fact(message: int, text: str, subject: str = "", value: str = "") -> dict[str, Any]:
    return {
        "message": message, "text": text, "category": "identity" if subject else "preference",
        "subject": subject, "value": value,
    }  # fmt: skip


# Exchanges are read newest first, an answer after each question.
HOME = fact(3, "The user's home is Oslo.", "user: home", "oslo")
TEA = fact(1, "The user likes green tea.")


@dataclass
class Desk:
    """A store whose two turns were read by patterns, and a model that may read them again."""

    store: Store
    settings: Settings
    asker: ScriptedAsker

    def __post_init__(self) -> None:
        engine = ChosenEngine(
            lambda: bool(self.settings.text("background_model")),
            ModelEngine(self.asker, PartNotes(self.store)),
        )
        opened_one = OpenConversation(SummaryWork(self.store), self.settings)
        job = KnowledgeExtractor(self.store, engine, opened_one)
        self.board = WorkerBoard(self.store, self.settings, (job,), clock=JumpingClock())

    def run(self) -> WorkerStatus:
        (status,) = self.board.run_until_idle([EXTRACTOR])
        return status

    def again(self, *facts: dict[str, Any]) -> WorkerStatus:
        self.settings.set("background_model", MODEL)
        self.asker.replies_with({"facts": [*facts]})
        make_again(self.settings, FACTS)
        return self.run()

    def facts(self, *, ended: bool = False) -> dict[str, Fact]:
        listed = Facts(self.store).listed(FactFilter(ended=ended))
        return {known.fact.text: known.fact for known in listed}

    def book(self) -> FactBook:
        unused: Any = None
        return FactBook(self.store, unused)


@pytest.fixture
def desk(data_dir: Path) -> Iterator[Desk]:
    with opened(data_dir) as store:
        made = Desk(store, Settings(store), ScriptedAsker(model=MODEL))
        told(store, *SAID)
        made.run()
        yield made
        assert check(store).problems == ()


def by_patterns(desk: Desk) -> tuple[Fact, Fact]:
    home, tea = (
        desk.facts()[f"The user {words}"] for words in ("lives in Oslo.", "likes green tea.")
    )
    assert home.model == tea.model == BY_PATTERNS
    return home, tea


def test_what_a_model_does_not_find_again_ends_and_its_wordings_are_kept(desk: Desk) -> None:
    home, _ = by_patterns(desk)
    status = desk.again(HOME)
    assert (status.done, status.total) == (2, 2)
    assert set(desk.facts()) == {"The user's home is Oslo."}
    assert "The user likes green tea." in desk.facts(ended=True)
    now = desk.facts()["The user's home is Oslo."]
    assert now.model == MODEL
    wordings = {each.text for each in Facts(desk.store).versions(home.id)}
    assert home.text in wordings


def test_nothing_is_read_again_before_it_is_asked_for_and_only_once(desk: Desk) -> None:
    desk.settings.set("background_model", MODEL)
    assert (desk.run().completed, desk.asker.asked) == (2, [])
    work = ExtractionWork(desk.store)
    assert (work.read_by_others(), work.learned_by_others()) == (2, 2)
    desk.again(HOME, TEA)
    asked = len(desk.asker.asked)
    assert (work.read_by_others(), work.learned_by_others()) == (0, 0)
    desk.run()
    assert len(desk.asker.asked) == asked == 1


def test_old_facts_answer_until_the_new_ones_are_there_also_through_a_restart(
    desk: Desk, data_dir: Path
) -> None:
    before = set(desk.facts())
    desk.settings.set("background_model", MODEL)
    make_again(desk.settings, FACTS)
    assert set(desk.facts()) == before
    assert [
        each for each, _ in ExtractionWork(desk.store).exchange_ids(9, None, JumpingClock().now())
    ]
    desk.asker.replies_with(RuntimeError("killed in the middle"))
    desk.run()
    assert set(desk.facts()) == before


def test_what_the_user_edited_pinned_or_wrote_stays_as_it_is(desk: Desk) -> None:
    home, tea = by_patterns(desk)
    desk.book().edit(home.id, "The user lives in Bergen.", None)
    desk.book().pin(tea.id, True)
    desk.book().add("The user owns a boat.", tea.category)
    desk.again(HOME, fact(1, "The user prefers green tea."))
    assert set(desk.facts()) == {
        "The user lives in Bergen.", "The user likes green tea.", "The user owns a boat.",
    }  # fmt: skip
    assert desk.facts()["The user lives in Bergen."].model == BY_USER


def test_what_was_forgotten_stays_forgotten_in_other_words_too(desk: Desk) -> None:
    home, tea = by_patterns(desk)
    desk.book().forget(home.id)
    desk.again(HOME, TEA)
    assert set(desk.facts(ended=True)) == {tea.text}

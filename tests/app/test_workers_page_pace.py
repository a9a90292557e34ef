"""Manual pages on their way to a server: few at a time, slowly, and after all else."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.domain.errors import Cancelled
from app.domain.manual import ManualPage, PageText
from app.providers.local_embedder import LocalEmbedder
from app.storage.man_pages import ManPages
from app.storage.settings import Settings
from app.storage.store import Store
from app.workers.board import WorkerBoard
from app.workers.embedding_pipeline import EmbeddingPipeline
from app.workers.page_pace import PagePace
from tests.fakes.embedders import BagOfWords
from tests.fakes.jobs import JumpingClock
from tests.fakes.pipelines import NAME, long
from tests.fakes.stored import AT, opened, told


class Minutes:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "data") as made:
        yield made


@pytest.fixture
def minutes() -> Minutes:
    return Minutes()


def board_of(store: Store, embedder: BagOfWords, minutes: Minutes) -> WorkerBoard:
    settings = Settings(store)
    pace = PagePace(lambda: minutes.now_s, minutes.sleep)
    pipeline = EmbeddingPipeline(store, settings, lambda: embedder, pace)
    return WorkerBoard(store, settings, [pipeline], clock=JumpingClock())


def keep_pages(store: Store, names: Sequence[str]) -> None:
    pages = [ManualPage(name, "1", f"about {name}", "s", AT) for name in names]
    kept = ManPages(store)
    kept.list_anew(pages)
    kept.put([PageText(page, f"The page {page.name} says this.") for page in pages])


def test_ten_requests_fit_into_a_minute(minutes: Minutes) -> None:
    pace = PagePace(lambda: minutes.now_s, minutes.sleep)
    for _ in range(10):
        pace.turn(lambda: False)
    assert minutes.now_s == 0
    pace.turn(lambda: False)
    assert minutes.now_s == pytest.approx(60, abs=0.2)
    with pytest.raises(Cancelled):
        PagePace.turn(_full(minutes), lambda: True)


def _full(minutes: Minutes) -> PagePace:
    pace = PagePace(lambda: minutes.now_s, minutes.sleep)
    for _ in range(10):
        pace.turn(lambda: False)
    return pace


def test_a_server_gets_ten_pages_a_request_and_ten_requests_a_minute(
    store: Store, minutes: Minutes
) -> None:
    keep_pages(store, [f"page{number}" for number in range(205)])
    embedder = BagOfWords()
    (status,) = board_of(store, embedder, minutes).run_until_idle([NAME])
    assert (status.done, status.total) == (205, 205)
    assert embedder.batches == [20] * 20 + [10], "each has a line and a text"
    assert 120 <= minutes.now_s < 180


def test_what_was_said_goes_before_the_pages_and_at_full_speed(
    store: Store, minutes: Minutes
) -> None:
    keep_pages(store, [f"page{number}" for number in range(30)])
    told(store, *(long(number) for number in range(30)))
    embedder = BagOfWords()
    (status,) = board_of(store, embedder, minutes).run_until_idle([NAME])
    assert (status.done, status.total) == (60, 60)
    assert embedder.batches == [60, 20, 20, 20]
    assert all("page" not in text for text in embedder.read[:60])


def test_pages_that_wait_for_their_turn_give_way_to_what_was_just_said(
    store: Store, minutes: Minutes
) -> None:
    keep_pages(store, [f"page{number}" for number in range(150)])
    embedder = BagOfWords()
    said: list[float] = []

    def look(texts: Sequence[str]) -> None:
        if len(embedder.batches) == 10 and not said:
            said.append(minutes.now_s)
            told(store, long("tea"))
        elif any("tea" in text for text in texts):
            said.append(minutes.now_s)

    embedder.poison = look
    (status,) = board_of(store, embedder, minutes).run_until_idle([NAME])
    assert (status.done, status.total) == (151, 151)
    before, after = said
    assert after - before < 1


def test_the_built_in_embedder_is_no_server() -> None:
    assert not hasattr(LocalEmbedder, "take_usage"), "manual pages would be embedded slowly"

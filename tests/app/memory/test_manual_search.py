"""Manual pages in search, in recall and on the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bootstrap import RunMode, Services, build
from app.domain.ids import ConversationId, part_id, passage_id_of
from app.domain.links import name_of_page, parse_page
from app.domain.passages import PassageKind
from app.domain.results import SearchResult
from app.domain.workers import WorkerName
from app.index.ranking import Ranked
from app.memory.search.results import fused_with_cosine, merge_side_results, side_limit
from tests.fakes.command_line import CommandLine
from tests.fakes.found import search_result
from tests.fakes.manual import FakeManual
from tests.fakes.stored import add_conversation, made

PAGES = {WorkerName.MAN_INDEXER, WorkerName.EMBEDDING_PIPELINE}


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManual:
    made = FakeManual(tmp_path / "manual", monkeypatch)
    made.add("find.1", "search for files in a directory hierarchy", "Searches directory trees.")
    made.add("du.1", "estimate file space usage", "Summarizes how much room files take.")
    made.add("tar.1", "an archiving utility", "Puts many files into one archive.")
    return made


@pytest.fixture
def services(manual: FakeManual, data_dir: Path) -> Iterator[Services]:
    built = build(made(data_dir), RunMode.COMMAND_LINE)
    yield built
    built.close()


def indexed(services: Services) -> None:
    services.workers.run_until_idle(PAGES)
    services.index_sync.catch_up(lambda: False)


def sources(services: Services, words: str, **options: object) -> list[str]:
    found = services.search.search(words, **options).results  # type: ignore[arg-type]
    return [each.source for each in found if each.kind is PassageKind.MAN_PAGE]


def test_pages_are_found_beside_turns(services: Services, manual: FakeManual) -> None:
    for name in ("printf", "fprintf", "sprintf"):
        manual.add(f"{name}.3", "formatted output conversion", "Produces output by a format.")
    exchange = ("How do I put files into an archive?", "By packing them with tar.")
    said = add_conversation(services.store, exchange, title="Backups")
    indexed(services)
    only_pages, only_turns = (
        services.search.search("files archive", kinds=[kind]).results
        for kind in (PassageKind.MAN_PAGE, PassageKind.TURN)
    )
    assert {each.kind for each in only_pages} == {PassageKind.MAN_PAGE}
    assert [each.kind for each in only_turns] == [PassageKind.TURN]
    found = only_pages[0]
    assert (found.source, found.conversation_title) == ("tar.1", "tar(1) – an archiving utility")
    ids = (found.conversation_id, found.exchange_id, found.message_id)
    assert (*ids, found.turn_number, found.model) == (None,) * 5
    assert "archive" in found.snippet
    assert sources(services, "archive")
    for words in ("archive title:backups", "archive after:2020-01-01", "archive is:archived"):
        assert sources(services, words) == []
    assert len(sources(services, "formatted output", by_meaning=False)) == 1  # three names
    recalled = services.recall.answers("files in an archive", (), ConversationId(99), 10) or ()
    assert [each.result.conversation_id for each in recalled] == [said.conversation.id]


def test_pages_never_crowd_out_what_was_said(services: Services, manual: FakeManual) -> None:
    add_conversation(
        services.store, *(f"archive number {number} of my letters" for number in range(20))
    )
    for number in range(250):
        manual.add(f"ar{number}.1", "archive", f"archive archive archive {number}")
    services.workers.run_until_idle([WorkerName.MAN_INDEXER])
    services.index_sync.catch_up(lambda: False)
    found = services.search.search("archive", limit=20).results
    assert len(found) == 20
    assert 1 <= len([each for each in found if each.kind is PassageKind.MAN_PAGE]) <= 5
    assert len(services.search.search("archive", 20, [PassageKind.MAN_PAGE]).results) == 20


def test_a_page_that_is_gone_is_not_found(services: Services, manual: FakeManual) -> None:
    indexed(services)
    manual.remove("tar.1")
    services.close()
    again = build(services.paths, RunMode.COMMAND_LINE)
    try:
        indexed(again)
        assert sources(again, "archiving utility archive", by_meaning=False) == []
        assert sources(again, "directory trees", by_meaning=False) == ["find.1"]
    finally:
        again.close()


def relevances(results: list[SearchResult]) -> list[float]:
    return [each.relevance for each in results]


def test_pages_are_merged_best_first_and_weak_ones_replace_weak_results_alone() -> None:
    turns = [search_result(each, PassageKind.TURN) for each in (0.9, 0.4, 0.3, 0.2)]
    weak = [search_result(each, PassageKind.TURN, is_weak=True) for each in (0.4, 0.3, 0.2)]
    pages = [
        search_result(0.5, PassageKind.MAN_PAGE),
        search_result(0.35, PassageKind.MAN_PAGE, is_weak=True),
    ]
    assert relevances(merge_side_results(turns, [pages], 10)) == [0.9, 0.5, 0.4, 0.35, 0.3, 0.2]
    assert relevances(merge_side_results(turns, [pages], 4)) == [0.9, 0.5, 0.4, 0.3]
    assert relevances(merge_side_results([turns[0], *weak], [pages], 4)) == [0.9, 0.5, 0.4, 0.35]
    assert merge_side_results([], [pages[1:]], 4) == pages[1:]
    assert merge_side_results(turns, [], 4) == turns
    assert [side_limit(each, each) for each in (1, 10, 20, 50)] == [1, 2, 5, 12]
    assert [side_limit(20, said) for said in (0, 10, 12, 17)] == [10, 10, 8, 5]


def test_a_page_near_in_meaning_comes_before_one_that_has_some_of_the_words() -> None:
    def ranked(passage: int, cosine: float | None) -> Ranked:
        return Ranked(part_id(passage, 0), 0.0, 0.5, cosine, 0.5)

    rows = [ranked(1, 0.5), ranked(2, 0.1), ranked(3, 0.2), ranked(4, 0.6)]
    assert [passage_id_of(each.part_id) for each in fused_with_cosine(rows)] == [1, 4, 2, 3]
    words = [ranked(passage, None) for passage in (3, 1, 2)]
    assert fused_with_cosine(words) == words


# -- the command line
def test_the_command_line_indexes_finds_and_shows_pages(
    manual: FakeManual, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(data_dir, capsys)
    document = cli.json("work", "--until-idle", "--only", "man_indexer")
    worker = document["workers"]["man_indexer"]
    assert (worker["done"], worker["total"], worker["enabled"]) == (3, 3, False)
    found = cli.json("search", "archive", "--kind", "man_page")["results"]
    assert [(each["kind"], each["source"], each["conversation_id"]) for each in found] == [
        ("man_page", "tar.1", None)
    ]
    assert "[man:tar.1]" in cli.done("search", "archive").out
    assert cli.done("show", "man:tar.1").out == (
        "tar(1) – an archiving utility\n\nPuts many files into one archive.\n"
    )
    assert cli.json("show", "man:tar.1")["text"] == "Puts many files into one archive."
    assert cli.json("status")["passages"] == {"man_page": 3}
    assert cli.done("check").out == "Everything is in order.\n"
    ran = cli("show", "man:nothing.9")
    assert (ran.code, ran.out) == (1, "")
    assert "'man:nothing.9'" in ran.err
    assert parse_page(name_of_page("grep.1")) == "grep.1"
    assert parse_page("12:3") is None

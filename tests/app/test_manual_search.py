"""Manual pages in search, in recall and on the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bootstrap import Role, Services, build
from app.chat.places import name_of_page, parse_page
from app.domain.ids import ConversationId, PassageId, part_id, passage_of
from app.domain.passages import PassageKind, SearchResult
from app.domain.workers import WorkerName
from app.index.ranking import Ranked
from app.memory.side_results import by_words_and_meaning, most_of_a_kind, with_sides
from app.system.paths import DataPaths
from tests.fakes.command_line import CommandLine
from tests.fakes.manual import FakeManual
from tests.fakes.stored import AT, told

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
    made = build(DataPaths(data_dir), Role.COMMAND_LINE)
    yield made
    made.close()


def indexed(services: Services) -> None:
    services.workers.run_until_idle(PAGES)
    services.index_sync.catch_up(lambda: False)


def sources(services: Services, words: str, **options: object) -> list[str]:
    found = services.search.search(words, **options).results  # type: ignore[arg-type]
    return [each.source for each in found if each.kind is PassageKind.MAN_PAGE]


def test_a_page_is_found_with_its_name_as_source_and_its_line_as_title(services: Services) -> None:
    indexed(services)
    found = services.search.search("archive").results[0]
    assert (found.kind, found.source) == (PassageKind.MAN_PAGE, "tar.1")
    assert found.conversation_title == "tar(1) – an archiving utility"
    ids = (found.conversation_id, found.exchange_id, found.message_id)
    assert (*ids, found.turn_number, found.model) == (None,) * 5
    assert "archive" in found.snippet


def test_a_page_is_found_by_its_one_line_description(services: Services) -> None:
    indexed(services)
    assert sources(services, "estimate usage")[0] == "du.1"


def test_a_kind_that_is_asked_for_is_found_alone(services: Services) -> None:
    told(services.store, "How do I put files into an archive?")
    indexed(services)
    kinds = [PassageKind.MAN_PAGE]
    found = services.search.search("files archive", kinds=kinds).results
    assert {each.kind for each in found} == {PassageKind.MAN_PAGE}
    assert found[0].source == "tar.1"
    turns = services.search.search("files archive", kinds=[PassageKind.TURN]).results
    assert [each.kind for each in turns] == [PassageKind.TURN]


def test_filters_of_conversations_leave_pages_out(services: Services) -> None:
    told(services.store, "How do I put files into an archive?", title="Backups")
    indexed(services)
    assert sources(services, "archive")
    for words in ("archive title:backups", "archive after:2020-01-01", "archive is:archived"):
        assert sources(services, words) == []


def test_recall_never_brings_pages(services: Services) -> None:
    talk = told(
        services.store, ("How do I put files into an archive?", "By packing them with tar.")
    )
    indexed(services)
    found = services.recall.quotable("files in an archive", ConversationId(99), 10)
    assert [each.conversation_id for each in found] == [talk.conversation.id]


def test_pages_never_crowd_out_what_was_said(services: Services, manual: FakeManual) -> None:
    told(services.store, *(f"archive number {number} of my letters" for number in range(20)))
    for number in range(250):
        manual.add(f"ar{number}.1", "archive", f"archive archive archive {number}")
    indexed(services)
    found = services.search.search("archive", limit=20).results
    assert len(found) == 20
    pages = [each for each in found if each.kind is PassageKind.MAN_PAGE]
    assert 1 <= len(pages) <= 5
    assert len(services.search.search("archive", 20, [PassageKind.MAN_PAGE]).results) == 20


def test_a_page_of_several_names_is_one_result(services: Services, manual: FakeManual) -> None:
    for name in ("printf", "fprintf", "sprintf"):
        manual.add(f"{name}.3", "formatted output conversion", "Produces output by a format.")
    indexed(services)
    assert len(sources(services, "formatted output", by_meaning=False)) == 1


def test_a_page_that_is_gone_is_not_found(services: Services, manual: FakeManual) -> None:
    indexed(services)
    manual.remove("tar.1")
    services.close()
    again = build(services.paths, Role.COMMAND_LINE)
    try:
        indexed(again)
        assert sources(again, "archiving utility archive", by_meaning=False) == []
        assert sources(again, "directory trees", by_meaning=False) == ["find.1"]
    finally:
        again.close()


def result(relevance: float, kind: PassageKind, *, is_weak: bool = False) -> SearchResult:
    return SearchResult(
        kind, PassageId(int(relevance * 1000)), "", None, "", False, None, None, None, relevance,
        is_weak, None, "", "", (), AT, None,
    )  # fmt: skip


def test_both_are_merged_best_first() -> None:
    turns = [result(each, PassageKind.TURN) for each in (0.9, 0.4, 0.3, 0.2)]
    pages = [result(0.5, PassageKind.MAN_PAGE), result(0.35, PassageKind.MAN_PAGE, is_weak=True)]
    assert relevances(with_sides(turns, [pages], 10)) == [0.9, 0.5, 0.4, 0.35, 0.3, 0.2]
    assert with_sides([], [pages[1:]], 4) == pages[1:]
    assert with_sides(turns, [], 4) == turns


def test_a_weak_page_takes_the_place_of_weak_results_alone() -> None:
    pages = [result(0.5, PassageKind.MAN_PAGE), result(0.35, PassageKind.MAN_PAGE, is_weak=True)]
    turns = [result(each, PassageKind.TURN) for each in (0.9, 0.4, 0.3, 0.2)]
    assert relevances(with_sides(turns, [pages], 4)) == [0.9, 0.5, 0.4, 0.3]
    weak = [result(each, PassageKind.TURN, is_weak=True) for each in (0.4, 0.3, 0.2)]
    assert relevances(with_sides([turns[0], *weak], [pages], 4)) == [0.9, 0.5, 0.4, 0.35]


def test_a_page_near_in_meaning_comes_before_one_that_has_some_of_the_words() -> None:
    def ranked(passage: int, cosine: float | None) -> Ranked:
        return Ranked(part_id(passage, 0), 0.0, 0.5, cosine, 0.5)

    rows = [ranked(1, 0.5), ranked(2, 0.1), ranked(3, 0.2), ranked(4, 0.6)]
    assert [passage_of(each.part_id) for each in by_words_and_meaning(rows)] == [1, 4, 2, 3]
    words = [ranked(passage, None) for passage in (3, 1, 2)]
    assert by_words_and_meaning(words) == words


def relevances(results: list[SearchResult]) -> list[float]:
    return [each.relevance for each in results]


def test_how_many_pages_there_may_be() -> None:
    full = [most_of_a_kind(each, each) for each in (1, 10, 20, 50)]
    assert full == [1, 2, 5, 12]
    assert [most_of_a_kind(20, said) for said in (0, 10, 12, 17)] == [10, 10, 8, 5]


# -- the command line


@pytest.fixture
def cli(manual: FakeManual, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(data_dir, capsys)


def test_the_command_line_indexes_finds_and_shows_pages(cli: CommandLine) -> None:
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


def test_a_page_that_is_not_kept_is_a_known_error(cli: CommandLine) -> None:
    ran = cli("show", "man:nothing.9")
    assert (ran.code, ran.out) == (1, "")
    assert "No manual page 'nothing.9' is kept" in ran.err


def test_pages_stay_out_of_exports(cli: CommandLine, tmp_path: Path) -> None:
    cli.done("work", "--until-idle", "--only", "man_indexer")
    cli.done("export", tmp_path / "book.json")
    assert "archiving" not in json.dumps(json.loads((tmp_path / "book.json").read_text()))


def test_a_page_has_a_name_among_other_places() -> None:
    assert parse_page(name_of_page("grep.1")) == "grep.1"
    assert parse_page("12:3") is None

"""The text index: search, candidates and their features, updates, persistence and faults."""

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from app.domain.errors import IndexUnavailable
from app.domain.ids import PassageId, part_id, passage_id_of
from app.domain.passages import PassageText, SearchQuery
from app.index.query import parse_query
from app.index.text_index import RebuildReason, TantivyTextIndex
from app.index.text_snapshot import CandidateTable
from tests.fakes.passages import found_passages, hits, said, talk, turn

FILLER = "Nothing of note was said that day, only small talk about the weather and the news. "


@pytest.fixture
def index(tmp_path: Path) -> Iterator[TantivyTextIndex]:
    made = TantivyTextIndex(tmp_path / "text", "one")
    made.start_over()
    yield made
    made.close()


def fill(index: TantivyTextIndex, *passages: PassageText) -> None:
    index.put(passages)
    index.commit(1)


# -- search
@pytest.mark.parametrize(
    ("passages", "query", "expected"),
    [
        ([turn(1, "Where is my garden hose?", "In the shed."),
          turn(2, "What grows in a garden in winter?", "Kale and leeks grow all winter."),
          turn(3, "Who won?", "Nobody.")], "what grows in the garden in winter", [2, 1]),
        ([turn(1, "Tell me about cooking", FILLER * 20 + "A word on sourdough. " + FILLER * 20),
          turn(2, "Why does my sourdough not rise?", FILLER * 40)], "sourdough", [2, 1]),
        ([turn(1, "Run it", "Done.", tools="exit status of quokka: 7"),
          turn(2, "About the quokka", "A marsupial."),
          turn(3, "Hello", "Hi.", title="Quokka talk")], "quokka", [2, 3, 1]),
        ([turn(each, "apple pie") for each in (1, 3, 2)], "apple", [3, 2, 1]),
        ([turn(1, "the trip was nice", month=5), turn(2, "the trip was nice", month=6)],
         "trip in June 2024", [2, 1]),
        ([turn(1, "the trip was nice", month=5), turn(2, "the trip was nice", month=6)],
         "trip im Mai", [1, 2]),
        ([turn(1, "the cat sat on the mat"), turn(2, "on the mat the cats sat"),
          turn(3, "the cat", "sat on the mat")], '"cat sat on the mat"', [1]),
        ([turn(4, "東京大学の学生")], '"京大学"', [4]),
        ([turn(4, "東京大学の学生")], '"大学京"', []),
        ([talk(1), turn(2, "apple")], "apple", [2]),
        ([turn(1, "a\ud800b \x00 apple", "\udfff")], "apple", [1]),
    ],
    ids=["more words", "density", "tools and titles", "newer of equals", "month", "German month",
         "phrase", "unspaced phrase", "no phrase", "empty passage", "surrogates"],
)  # fmt: skip
def test_ranks(
    index: TantivyTextIndex, passages: list[PassageText], query: str, expected: list[int]
) -> None:
    fill(index, *passages)
    assert found_passages(index, query) == expected


def test_words_are_found_in_any_language(index: TantivyTextIndex) -> None:
    fill(
        index, turn(1, "something else altogether", "yes"),
        turn(2, "Wie kündige ich?", "Die Krankenversicherung hat eine Frist."),
        turn(3, "Was ist am See?", "Die Häuser sind schön."), turn(4, "Где кошки?", "Они спят."),
        turn(5, "東京の大学で何を学べますか", "物理学です。猫もいます。"),
        turn(6, "แมวอยู่ที่ไหน", "บนเตียง"), turn(7, "Fix getUserName please", "Done."),
        turn(8, "The transgenic mice"),
    )  # fmt: skip
    for query, passage in (
        ("Versicherung", 2), ("Kranken", 2), ("Haus", 3), ("кошка", 4), ("東京", 5), ("猫", 5),
        ("แมว", 6), ("username", 7), ("transgetUserName getUser", 7), ("transg", 8),
    ):  # fmt: skip
        assert found_passages(index, query, 1) == [passage], query


@pytest.mark.parametrize(
    "exact",
    ["E1042-x", "3.11.7", "C++", "1,234.50", "a1b2-c3d4", "tess@example.org", "/srv/a/store-v2.py"],
)
def test_an_exact_string_anywhere_in_the_output_of_a_tool_is_found(
    index: TantivyTextIndex, exact: str
) -> None:
    long = "line of output\n" * 2_000
    fill(index, turn(1, "Run it", "Done.", tools=f"{long}({exact})\n{long}"), turn(2, "line"))
    assert found_passages(index, exact) == found_passages(index, f'"{exact}"') == [1]


def test_exclusions_rank_nothing_and_name_passages(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "apple pie"), turn(2, "a pear", "no apple"), turn(3, "a pear tree"))
    assert found_passages(index, "-apple") == []
    assert found_passages(index, "pear -tree") == [2]
    for query, excluded in (("-apple", {1, 2}), ('pear -"pear tree"', {3}), ("apple", set())):
        assert index.excluded_passages(parse_query(query)) == excluded
    for words in ("", "!!", "\ud800 \x00"):
        assert index.candidates(SearchQuery(words=words), 10) == frozenset()
    assert hits(index, "apple", 0) == hits(index, "apple", 10, allowed=frozenset()) == []
    counts = index.document_frequencies(parse_query("the apple pie plum"))
    assert counts == {"apple": 2, "pie": 1, "plum": 0}


def test_coverage_is_the_weighted_share_of_the_words(index: TantivyTextIndex) -> None:
    fill(
        index, *(turn(number, "common words here") for number in range(1, 50)),
        turn(50, "common and rareword"), turn(51, "rareword alone"),
        turn(52, "get the user name"), turn(53, "getusername"),
    )  # fmt: skip

    def shares(query: str) -> dict[int, float]:
        return {passage_id_of(hit.part_id): hit.coverage for hit in hits(index, query, 60)}

    share = shares("common rareword")
    assert share[50] == pytest.approx(1.0)
    assert 0.8 < share[51] < 1.0
    assert 0.0 < share[1] < 0.2
    assert 0.3 < shares("rareword neverwritten")[51] < 0.7
    assert shares('"rareword alone"') == {51: pytest.approx(1.0)}
    assert shares("getUserName") == {52: pytest.approx(1.0), 53: pytest.approx(1.0)}


def test_pairs_of_characters_across_two_words_weigh_nothing(index: TantivyTextIndex) -> None:
    said_so = [turn(each, f"{a}。{b}", "好") for each, (a, b) in enumerate(
        [("周末", "天气"), ("天气", "变化"), ("计划", "周末"), ("变化", "计划")] * 3, 1)]  # fmt: skip
    fill(index, *said_so, turn(13, "周末。变化。天气"), turn(14, "末天。周"))

    def shares(query: str) -> dict[int, float]:
        return {passage_id_of(hit.part_id): hit.coverage for hit in hits(index, query, 60)}

    found = shares("周末天气变化")
    assert found[13] == pytest.approx(1.0)
    assert found[14] == pytest.approx(0.0, abs=1e-6)
    exact = shares("末天")
    assert exact.pop(14) == pytest.approx(1.0)
    assert not any(exact.values())


def test_a_word_sharing_a_han_character_is_found_behind_it(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "他参加了绘图比赛"), turn(2, "今天下雨了"), turn(3, "她喜欢画图"))
    assert found_passages(index, "画图") == [3, 1]
    assert found_passages(index, "がが") == []


def test_a_korean_noun_of_one_character_needs_no_particle(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "제 딸 레아는 목수예요"), turn(2, "회의 시간이 바뀌었어요"))
    assert found_passages(index, "딸의 직업") == [1]
    assert found_passages(index, "회의") == [2]


def test_the_reach_of_a_query_counts_its_ranking_han_characters(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "天气 weather"), turn(2, "预报 report"), turn(3, "天空很蓝"))

    def found(query: str) -> CandidateTable:
        asked = parse_query(query)
        return index.candidate_table(asked, sorted(index.candidates(asked, 10)))

    assert found("weather report").reach == found("weather report").weight
    assert found("天气 预报").reach > 2 * found("天气 预报").weight
    assert found("天气 什么").reach == found("天气").reach


@pytest.mark.parametrize(
    ("query", "found"),
    [("Wann ist mein Vorstellungsgespräch?", [1]), ("When is the leaguegespräch?", []),
     ("Wann ist mein Vorgespräch zum Ausflug?", [2])],
)  # fmt: skip
def test_an_unknown_compound_is_searched_by_its_last_word_in_languages_that_build_them(
    index: TantivyTextIndex, query: str, found: list[int]
) -> None:
    fill(index, turn(1, "Das Gespräch beginnt um zehn"), turn(2, "Der Ausflug und das Vorgespräch"))
    assert found_passages(index, query)[:1] == found


def test_a_relative_date_in_a_query_is_near_the_messages_of_its_days(tmp_path: Path) -> None:
    wednesday = datetime(2024, 5, 15, 12, tzinfo=UTC)
    index = TantivyTextIndex(tmp_path / "text", "one", lambda: wednesday)
    index.start_over()
    days = {
        1: wednesday,
        2: datetime(2024, 5, 8, 12, tzinfo=UTC),
        3: datetime(2023, 5, 8, 12, tzinfo=UTC),
    }
    fill(index, *(replace(turn(each, "the trip"), created_at=day) for each, day in days.items()))

    def dated(text: str) -> list[float]:
        query = parse_query(text)
        table = index.candidate_table(query, sorted(index.candidates(query, 10)))
        return [table.dated.tolist()[table.parts.tolist().index(part_id(each, 0))] for each in days]

    for text in ("the trip last week", "the trip 先週"):
        assert dated(text) == [pytest.approx(0.775), 1.0, 0.0]
    wednesday += timedelta(days=7)
    assert dated("the trip last week")[0] == 1.0, "the same query asked a week later"
    index.close()


@pytest.mark.parametrize("count", [1, 10, 500])
def test_only_allowed_passages_are_found(index: TantivyTextIndex, count: int) -> None:
    """Few are searched by id; many are filtered out of the ranking."""
    fill(index, *(turn(number, f"apple {'apple ' * (number % 7)}") for number in range(1, 1001)))
    allowed = frozenset(PassageId(number) for number in range(1, 1001, 1000 // count))
    found = hits(index, "apple", 20, allowed, frozenset({PassageId(1)}))
    assert {passage_id_of(hit.part_id) for hit in found} <= allowed - {1}
    assert len(found) == min(20, len(allowed) - 1)
    everywhere = [
        hit.score for hit in hits(index, "apple", 1000)
        if passage_id_of(hit.part_id) in allowed - {1}
    ]  # fmt: skip
    assert [hit.score for hit in found] == pytest.approx(everywhere[:20])


# -- candidates
def row(table: CandidateTable, part: int) -> int:
    return int(np.flatnonzero(table.parts == part)[0])


def around(table: CandidateTable, part: int) -> tuple[list[int], list[int]]:
    """Return the parts before and after in the context, nearest first."""
    at = row(table, part)
    return ([each for each in table.before[at].tolist() if each],
            [each for each in table.after[at].tolist() if each])  # fmt: skip


def test_a_context_is_made_of_short_neighbors_also_of_other_turns(index: TantivyTextIndex) -> None:
    long = talk(1, "Which rake?", "word " * 298, "The red one.")
    before, after = said(7, 1, "The rake is red."), said(8, 0, "Thanks.")
    fill(index, long, turn(5, "Is it?", before=(before,), after=(after,)))
    ids = [part.id for part in long.parts]
    table = index.candidate_table(parse_query("rake"), [*ids, part_id(5, 0)])
    assert [around(table, each) for each in ids] == [([], [])] * 3
    assert table.context[row(table, ids[2])] == 0
    assert table.asked_traits[row(table, ids[1])] == 0, "its question is not in its context"
    assert around(table, part_id(5, 0)) == ([part_id(7, 1)], [part_id(8, 0)])
    at = row(table, part_id(5, 0))
    assert table.context[at] > 0
    assert table.words[at] == 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [("rake in May 2024", [0.0, 1.0, 0.3, 0.0]), ("rake in May", [0.0, 1.0, 0.3, 0.0]),
     ("rake on 2 May 2024", [0.0, 0.7, 0.3, 0.0]), ("rake on 30 May 2024", [0.0, 0.4, 0.475, 0.0]),
     ("rake in May 2023", [0.0] * 4), ("rake", [0.0] * 4)],
)  # fmt: skip
def test_the_table_has_nearness(index: TantivyTextIndex, query: str, expected: list[float]) -> None:
    fill(index, *(turn(month, "rake", month=month) for month in (4, 5, 6, 8)))
    ids = [part_id(month, 0) for month in (4, 5, 6, 8)]
    table = index.candidate_table(parse_query(query), ids)
    assert [table.dated[row(table, each)] for each in ids] == pytest.approx(expected)


# -- updates
def test_putting_replaces_and_removing_removes_after_a_commit(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "first version"), turn(2, "another"), talk(3))
    fill(index, turn(1, "second version"))
    assert (found_passages(index, "first"), found_passages(index, "second")) == ([], [1])
    index.remove([PassageId(1), PassageId(3), PassageId(99)])
    assert (found_passages(index, "second"), index.passage_count) == ([1], 3)
    index.commit(2)
    assert (found_passages(index, "second"), index.passage_count) == ([], 1)
    fill(index, turn(1, "third version"))
    assert (found_passages(index, "version"), index.passage_count) == ([1], 2)


def test_what_was_committed_is_found_after_a_restart(tmp_path: Path) -> None:
    first = TantivyTextIndex(tmp_path, "one")
    assert first.needs_rebuild is RebuildReason.MISSING
    first.start_over()
    first.close()
    first = TantivyTextIndex(tmp_path, "one")
    assert (first.needs_rebuild, first.position) == (None, 0), "killed before the first commit"
    fill(first, turn(1, "apple"))
    first.put([turn(2, "never committed")])
    first.close()
    again = TantivyTextIndex(tmp_path, "one")
    assert (again.needs_rebuild, again.position) == (None, 1)
    assert (found_passages(again, "apple"), found_passages(again, "committed")) == ([1], [])
    fill(again, turn(1, "pear"), turn(3, "plum"))
    assert (found_passages(again, "apple"), again.passage_count) == ([], 2)
    again.close()
    other = TantivyTextIndex(tmp_path, "two")
    assert (other.needs_rebuild, other.position) == (RebuildReason.OTHER_GENERATION, 0)
    for use in (lambda: hits(other, "apple"), lambda: other.put([turn(1, "apple")]),
                lambda: other.commit(3)):  # fmt: skip
        with pytest.raises(IndexUnavailable):
            use()
    seal = tmp_path / "seal.json"
    seal.write_text(seal.read_text().replace('"format":"', '"format":"0'))
    assert TantivyTextIndex(tmp_path, "one").needs_rebuild is RebuildReason.OLD_FORMAT
    other.start_over()
    assert (other.needs_rebuild, found_passages(other, "apple")) == (None, [])


def test_searches_see_whole_commits_while_another_thread_writes(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "apple"))
    done, wrong = threading.Event(), list[int]()

    def search() -> None:
        while not done.is_set():
            found = [passage_id_of(part) for part in index.candidates(parse_query("apple"), 1000)]
            if len(found) % 20 != 1 or len(found) != len(set(found)):
                wrong.append(len(found))

    readers = [threading.Thread(target=search) for _ in range(2)]
    for reader in readers:
        reader.start()
    for batch in range(6):
        index.put([turn(number, "apple") for number in range(2 + batch * 20, 22 + batch * 20)])
        index.commit(batch + 2)
    done.set()
    for reader in readers:
        reader.join()
    assert (wrong, index.passage_count) == ([], 121)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files are held on Linux only")
def test_merged_files_are_held_open_until_nothing_maps_them(index: TantivyTextIndex) -> None:
    missed = seen = 0
    others = mapped_segments() | held_segments()  # of tests whose indexes are not collected yet
    for number in range(1, 21):  # merges begin with the eighth
        fill(index, turn(number, f"apple number {number}"))
        mapped, held = mapped_segments() - others, held_segments()
        seen += len(mapped)
        missed += len(mapped - held)
    assert seen > 20 * 6
    assert missed < seen / 10  # a merge may end between a commit and the look at the folder
    index.close()
    assert held_segments() <= others


def mapped_segments() -> set[str]:
    """Return the inodes of the mapped segment files, deleted ones included."""
    rows = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
    return {row[4] for row in rows if len(row) == 6 and "/words-" in row[5]}


def held_segments() -> set[str]:
    """Return the inodes of the open segment files."""
    held = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if "/words-" in str(each.readlink()):
                held.add(str(each.stat().st_ino))
    return held


def test_a_commit_that_fails_leaves_the_last_one(index: TantivyTextIndex, tmp_path: Path) -> None:
    fill(index, turn(1, "apple"))
    index.put([turn(2, "pear")])
    (files,) = (tmp_path / "text").glob("words-*")
    away = files.rename(tmp_path / "away")
    with pytest.raises(IndexUnavailable) as refusal:
        index.commit(2)
    assert refusal.value.hint
    assert (index.position, found_passages(index, "apple")) == (1, [1])
    away.rename(files)
    index.put([turn(2, "pear")])
    in_the_way = tmp_path / "text" / "seal.json.new"
    in_the_way.mkdir()
    with pytest.raises(IndexUnavailable):
        index.commit(2)
    assert index.position == 1
    in_the_way.rmdir()
    index.commit(2)
    assert (index.position, found_passages(index, "pear")) == (2, [2])

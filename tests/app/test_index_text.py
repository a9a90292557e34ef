"""The text index ranks, restricts, forgets and comes back, and its numbers mean what they say."""

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from app.domain.errors import IndexUnavailable
from app.domain.ids import PassageId, part_id, passage_of
from app.domain.passages import PassageText
from app.domain.ports import TextIndex
from app.index.query import parse_query
from app.index.text_index import RebuildReason, TantivyTextIndex
from tests.fakes.passages import talk, turn

FILLER = "Nothing of note was said that day, only small talk about the weather and the news. "


@pytest.fixture
def index(tmp_path: Path) -> Iterator[TantivyTextIndex]:
    made = TantivyTextIndex(tmp_path / "text", "one")
    made.start_over()
    yield made
    made.close()


def found(index: TantivyTextIndex, text: str, limit: int = 10) -> list[int]:
    """The passages of the parts that are found, each at its best."""
    hits = index.search(parse_query(text), limit)
    return list(dict.fromkeys(passage_of(hit.part_id) for hit in hits))


def found_parts(index: TantivyTextIndex, text: str) -> list[int]:
    return [hit.part_id for hit in index.search(parse_query(text), 50)]


def fill(index: TextIndex, *passages: PassageText) -> None:
    index.put(passages)
    index.commit(1)


def test_it_is_a_text_index(index: TantivyTextIndex) -> None:
    port: TextIndex = index
    port.put([turn(1, "apple")])
    port.commit(7)
    assert (port.position, port.passage_count, port.needs_rebuild) == (7, 1, None)


def test_the_passage_with_more_of_the_words_comes_first(index: TantivyTextIndex) -> None:
    fill(
        index,
        turn(1, "Where is my garden hose?", "In the shed."),
        turn(2, "What grows in a garden in winter?", "Kale and leeks grow all winter."),
        turn(3, "Who won?", "Nobody."),
    )
    assert found(index, "what grows in the garden in winter") == [2, 1]


def test_the_users_words_weigh_more_than_the_depth_of_a_long_answer(
    index: TantivyTextIndex,
) -> None:
    fill(
        index,
        turn(1, "Tell me about cooking", FILLER * 20 + "A word on sourdough. " + FILLER * 20),
        turn(2, "Why does my sourdough not rise?", FILLER * 40),
    )
    assert found(index, "sourdough") == [2, 1]


def test_words_of_tools_and_titles_are_found_but_weigh_less(index: TantivyTextIndex) -> None:
    fill(
        index,
        turn(1, "Run it", "Done.", tools="exit status of quokka: 7"),
        turn(2, "About the quokka", "A marsupial."),
        turn(3, "Hello", "Hi.", title="Quokka talk"),
    )
    assert found(index, "quokka") == [2, 1, 3]


def test_a_phrase_must_stand_as_it_is_typed(index: TantivyTextIndex) -> None:
    fill(
        index,
        turn(1, "the cat sat on the mat", ""),
        turn(2, "on the mat the cats sat", ""),
        turn(3, "the cat", "sat on the mat"),
        turn(4, "東京大学の学生", ""),
    )
    assert found(index, '"cat sat on the mat"') == [1]
    assert found(index, '"on the mat"') == [2, 1, 3] or set(found(index, '"on the mat"')) == {
        1,
        2,
        3,
    }
    assert found(index, '"京大学"') == [4]
    assert found(index, '"大学京"') == []


def test_excluded_words_and_phrases_keep_passages_out(index: TantivyTextIndex) -> None:
    fill(
        index,
        turn(1, "apple pie with cream", ""),
        turn(2, "apple tree in the garden", ""),
        turn(3, "a pear tree", ""),
    )
    assert found(index, "apple -cream") == [2]
    assert found(index, 'tree -"pear tree"') == [2]
    assert found(index, "unknownword -apple") == []


def test_what_is_only_excluded_ranks_nothing_but_is_known(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "apple pie"), turn(2, "a pear", "no apple"), turn(3, "a pear tree"))
    assert found(index, "-apple") == []
    assert index.holding(parse_query("-apple")) == {1, 2}
    assert index.holding(parse_query('pear -"pear tree"')) == {3}
    assert index.holding(parse_query("apple")) == frozenset()


def test_what_is_excluded_leaves_out_the_whole_turn(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "apple pie", "With cream."), turn(2, "apple pie", "With nuts."))
    assert found(index, "apple -cream") == [2]


def test_only_small_words_are_searched_as_they_are(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "to be or not to be", ""), turn(2, "hello world", ""))
    assert found(index, "to be or not to be") == [1]


@pytest.mark.parametrize(
    ("user", "assistant", "query"),
    [
        ("Wie kündige ich?", "Die Krankenversicherung hat eine Frist.", "Versicherung"),
        ("Wie kündige ich?", "Die Krankenversicherung hat eine Frist.", "Kranken"),
        ("Was ist am See?", "Die Häuser sind schön.", "Haus"),
        ("Где кошки?", "Они спят.", "кошка"),
        ("東京の大学で何を学べますか", "物理学です。猫もいます。", "東京"),
        ("東京の大学で何を学べますか", "物理学です。猫もいます。", "猫"),
        ("แมวอยู่ที่ไหน", "บนเตียง", "แมว"),
        ("Fix getUserName please", "Done.", "username"),
        ("Fix getUserName please", "Done.", "transgetUserName getUser"),
        ("The transgenic mice", "", "transg"),
    ],
)
def test_words_are_found_in_any_language(
    index: TantivyTextIndex, user: str, assistant: str, query: str
) -> None:
    fill(index, turn(1, "something else altogether", "yes"), turn(2, user, assistant))
    assert found(index, query) == [2]


def test_a_passage_is_found_by_its_month(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "the trip was nice", month=5), turn(2, "the trip was nice", month=6))
    assert found(index, "trip in June 2024") == [2, 1]
    assert found(index, "trip im Mai")[0] == 1


def test_coverage_is_the_weighted_share_of_the_words_found(index: TantivyTextIndex) -> None:
    fill(
        index,
        *(turn(number, "common words here", "") for number in range(1, 50)),
        turn(50, "common and rareword", ""),
        turn(51, "rareword alone", ""),
    )
    share = {passage_of(hit.part_id): hit.coverage for hit in index.search("common rareword", 60)}
    assert share[PassageId(50)] == pytest.approx(1.0)
    assert 0.8 < share[PassageId(51)] < 1.0
    assert 0.0 < share[PassageId(1)] < 0.2
    unknown = index.search("rareword neverwritten", 1)[0]
    assert 0.3 < unknown.coverage < 0.7
    assert index.search(parse_query('"rareword alone"'), 1)[0].coverage == pytest.approx(1.0)


def test_an_identifier_is_covered_by_all_its_parts(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "get the user name", ""), turn(2, "getusername", ""), turn(3, "x"))
    share = {passage_of(hit.part_id): hit.coverage for hit in index.search("getUserName", 5)}
    assert share == {1: pytest.approx(1.0), 2: pytest.approx(1.0)}


def test_putting_again_replaces_and_removing_removes(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "first version"), turn(2, "another"))
    fill(index, turn(1, "second version"))
    assert found(index, "first") == []
    assert found(index, "second") == [1]
    index.remove([PassageId(1), PassageId(99)])
    assert found(index, "second") == [1]  # until the commit
    index.commit(2)
    assert found(index, "second") == []
    assert index.passage_ids() == {2}
    fill(index, turn(1, "third version"))
    assert found(index, "version") == [1]
    assert index.passage_count == 2


@pytest.mark.parametrize("share", [1, 10, 500])
def test_only_allowed_passages_are_found_and_none_that_is_excluded(
    index: TantivyTextIndex, share: int
) -> None:
    """Few are asked for by id, many are filtered out of what ranks."""
    fill(index, *(turn(number, f"apple {'apple ' * (number % 7)}") for number in range(1, 1001)))
    allowed = frozenset(PassageId(number) for number in range(1, 1001, 1000 // share))
    excluded = frozenset({PassageId(1)})
    hits = index.search("apple", 20, allowed, excluded)
    assert {passage_of(hit.part_id) for hit in hits} <= allowed - excluded
    assert len(hits) == min(20, len(allowed) - 1)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    everywhere = [hit for hit in index.search("apple", 1000) if passage_of(hit.part_id) in allowed]
    assert scores == pytest.approx(
        [hit.score for hit in everywhere if passage_of(hit.part_id) != 1][:20]
    )


def test_nothing_is_allowed_or_asked_for(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "apple"))
    assert index.search("apple", 10, allowed=frozenset()) == []
    assert index.search("apple", 0) == []
    assert index.search("", 10) == []
    assert index.search("!!", 10) == []


def test_each_message_is_found_by_its_own_words(index: TantivyTextIndex) -> None:
    fill(index, talk(1, "Where is the hose?", "In the shed.", "And the rake?", "In the shed too."))
    assert found_parts(index, "rake") == [part_id(1, 2)]
    assert set(found_parts(index, "shed")) == {part_id(1, 1), part_id(1, 3)}
    assert index.passage_count == 1
    assert index.passage_ids() == {1}


def test_of_equals_the_newer_message_comes_first(index: TantivyTextIndex) -> None:
    fill(index, *(turn(number, "apple pie") for number in (1, 3, 2)))
    assert found(index, "apple") == [3, 2, 1]


def test_candidates_are_the_best_by_their_words_and_the_best_by_those_around_them(
    index: TantivyTextIndex,
) -> None:
    fill(
        index,
        turn(1, "Which fruit?", "Quinces."),
        turn(2, "Apples.", "Which fruit do you mean, and is it ripe by now?"),
        *(turn(number, f"Number {number}", "Nothing.") for number in range(3, 20)),
    )
    by_words = {hit.part_id for hit in index.search("quinces", 10)}
    assert by_words == {part_id(1, 1)}
    query = parse_query("quinces")
    assert index.candidates(query, 10) == {part_id(1, 0), part_id(1, 1)}, "the context has it too"
    assert index.candidates(query, 10, excluded=frozenset({PassageId(1)})) == frozenset()
    assert index.candidates(query, 10, allowed=frozenset({PassageId(2)})) == frozenset()
    assert len(index.candidates(parse_query("nothing"), 5)) in range(5, 11)


def test_a_passage_without_words_counts_and_is_never_found(index: TantivyTextIndex) -> None:
    fill(index, talk(1), turn(2, "apple"))
    assert index.passage_count == 2
    assert index.passage_ids() == {1, 2}
    assert found(index, "apple") == [2]
    index.remove([PassageId(1)])
    index.commit(2)
    assert index.passage_count == 1


def test_words_are_counted(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "apple pie"), turn(2, "apples"), turn(3, tools="pie"))
    assert index.document_frequencies("the apple pie plum") == {"apple": 2, "pie": 1, "plum": 0}


def test_it_is_found_again_after_closing(tmp_path: Path) -> None:
    first = TantivyTextIndex(tmp_path / "text", "one")
    assert first.needs_rebuild is RebuildReason.MISSING
    first.start_over()
    fill(first, turn(1, "apple"))
    first.put([turn(2, "never committed")])
    first.close()
    again = TantivyTextIndex(tmp_path / "text", "one")
    assert again.needs_rebuild is None
    assert again.position == 1
    assert found(again, "apple") == [1]
    assert found(again, "committed") == []
    fill(again, turn(1, "pear"), turn(3, "plum"))
    assert found(again, "apple") == []
    assert again.passage_ids() == {1, 3}
    again.close()


def test_an_index_of_another_database_or_an_older_program_must_be_rebuilt(tmp_path: Path) -> None:
    first = TantivyTextIndex(tmp_path, "one")
    first.start_over()
    fill(first, turn(1, "apple"))
    first.close()
    other = TantivyTextIndex(tmp_path, "two")
    assert other.needs_rebuild is RebuildReason.OTHER_GENERATION
    assert other.position == 0
    with pytest.raises(IndexUnavailable):
        other.search("apple", 1)
    with pytest.raises(IndexUnavailable):
        other.put([turn(1, "apple")])
    with pytest.raises(IndexUnavailable):
        other.commit(3)
    seal = tmp_path / "seal.json"
    seal.write_text(seal.read_text().replace('"format":"', '"format":"0'))
    assert TantivyTextIndex(tmp_path, "one").needs_rebuild is RebuildReason.OLD_FORMAT
    other.start_over()
    assert other.needs_rebuild is None
    assert found(other, "apple") == []


def test_a_rebuild_that_was_broken_off_is_noticed_and_can_go_on(tmp_path: Path) -> None:
    first = TantivyTextIndex(tmp_path, "one")
    first.start_over()
    first.put([turn(1, "apple")])
    first.commit(None)
    first.close()
    again = TantivyTextIndex(tmp_path, "one")
    assert again.needs_rebuild is RebuildReason.UNFINISHED
    assert found(again, "apple") == [1]
    fill(again, turn(2, "apple"))
    assert again.needs_rebuild is None
    assert sorted(found(again, "apple")) == [1, 2]
    again.close()


def test_searches_go_on_while_another_thread_writes(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "apple"))
    done = threading.Event()
    wrong: list[object] = []

    def look() -> None:
        while not done.is_set():
            hits = index.search("apple", 1000)
            counts = {passage_of(hit.part_id) for hit in hits}
            if len(counts) % 20 != 1 or len(hits) != len(counts):
                wrong.append(len(hits))

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for batch in range(10):
        first = 2 + batch * 20
        index.put([turn(number, "apple") for number in range(first, first + 20)])
        index.commit(batch + 2)
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert index.passage_count == 201


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files are held on Linux alone")
def test_the_last_to_let_go_of_a_merged_file_is_never_a_commit(index: TantivyTextIndex) -> None:
    """Its end keeps the interpreter's lock, while the disk frees the file."""
    missed = seen = 0
    others = mapped_segments() | held_segments()  # of tests whose indexes are not collected yet
    for number in range(1, 31):  # merges begin with the eighth
        fill(index, turn(number, f"apple number {number}"))
        mapped, held = mapped_segments() - others, held_segments()
        seen += len(mapped)
        missed += len(mapped - held)
    assert seen > 30 * 6
    assert missed < seen / 10  # a merge may end between a commit and the look at the folder
    index.close()
    assert held_segments() <= others


def mapped_segments() -> set[str]:
    """The files of segments that are mapped, by their inodes, which outlive their names."""
    rows = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
    return {row[4] for row in rows if len(row) == 6 and "/words-" in row[5]}


def held_segments() -> set[str]:
    """The files of segments that are open, in the same way."""
    held = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if "/words-" in str(each.readlink()):
                held.add(str(each.stat().st_ino))
    return held


def test_when_the_disk_refuses_nothing_counts_since_the_last_commit(
    index: TantivyTextIndex, tmp_path: Path
) -> None:
    fill(index, turn(1, "apple"))
    index.put([turn(2, "pear")])
    (files,) = (tmp_path / "text").glob("words-*")
    away = files.rename(tmp_path / "away")
    with pytest.raises(IndexUnavailable) as refusal:
        index.commit(2)
    assert refusal.value.hint
    assert index.position == 1
    assert found(index, "apple") == [1]
    away.rename(files)
    index.put([turn(2, "pear")])
    index.commit(2)
    assert found(index, "pear") == [2]


def test_a_position_that_could_not_be_saved_is_saved_the_next_time(
    index: TantivyTextIndex, tmp_path: Path
) -> None:
    fill(index, turn(1, "apple"))
    index.put([turn(2, "pear")])
    seal_in_the_way = tmp_path / "text" / "seal.json.new"
    seal_in_the_way.mkdir()
    with pytest.raises(IndexUnavailable):
        index.commit(2)
    assert index.position == 1
    seal_in_the_way.rmdir()
    index.commit(2)
    assert index.position == 2
    assert found(index, "pear") == [2]


def test_a_passage_may_be_ten_megabytes(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "big", "lorem ipsum dolor " * 600_000 + "needle"))
    assert found(index, "needle") == [1]
    assert found(index, '"dolor needle"') == [1]


def test_lone_surrogates_and_nul_do_no_harm(index: TantivyTextIndex) -> None:
    fill(index, turn(1, "a\ud800b \x00 apple", "\udfff"))
    assert found(index, "apple") == [1]
    assert index.search("\ud800 \x00", 5) == []

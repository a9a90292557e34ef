"""Topics: found, named, decided about, filtered by, and gone with what is forgotten."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from app.chat.projects import Projects
from app.check import check
from app.commands.command import CommandContext, parse
from app.commands.library import topics_command
from app.domain.change_set import ChangeSet
from app.domain.changes import ConversationEdited
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId
from app.domain.links import link_to
from app.domain.records.facts import FactCategory
from app.domain.records.projects import Project, RecallRule
from app.domain.records.topics import TopicId
from app.memory.topics.clusters import cluster, cluster_count, linked, match, unit_rows
from app.memory.topics.names import TermCounts, TitledText, distinct_name
from app.storage.deletion.forget import forget, forget_messages, forget_value
from app.storage.engine.store import Store
from app.storage.safety.backup import make_backup
from app.storage.tables.spending import Spending
from app.storage.tables.topics import StoredTopic, TopicMember, TopicRows
from app.transfer.exporting import ExportFormat, export
from app.transfer.importing import import_files
from app.workers.job_interface import Blocked
from app.workers.prompts_and_answers import Prompt
from tests.fakes.background import ScriptedAsker
from tests.fakes.canary import CANARY, files_after_erasing, files_with, plain_databases
from tests.fakes.command_line import Console
from tests.fakes.fixtures import fixture_of
from tests.fakes.searchable import Library
from tests.fakes.stored import AT, ConversationRecord, add_conversation, execute, killed, opened
from tests.fakes.topics import TopicLibrary

LATER = AT + timedelta(days=100)


library = fixture_of(TopicLibrary, "store")


def ids(records: list[ConversationRecord]) -> set[ConversationId]:
    return {each.conversation.id for each in records}


# -- finding
def test_conversations_on_one_subject_share_a_topic_new_ones_join(library: TopicLibrary) -> None:
    made = library.fill()
    topics = library.service.topics()
    assert sorted(each.conversations for each in topics) == [8, 8, 8]
    for subject, records in made.items():
        topic = library.topic_of(records[0])
        assert {each.id for each in library.service.conversations(topic.id)} == ids(records)
        assert subject in topic.name.casefold()
        assert (topic.first_at, topic.last_at) == (
            records[0].conversation.created_at,
            records[-1].conversation.updated_at,
        )
    named = {each.id: each.name for each in library.service.topics()}
    new = library.talk("tomato")
    library.find()
    assert library.topic_of(new).id == library.topic_of(made["tomato"][0]).id
    assert {each.id: each.name for each in library.service.topics()} == named


def test_topics_keep_their_ids_and_names_when_they_are_found_anew(library: TopicLibrary) -> None:
    made = library.fill()
    before = {subject: library.topic_of(records[0]) for subject, records in made.items()}
    for subject in made:
        library.talk(subject)
    library.find()
    work = TopicRows(library.store).work(library.bag.space)
    assert (work.fitted, work.unassigned, work.nameless) == (27, 0, 0)
    for subject, topic in before.items():
        after = library.topic_of(made[subject][0])
        assert (after.id, after.name) == (topic.id, topic.name)


def test_few_conversations_have_no_topics(library: TopicLibrary) -> None:
    for _ in range(7):
        library.talk("heron")
    assert library.find().completed == 0
    assert library.service.topics() == ()


def test_without_vectors_there_is_nothing_to_do(library: TopicLibrary) -> None:
    library.settings.set("embedding_pipeline_enabled", False)
    library.fill()
    assert library.service.topics() == ()


# -- names by a model
def topic_names(asker: ScriptedAsker) -> None:
    """Let each request be answered with a name for each topic, from its second line: a title."""

    def answer(prompt: Prompt) -> None:
        pieces = prompt.user.split("topic ")[1:]
        titles = [each.splitlines()[2] for each in pieces if each[0].isdecimal()]
        names = [
            {"number": at, "name": f" All about\n{title}"}
            for at, title in enumerate(titles, start=1)
        ]
        asker.otherwise = {"names": [*names, {"number": 99, "name": "Nothing"}]}

    asker.before = answer


def test_a_model_names_each_topic_once_until_one_of_it_is_forgotten(store: Store) -> None:
    asker = ScriptedAsker()
    topic_names(asker)
    library = TopicLibrary(store, asker)
    made = library.fill()
    named = {subject: library.topic_of(own[0]).name for subject, own in made.items()}
    assert named["heron"] == "All about heron gateway"
    assert len(asker.asked) == 1
    library.find()
    library.talk("tomato")
    library.find()
    assert len(asker.asked) == 1
    for _ in range(4):  # enough to find topics anew
        library.talk("heron")
    library.find()
    assert {subject: library.topic_of(own[0]).name for subject, own in made.items()} == named
    assert Spending(store).totals("topic_finder").tokens == 15 * len(asker.asked)
    asker.model = ""
    forget(store, [made["heron"][0].conversation.id])
    assert "All about" not in library.topic_of(made["heron"][1]).name
    library.find()
    assert "heron" in library.topic_of(made["heron"][1]).name.casefold()


def test_a_model_that_is_chosen_later_names_the_topics_there_are(store: Store) -> None:
    asker = ScriptedAsker(model="")
    topic_names(asker)
    library = TopicLibrary(store, asker)
    made = library.fill()
    assert asker.asked == []
    library.service.rename(library.topic_of(made["sonata"][0]).id, "Strings")
    asker.model = "scripted:1"
    library.find()
    assert library.topic_of(made["heron"][0]).name == "All about heron gateway"
    assert library.topic_of(made["sonata"][0]).name == "Strings"
    assert "sonata" not in asker.asked[0][0].user


def test_where_the_model_fails_words_name_topics_until_a_change(store: Store) -> None:
    asker = ScriptedAsker(Blocked("no consent"))
    library = TopicLibrary(store, asker)
    made = library.fill()
    by_words = library.topic_of(made["heron"][0]).name
    assert "heron" in by_words.casefold()
    topic_names(asker)
    library.talk("heron")
    library.find()
    assert library.topic_of(made["heron"][0]).name == by_words
    assert len(asker.asked) == 1
    library.job.note(ChangeSet(settings=frozenset({"background_consent"})))
    library.find()
    assert library.topic_of(made["heron"][0]).name == "All about heron gateway"


# -- decisions
def test_a_renamed_topic_keeps_conversations_and_names_have_limits(library: TopicLibrary) -> None:
    made = library.fill()
    topic = library.topic_of(made["heron"][0])
    assert library.service.rename(topic.id, "  The  bird ").name == "The bird"
    for _ in range(6):
        library.talk("sonata")
    library.find()
    again = library.service.topic("the bird")
    assert (again.id, again.is_named) == (topic.id, True)
    assert {each.id for each in library.service.conversations(topic.id)} == ids(made["heron"])
    assert library.service.rename(topic.id, "").name == topic.name
    with pytest.raises(InvalidInput):
        library.service.rename(library.topic_of(made["heron"][0]).id, "x" * 81)
    with pytest.raises(NotFound):
        library.service.rename(TopicId(99), "Name")


def test_merged_topics_stay_merged_until_they_are_split(library: TopicLibrary) -> None:
    made = library.fill(6)
    first, second = (library.topic_of(made[each][0]).id for each in ("heron", "sonata"))
    merged = library.service.merge([first], second)
    assert (merged.id, merged.conversations) == (second, 12)
    for _ in range(6):
        library.talk("heron")
    library.find()
    assert library.service.topic(str(second)).conversations == 18
    with pytest.raises(NotFound):
        library.service.topic(str(first))
    library.service.split(second)
    assert library.service.topic(str(first)).conversations == 12
    with pytest.raises(NotFound):
        library.service.split(second)


def test_what_was_merged_follows_when_its_topic_is_merged(library: TopicLibrary) -> None:
    made = library.fill()
    one, two, three = (library.topic_of(records[0]).id for records in made.values())
    library.service.merge([one], two)
    library.service.merge([two], three)
    assert [each.conversations for each in library.service.topics()] == [24]
    with pytest.raises(InvalidInput):
        library.service.merge([three], three)


def test_decisions_survive_kills_and_rebuilding(library: TopicLibrary, tmp_path: Path) -> None:
    made = library.fill()
    topic = library.topic_of(made["heron"][0])
    execute(library.store, "DELETE FROM topic", "DELETE FROM topic_member")
    with pytest.raises(NotFound):
        library.service.rename(topic.id, "The bird")
    library.find()
    topic = library.topic_of(made["heron"][0])
    make_backup(library.store)
    library.service.rename(topic.id, "The bird")
    with opened(killed(library.store, tmp_path / "killed")) as again:
        execute(again, "DELETE FROM topic")
        other = TopicLibrary(again)
        other.find()
        found = other.service.topic("The bird")
        assert found.id == topic.id
        assert {each.id for each in other.service.conversations(found.id)} == ids(made["heron"])
        assert not check(again).problems


# -- search
def test_a_search_is_filtered_by_topic_and_hidden_ones_are_listed(library: TopicLibrary) -> None:
    made = library.fill()
    topic = library.topic_of(made["tomato"][0])
    found = Library(library.store)
    for query in (f"topic:{topic.id}", "topic:tomato", "please topic:tomato"):
        assert {each.conversation_id for each in found.search(query, 50)} == ids(made["tomato"])
    library.service.rename(topic.id, "Kitchen garden")
    assert len(found.search('topic:"kitchen garden"', 50)) == 8
    assert not found.search("topic:tomato", 50)
    library.service.merge([library.topic_of(made["heron"][0]).id], topic.id)
    assert len(found.search("please topic:kitchen", 50)) == 16
    library.service.hide(topic.id)
    assert topic.id not in {each.id for each in library.service.topics()}
    assert topic.id in {each.id for each in library.service.topics(hidden=True)}
    library.service.hide(topic.id, hidden=False)
    assert topic.id in {each.id for each in library.service.topics()}


# -- hiding and forgetting
def names(library: TopicLibrary) -> str:
    return " ".join(name for _, name in library.store.rows("SELECT id, name FROM topic")).casefold()


def secretive(library: TopicLibrary) -> list[ConversationRecord]:
    """Return conversations whose topic is named by a word that no other one has."""
    library.fill()
    made = [library.talk("heron", CANARY, title=f"{CANARY} works") for _ in range(8)]
    library.find()
    assert CANARY.casefold() in names(library)
    return made


@pytest.mark.parametrize("edit", [{"deleted_at": AT}, {"private": True}])
def test_words_of_hidden_conversations_leave_the_names_at_once(
    library: TopicLibrary, edit: dict[str, object]
) -> None:
    made = secretive(library)
    for each in made:
        library.store.save(ConversationEdited(each.conversation.id, **edit))  # type: ignore[arg-type]
    assert CANARY.casefold() not in names(library)
    library.find()
    assert CANARY.casefold() not in names(library)
    shown = {
        one.id
        for each in library.service.topics()
        for one in library.service.conversations(each.id)
    }
    assert not shown & ids(made)


def test_forgotten_words_are_in_no_name_and_no_file(tmp_path: Path) -> None:
    with plain_databases(), opened(tmp_path / "data") as store:
        library = TopicLibrary(store)
        made = secretive(library)
        make_backup(store)
        assert files_with(tmp_path)
        forget(store, [each.conversation.id for each in made])
        assert CANARY.casefold() not in names(library)
        library.find()
        assert not check(store).problems
        assert not files_after_erasing(store)


def test_a_forgotten_value_leaves_automatic_and_chosen_names(library: TopicLibrary) -> None:
    made = secretive(library)
    library.service.rename(library.topic_of(made[0]).id, f"All about {CANARY}")
    forget_value(library.store, CANARY)
    library.find()
    assert CANARY.casefold() not in names(library)
    assert not library.store.rows("SELECT * FROM topic_choice WHERE contains(name, ?)", [CANARY])


def test_a_forgotten_message_takes_its_words_from_the_name(library: TopicLibrary) -> None:
    made = secretive(library)
    for each in made:
        forget_messages(library.store, [each.messages[0].id])
    assert CANARY.casefold() not in names(library)


def test_the_check_repairs_a_topic_of_a_missing_conversation(library: TopicLibrary) -> None:
    library.fill()
    execute(library.store, "INSERT INTO topic_member VALUES (999, 1, 1.0)")
    assert check(library.store).repairable == 1
    assert not check(library.store, repair=True).problems


# -- the command line
def test_topics_on_the_command_line(store: Store) -> None:
    library = TopicLibrary(store)
    library.fill()
    root = store.paths.root
    store.close()
    console = Console(root)
    try:
        listed = console.json("topics")["topics"]
        assert {each["conversations"] for each in listed} == {8}
        first, second, _ = (each["topic_id"] for each in listed)
        shown = console.json("topics", "show", first)
        assert len(shown["conversations"]) == 8
        assert (
            console.json("topics", "rename", first, "Two", "words")["topic"]["name"] == "Two words"
        )
        assert console.json("topics", "merge", "two words", second)["topic"]["conversations"] == 16
        assert console.json("topics", "split", second)["topic"]["conversations"] == 8
        assert console.json("topics", "hide", first)["topic"]["is_hidden"]
        assert first not in {each["topic_id"] for each in console.json("topics")["topics"]}
        assert len(console.json("topics", "list", "--all")["topics"]) == 3
        assert console("topics", "show", "nothing").code == 1
        assert console("topics", "merge", first).code == 2
        assert "Two words" in console.done("topics", "list", "--all").out
    finally:
        console.close()


# -- parts
def test_names_distinguish_groups_in_several_languages() -> None:
    texts = [
        *(TitledText("Heron gateway", f"How do I configure the Heron gateway {n}?") for n in "abc"),
        *(
            TitledText("Tomaten im Garten", "Wann muss ich die Tomaten im Garten gießen?")
            for _ in "abc"
        ),
        *(TitledText("学习中国书法", "我想学习中国书法, 怎么开始") for _ in "abc"),
    ]
    counts = TermCounts(texts)
    heron, garden, brush = counts.names([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    assert "heron gateway" in heron.casefold()
    assert "tomaten" in garden.casefold()
    assert "书法" in brush
    assert counts.names([[0, 1, 2]], ["Gateway"]) == ["Gateway"]
    assert counts.names([[0, 1, 2]], ["Garden"]) != ["Garden"]


def test_the_capital_of_a_title_is_not_that_of_its_word_in_a_name() -> None:
    pairs = [("Levain and crust", "levain", "crust"), ("Crust and levain", "crust", "levain")]
    texts = [TitledText(title, f"Is the {a} or the {b} of Bern better?") for title, a, b in pairs]
    others = [TitledText("Boats", f"A boat of the {n} kind sails.") for n in ("first", "other")]
    (name, _) = TermCounts([*texts, *others]).names([[0, 1], [2, 3]])
    words = name.split(", ")
    assert [each.casefold() for each in words[1:]] == words[1:]
    assert {each.casefold() for each in words} == {"levain", "crust"}


def test_clusters_are_the_same_for_the_same_vectors() -> None:
    random = np.random.default_rng(3)
    centers = unit_rows(random.standard_normal((4, 32)).astype(np.float32))
    labels = np.repeat(np.arange(4), 8)
    rows = unit_rows(centers[labels] + 0.1 * random.standard_normal((32, 32)).astype(np.float32))
    assert cluster_count(32) == 4
    found = cluster(rows)
    for number in range(4):
        assert len(set(found.labels[labels == number].tolist())) == 1
    assert (cluster(rows).labels == found.labels).all()
    assert match(found.centroids[::-1], found.centroids) == {0: 3, 1: 2, 2: 1, 3: 0}


def test_a_wider_topic_has_another_name_than_those_below_it() -> None:
    assert distinct_name("Tea, cups", ["Tea, pots", "Coffee"]) == "Tea, cups"
    assert distinct_name("Tea, cups", ["Tea, cups", "Coffee", "Tea, pots"]) == "Tea, Coffee"


def test_a_wider_topic_with_nothing_but_one_below_it_is_not_listed(library: TopicLibrary) -> None:
    made = library.fill(4)
    wide = [each.conversation.id for each in made["heron"] + made["tomato"]]
    rows = TopicRows(library.store)
    names = [StoredTopic(TopicId(1), "H", TopicId(9)), StoredTopic(TopicId(2), "T", TopicId(9))]
    members = [TopicMember(each, TopicId(1 + at // 4), 0.9) for at, each in enumerate(wide)]
    rows.replace([*names, StoredTopic(TopicId(9), "HT", None)], members, 8, "")
    assert {(each.id, each.parent_id) for each in library.service.topics()} == {
        (9, None), (1, 9), (2, 9),
    }  # fmt: skip
    library.service.merge([TopicId(2)], TopicId(1))
    assert [(each.id, each.parent_id) for each in library.service.topics()] == [(1, None)]
    library.service.rename(TopicId(9), "Both")
    assert [each.id for each in library.service.topics()] == [9, 1]


def test_near_clusters_form_wider_groups() -> None:
    axes = np.eye(12, dtype=np.float32)
    near = [axes[group] + 0.3 * axes[4 + number] for group in range(3) for number in range(3)]
    groups = linked(unit_rows(np.stack(near)))
    assert [len(set(groups[at : at + 3].tolist())) for at in (0, 3, 6)] == [1, 1, 1]
    assert len(set(groups.tolist())) == 3
    assert (linked(axes[:5]) == -1).all()


def test_a_decision_is_listed_with_its_topic(library: TopicLibrary) -> None:
    made = library.fill()
    Library(library.store).fact(
        "We retry three times", made["heron"][2], category=FactCategory.DECISION
    )
    assert library.topic_of(made["heron"][0]).decision == "We retry three times"
    assert library.topic_of(made["tomato"][0]).decision == ""


def test_a_private_conversation_has_no_topic(library: TopicLibrary) -> None:
    library.fill()
    hidden = library.talk("heron", private=True)
    library.find()
    assert TopicRows(library.store).place(hidden.conversation.id) is None


# -- moving
def test_decisions_are_part_of_an_export_of_ones_own(library: TopicLibrary, tmp_path: Path) -> None:
    made = library.fill()
    first, second, third = (library.topic_of(records[0]).id for records in made.values())
    library.service.rename(first, "The bird")
    library.service.merge([second], third)
    out = tmp_path / "export.json"
    export(library.store, out, ExportFormat.JSON)
    for own, named in ((False, False), (True, True)):
        with opened(tmp_path / f"own {own}") as other:
            import_files(other, [out], own=own)
            moved = TopicLibrary(other)
            moved.find()
            names = {each.name: each.conversations for each in moved.service.topics()}
            assert (names.get("The bird") == 8) is named
            assert (16 in names.values()) is named
            assert not check(other).problems


# -- trails
def test_a_known_subject_has_a_trail_and_a_new_one_none(library: TopicLibrary) -> None:
    made = library.fill()
    fifth, first = library.talk("heron"), made["heron"][0]
    new = add_conversation(
        library.store, "pasta dough eggs flour rolling ravioli filling ricotta spinach", at=LATER
    )
    library.find()
    trail = library.service.trail(fifth.conversation.id)
    assert trail.topic.id == library.topic_of(first).id
    assert [each.id for each in trail.earlier] == sorted(ids(made["heron"]))
    trail_of_first = library.service.trail(first.conversation.id)
    assert not trail_of_first.earlier
    assert {each.id for each in trail_of_first.later} == ids([*made["heron"][1:], fifth])
    assert library.service.trail(new.conversation.id) is None


def test_a_trail_leaves_out_what_is_hidden(library: TopicLibrary) -> None:
    made = library.fill()
    last = library.talk("heron")
    library.find()
    gone, *_ = made["heron"]
    library.store.save(ConversationEdited(gone.conversation.id, deleted_at=AT))
    trail = library.service.trail(last.conversation.id)
    assert {each.id for each in trail.earlier} == ids(made["heron"][1:])
    library.service.hide(trail.topic.id)
    assert library.service.trail(last.conversation.id) is None


def test_a_trail_stays_inside_the_boundary_of_its_project(library: TopicLibrary) -> None:
    made = library.fill()
    projects = Projects(library.store)
    kept, free = made["heron"][:2], made["heron"][2:]
    bounded = projects.save(Project("", "Gates", recall=RecallRule.ONLY))
    projects.move([each.conversation.id for each in kept], bounded.uid)
    last = library.talk("heron")
    library.find()

    def earlier() -> set[ConversationId]:
        trail = library.service.trail(last.conversation.id)
        return {each.id for each in trail.earlier}

    assert earlier() == ids(free)
    projects.move([last.conversation.id], bounded.uid)
    assert earlier() == ids(kept)


def test_topics_are_listed_by_typing(library: TopicLibrary) -> None:
    made = library.fill()
    command = topics_command(library.service)

    def typed(text: str) -> str:
        return command.run(parse(text, CommandContext())).markdown

    topic = library.topic_of(made["heron"][0])
    assert len(typed("/topics").splitlines()) == 3
    assert topic.name in typed("/topics")
    shown = typed(f"/topics {topic.id}")
    links = {link_to(each, 0) for each in ids(made["heron"])}
    assert all(each in shown for each in links)
    with pytest.raises(NotFound):
        typed("/topics nothing")


def test_unrelated_conversations_are_no_topic(library: TopicLibrary) -> None:
    for number in range(12):
        words = " ".join(f"word{number}{letter}" for letter in "abcdefghij")
        add_conversation(library.store, (words, words))
    library.find()
    assert TopicRows(library.store).work(library.bag.space).unassigned == 0
    assert library.service.topics() == ()

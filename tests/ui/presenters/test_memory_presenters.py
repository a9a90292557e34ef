"""Presenters of recall, explanations and saved memories, each alone with fakes."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from app.chat.inspector import Contribution, SentSummary
from app.domain.change_set import ChangeSet
from app.domain.diagnostics import Probe, ProbeDetails
from app.domain.errors import IndexUnavailable, InvalidInput, NotFound, StorageError
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import Verdict
from app.domain.records.facts import Memory
from app.domain.results import SearchResponse
from app.storage.tables.memories import CoreMemoryText, KnownMemory
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import AT, TALK, Parts, Pause, Recorder, press, view_of
from tests.ui.presenters.test_search_views import explained, result
from tests.ui.views.test_inspector import source
from ui.presenters.conversation.inspector import ExplainPresenter, InspectorPresenter
from ui.presenters.conversation.recall import RecallPresenter
from ui.presenters.memory.memories import MemoriesPresenter
from ui.views.memory.inspector import InspectorView
from ui.views.memory.knowledge_view import KnowledgeView
from ui.views.memory.questions_view import QuestionsView
from ui.widgets.transcript.heights import AtEnd, Centered

HERE = ChangeSet(conversations=frozenset({TALK}))


# -- recall
class Recall:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.is_on, self.statuses = parts, True, list[tuple[Any, ...]]()
        self.found = {ExchangeId(2): Contribution((source(1), source(2)), "slow")}
        self.inspector = Recorder(contributions=lambda wanted: {
            each: self.found[each] for each in wanted if each in self.found
        })  # fmt: skip
        self.library = Recorder()
        self.presenter = parts.make(
            RecallPresenter, inspector=self.inspector, library=self.library,
            is_on=lambda: self.is_on,
        )  # fmt: skip
        self.presenter.status_changed.connect(lambda *given: self.statuses.append(given))
        parts.open.open_path(view_of(1, 2))


recall = fixture_of(Recall)


def test_sources_are_shown_under_answers_and_opened(recall: Recall) -> None:
    transcript = recall.parts.transcript
    recall.inspector.results["sent_summary"] = SentSummary(
        "Of boats", view_of(2).path[0].message_ids[0]
    )
    transcript.content_requested.emit(-1, 1)
    assert [each[:2] for each in transcript.calls] == [
        ("show_sources", 1),
        ("show_summary_note", 1),
    ]
    assert transcript.calls[1][2] == "Of boats"
    assert [chip.number for chip in transcript.calls[0][2].chips] == [0, 1]
    assert recall.statuses[-1] == ("Memory incomplete", "slow.", True, True)
    for turn, number in ((1, 1), (1, 9), (0, 0), (9, 0)):
        transcript.events.source_clicked.emit(turn, number)
    assert recall.parts.went == [("turn", ConversationId(7), ExchangeId(2), None)]

    transcript.take()
    recall.inspector.results["sent_summary"] = None
    recall.parts.bridge.changed.emit(ChangeSet(exchanges=frozenset({ExchangeId(2), ExchangeId(9)})))
    recall.parts.bridge.changed.emit(ChangeSet(passages=True, memory=True))  # a deletion
    notes = [each for each in transcript.take() if each[0] == "show_summary_note"]
    assert notes == [("show_summary_note", 1, "")] * 2
    recall.parts.bridge.changed.emit(ChangeSet(passages=True))
    recall.parts.open.open_path(view_of(1))
    recall.parts.bridge.changed.emit(ChangeSet(passages=True, memory=True))
    assert transcript.take() == []
    assert recall.statuses[-1] == ("", "", True, True)


def test_a_read_that_ends_late_does_not_replace_a_newer_one(recall: Recall) -> None:
    bridge, running, ended = recall.parts.bridge, source(1), replace(source(1), cited=True)
    first = True

    async def run(call: Callable[[], Any]) -> Any:
        nonlocal first
        is_first, first = first, False
        found = call()
        while is_first and bridge.is_held:
            await Pause()
        return found

    bridge.run = run  # type: ignore[method-assign]
    bridge.hold()
    for shown in (running, ended):
        recall.found = {ExchangeId(2): Contribution((shown,))}
        bridge.changed.emit(ChangeSet(exchanges=frozenset({ExchangeId(2)})))
    bridge.release()
    calls = [each for each in recall.parts.transcript.take() if each[0] == "show_sources"]
    assert [each[2].chips[0].cited for each in calls] == [True]


def test_sources_in_files_are_shown_again_when_passages_change(recall: Recall) -> None:
    made = source(1)
    item = replace(made.place.item, kind=PassageKind.DOCUMENT)
    recall.found = {
        ExchangeId(2): Contribution((replace(made, place=replace(made.place, item=item)),))
    }
    recall.parts.transcript.content_requested.emit(0, 1)
    recall.parts.transcript.take()
    recall.parts.bridge.changed.emit(ChangeSet(passages=True))
    assert ("show_sources", 1) in [each[:2] for each in recall.parts.transcript.take()]


def test_a_summary_that_begins_at_the_first_turn_is_not_marked(recall: Recall) -> None:
    first = view_of(1).path[0].message_ids[0]
    recall.inspector.results["sent_summary"] = SentSummary("Of boats", first)
    recall.parts.transcript.content_requested.emit(1, 1)
    assert recall.parts.transcript.calls[-1] == ("show_summary_note", 0, "")


@pytest.mark.parametrize(
    ("change", "place"),
    [({}, ("turn", ConversationId(7), ExchangeId(4), None)),
     ({"kind": PassageKind.FACT, "exchange_id": None}, ("fact", PassageId(4))),
     ({"kind": PassageKind.MEMORY, "conversation_id": None}, ("memory", PassageId(4)))],
)  # fmt: skip
def test_sources_are_opened(recall: Recall, change: dict[str, Any], place: tuple[Any, ...]) -> None:
    given, shown = dict(change), source(4)
    details = shown.place
    if "exchange_id" in given:
        details = replace(details, exchange_id=given.pop("exchange_id"))
    details = replace(details, item=replace(details.item, **given))
    recall.presenter.open(replace(shown, place=details))
    assert recall.parts.went == [place]


def test_recall_is_switched_in_a_stored_and_in_a_new_conversation(recall: Recall) -> None:
    recall.presenter.switch(False)
    assert recall.library.calls == [("use_memory", TALK, False)]
    recall.parts.open.update(recalls=False)
    assert recall.statuses[-1] == ("Memory off here", "", False, True)
    recall.library.error = StorageError("The disk is full")
    recall.presenter.switch(True)
    assert len(recall.parts.banner.errors) == 1
    assert recall.statuses[-1][2] is False  # the switch goes back
    recall.parts.open.open_path(view_of(1, deleted_at=AT))
    assert recall.statuses[-1] == ("", "", True, False)

    recall.parts.open.open_path(None)
    assert recall.statuses[-1] == ("", "", True, True)
    recall.presenter.switch(False)
    assert recall.parts.open.new.recalls is False
    assert recall.statuses[-1] == ("Memory off here", "", False, True)
    recall.is_on = False
    recall.parts.bridge.changed.emit(ChangeSet(settings=frozenset({"rag_enabled"})))
    assert recall.statuses[-1] == ("Memory off", "", False, True)


# -- the inspector
class Inspecting:
    def __init__(self, parts: Parts) -> None:
        from tests.ui.views.test_inspector import inspection

        self.parts, self.view, self.opened = parts, InspectorView(), list[object]()
        self.shown_while_reading = list[bool]()

        def inspect(*_: object) -> object:
            self.shown_while_reading.append(not self.view.parts.isHidden())
            return inspection(source(1))

        self.service = Recorder(inspect=inspect)
        self.presenter = parts.make(
            InspectorPresenter, service=self.service, view=self.view,
            open_source=self.opened.append, is_recall_on=lambda: True,
        )  # fmt: skip
        self.view.show()
        parts.open.open_path(view_of(1, 2, 3))

    def take(self) -> list[tuple[Any, ...]]:
        """Return what was inspected since the last time: exchange and run."""
        calls = [each[1:] for each in self.service.calls if each[0] == "inspect"]
        self.service.calls.clear()
        return calls


inspecting = fixture_of(Inspecting)


def test_the_inspector_follows_the_selected_answer(inspecting: Inspecting) -> None:
    assert inspecting.take() == [(3, 0)]  # the newest
    inspecting.presenter.select(0)
    inspecting.presenter.select(9)
    inspecting.view.stepped.emit(1)
    inspecting.view.run_chosen.emit(1)
    assert inspecting.take() == [(1, 0), (2, 0), (2, 1)]
    assert inspecting.parts.transcript.calls == [("scroll_to_turn", 1)]
    for changed, expected in (
        (ChangeSet(exchanges=frozenset({ExchangeId(2)})), [(2, 1)]),
        (ChangeSet(exchanges=frozenset({ExchangeId(1)})), []),
        (HERE, [(2, 1)]),
        (ChangeSet(memory=True), [(2, 1)]),
        (ChangeSet(settings=frozenset({"rag_enabled"})), [(2, 1)]),
        (ChangeSet(settings=frozenset({"theme"})), []),
    ):
        inspecting.parts.bridge.changed.emit(changed)
        assert inspecting.take() == expected, changed
    inspecting.parts.open.open_path(view_of(1))
    assert inspecting.take() == [(1, 0)]
    assert not inspecting.view.parts.isHidden()
    inspecting.service.error = NotFound("It was deleted")
    inspecting.presenter.refresh()
    assert inspecting.view.parts.isHidden()
    inspecting.service.error = None
    inspecting.view.hide()
    inspecting.presenter.refresh()
    assert inspecting.take() == []
    inspecting.view.show()
    assert inspecting.take() == [(1, 0)]
    inspecting.parts.open.open_path(None)
    inspecting.parts.bridge.changed.emit(HERE)
    assert inspecting.take() == []


def test_no_answer_of_another_conversation_is_shown_while_one_is_read(
    inspecting: Inspecting,
) -> None:
    inspecting.presenter.select(1)
    inspecting.parts.open.open_path(view_of(4, 5))
    assert inspecting.shown_while_reading == [False, True, False]
    assert not inspecting.view.parts.isHidden()


def test_the_newest_answer_is_followed_when_a_turn_is_added(inspecting: Inspecting) -> None:
    for turn, expected in ((2, (4, 0)), (1, (2, 0))):
        inspecting.parts.open.open_path(view_of(1, 2, 3))
        inspecting.presenter.select(turn)
        inspecting.parts.open.view = view_of(1, 2, 3, 4)
        inspecting.parts.bridge.changed.emit(HERE)
        assert inspecting.take()[-1] == expected


def test_a_source_is_rated_and_opened(inspecting: Inspecting) -> None:
    shown = source(1)
    for verdict in (*Verdict, None):
        inspecting.view.recalled.judged.emit(shown, verdict)
    judged = [each[2] for each in inspecting.service.calls if each[0] == "vote"]
    assert judged == [*Verdict, None]
    assert len(set(inspecting.parts.banner.messages)) == len(judged)
    inspecting.service.error = StorageError("The disk is full")
    inspecting.view.recalled.judged.emit(shown, None)
    assert len(inspecting.parts.bridge.failures) == 1
    inspecting.view.recalled.open_requested.emit(shown)
    assert inspecting.opened == [shown]


# -- explanations and probes
class Explain:
    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.explainer = Recorder(explain=explained())
        self.probe = Probe("bread", ExchangeId(2), 1, AT)
        self.probes = Recorder(listed=[self.details(TALK)], run=self.run)
        self.coverage = Recorder(of_turns=lambda ids: {
            ids[0]: SimpleNamespace(sentence="Found.", words=True, meaning=True)
        })  # fmt: skip
        self.view = QuestionsView()
        self.presenter = parts.make(
            ExplainPresenter, explainer=self.explainer, probes=self.probes, coverage=self.coverage,
            view=self.view,
        )  # fmt: skip

    def details(self, conversation_id: ConversationId | None) -> ProbeDetails:
        return ProbeDetails(self.probe, conversation_id, "Talk", 1)

    def run(self, is_over: Callable[[], bool], on_progress: Callable[[int, int], None]) -> Any:
        assert not is_over()
        on_progress(1, 1)
        return [replace(self.details(TALK), probe=replace(self.probe, rank=4, before=1))]


explain = fixture_of(Explain)


def test_a_turn_is_explained_for_the_query_else_for_the_last_message(explain: Explain) -> None:
    explain.presenter.explain_current("nothing is open")
    explain.parts.open.open_path(view_of(1, 2, 3, project="g"))
    explain.presenter.note_message("The last\nmessage")
    for query in ("  bread ", ""):
        explain.presenter.explain_turn(1, query)
        explain.presenter.explain_turn(9, query)
    assert explain.explainer.calls == [
        ("explain", "bread", 2, "g"),
        ("explain", "The last message", 2, "g"),
    ], "as asked in the project of the last message"


@pytest.mark.parametrize(
    ("clicked", "visible", "anchor", "turn"),
    [(1, (0, 2), Centered(2), 1), (1, (2, 2), Centered(2), 2), (None, (0, 1), AtEnd(), 1),
     (None, (0, 2), AtEnd(), 1)],
    ids=["clicked", "clicked and left", "end", "middle"],
)  # fmt: skip
def test_the_turn_that_is_meant_is_explained(
    explain: Explain, clicked: int | None, visible: tuple[int, int], anchor: object, turn: int
) -> None:
    explain.parts.open.open_path(view_of(1, 2, 3))
    explain.parts.transcript.visible_items, explain.parts.transcript.anchor = visible, anchor
    if clicked is not None:
        explain.presenter.note_current_turn(clicked)
    explain.presenter.explain_current("bread")
    assert explain.explainer.calls == [("explain", "bread", turn + 1, None)]


def test_a_question_is_kept_and_its_error_shown(explain: Explain) -> None:
    dialog = explain.presenter.explain(ExchangeId(2), "Talk, turn 1", "bread")
    dialog._save.click()
    assert explain.probes.calls == [("add", "bread", 2)]
    assert dialog.status.text()
    explain.explainer.error = InvalidInput("The query is too short")
    dialog.begin()
    assert "too short" in dialog._headline.text()
    dialog.reject()


def test_coverage_of_a_turn_is_reported(explain: Explain) -> None:
    explain.presenter.show_coverage(0)
    explain.parts.open.open_path(view_of(1))
    explain.presenter.show_coverage(0)
    explain.presenter.show_coverage(1)
    assert explain.parts.banner.messages == ["Turn 1: Found."]
    assert explain.coverage.calls == [("of_turns", [1])]


def test_test_questions_are_listed_run_opened_and_removed(explain: Explain) -> None:
    view = explain.view
    view.show()
    row = view._table.topLevelItem
    assert [row(0).text(at) for at in (0, 2)] == ["bread", "1"]
    view.run_requested.emit()
    assert row(0).text(2).startswith("4")
    view.remove_requested.emit(explain.probe)
    assert ("drop", explain.probe) in explain.probes.calls
    explain.probes.error = IndexUnavailable("The index is being built")
    view.run_requested.emit()
    assert "being built" in view._words.text()
    view.turn_requested.emit(explain.details(TALK))
    assert explain.parts.open.shown == [(TALK, 2, None)]


# -- core memory and saved memories
class Memories:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.turns, self.deleted = parts, list[tuple[Any, ...]](), list[int]()
        self.view, self.pages = KnowledgeView(), list[str]()
        self.versions = [CoreMemoryText("Graz", "user", AT)]
        self.core = Recorder(versions=lambda: self.versions, set=self.set_core)
        self.core.max_tokens = 500  # type: ignore[attr-defined]
        self.saved = [
            KnownMemory(Memory(PassageId(1), "u1", "Green tea", AT, TALK, ExchangeId(5))),
            KnownMemory(Memory(PassageId(2), "u2", "Black coffee", AT)),
        ]
        self.memories = Recorder(
            known=lambda: self.saved, forget=("A backup remains.",), save=self.saved[1].memory
        )
        self.search = Recorder(search=SearchResponse("", (replace(result(2), is_weak=False),), 1.0))
        self.presenter = parts.make(
            MemoriesPresenter, core=self.core, memories=self.memories, search=self.search,
            view=self.view, open_turn=lambda *given: self.turns.append(given),
            open_page=self.pages.append, on_deleted=lambda: self.deleted.append(1),
        )  # fmt: skip
        self.view.show()
        self.presenter.refresh()

    def set_core(self, text: str) -> None:
        self.versions.insert(0, CoreMemoryText(text, "user", AT))

    def listed(self) -> list[int]:
        model = self.view.saved.model
        rows = (model.value_at(model.index(at, 0)) for at in range(model.rowCount()))
        return [int(each.memory.id) for each in rows if isinstance(each, KnownMemory)]


memories = fixture_of(Memories, then="view.hide")


@pytest.mark.parametrize(
    ("reply", "text", "leaves"),
    [("Save", "Wien", True), ("Discard", "Graz", True), ("Cancel", "Graz", False)],
)
def test_edited_core_memory_is_left_only_after_a_question(
    memories: Memories, reply: str, text: str, leaves: bool
) -> None:
    left: list[int] = []
    memories.view.core.text.setPlainText("Wien")
    memories.parts.bridge.changed.emit(ChangeSet(memory=True))  # keeps the edit
    memories.presenter.ask_before_leaving(lambda: left.append(1))
    assert memories.pages == ["core"]
    press(reply, memories.view)
    assert memories.versions[0].text == text
    assert bool(left) is leaves
    assert memories.view.core.is_edited is not leaves


def test_an_error_of_core_memory_is_shown_beside_the_edit(memories: Memories) -> None:
    memories.presenter.ask_before_leaving(lambda: memories.deleted.append(9))
    assert memories.deleted == [9]  # nothing is edited
    memories.core.results["set"] = lambda _text: (_ for _ in ()).throw(InvalidInput("Too long"))
    memories.view.core.text.setPlainText("Wien")
    memories.view.core.save_requested.emit("Wien")
    assert "Too long" in memories.view.core._problem.text()
    assert memories.view.core.text.toPlainText() == "Wien"
    memories.view.core.restore_requested.emit(AT)
    assert memories.core.calls[-2:] == [("restore", AT), ("versions",)]
    assert memories.view.core.text.toPlainText() == "Graz"


@pytest.mark.parametrize(
    ("text", "error", "ids"),
    [("", None, [1, 2]), ("tea", None, [2, 1]), ("tea", InvalidInput("Bad"), [1]),
     ("x", None, [2])],
)  # fmt: skip
def test_saved_texts_are_found_by_relevance_then_by_words(
    memories: Memories, text: str, error: Exception | None, ids: list[int]
) -> None:
    memories.search.error = error
    memories.view.saved.list_requested.emit(text)
    assert memories.listed() == ids


def test_a_text_is_saved_opened_and_forgotten(memories: Memories) -> None:
    saved = memories.view.saved
    memories.presenter.open(2)
    assert memories.pages == ["saved"]
    assert saved._selected() == memories.saved[1]
    saved.box.setText("tea")
    saved.new.setText("Black coffee")
    saved._add.click()
    assert memories.memories.calls[-2:] == [("save", "Black coffee"), ("known",)]
    assert (saved.new.text(), saved.box.text(), saved._selected()) == ("", "", memories.saved[1])
    saved.forget_requested.emit(memories.saved[0])
    press("Forget", memories.view)
    assert ("forget", 1) in memories.memories.calls
    assert memories.deleted == [1]
    assert "A backup remains." in memories.parts.banner.messages[0]
    memories.memories.error = StorageError("The disk is full")
    saved.new.setText("More")
    saved._add.click()
    assert "disk is full" in saved._status.text()
    for known in reversed(memories.saved):
        saved.source_requested.emit(known)
    assert memories.turns == [(TALK, 5, None)]


def test_changes_elsewhere_refresh_what_is_visible(memories: Memories) -> None:
    for changed, calls in (
        (HERE, [("known",)]),
        (ChangeSet(memory=True), [("known",), ("versions",)]),
        (ChangeSet(settings=frozenset({"core_memory_max_tokens"})), [("versions",)]),
        (ChangeSet(settings=frozenset({"theme"})), []),
    ):
        memories.memories.calls.clear()
        memories.core.calls.clear()
        memories.parts.bridge.changed.emit(changed)
        assert memories.memories.calls + memories.core.calls == calls
    memories.view.hide()
    memories.parts.bridge.changed.emit(ChangeSet(memory=True))
    assert memories.memories.calls == []

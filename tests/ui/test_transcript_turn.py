"""One turn on screen: what it shows, and what its buttons say was wished."""

from datetime import UTC, date, datetime, timedelta

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.domain.conversations import (
    Attachment,
    ExchangeStatus,
    Image,
    Problem,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.ids import MessageId
from app.domain.usage import Usage
from tests.fakes.transcripts import START, Shown, message, turn
from ui.theme import Theme
from ui.widgets.transcript.folds import Fold
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.panels import Divider
from ui.widgets.transcript.turn import STAND_IN, TurnWidget
from ui.widgets.transcript.values import (
    Branch,
    Footer,
    SourceChip,
    Sources,
    TurnContent,
    TurnHead,
)
from ui.widgets.transcript.view import TranscriptView
from ui.widgets.transcript.words import day_words, duration, footer_words, size


def show(qtbot: QtBot, *contents: TurnContent) -> tuple[TranscriptView, TurnWidget]:
    made = Shown(contents)
    qtbot.addWidget(made.view)
    qtbot.waitUntil(lambda: all_known(made.view))
    KEPT.append(made)
    widget = made.view.turn_widget(len(contents) - 1)
    assert widget is not None
    return made.view, widget


KEPT: list[Shown] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    KEPT.clear()


def all_known(view: TranscriptView) -> bool:
    first, last = view.visible_items
    widgets = [view.turn_widget(at) for at in range(first, last + 1)]
    return view.is_settled and all(each and each.content is not None for each in widgets)


def tool(widget: QWidget, text: str) -> QToolButton:
    return next(each for each in widget.findChildren(QToolButton) if text in each.text())


def action(widget: TurnWidget, frame: int, text: str) -> QToolButton:
    where = widget.frames()[frame]
    where.keep_actions(True)
    return next(each for each in where.meta.buttons if each.text() == text)


def clipboard() -> str:
    return QGuiApplication.clipboard().text()


def drawn(widget: TurnWidget) -> list[str]:
    return [text.composer.document.toPlainText() for text in widget.texts()]


# words


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(1200, 30, 800, 0.0042, first_token_ms=640, duration_ms=4200),
         "m  ·  1200 in (800 cached), 30 out  ·  $0.0042  ·  640 ms to first words  ·  4.2 s in all"),
        (Usage(10, 5, cost_usd=None), "m  ·  10 in, 5 out  ·  cost unknown"),
        (Usage(10, 5, cost_usd=0.0), "m  ·  10 in, 5 out  ·  no cost"),
        (Usage(10, 5, cost_usd=2.5, estimated=True), "m  ·  about 10 in, 5 out  ·  $2.50"),
        (Usage(10, 5, cost_usd=0.00001), "m  ·  10 in, 5 out  ·  under $0.0001"),
        (None, "m"),
    ],
)  # fmt: skip
def test_the_footer_says_what_is_known_and_what_is_not(usage: Usage | None, words: str) -> None:
    assert footer_words("m", usage).replace(",200", "200") == words


def test_a_model_without_a_name_of_its_own_is_called_by_its_provider() -> None:
    assert footer_words("recall:", None) == "Recall"
    assert footer_words("openai:gpt", None) == "openai:gpt"


def test_figures_read_as_people_say_them() -> None:
    assert [duration(ms) for ms in (820, 4200, 185_000)] == ["820 ms", "4.2 s", "3 min 5 s"]
    assert [size(count) for count in (812, 3400, 12_000_000)] == ["812 B", "3.4 kB", "12 MB"]
    today = date(2024, 3, 10)
    assert [day_words(today - timedelta(days=ago), today) for ago in (0, 1)] == [
        "Today",
        "Yesterday",
    ]
    assert "2024" in day_words(date(2024, 3, 1), today)


# messages


def test_question_and_answer_are_drawn(qtbot: QtBot) -> None:
    _, widget = show(qtbot, turn(0, "# Why?\nSo *that*", "Because **so**."))
    assert drawn(widget) == ["# Why?\nSo *that*", "Because so."]


def test_messages_are_named_groups_for_screen_readers(qtbot: QtBot) -> None:
    content = turn(0, "Why?", "So.", footer=Footer("openai:gpt-5"))
    view, widget = show(qtbot, content)
    names = []
    for frame in widget.frames():
        interface = QAccessible.queryAccessibleInterface(frame)
        assert interface.role() is QAccessible.Role.Grouping
        names.append(interface.text(QAccessible.Text.Name))
    assert names[0].startswith("You, ")
    assert names[1] == "Answer, openai:gpt-5"
    assert view.accessibleName() == "Conversation"


def test_thinking_and_tools_are_folded_and_open_to_all_of_it(qtbot: QtBot) -> None:
    messages = (
        message(1, Role.USER, Text("Find it")),
        message(2, Role.ASSISTANT, Thinking("First I *look*."),
                ToolCall("c", "search", '{"query": "it"}')),
        message(3, Role.TOOL, ToolResult("c", "search", "```\nfound\n```", False, 412)),
        message(4, Role.TOOL, ToolResult("other", "lost", "boom", True)),
        message(5, Role.ASSISTANT, Text("Found.")),
    )  # fmt: skip
    view, widget = show(qtbot, TurnContent(messages))
    folds = widget.findChildren(Fold)
    titles = [fold.title for fold in folds]
    assert titles[0] == "Thinking"
    assert titles[1] == 'search(query: "it")  ·  412 ms  ·  13 B'
    assert titles[2] == "lost  ·  failed"
    assert all(fold.body is None for fold in folds)
    height = widget.height()
    for fold in folds:
        fold.findChild(QToolButton).click()  # type: ignore[union-attr]
    qtbot.waitUntil(lambda: all_known(view) and widget.height() > height)
    inside = "\n".join(
        text.composer.document.toPlainText() for fold in folds for text in _texts_in(fold)
    )
    for words in ("First I look.", '{"query": "it"}', "```\nfound\n```", "boom"):
        assert words in inside
    assert drawn(widget) == ["Find it", "Found."]


def test_calls_that_share_an_id_each_keep_their_result(qtbot: QtBot) -> None:
    messages = [message(1, Role.USER, Text("Find them"))]
    for number in (1, 2):
        call = ToolCall("call_0", "search", f'{{"n": {number}}}')
        result = ToolResult("call_0", "search", "x" * number, False, 1)
        messages.append(message(2 * number, Role.ASSISTANT, call))
        messages.append(message(2 * number + 1, Role.TOOL, result))
    _, widget = show(qtbot, TurnContent(tuple(messages)))
    assert [fold.title for fold in widget.findChildren(Fold)] == [
        "search(n: 1)  ·  1 ms  ·  1 B", "search(n: 2)  ·  1 ms  ·  2 B",
    ]  # fmt: skip


def _texts_in(fold: Fold) -> list[MessageText]:
    return list(fold.findChildren(MessageText))


def test_a_system_prompt_is_folded(qtbot: QtBot) -> None:
    messages = (message(0, Role.SYSTEM, Text("Be brief.")), *turn(1, "Hi", "Hello").messages)
    _, widget = show(qtbot, TurnContent(messages))
    assert [fold.title for fold in widget.findChildren(Fold)] == ["System prompt"]


def test_attachments_are_chips_that_open(qtbot: QtBot) -> None:
    blocks = (
        Text("See"),
        Attachment("report.pdf", "application/pdf", 183_000, content_hash="aa11"),
        Image("lost.png", "image/png"),
    )
    view, widget = show(qtbot, TurnContent((message(0, Role.USER, *blocks),)))
    assert not tool(widget, "lost.png").isEnabled()
    with qtbot.waitSignal(view.attachment_activated) as opened:
        tool(widget, "report.pdf").click()
    assert opened.args == ["aa11"]
    assert "183.0 kB" in tool(widget, "report.pdf").text()


def test_pictures_show_small_when_they_are_here(qtbot: QtBot) -> None:
    picture = QImage(40, 30, QImage.Format.Format_RGB32)
    picture.fill(Qt.GlobalColor.red)
    view = TranscriptView(Theme(), lambda name: picture if name == "aa11" else None)
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    blocks = (Image("a.png", "image/png", "aa11"), Image("b.png", "image/png", "bb22"))
    content = TurnContent((message(0, Role.USER, *blocks),))
    view.add_turn(TurnHead(0, START), content)
    qtbot.waitUntil(lambda: all_known(view))
    widget = view.turn_widget(0)
    assert widget is not None
    assert not tool(widget, "a.png").icon().isNull()
    assert tool(widget, "b.png").icon().isNull()


def test_names_and_problems_are_never_taken_for_rich_text(qtbot: QtBot) -> None:
    evil = "<img src='file:///etc/passwd'> & <b>x</b>"
    file = Attachment(evil, evil, 1, content_hash="aa")
    user = message(0, Role.USER, Text("$x^2<b>$"), file)
    content = TurnContent(
        (user, message(1, Role.ASSISTANT, Text("ok"), ToolCall("c", evil, evil))),
        status=ExchangeStatus.INTERRUPTED,
        footer=Footer(evil, Usage(1, 1)),
        problem=Problem("x", evil, evil),
    )
    view, widget = show(qtbot, content)
    view.show_sources(0, Sources((SourceChip(0, "*", evil, evil, evil),), evil))
    for label in widget.findChildren(QLabel):
        assert label.textFormat() is Qt.TextFormat.PlainText
    for each in widget.findChildren(QWidget):
        assert "<img" not in each.toolTip()
        assert "<b>" not in each.toolTip()


# how it ended


def test_an_interrupted_reply_offers_to_go_on(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "Half", status=ExchangeStatus.INTERRUPTED))
    with qtbot.waitSignal(view.continue_requested) as wished:
        next(b for b in widget.findChildren(QPushButton) if b.text() == "Continue").click()
    assert wished.args == [0]


def test_a_problem_is_shown_where_it_happened_with_its_next_step(qtbot: QtBot) -> None:
    problem = Problem("rate", "Too many requests (429)", "Wait 20 seconds.")
    view, widget = show(qtbot, turn(0, "Go", None, status=ExchangeStatus.FAILED, problem=problem))
    words = [label.text() for label in widget.findChildren(QLabel)]
    assert "Too many requests (429)" in words
    assert "Wait 20 seconds." in words
    with qtbot.waitSignal(view.retry_requested):
        next(b for b in widget.findChildren(QPushButton) if b.text() == "Retry").click()


def chips(count: int, *cited: int) -> Sources:
    return Sources(
        tuple(
            SourceChip(at, "*", "Turn", f"Talk {at}", f"{at} % relevant", at in cited)
            for at in range(count)
        )
    )


def test_sources_are_chips_that_lead_to_where_they_come_from(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "So"))
    height = widget.height_for(600)
    view.show_sources(0, chips(2))
    assert widget.height_for(600) > height
    with qtbot.waitSignal(view.source_clicked) as clicked:
        tool(widget, "Talk 1").click()
    assert clicked.args == [0, 1]
    chip = tool(widget, "Talk 0")
    assert chip.accessibleName() == "Turn: Talk 0"
    assert "0 % relevant" in chip.toolTip()
    assert chip in widget.focus_stops()
    view.show_sources(0, Sources())
    assert widget.height_for(600) == height


def test_many_sources_fold_and_those_that_are_cited_stay_in_sight(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "So"))
    view.show_sources(0, chips(7, 6))
    view.arrange()
    texts = [each.text() for each in widget.findChildren(QToolButton) if "Talk" in each.text()]
    assert [each.split()[2] for each in texts] == ["6", "0", "1", "2"]
    assert tool(widget, "Talk 6").accessibleName().endswith("cited in the answer")
    more = tool(widget, "+3")
    more.click()
    view.arrange()
    assert more.isHidden()
    assert tool(widget, "Talk 5").isVisible()
    assert QApplication.focusWidget() is tool(widget, "Talk 3")


def test_five_sources_are_shown_since_a_number_would_take_as_much_room(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "So"))
    view.show_sources(0, chips(5))
    view.arrange()
    assert tool(widget, "Talk 4").isVisible()
    assert not any(each.text() == "+1" for each in widget.findChildren(QToolButton))


def test_what_went_wrong_with_recall_is_a_quiet_line(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "So"))
    view.show_sources(0, Sources(notice="It took longer than 0.5 s."))
    words = [each.text() for each in widget.findChildren(QLabel)]
    assert "Recall: It took longer than 0.5 s." in words


def test_sources_come_back_with_a_turn_that_was_out_of_sight(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "So"))
    view.show_sources(0, chips(1))
    view.set_theme(Theme())
    again = view.turn_widget(0)
    assert again is not None
    assert again is not widget
    assert tool(again, "Talk 0").isVisibleTo(again)
    view.show_conversation([])
    view.show_sources(0, chips(1))  # of a turn that is gone


def test_where_older_messages_are_sent_as_a_summary_it_says_so_and_shows_it(qtbot: QtBot) -> None:
    view, _ = show(qtbot, turn(0, "A", "B"), turn(1, "C", "D"), turn(2, "E", "F"))
    widget = view.turn_widget(1)
    assert widget is not None
    height = widget.height_for(600)
    view.show_stand_in(1, "They said A, and B.")
    (fold,) = (each for each in widget.findChildren(Fold) if each.title == STAND_IN)
    folded = widget.height_for(600)
    assert folded > height
    tool(fold, STAND_IN).click()
    assert widget.height_for(600) > folded
    view.set_theme(Theme())
    again = view.turn_widget(1)
    assert again is not None
    assert any(each.title == STAND_IN for each in again.findChildren(Fold))
    view.show_stand_in(2, "")
    assert again.height_for(600) == height


def test_an_answer_asks_to_be_inspected_and_a_turn_why_it_was_not_recalled(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "So"))
    with qtbot.waitSignal(view.inspect_requested) as wished:
        action(widget, 1, "Inspect").click()
    assert wished.args == [0]
    menu = QMenu()
    widget.frames()[0].meta.fill_menu(menu)
    with qtbot.waitSignal(view.why_requested) as wished:
        next(each for each in menu.actions() if each.text().startswith("Why")).trigger()
    assert wished.args == [0]


def test_a_running_turn_shows_no_figures_yet(qtbot: QtBot) -> None:
    content = turn(0, "Go", "So", footer=Footer("m", Usage(1, 1)))
    _, widget = show(qtbot, content)
    assert any("1 in, 1 out" in label.text() for label in widget.findChildren(QLabel))
    running = turn(0, "Go", "So", footer=Footer("m"), status=ExchangeStatus.RUNNING)
    widget.show_content(running)
    answer = widget.answer
    assert answer is not None
    assert not any(
        label.text() == "m" for label in answer.meta.findChildren(QLabel) if label.isVisible()
    )


# actions


def test_copy_gives_the_markdown_source(qtbot: QtBot) -> None:
    _, widget = show(qtbot, turn(0, "Why **so**?", "Because `x`:\n\n- one"))
    action(widget, 0, "Copy").click()
    assert clipboard() == "Why **so**?"
    action(widget, 1, "Copy").click()
    assert clipboard() == "Because `x`:\n\n- one"


@pytest.mark.parametrize(
    ("frame", "label", "signal", "args"),
    [
        (0, "Edit", "edit_requested", [1, MessageId(2)]),
        (0, "Copy link", "link_requested", [1]),
        (1, "Copy link", "link_requested", [1]),
        (1, "Regenerate", "regenerate_requested", [1]),
        (1, "Fork from here", "fork_requested", [1]),
    ],
)
def test_actions_say_what_is_wished(
    qtbot: QtBot, frame: int, label: str, signal: str, args: list[object]
) -> None:
    view, widget = show(qtbot, turn(0, "A", "B"), turn(1, "C", "D"))
    with qtbot.waitSignal(getattr(view, signal)) as wished:
        action(widget, frame, label).click()
    assert wished.args == args


def test_branches_can_be_switched_where_they_fork(qtbot: QtBot) -> None:
    branches = (Branch(MessageId(0), 2, 3), Branch(MessageId(1), 1, 2), Branch(MessageId(9), 1, 1))
    view, widget = show(qtbot, turn(0, "A", "B", branches=branches))
    places = [label.text() for label in widget.findChildren(QLabel) if "/" in label.text()]
    assert places == ["2/3", "1/2"]
    question, answer = widget.frames()
    with qtbot.waitSignal(view.branch_requested) as wished:
        tool(question, "›").click()
    assert wished.args == [0, MessageId(0), 3]
    assert not tool(answer, "‹").isEnabled()
    with qtbot.waitSignal(view.branch_requested) as wished:
        tool(answer, "›").click()
    assert wished.args == [0, MessageId(1), 2]


def test_showing_actions_moves_nothing(qtbot: QtBot) -> None:
    view, _ = show(qtbot, turn(0, "A", "B"), turn(1, "C", "D"))
    first = view.turn_widget(0)
    assert first is not None
    before = (first.height(), first.frames()[0].geometry(), first.frames()[1].geometry())
    for frame in first.frames():
        frame.meta.show_actions(True)
    QApplication.processEvents()
    assert (first.height(), first.frames()[0].geometry(), first.frames()[1].geometry()) == before


def test_actions_and_figures_never_cover_each_other(qtbot: QtBot) -> None:
    footer = Footer("anthropic:claude-with-a-long-name", Usage(123456, 7890, 4567, 1.25))
    view, _ = show(qtbot, turn(0, "A", "B", footer=footer), turn(1, "C", "D"))
    view.resize(430, 600)
    qtbot.waitUntil(lambda: all_known(view))
    first = view.turn_widget(0)
    assert first is not None
    meta = first.frames()[1].meta
    meta.show_actions(True)
    figures = next(label for label in meta.findChildren(QLabel) if label.isVisible())
    bar = meta.buttons[0].parentWidget()
    assert bar is not None
    assert figures.geometry().intersected(bar.geometry()).isEmpty()
    meta.show_actions(False)
    assert figures.width() > bar.width()


def test_actions_without_room_are_in_the_menu_of_a_last_button(qtbot: QtBot) -> None:
    view, _ = show(qtbot, turn(0, "A", "B"), turn(1, "C", "D"))
    view.resize(900, 600)
    qtbot.waitUntil(lambda: all_known(view))
    first = view.turn_widget(0)
    assert first is not None
    meta = first.frames()[1].meta
    meta.show_actions(True)
    labels = [each.text() for each in meta.buttons]
    more = next(each for each in meta.findChildren(QToolButton) if each.text() == "\u2026")
    assert more.isHidden()
    view.resize(230, 600)
    qtbot.waitUntil(lambda: all_known(view) and not more.isHidden())
    bar = meta.buttons[0].parentWidget()
    assert bar is not None
    shown = [each for each in (*meta.buttons, more) if not each.isHidden()]
    assert all(bar.rect().contains(each.geometry()) for each in shown)
    assert bar.geometry().right() <= meta.width()
    more.click()
    (menu,) = meta.findChildren(QMenu)
    words = [each.text() for each in shown if each is not more]
    assert [*words, *(each.text() for each in menu.actions())] == labels
    menu.close()


def test_the_last_answer_keeps_its_actions_in_sight(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "A", "B"), turn(1, "C", "D"))
    first = view.turn_widget(0)
    assert first is not None
    assert len(widget.frames()[1].meta.buttons) == 5
    assert len(first.frames()[1].meta.buttons) == 0


# code, links, long texts


def test_each_code_block_has_a_button_that_copies_it(qtbot: QtBot) -> None:
    text = "```python\nx = 1\n```\n\nand\n\n```\n<b>\n```"
    _, widget = show(qtbot, turn(0, "Go", text))
    buttons = [b for b in widget.texts()[1].findChildren(QToolButton) if b.text() == "Copy"]
    assert [b.accessibleName() for b in buttons] == ["Copy python", "Copy code"]
    buttons[0].click()
    assert clipboard() == "x = 1\n"
    assert buttons[0].text() == "Copied"
    buttons[1].click()
    assert clipboard() == "<b>\n"
    assert all(b in widget.focus_stops() for b in buttons)


def test_a_clicked_link_tells_its_true_target_and_its_words(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "[my bank](https://evil.example/%20?a=b#c) x"))
    text = widget.texts()[1].view
    cursor = text.document().find("bank")
    at = text.cursorRect(cursor).center() - QPoint(6, 0)
    hovered: list[str] = []
    view.link_hovered.connect(hovered.append)
    with qtbot.waitSignal(view.link_activated) as followed:
        QTest.mouseMove(text.viewport(), at)
        QTest.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert followed.args == ["https://evil.example/%20?a=b#c", "my bank"]
    assert "https://evil.example/%20?a=b#c" in hovered


def test_a_link_can_be_followed_by_keyboard(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "see [here](https://a.example)"))
    text = widget.texts()[1].view
    text.setFocus()
    QTest.keyClick(text, Qt.Key.Key_Tab)
    with qtbot.waitSignal(view.link_activated) as followed:
        QTest.keyClick(text, Qt.Key.Key_Return)
    assert followed.args == ["https://a.example", "here"]


def test_a_footnote_link_stays_inside(qtbot: QtBot) -> None:
    long = "words\n\n" * 120
    view, widget = show(qtbot, turn(0, "Go", f"Start[^1]\n\n{long}[^1]: the note"))
    view.scroll_to_turn(0)
    qtbot.waitUntil(lambda: all_known(view))
    followed: list[str] = []
    view.link_activated.connect(followed.append)
    text = widget.texts()[1].view
    cursor = text.document().find("Start")
    at = text.cursorRect(cursor).center() + QPoint(4, -2)
    before = view.verticalScrollBar().value()
    QTest.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert followed == []
    assert view.verticalScrollBar().value() > before


def test_the_wheel_over_a_text_scrolls_the_transcript(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "word\n\n" * 100))
    before = view.verticalScrollBar().value()
    text = widget.texts()[1].view.viewport()
    at = text.mapTo(view, QPoint(10, text.height() - 20))
    QTest.wheelEvent(view.windowHandle(), at.toPointF(), QPoint(0, 120))
    assert view.verticalScrollBar().value() < before


def test_a_very_long_answer_shows_more_on_request(qtbot: QtBot) -> None:
    view, widget = show(qtbot, turn(0, "Go", "many words in a row\n\n" * 6000))
    text = widget.texts()[1]
    more = next(b for b in text.findChildren(QPushButton) if b.text().startswith("Show more"))
    before = text.composer.document.blockCount()
    more.click()
    qtbot.waitUntil(lambda: all_known(view) and not text.composer.has_more)
    assert text.composer.document.blockCount() == 6000 > before
    QApplication.processEvents()
    assert not more.isVisible()


# between turns


def test_days_and_clean_slates_are_marked(qtbot: QtBot) -> None:
    heads = [
        TurnHead(0, datetime(2024, 3, 1, 12, tzinfo=UTC)),
        TurnHead(1, datetime(2024, 3, 1, 13, tzinfo=UTC)),
        TurnHead(2, datetime(2024, 3, 5, 12, tzinfo=UTC), segment_number=1),
    ]
    view = TranscriptView(Theme())
    qtbot.addWidget(view)
    view.resize(600, 2000)
    view.show()
    view.show_conversation(heads)
    for at in range(3):
        view.provide(at, turn(at, "Q", "A"))
    qtbot.waitUntil(lambda: all_known(view))
    words = [
        [each.accessibleName() for each in widget.findChildren(Divider)]
        for at in range(3)
        if (widget := view.turn_widget(at)) is not None
    ]
    assert [len(each) for each in words] == [1, 0, 2]
    assert "Clean slate" in words[2][1]

"""A turn's widget: what it shows, and what its buttons request."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAccessible, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QMenu,
    QPushButton,
    QToolButton,
    QToolTip,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.domain.conversations import (
    Attachment,
    ExchangeStatus,
    Forgotten,
    Image,
    Problem,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from app.domain.ids import MessageId
from tests.fakes.transcripts import Shown, message, turn
from ui.rendering import document_builder
from ui.theme import Theme
from ui.widgets.thumbnails import Thumbnails
from ui.widgets.transcript import panels
from ui.widgets.transcript.folds import Fold
from ui.widgets.transcript.message_footer import footer_text
from ui.widgets.transcript.message_text import MessageText
from ui.widgets.transcript.panels import NEW_SEGMENT_TEXT, Divider, ImageButton, day_label
from ui.widgets.transcript.turn import SUMMARY_NOTE
from ui.widgets.transcript.values import (
    Branch,
    Footer,
    SourceChip,
    Sources,
    TurnContent,
    TurnHeader,
    WrittenLine,
)

Show = Callable[..., Shown]


@pytest.fixture
def show(qtbot: QtBot) -> Show:
    """Return a function that shows turns and waits until they are rendered."""
    return lambda *contents, **more: Shown(qtbot, contents, **more).settle()


def tools(widget: QWidget, text: str) -> list[QToolButton]:
    return [each for each in widget.findChildren(QToolButton) if text in each.text()]


def tool(widget: QWidget, text: str) -> QToolButton:
    return tools(widget, text)[0]


def labels(widget: QWidget) -> list[str]:
    return [each.text() for each in widget.findChildren(QLabel)]


def titles(widget: QWidget) -> list[str]:
    return [fold.title for fold in widget.findChildren(Fold)]


@pytest.mark.parametrize(
    ("footer", "text"),
    [
        (Footer("m", Usage(1200, 30, 800, 0.0042, first_token_ms=640, duration_ms=4200)),
         "m  ·  1,200 in (800 cached), 30 out  ·  $0.0042  ·  640 ms to first token  ·  4.2 s in total"),
        (Footer("m", Usage(10, 5, cost_usd=None)), "m  ·  10 in, 5 out  ·  cost unknown"),
        (Footer("m", Usage(10, 5, cost_usd=2.5, estimated=True)), "m  ·  about 10 in, 5 out  ·  $2.50"),
        (Footer("m", Usage(10, 5, cost_usd=1.0)), "m  ·  10 in, 5 out  ·  $1.00"),
        (Footer("m", Usage(10, 5, cost_usd=0.0001)), "m  ·  10 in, 5 out  ·  $0.0001"),
        (Footer("m", Usage(10, 5, cost_usd=0.00001)), "m  ·  10 in, 5 out  ·  under $0.0001"),
        (Footer("m", Usage(1, 1, cost_usd=0.0, duration_ms=185_000)),
         "m  ·  1 in, 1 out  ·  no cost  ·  3 min 5 s in total"),
        (Footer("recall:", Usage(10, 5, cost_usd=0.0, duration_ms=300)), "Recall  ·  300 ms in total"),
        (Footer("m", Usage(10, 0, estimated=True, duration_ms=300)), "m  ·  300 ms in total"),
        (Footer(), ""), (Footer("recall:"), "Recall"), (Footer("openai:gpt"), "gpt"),
        (Footer("llama3:8b"), "llama3:8b"), (Footer("ollama:llama3:8b"), "llama3:8b"),
    ],
)  # fmt: skip
def test_the_footer_shows_what_is_known(footer: Footer, text: str) -> None:
    assert footer_text(footer) == text


@pytest.mark.parametrize(
    ("days_ago", "text"),
    [(0, "Today"), (1, "Yesterday"), (-1, "Monday, 11 March 2024"), (9, "Friday, 1 March 2024")],
)
def test_a_day_is_named_or_dated(days_ago: int, text: str) -> None:
    today = date(2024, 3, 10)
    assert day_label(today - timedelta(days=days_ago), today) == text


def test_days_and_segments_have_dividers(show: Show) -> None:
    shown = show(*(turn(at, "Q", "A") for at in range(3)))
    heads = [
        TurnHeader(0, datetime(2024, 3, 1, 12, tzinfo=UTC)),
        TurnHeader(1, datetime(2024, 3, 1, 13, tzinfo=UTC)),
        TurnHeader(2, datetime(2024, 3, 5, 12, tzinfo=UTC), segment_number=1),
    ]
    shown.view.show_conversation(heads)
    shown.settle()
    names = [
        [each.accessibleName() for each in shown.turn(at).findChildren(Divider)] for at in range(3)
    ]
    assert [len(each) for each in names] == [1, 0, 2]
    assert names[2][1] == NEW_SEGMENT_TEXT


def test_days_are_named_anew_after_midnight(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "_today", lambda: date(2024, 3, 1))
    shown = show(turn(0, "Q", "A"))
    shown.view.show_conversation([TurnHeader(0, datetime(2024, 3, 1, 12, tzinfo=UTC))])
    shown.settle()
    (divider,) = shown.turn(0).findChildren(Divider)
    assert divider.accessibleName() == "Today"
    monkeypatch.setattr(panels, "_today", lambda: date(2024, 3, 2))
    before = divider.grab().toImage()
    panels.update_days(shown.view)
    assert divider.accessibleName() == "Yesterday"
    assert divider.grab().toImage() != before


def test_question_and_answer_are_rendered_in_named_groups(show: Show) -> None:
    content = turn(0, "# Why?\nSo *that*", "Because **so**.", footer=Footer("openai:gpt-5"))
    shown = show(content)
    assert shown.texts(0) == ["# Why?\nSo *that*", "Because so."]
    groups = [QAccessible.queryAccessibleInterface(each) for each in shown.turn(0).frames()]
    assert {each.role() for each in groups} == {QAccessible.Role.Grouping}
    names = [each.text(QAccessible.Text.Name) for each in groups]
    assert names[0].startswith("You, ")
    assert names[1:] == ["Answer, gpt-5"]
    assert shown.view.accessibleName() == "Conversation"


def test_thinking_tool_calls_and_system_prompts_are_folded(show: Show) -> None:
    messages = (
        message(0, Role.SYSTEM, Text("Be brief.")),
        message(1, Role.USER, Text("Find it")),
        message(2, Role.ASSISTANT, Thinking("First I *look*."),
                ToolCall("c", "search", '{"query": "it"}'), ToolCall("d", "odd", "[1]"),
                ToolCall("c", "search", '{"same": "id"}')),
        message(3, Role.TOOL, ToolResult("c", "search", "```\nfound\n```", False, 412),
                ToolResult("c", "search", "x", False, 1)),
        message(4, Role.TOOL, ToolResult("other", "lost", "boom", True)),
        message(5, Role.ASSISTANT, Text("Found."), Text("  "), Thinking(" ")),
    )  # fmt: skip
    shown = show(TurnContent(messages))
    widget, height = shown.turn(0), shown.turn(0).height()
    assert titles(widget) == [
        "System prompt", "Thought process", 'search(query: "it")  ·  412 ms  ·  13 B',
        "odd([1])  ·  no result", 'search(same: "id")  ·  1 ms  ·  1 B', "lost  ·  failed",
    ]  # fmt: skip
    folds = widget.findChildren(Fold)
    assert all(fold.body is None for fold in folds)
    for fold in folds:
        tool(fold, fold.title).click()
    shown.settle()
    assert widget.height() > height
    texts = [text for fold in folds for text in fold.findChildren(MessageText)]
    inside = "\n".join(text.builder.document.toPlainText() for text in texts)
    for part in ("Be brief.", "First I look.", '{"query": "it"}', "```\nfound\n```", "boom"):
        assert part in inside
    assert {"Arguments", "Result", "Error"} <= set(labels(widget))
    assert shown.texts(0) == ["Find it", "Found."]
    tool(folds[0], "System prompt").click()
    assert folds[0].body.isHidden()


def test_attachments_are_chips_and_images_have_a_thumbnail(show: Show) -> None:
    picture = QImage(40, 30, QImage.Format.Format_RGB32)
    picture.fill(Qt.GlobalColor.red)
    blocks = (
        Text("See"), Attachment("report.pdf", "application/pdf", 183_000, content_hash="aa11"),
        Image("lost.png", "image/png"), Image("a.png", "image/png", "cc33"),
    )  # fmt: skip
    thumbnails = Thumbnails()
    wanted: list[str] = []
    thumbnails.wanted.connect(wanted.append)
    shown = show(TurnContent((message(0, Role.USER, *blocks),)), thumbnails=thumbnails)
    widget = shown.turn(0)
    button = widget.findChild(ImageButton)
    assert button is not None
    height = widget.height()
    assert (wanted, button.icon().isNull()) == (["cc33"], True)
    thumbnails.put("cc33", picture)
    assert not button.icon().isNull()
    assert widget.height() == height
    QApplication.sendEvent(button, QEvent(QEvent.Type.StyleChange))
    assert button.iconSize().height() > 100, "as before: it has not the size of a text"
    clicked: list[object] = []
    shown.view.events.file_clicked.connect(clicked.append)
    button.click()
    tool(widget, "report.pdf").click()
    assert clicked == [blocks[3], blocks[1]]
    assert not tool(widget, "lost.png").isEnabled()
    assert "179 KB" in tool(widget, "report.pdf").text()
    assert tool(widget, "report.pdf").icon().isNull()


def test_no_text_is_rich_text(show: Show) -> None:
    evil = "<img src='file:///etc/passwd'> & <b>x</b>"
    file = Attachment(evil, evil, 1, content_hash="aa")
    user = message(0, Role.USER, Text("$x^2<b>$"), file)
    shown = show(
        TurnContent(
            (user, message(1, Role.ASSISTANT, Text("ok"), ToolCall("c", evil, evil))),
            status=ExchangeStatus.INTERRUPTED,
            footer=Footer(evil, Usage(1, 1)),
            problem=Problem("x", evil, evil),
        )
    )
    shown.view.show_sources(0, Sources((SourceChip(0, "quote", evil, evil, evil),), evil))
    for label in shown.turn(0).findChildren(QLabel):
        assert label.textFormat() is Qt.TextFormat.PlainText


# how a reply ended, sources, the summary


@pytest.mark.parametrize("problem", [Problem("rate", "Too many requests", "Wait 20 s"), None])
@pytest.mark.parametrize(
    ("status", "said", "button", "signal"),
    [(ExchangeStatus.FAILED, "Half", "Retry", "retry_requested"),
     (ExchangeStatus.INTERRUPTED, "Half", "Continue", "continue_requested"),
     (ExchangeStatus.INTERRUPTED, "", "Retry", "continue_requested")],
)  # fmt: skip
def test_a_reply_that_did_not_end_shows_why_and_what_to_do(
    qtbot: QtBot, show: Show, status: ExchangeStatus, said: str, button: str, signal: str,
    problem: Problem | None,
) -> None:  # fmt: skip
    shown = show(turn(0, "Go", said, status=status, problem=problem))
    if problem is not None:
        assert {problem.title, f"{problem.hint}."} <= set(labels(shown.turn(0)))
    with qtbot.waitSignal(getattr(shown.view.events, signal)) as requested:
        found = shown.turn(0).findChildren(QPushButton)
        next(each for each in found if each.text() == button).click()
    assert requested.args == [0]


@pytest.mark.parametrize(
    ("kind", "button"),
    [
        ("key_rejected", "Provider settings\u2026"), ("unreachable", "Provider settings\u2026"),
        ("model_not_found", "Choose another model\u2026"), ("rate_limited", None),
        ("images_refused", "Choose another model\u2026"), ("quota_exhausted", "Choose another model\u2026"),
    ],
)  # fmt: skip
def test_a_problem_links_to_help(qtbot: QtBot, show: Show, kind: str, button: str | None) -> None:
    problem = Problem(kind, "It failed", "Mend it")
    shown = show(turn(0, "Go", "", status=ExchangeStatus.FAILED, problem=problem))
    _retry, *others = shown.turn(0).findChildren(QPushButton)
    assert [each.text() for each in others] == ([button] if button else [])
    for each in others:
        with qtbot.waitSignal(shown.view.events.mend_requested) as requested:
            each.click()
        assert requested.args == [kind]


@pytest.mark.parametrize("status", [ExchangeStatus.FAILED, ExchangeStatus.INTERRUPTED])
def test_only_the_last_reply_can_be_continued(show: Show, status: ExchangeStatus) -> None:
    shown = show(turn(0, "Go", "Half", status=status))
    assert len(shown.turn(0).findChildren(QPushButton)) == 1
    shown.add_reply()
    assert shown.turn(0).findChildren(QPushButton) == []


def test_a_read_only_conversation_offers_no_change(show: Show) -> None:
    shown = show(turn(0, "Go", "Half", status=ExchangeStatus.INTERRUPTED))
    changes = {"Edit", "Regenerate", "Fork from here", "Continue"}

    def offered() -> set[str]:
        frames = shown.turn(0).frames()
        actions = {each.label for frame in frames for each in frame.footer._all_actions}
        return actions | {each.text() for each in shown.turn(0).findChildren(QPushButton)}

    assert changes < offered()
    shown.view.set_read_only(True)
    shown.settle()
    assert not changes & offered()
    assert {"Copy", "Copy link", "Inspect"} <= offered()


def test_what_is_written_to_memory_can_be_undone_without_moving_focus_or_view(qtbot: QtBot) -> None:
    shown = Shown(qtbot, [turn(at, "Go", "So. " * 300) for at in range(6)]).settle()
    saved = WrittenLine("u", "Saved to memory: a text", (("undo", "Undo"),))
    shown.view.show_written(3, (saved,))
    shown.view.scroll_to_turn(3)
    shown.settle()
    shown.view.scroll_by(1)
    shown.settle()
    (undo,) = shown.turn(3).findChildren(QPushButton)
    undo.setFocus()
    before = shown.view.verticalScrollBar().value()
    shown.view.show_written(3, (WrittenLine("u", "Not in memory: a text"),))
    shown.settle()
    assert shown.view.window().focusWidget() is shown.turn(3).answer
    assert shown.view.verticalScrollBar().value() == before


def chips(count: int, *cited: int) -> Sources:
    return Sources(
        tuple(
            SourceChip(at, "quote", "Turn", f"Talk {at}", f"{at} % relevant", at in cited)
            for at in range(count)
        )
    )


def test_sources_are_chips_that_can_be_opened(qtbot: QtBot, show: Show) -> None:
    shown = show(turn(0, "Go", "So"))
    view, widget = shown.view, shown.turn(0)
    height = widget.height_for(600)
    view.show_sources(0, chips(5))
    assert widget.height_for(600) > height
    with qtbot.waitSignal(view.events.source_clicked) as clicked:
        tool(widget, "Talk 1").click()
    assert clicked.args == [0, 1]
    chip = tool(widget, "Talk 0")
    assert chip.accessibleName() == "Turn: Talk 0"
    assert "0 % relevant" in chip.toolTip()
    assert chip in widget.focus_stops()
    assert len(tools(widget, "Talk")) == 5
    assert not tools(widget, "+"), "a number would take as much room as the fifth chip"
    view.show_sources(0, Sources(notice="It took longer than 0.5 s."))
    assert "It took longer than 0.5 s." in labels(widget)
    view.show_sources(0, Sources())
    assert widget.height_for(600) == height
    view.show_sources(0, chips(1))
    view.set_theme(Theme())
    again = shown.turn(0)
    assert again is not widget
    assert tool(again, "Talk 0").isVisibleTo(again)
    view.show_conversation([])
    view.show_sources(0, chips(1))  # of a turn that no longer exists


def test_many_sources_fold_and_cited_ones_stay_visible(show: Show) -> None:
    shown = show(turn(0, "Go", "So"))
    widget = shown.turn(0)
    shown.view.show_sources(0, chips(7, 6))
    shown.view.update_layout()
    assert [each.text().split()[1] for each in tools(widget, "Talk")] == ["6", "0", "1", "2"]
    assert tool(widget, "Talk 6").accessibleName().endswith("cited in the answer")
    more = tool(widget, "+3")
    more.click()
    shown.view.update_layout()
    assert more.isHidden()
    assert tool(widget, "Talk 5").isVisible()
    assert QApplication.focusWidget() is tool(widget, "Talk 3")


def test_a_note_shows_the_summary_of_older_messages(show: Show) -> None:
    shown = show(turn(0, "A", "B"), turn(1, "C", "D"), turn(2, "E", "F"))
    widget, height = shown.turn(1), shown.turn(1).height_for(600)
    shown.view.show_summary_note(1, "They said A, and B.")
    (fold,) = widget.findChildren(Fold)
    assert fold.title == SUMMARY_NOTE
    folded = widget.height_for(600)
    assert folded > height
    tool(fold, SUMMARY_NOTE).click()
    assert widget.height_for(600) > folded
    shown.view.set_theme(Theme())
    assert titles(shown.turn(1)) == [SUMMARY_NOTE]
    shown.view.show_summary_note(2, "")
    assert shown.turn(1).height_for(600) == height
    shown.view.show_summary_note(2, "Again")
    shown.view.show_conversation(shown.heads)
    shown.settle()
    assert titles(shown.turn(2)) == []


# actions


@pytest.mark.parametrize(
    ("frame", "label", "signal", "args"),
    [
        (0, "Edit", "edit_requested", [1, MessageId(2)]),
        (0, "Copy link", "link_requested", [1]),
        (1, "Copy link", "link_requested", [1]),
        (1, "Copy brief from here", "brief_requested", [1]),
        (1, "Regenerate", "regenerate_requested", [1]),
        (1, "Fork from here", "fork_requested", [1]),
        (1, "Inspect", "inspect_requested", [1]),
        (1, "Regenerate with another model\N{HORIZONTAL ELLIPSIS}", "other_model_requested", [1]),
        (0, "Quote in my message", "quote_requested", ["C"]),
        (1, "Quote in my message", "quote_requested", ["D"]),
        (0, "Why wasn't this recalled?\N{HORIZONTAL ELLIPSIS}", "why_requested", [1]),
        (1, "Is this found by search?", "coverage_requested", [1]),
        (1, "Forget this turn\N{HORIZONTAL ELLIPSIS}", "forget_requested", [1]),
        (
            0,
            "Forget only this message\N{HORIZONTAL ELLIPSIS}",
            "forget_messages_requested",
            [1, (2,)],
        ),
        (
            1,
            "Forget only this answer\N{HORIZONTAL ELLIPSIS}",
            "forget_messages_requested",
            [1, (3,)],
        ),
    ],
)
def test_an_action_requests_what_its_label_says(
    qtbot: QtBot, show: Show, frame: int, label: str, signal: str, args: list[object]
) -> None:
    shown = show(turn(0, "A", "B"), turn(1, "C", "D"))
    footer, menu = shown.turn(1).frames()[frame].footer, QMenu()
    footer.show_actions(True)
    footer.fill_menu(menu)
    run = [each.click for each in footer.buttons if each.text() == label]
    run += [each.trigger for each in menu.actions() if each.text() == label]
    is_rare = label.endswith(("?", "\N{HORIZONTAL ELLIPSIS}", "message", "brief from here"))
    assert len(run) == (1 if is_rare else 2)
    for activate in run:
        with qtbot.waitSignal(getattr(shown.view.events, signal)) as requested:
            activate()
        assert requested.args == args


def test_what_is_forgotten_is_not_offered_to_be_forgotten(show: Show) -> None:
    known = turn(1, "C", "D")
    gone = tuple(replace(each, blocks=(Forgotten(),)) for each in known.messages)
    shown = show(turn(0, "A", "B"), replace(known, messages=gone))
    offered = []
    for each in (0, 1):
        for frame in shown.turn(each).frames():
            frame.footer.fill_menu(menu := QMenu())
            offered.append(any("only this" in action.text() for action in menu.actions()))
    assert offered == [True, True, False, False]


def test_copy_copies_the_markdown_source(show: Show) -> None:
    sources = ["Why **so**?", "Because `x`:\n\n- one"]
    shown = show(turn(0, *sources))
    for frame, source in zip(shown.turn(0).frames(), sources, strict=True):
        frame.footer.show_actions(True)
        next(each for each in frame.footer.buttons if each.text() == "Copy").click()
        assert QGuiApplication.clipboard().text() == source


def test_branches_are_switched_where_they_fork(qtbot: QtBot, show: Show) -> None:
    branches = (Branch(MessageId(0), 2, 3), Branch(MessageId(1), 1, 2), Branch(MessageId(9), 1, 1))
    shown = show(turn(0, "A", "B", branches=branches))
    assert [text for text in labels(shown.turn(0)) if "/" in text] == ["2/3", "1/2"]
    question, answer = shown.turn(0).frames()
    assert not tool(answer, "‹").isEnabled()
    for frame, sign, args in (
        (question, "›", [0, MessageId(0), 3]),
        (question, "‹", [0, MessageId(0), 1]),
        (answer, "›", [0, MessageId(1), 2]),
    ):
        with qtbot.waitSignal(shown.view.events.branch_requested) as requested:
            tool(frame, sign).click()
        assert requested.args == args


def test_the_last_answer_keeps_its_actions_and_showing_others_moves_nothing(show: Show) -> None:
    footer = Footer("anthropic:claude-with-a-long-name", Usage(123456, 7890, 4567, 1.25))
    shown = show(turn(0, "A", "B", footer=footer), turn(1, "C", "D"))
    shown.view.resize(430, 600)
    shown.settle()
    assert len(shown.turn(1).frames()[1].footer.buttons) == 5
    first = shown.turn(0)
    question, answer = first.frames()
    assert [each.text() for each in answer.footer.buttons] == []
    before = (first.height(), question.geometry(), answer.geometry())
    for frame in (question, answer):
        frame.footer.show_actions(True)
    QApplication.processEvents()
    assert (first.height(), question.geometry(), answer.geometry()) == before
    figures = next(each for each in answer.footer.findChildren(QLabel) if each.isVisible())
    bar = answer.footer.buttons[0].parentWidget()
    assert figures.geometry().intersected(bar.geometry()).isEmpty()
    answer.footer.show_actions(False)
    assert figures.width() > bar.width()


def test_the_labels_of_actions_are_in_line_with_the_text(show: Show) -> None:
    footer = Footer("anthropic:claude-with-a-long-name", Usage(123456, 7890, 4567, 1.25))
    shown = show(turn(0, "A", "B", footer=footer))
    shown.view.resize(560, 600)
    frame = shown.settle().turn(0).frames()[1]
    copy = frame.footer.buttons[0]
    label_px = copy.fontMetrics().horizontalAdvance(copy.text())
    label_x = copy.mapTo(frame, QPoint((copy.width() - label_px) // 2, 0)).x()
    assert abs(label_x - frame.texts[0].mapTo(frame, QPoint(0, 0)).x()) <= 1


def test_actions_without_room_are_in_a_menu(show: Show) -> None:
    shown = show(turn(0, "A", "B"), turn(1, "C", "D"))
    shown.view.resize(900, 600)
    shown.settle()
    footer = shown.turn(0).frames()[1].footer
    footer.show_actions(True)
    names = [each.text() for each in footer.buttons]
    (more,) = tools(footer, "\u2026")
    assert not more.isHidden(), "what is only in the menu is found without a right click"
    shown.view.resize(230, 600)
    shown.settle()
    bar = footer.buttons[0].parentWidget()
    visible = [each for each in (*footer.buttons, more) if not each.isHidden()]
    assert all(bar.rect().contains(each.geometry()) for each in visible)
    assert bar.geometry().right() <= footer.width()
    more.click()
    (menu,) = footer.findChildren(QMenu)
    in_menu = [each.text() for each in menu.actions()]
    assert [each for each in in_menu if each in names] == names[len(visible) - 1 :]
    assert in_menu[-1].startswith("Forget only")
    menu.close()


# code, links, long texts


def test_each_code_block_has_a_button_that_copies_it(qtbot: QtBot, show: Show) -> None:
    shown = show(turn(0, "Go", "```python\nx = 1\n```\n\nand\n\n```\n<b>\n```"))
    buttons = tools(shown.turn(0).texts()[1], "Copy")
    assert [each.accessibleName() for each in buttons] == ["Copy python", "Copy code"]
    assert [each in shown.turn(0).focus_stops() for each in buttons] == [True, False]
    shown.turn(0).frames()[1].setFocus()  # a language has a head; without one they cover the text
    assert all(each in shown.turn(0).focus_stops() for each in buttons)
    assert buttons[0].y() < buttons[1].y()
    for button, source in zip(buttons, ("x = 1\n", "<b>\n"), strict=True):
        button.click()
        assert QGuiApplication.clipboard().text() == source
        assert QToolTip.text() == "Copied"
    QToolTip.hideText()
    qtbot.waitUntil(lambda: not QToolTip.isVisible())
    shown.turn(0).frames()[1].footer.buttons[0].click()
    assert QToolTip.text() == "Copied", "of a message too"


def test_a_link_is_followed_by_mouse_or_keyboard(qtbot: QtBot, show: Show) -> None:
    shown = show(turn(0, "Go", "[my bank](https://evil.example/%20?a=b#c) x"))
    text, expected = shown.turn(0).texts()[1].view, ["https://evil.example/%20?a=b#c", "my bank"]
    at = text.cursorRect(text.document().find("bank")).center() - QPoint(6, 0)
    hovered: list[str] = []
    shown.view.events.link_hovered.connect(hovered.append)
    with qtbot.waitSignal(shown.view.events.link_activated) as followed:
        QTest.mouseMove(text.viewport(), at)
        QTest.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert followed.args == expected
    assert expected[0] in hovered
    text.setFocus()
    QTest.keyClick(text, Qt.Key.Key_Tab)
    with qtbot.waitSignal(shown.view.events.link_activated) as followed:
        QTest.keyClick(text, Qt.Key.Key_Return)
    assert followed.args == expected


def test_a_footnote_link_scrolls_and_so_does_the_wheel(show: Show) -> None:
    words = "words\n\n" * 120
    shown = show(turn(0, "Go", f"Start[^1]\n\n{words}[^1]: the note"))
    shown.view.scroll_to_turn(0)
    shown.settle()
    followed: list[str] = []
    shown.view.events.link_activated.connect(followed.append)
    text, bar = shown.turn(0).texts()[1].view, shown.view.verticalScrollBar()
    at = text.cursorRect(text.document().find("Start")).center() + QPoint(4, -2)
    before = bar.value()
    QTest.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert followed == []
    assert (after := bar.value()) > before
    text._activate("#None", 0)
    assert bar.value() == after, "other blocks have no number"
    over = text.viewport().mapTo(shown.view, QPoint(10, text.viewport().height() - 20))
    QTest.wheelEvent(shown.view.windowHandle(), over.toPointF(), QPoint(0, 120))
    assert bar.value() < after


def test_very_long_answers_show_more_on_click(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_builder, "PAGE_CHARS", 10_000)
    shown = show(turn(0, "Go", "many words in a row\n\n" * 900))
    text = shown.turn(0).texts()[1]
    (more,) = text.findChildren(QPushButton)
    assert more.text().startswith("Show more (")
    before = text.builder.document.blockCount()
    more.click()
    shown.settle()
    assert text.builder.document.blockCount() == 900 > before
    assert not more.isVisible()

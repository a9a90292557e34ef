"""Mentions in the composer: titles after an @, chosen by keyboard, and remembered."""

from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.domain.ids import ConversationId
from app.memory.recall.mentions import Mentionable
from tests.fakes.screens import Parts
from tests.fakes.stored import AT
from ui.presenters.conversation.composer import MentionPresenter
from ui.widgets.composer.composer import Composer

TITLES = ("Tea in Kyoto", "Tea", "Old walks")


class Titles:
    """Mentions by the beginning of a title; the last two conversations have the same one."""

    def __init__(self) -> None:
        self.chosen: list[tuple[str, int]] = []

    def matching(self, typed: str, limit: int, without: int | None) -> list[Mentionable]:
        assert (limit > 1, without) == (True, 7)
        found = [each for each in TITLES if each.casefold().startswith(typed.casefold())]
        return [Mentionable(ConversationId(n), each, AT) for n, each in enumerate(found)]

    def choose(self, title: str, conversation_id: int) -> None:
        self.chosen.append((title, conversation_id))


@pytest.fixture
def typing(qtbot: QtBot, parts: Parts) -> Any:
    composer, titles = Composer(), Titles()
    composer.show()
    composer.box.setFocus()
    qtbot.waitUntil(composer.box.hasFocus)
    parts.make(
        MentionPresenter, mentions=titles, composer=composer,
        conversation=SimpleNamespace(conversation_id=7),
    )  # fmt: skip
    return SimpleNamespace(composer=composer, box=composer.box, titles=titles)


def test_a_long_title_is_cut_and_not_its_date(typing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.TITLES", ("A title that is longer than the box is wide " * 3,))
    typing.composer.resize(420, 200)
    QTest.keyClicks(typing.box, "@a")
    listed = typing.composer.completer.list
    date_px = listed.viewport().width() - listed.header().sectionPosition(1)
    assert date_px >= listed.sizeHintForColumn(1) > 20
    assert date_px < listed.viewport().width() / 2


def test_a_title_is_completed_after_an_at_sign(typing: Any) -> None:
    QTest.keyClicks(typing.box, "What of @te")
    listed = typing.composer.completer.list
    assert listed.candidates == ["Tea in Kyoto", "Tea"]
    QTest.keyClick(typing.box, Qt.Key.Key_Down)
    QTest.keyClick(typing.box, Qt.Key.Key_Return)
    QTest.keyClicks(typing.box, "then?")
    assert typing.composer.text == "What of @Tea then?"
    assert typing.titles.chosen == [("Tea", 1)]
    assert not listed.isVisible()


def test_the_list_closes_with_esc_and_a_mail_address_opens_none(typing: Any) -> None:
    QTest.keyClicks(typing.box, "me@tea")
    assert not typing.composer.completer.list.isVisible()
    typing.box.clear()
    QTest.keyClicks(typing.box, "@t")
    assert typing.composer.completer.list.isVisible()
    QTest.keyClick(typing.box, Qt.Key.Key_Escape)
    QTest.keyClicks(typing.box, "e")
    assert not typing.composer.completer.list.isVisible()
    typing.box.clear()
    QTest.keyClicks(typing.box, "@old")
    assert typing.composer.completer.list.candidates == ["Old walks"]
    QTest.keyClicks(typing.box, "x")
    assert not typing.composer.completer.list.isVisible()

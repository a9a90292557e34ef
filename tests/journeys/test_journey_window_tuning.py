"""Recall settings and core memory in the whole window: what is previewed is what is then sent."""

import pytest
from PySide6.QtWidgets import QSlider

from app.bootstrap import Services
from app.domain.recall import RecalledItemDetails
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text
from tests.fakes.stored import add_conversation
from tests.fakes.user import User
from ui.models.preview import PreviewRow
from ui.views.settings.settings_dialog import SettingsDialog

ASKED = "Which bolt does the saddle of my bicycle need?"
_WORKERS = (
    "embedding_pipeline_enabled", "knowledge_extractor_enabled",
    "summarizer_conversation_enabled", "summarizer_exchange_enabled",
)  # fmt: skip
TALKS = (
    ("Which bolt holds the saddle of my bicycle?", "The saddle takes an M8 bolt, 60 mm long."),
    ("Where is the bolt of the bicycle's front wheel?", "The bolt sits in the wheel's axle."),
    ("My bicycle chain squeaks.", "Clean the chain, then oil it."),
    ("How do I grow basil?", "Basil wants light on a windowsill."),
    ("Norwegian trains?", "They run along the fjords."),
)


@pytest.fixture
def server(server: Loopback) -> Loopback:
    server.always(text("Good to know."))
    return server


async def started_with(user: User, server: Loopback) -> None:
    await user.start_with_model(server.v1)

    def fill(services: Services) -> None:
        for key in _WORKERS:  # what they find meanwhile would be found by the message alone
            services.settings.set(key, False)
        for turn in TALKS:
            add_conversation(services.store, turn, title=turn[0])
        services.index_sync.catch_up(lambda: False)

    await user.ask(fill)


async def opened(user: User) -> SettingsDialog:
    """Open the memory page."""
    dialog = user.presenters.settings.open("Memory")
    await user.until(dialog.isActiveWindow, "the settings")
    return dialog


def shown(dialog: SettingsDialog) -> list[RecalledItemDetails]:
    """Return what the list says would be brought in."""
    return [place for place in found(dialog) if place.item.injected]


def found(dialog: SettingsDialog) -> list[RecalledItemDetails]:
    model = dialog.memory.preview.model
    values = (model.value_at(model.index(number)) for number in range(model.rowCount()))
    return [each.place for each in values if isinstance(each, PreviewRow)]


async def test_the_preview_is_what_the_next_message_gets(user: User, server: Loopback) -> None:
    await started_with(user, server)
    dialog = await opened(user)
    dialog.memory.preview.box.setFocus()
    user.type(ASKED)
    await user.sees("items found", "Related past:")
    before = shown(dialog)
    slider = dialog.editors["rag_min_similarity"].control
    assert isinstance(slider, QSlider)
    slider.setSliderDown(True)
    slider.setValue(2)
    await user.until(lambda: len(shown(dialog)) > len(before), "more brought in")
    assert await user.ask(lambda services: services.settings.real("rag_min_similarity")) == 0.7
    model = dialog.memory.preview.model
    rows = [model.value_at(model.index(number)) for number in range(model.rowCount())]
    assert any(isinstance(each, PreviewRow) and each.changed for each in rows)

    slider.setSliderDown(False)
    await user.until_so(lambda services: services.settings.real("rag_min_similarity") == 0.02)
    previewed = shown(dialog)
    await user.until(lambda: user.button("Undo changes").isEnabled())
    dialog.reject()
    await user.in_front()
    await user.say(ASKED)
    await user.until(lambda: len(server.posts) >= 1 and not user.transcript.is_streaming)

    def sent(services: Services) -> list[object]:
        (asked,) = services.exchanges.of(services.conversations.listed()[0].id)
        kept = services.prompts.of(asked.id)
        return [each for each in kept.items if each.injected] if kept else []

    await user.until_so(sent)
    assert [each.item for each in previewed] == await user.ask(sent)


async def test_changes_are_undone_and_a_thing_found_is_opened(user: User, server: Loopback) -> None:
    await started_with(user, server)
    await user.ask(lambda services: services.settings.set("rag_min_similarity", 0.02))
    dialog = await opened(user)
    pane = dialog.memory.preview
    pane.box.setFocus()
    user.type(ASKED)
    await user.sees("items found")
    user.click("Recall from other conversations")
    await user.until(lambda: shown(dialog) == [], "nothing brought in")
    await user.sees("\u201cRecall from other conversations\u201d is off")
    await user.until(lambda: user.button("Undo changes").isEnabled())
    user.click("Undo changes")
    await user.until(lambda: shown(dialog) != [])
    await user.until_so(lambda services: "rag_enabled" not in services.settings.chosen())

    user.choose(pane.box, TALKS[3][0])
    await user.until(lambda: any(place.text == TALKS[3][0] for place in found(dialog)))
    user.choose(pane.box, TALKS[0][0])
    await user.until(lambda: any(place.text == TALKS[0][0] for place in shown(dialog)))

    user.click_row(pane.list, TALKS[0][0])

    await user.until(lambda: "M8" in user.turn_text(0), "the turn")
    assert not dialog.isVisible()

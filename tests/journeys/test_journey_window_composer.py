"""The composer card: what memory brings is shown and left out, a conversation is mentioned, a message edited."""

import json
from pathlib import Path

import pytest
from PySide6.QtWidgets import QCheckBox

from app.domain.ids import ConversationId
from app.domain.recall import RecallLayer
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text, usage
from tests.fakes.stored import add_conversation, opened
from tests.fakes.user import User, is_searched_by_meaning
from ui.widgets.composer.memory_switch import MemoryUse

TEA = ("Which tea do I drink in the evening?", "Green tea from Uji, never after nine.")
WALK = ("Where does our walk begin?", "At the old mill behind the church.")
ASKED = "Which tea do I drink in the evening?"


@pytest.fixture
def library(data_dir: Path) -> dict[str, ConversationId]:
    with opened(data_dir) as store:
        return {
            title: add_conversation(store, turn, title=title).conversation.id
            for title, turn in (("Evening tea", TEA), ("Sunday walk", WALK))
        }


def sent(server: Loopback) -> str:
    """Return what the server received last."""
    return json.dumps(server.posts[-1].body, ensure_ascii=False)


async def test_memory_is_shown_chosen_and_mentioned_in_the_composer(
    user: User, server: Loopback, library: dict[str, ConversationId]
) -> None:
    await user.start_with_model(server.v1)
    await user.until_so(lambda services: services.search.search("evening tea").results)
    await user.until_so(is_searched_by_meaning)
    await user.ask(lambda services: services.settings.set("rag_min_similarity", 0.2))
    composer = user.window.chat.composer
    memory = composer.memory

    # What memory brings stands beside Send before anything is sent; one is left out.
    user.type(ASKED)
    await user.until(lambda: memory.items, "what memory brings")
    assert any(each.title.startswith("Evening tea") for each in memory.items)
    memory.click()
    for box in memory.findChildren(QCheckBox):
        box.click()
    await user.until(lambda: memory.items and all(each.is_left_out for each in memory.items))
    user.press("Esc")
    composer.box.setFocus()
    server.reply(text("I do not know."), usage(90, 4))
    user.press("Return")
    await user.answered(0, "I do not know.")
    assert "Uji" not in sent(server)

    # The next message has memory again, unless it is off for it.
    assert memory.use is MemoryUse.ON
    memory.choose(MemoryUse.NOT_NOW)
    server.reply(text("Still not."), usage(90, 4))
    await user.say("Tell me which evening tea I drink, please")
    await user.answered(1, "Still not.")
    assert "Uji" not in sent(server)
    assert memory.choice.is_on

    # A mention is completed, kept over a restart, and quoted whatever its relevance.
    user.type("How is it over there, @sund")
    await user.until(lambda: composer.completer.list.candidates == ["Sunday walk"])
    user.press("Return")
    user.type("again?")
    written = "How is it over there, @Sunday walk again?"
    assert composer.text == written
    await user.restart()
    composer = user.window.chat.composer
    await user.until(lambda: composer.text == written, "the draft")
    await user.until(composer.box.extraSelections, "the mark of the mention")
    composer.box.setFocus()
    server.reply(text("Behind the church."), usage(90, 4))
    user.press("Return")
    await user.answered(2, "Behind the church.")
    assert "old mill" in sent(server)
    opened_id = user.presenters.conversation.conversation_id
    last = user.presenters.conversation.view.path[-1].id
    found = await user.ask(lambda services: services.inspector.inspect(last))
    layers = {each.place.item.layer for each in found.sources if each.place.item.injected}
    assert RecallLayer.MENTION in layers
    assert opened_id not in library.values()

    # Up in the empty box edits the last message.
    composer.box.setFocus()
    user.press("Up")
    await user.until(lambda: composer.is_editing and composer.text == written)

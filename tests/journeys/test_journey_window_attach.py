"""Attached files in the window: dropped, kept over a restart, sent, shown, forgotten."""

import base64
import json
from pathlib import Path
from typing import Any

from tests.fakes.files import pdf, png
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text
from tests.fakes.user import User
from ui.widgets.transcript.panels import ImageButton

PICTURE = png(600, 400)


def questions(server: Loopback, number: int) -> list[Any]:
    """Return the user's messages of a request."""
    return [each for each in server.posts[number].body["messages"] if each["role"] == "user"]


async def test_dropped_files_reach_the_model_and_leave_with_their_conversation(
    user: User, server: Loopback, tmp_path: Path
) -> None:
    server.always(text("A picture and an invoice."))
    (tmp_path / "picture.png").write_bytes(PICTURE)
    (tmp_path / "invoice.pdf").write_bytes(pdf("Zanzibar invoice 4711"))
    await user.start_with_model(server.v1)

    user.drop(user.window, [tmp_path / "picture.png", tmp_path / "invoice.pdf"])
    await user.until(lambda: len(user.window.chat.composer.draft.files) == 2, "two files")
    await user.restart()
    await user.until(lambda: len(user.window.chat.composer.draft.files) == 2, "the draft")
    await user.ask(lambda s: s.models.preload())  # a busy machine takes long to import an SDK
    await user.say("What are these?")
    await user.answered(0, "A picture and an invoice.")
    assert user.window.chat.composer.draft.files == ()
    first = json.dumps(questions(server, 0)[-1])
    assert base64.b64encode(PICTURE).decode() in first
    assert "> Zanzibar invoice 4711" in first

    await user.until(lambda: user.turn(0).findChild(ImageButton), "the image")
    button = user.turn(0).findChild(ImageButton)
    await user.until(lambda: not button.icon().isNull(), "the thumbnail")
    button.click()
    viewer = user.presenters.files.viewer
    await user.until(lambda: viewer.view.image is not None, "the viewer")
    user.press("Esc")

    await user.say("And now?")
    await user.answered(1, "A picture and an invoice.")
    again = [json.dumps(each) for each in questions(server, -1)]
    assert base64.b64encode(PICTURE).decode() in again[0]
    found = await user.ask(lambda s: s.search.search("Zanzibar").results)
    assert [each.turn_number for each in found[:1]] == [0]

    conversation = user.presenters.conversation.conversation_id
    assert conversation is not None
    await user.ask(lambda s: s.forget([conversation]))
    assert await user.ask(lambda s: list(s.paths.attachments.iterdir())) == []
    assert await user.ask(lambda s: s.check().problems) == ()

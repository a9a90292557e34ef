"""Who writes, searches or reads in the window has background work give way."""

import pytest

from tests.fakes.user import User
from ui.controllers.importing import SAMPLE


async def test_typing_searching_and_scrolling_have_the_workers_rest(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    await user.start()
    await user.bring(SAMPLE)
    await user.until(user.titles, "conversations")
    services, asked = user.running.services, list[str]()
    assert services is not None
    monkeypatch.setattr(services.workers.courtesy, "serve", lambda: asked.append("now"))

    def was_asked() -> bool:
        """Whether the workers were asked to rest since the last time this was called."""
        count = len(asked)
        asked.clear()
        return count > 0

    user.press("Ctrl+J")
    was_asked()
    user.type("a")
    assert was_asked()
    user.press("Ctrl+K")
    was_asked()
    user.type("t")
    assert was_asked()
    user.window.sidebar.box.clear()
    user.click_row(user.window.sidebar.conversation_list, user.titles()[0])
    await user.until(lambda: user.transcript.turn_count > 0, "turns")
    await user.until(lambda: user.transcript.is_arranged, "everything drawn")
    was_asked()
    user.transcript.scroll_by(-50 if user.transcript.verticalScrollBar().value() else 50)
    assert was_asked()
    await user.leave()

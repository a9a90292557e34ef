"""Slash commands in the whole window."""

from app.domain.ids import ConversationId
from tests.fakes.user import User
from ui.widgets.transcript.panels import NEW_SEGMENT_TEXT, Divider

QUESTION = "Which bolt holds the saddle of my green bicycle?"


async def talk(user: User) -> None:
    """Start, and have a conversation of one turn that search finds."""
    await user.start()
    await user.say(QUESTION)
    await user.until(lambda: len(user.transcript.heights) == 1 and not user.transcript.is_streaming)
    await user.until_so(lambda services: services.search.search("saddle bolt").results)
    await user.until(lambda: not user.window.chat.composer.text)


def segment_ends(user: User) -> int:
    """Return the number of lines in the transcript that mark a clean slate."""
    lines = user.transcript.findChildren(Divider)
    return sum(each.accessibleName() == NEW_SEGMENT_TEXT for each in lines)


async def run(user: User, command: str) -> None:
    """Type a command and run it; its list of completions is closed first."""
    await user.in_front()
    user.press("Ctrl+J")
    user.type(command)
    if user.window.chat.composer.completer.list.isVisible():
        user.press("Esc")
    user.press("Return")


async def shows(user: User, *texts: str) -> None:
    """Wait until the panel shows these texts, and the composer is empty again."""
    panel = user.presenters.command_panel
    await user.until(lambda: all(each in panel.markdown for each in texts), f"{texts}")
    await user.until(lambda: not user.window.chat.composer.text)


async def test_results_open_by_number_and_a_clean_slate_survives_a_restart(user: User) -> None:
    await talk(user)
    user.press("Ctrl+N")
    await run(user, "/search saddle bolt")
    await shows(user, "1. **[", "`/open N`")
    await run(user, "/open 1")
    await user.until(lambda: len(user.transcript.heights) == 1)
    await user.until(lambda: not user.window.chat.composer.text)
    assert user.presenters.command_panel.isVisible()  # with what else can be opened
    await run(user, "/new")
    await user.until(lambda: segment_ends(user) == 1)
    await user.until(lambda: not user.presenters.command_panel.isVisible())

    await user.restart()
    await user.until(lambda: segment_ends(user) == 1)
    await run(user, "/serch tea")
    await user.sees("Did you mean /search?")
    assert user.window.chat.composer.text == "/serch tea"
    user.window.chat.composer.clear()
    await user.say(" /usr/bin/env is a message")
    await user.until(lambda: len(user.transcript.heights) == 2 and not user.transcript.is_streaming)
    opened = user.presenters.conversation.conversation_id
    assert opened is not None
    view = await user.ask(lambda services: services.library.open(ConversationId(opened)))
    assert [each.segment_number for each in view.path] == [0, 1]
    user.action("clean_slate").trigger()
    await user.until(lambda: segment_ends(user) == 2)

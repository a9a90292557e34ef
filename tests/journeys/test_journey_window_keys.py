"""The window by keyboard alone: a title is typed, taken back, taken; the focus goes on from there."""

from tests.fakes.user import User

TOLD = "Our hives stand behind the barn."
NEW = "Bees behind the barn"


async def test_a_title_is_renamed_by_keyboard_and_the_window_says_so(user: User) -> None:
    await user.start()
    await user.say(TOLD)
    await user.until(lambda: user.titles() and not user.window.chat.title.isReadOnly())
    chat, before = user.window.chat, user.window.chat.title.text()
    await user.until(lambda: user.window.windowTitle() == before)

    user.press("F2")
    await user.until(chat.title.hasFocus)
    assert chat.title.selectedText() == before, "what is typed takes its place"
    user.type("No, not that")
    user.press("Esc")
    assert chat.title.text() == before
    assert chat.composer.box.hasFocus()

    user.press("F2")
    user.type(NEW)
    user.press("Return")
    assert chat.composer.box.hasFocus()
    await user.until(lambda: user.titles() == [NEW])
    await user.until(lambda: user.window.windowTitle() == NEW)

    user.press("F2")
    user.press("Backspace")
    user.press("Return")
    assert chat.title.text() == NEW, "a title that was emptied is as it was"

"""Settings changed in the window: in effect at once and after a restart."""

from typing import Any

from app.domain.ids import ConversationId
from tests.fakes.user import User
from ui.views.settings.settings_dialog import SettingsDialog
from ui.widgets.setting_editor import SettingEditor


async def opened_settings(user: User, page: str) -> SettingsDialog:
    user.press("Ctrl+,")
    dialog = user.presenters.settings.open(page)
    await user.until(dialog.isActiveWindow, "the settings")
    return dialog


def enter(user: User, editor: SettingEditor, text: str) -> None:
    """Type a value in the place of the present one."""
    editor.control.setFocus()
    user.press("Ctrl+A")
    user.type(text)


async def test_settings_take_effect_at_once_and_others_changes_are_shown(user: User) -> None:
    await user.start()
    appearance = user.running.appearance
    before = appearance.theme
    dialog = await opened_settings(user, "General")
    theme: Any = dialog.editors["theme"].control
    user.choose(theme, "Dark")
    await user.until(lambda: appearance.theme.dark)
    enter(user, dialog.editors["text_size"], "150")
    await user.until(lambda: appearance.theme.ui_px == round(before.ui_px * 1.5))
    dialog.show_page("Background work")
    limit = dialog.editors["spend_cap_daily_usd"]
    enter(user, limit, "much")
    await user.sees(
        "\u201cDaily spend limit\u201d cannot be \u201cmuch\u201d", "from 0 to 1,000,000"
    )
    enter(user, limit, "5")
    await user.until_so(lambda services: services.settings.get("spend_cap_daily_usd") == 5)

    dialog.show_page("Memory")
    size: Any = dialog.editors["text_size"].control
    window: Any = dialog.editors["rag_history_limit"].control
    assert not limit.error.isVisible()
    enter(user, dialog.editors["rag_history_limit"], "1")
    await user.ask(lambda services: services.settings.set("text_size", 120))
    await user.until(lambda: size.text() == "120")
    assert window.text() == "1", "what is being typed stays"
    user.type("5")
    await user.until_so(lambda services: services.settings.number("rag_history_limit") == 15)
    assert window.text() == "15"
    await user.sees("Reset")
    user.click("Reset", dialog.editors["rag_history_limit"])
    await user.until(lambda: window.text() == "2")
    user.press("Esc")
    await user.in_front()

    await user.restart()
    appearance = user.running.appearance
    assert appearance.theme.dark
    assert appearance.theme.ui_px == round(before.ui_px * 1.2)
    user.press("Ctrl+0")
    await user.until(lambda: appearance.theme.ui_px == before.ui_px)
    user.press("Ctrl+=")
    await user.until(lambda: appearance.theme.ui_px > before.ui_px)


async def test_a_private_conversation_is_out_of_memory_and_can_be_discarded(user: User) -> None:
    await user.start()
    user.press("Ctrl+Shift+N")
    await user.sees("A private conversation")
    await user.say("My secret is a sonnet.")
    await user.until(lambda: len(user.transcript.heights) == 1 and not user.transcript.is_streaming)
    assert await user.ask(lambda services: services.overview.read().passages) == {}

    user.press("Ctrl+N")
    await user.sees("You kept the private conversation")
    user.click("Discard")
    await user.until(lambda: user.titles() == [])

    user.press("Ctrl+Shift+N")
    await user.say("Another one.")
    await user.until(lambda: len(user.transcript.heights) == 1 and not user.transcript.is_streaming)
    user.press("Ctrl+Q")
    await user.sees("Keep the private conversation?")
    user.click("Keep")
    await user.gone()
    await user.start()
    assert user.titles() == ["Private conversation"]


async def test_conversations_keep_drafts_and_come_back_from_the_trash(user: User) -> None:
    await user.start()
    # The conversation summarizer changes titles too.
    await user.ask(lambda services: services.settings.set("summarizer_conversation_enabled", False))
    await user.say("First")
    await user.until(lambda: user.titles() == ["First"])
    await user.ask(lambda services: services.library.rename(ConversationId(1), "Renamed"))
    await user.until(lambda: user.titles() == ["Renamed"])
    await user.until(lambda: not user.transcript.is_streaming)

    composer = user.window.chat.composer
    user.press("Ctrl+J")
    user.type("about the first")
    user.press("Ctrl+N")
    await user.until(lambda: composer.text == "")
    user.type("something new")
    user.click_row(user.window.sidebar.conversation_list, "Renamed")
    await user.until(lambda: composer.text == "about the first")
    await user.until(lambda: user.window.chat.title.text() == "Renamed")

    user.press("Ctrl+Shift+Backspace")
    await user.sees("“Renamed” is in the trash for 30 days.")
    await user.until(lambda: user.titles() == [])
    user.click("Undo")
    await user.until(lambda: user.titles() == ["Renamed"])
    await user.until(lambda: user.window.chat.title.text() == "Renamed")
    user.press("F2")
    user.press("Ctrl+A")
    user.type("Kept")
    user.press("Return")
    await user.until(lambda: user.titles() == ["Kept"])
    user.press("Ctrl+D")
    await user.until(user.action("pin").isChecked)

    user.press("Ctrl+N")
    await user.until(lambda: composer.text == "something new")
    await user.restart()
    assert user.window.chat.composer.text == "something new"

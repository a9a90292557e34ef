"""Workers switched on and off, settings changed and refused: seen at once, and after a restart."""

from app.bootstrap import Services
from app.domain.ids import ConversationId
from app.domain.workers import WorkerName
from tests.fakes.user import User
from ui.controllers.importing import SAMPLE
from ui.views.settings_dialog import SettingsDialog
from ui.widgets.setting_editor import SettingEditor

EXCHANGES = WorkerName.EXCHANGE_SUMMARIZER


def done_and_total(services: Services) -> tuple[int, int]:
    """Return what the database says of the exchange summariser."""
    (status,) = (each for each in services.workers.refresh() if each.name is EXCHANGES)
    return status.done, status.total


async def test_a_worker_is_switched_on_watched_and_off_again(user: User) -> None:
    await user.start()
    user.press("Ctrl+Shift+W")
    await user.sees("Exchange summaries", "Conversation summaries")
    user.click("Exchange summaries")
    await user.until(lambda: user.window.dashboard.card(EXCHANGES).state.text() == "off")
    await user.bring(SAMPLE)
    await user.sees("the exchange summariser is off.")
    card = user.window.dashboard.card(EXCHANGES)
    await user.until(lambda: card.counts.text().startswith("0 of 56"), "nothing done")

    user.click("Exchange summaries")

    await user.until(lambda: card.counts.text().startswith("56 of 56"), "all done")
    assert await user.ask(done_and_total) == (56, 56)
    assert (card.bar.value(), card.bar.maximum()) == (56, 56)
    await user.until(lambda: card.state.text() == "idle")
    await user.sees_no_more("the exchange summariser is off.")
    await user.sees("Workers idle", "Recall on", "Spent today: $0.00")

    user.click("Exchange summaries")
    await user.until(lambda: card.state.text() == "off")
    await user.restart()

    assert user.window.dock.isVisible()
    assert user.window.dock.width() >= 300  # also the first time
    card = user.window.dashboard.card(EXCHANGES)
    await user.until(lambda: card.state.text() == "off")
    assert not card.switch.isChecked()
    await user.until(lambda: card.counts.text().startswith("56 of 56"))


async def opened_settings(user: User, page: str) -> SettingsDialog:
    """Open the settings by their keys, at a page."""
    user.press("Ctrl+,")
    dialog = user.program.settings.open(page)
    await user.until(dialog.isActiveWindow, "the settings")
    return dialog


async def entered(user: User, editor: SettingEditor, words: str) -> None:
    """Type a value in the place of the one that is there."""
    editor.control.setFocus()
    user.press("Ctrl+A")
    user.type(words)


async def test_settings_take_effect_at_once_and_are_there_after_a_restart(user: User) -> None:
    await user.start()
    before = user.running.appearance.theme
    dialog = await opened_settings(user, "General")
    user.choose(dialog.editors["theme"].control, "Dark")  # type: ignore[arg-type]
    await user.until(lambda: user.running.appearance.theme.dark)
    await entered(user, dialog.editors["text_size"], "150")
    await user.until(lambda: user.running.appearance.theme.ui_px == round(before.ui_px * 1.5))

    await entered(user, dialog.editors["text_size"], "999")
    await user.sees("\u201cText size\u201d cannot be 999", "from 60 to 250")
    assert user.running.appearance.theme.ui_px == round(before.ui_px * 1.5)
    user.press("Esc")
    await user.in_front()

    await user.restart()

    assert user.running.appearance.theme.dark
    assert user.running.appearance.theme.ui_px == round(before.ui_px * 1.5)
    user.press("Ctrl+0")
    await user.until(lambda: user.running.appearance.theme.ui_px == before.ui_px)
    user.press("Ctrl+=")
    await user.until(lambda: user.running.appearance.theme.ui_px > before.ui_px)


async def test_a_change_from_elsewhere_reaches_the_dialog_but_not_what_is_being_typed(
    user: User,
) -> None:
    await user.start()
    dialog = await opened_settings(user, "Memory")
    window, other = (dialog.editors[key].control for key in ("context_sliding_window", "text_size"))
    await entered(user, dialog.editors["context_sliding_window"], "3")

    await user.ask(lambda services: services.settings.set("text_size", 120))
    await user.until(lambda: other.text() == "120")  # type: ignore[attr-defined]
    assert window.text() == "3"  # type: ignore[attr-defined]
    user.type("5")

    await user.until_so(lambda services: services.settings.number("context_sliding_window") == 35)
    assert window.text() == "35"  # type: ignore[attr-defined]
    await user.sees("Default")
    user.click("Default", dialog.editors["context_sliding_window"])
    await user.until(lambda: window.text() == "20")  # type: ignore[attr-defined]


async def test_a_private_conversation_is_kept_out_of_memory_and_can_be_discarded(
    user: User,
) -> None:
    await user.start()
    user.press("Ctrl+Shift+N")
    await user.sees("A private conversation")
    await user.say("My secret is a sonnet.")
    await user.until(lambda: user.transcript.turn_count == 1 and not user.transcript.is_streaming)
    assert await user.ask(lambda services: services.overview.read().passages) == {}

    user.press("Ctrl+N")
    await user.sees("'My secret is a sonnet.' was private and is kept")
    user.click("Discard")
    await user.until(lambda: user.titles() == [])

    user.press("Ctrl+Shift+N")
    await user.say("Another one.")
    await user.until(lambda: user.transcript.turn_count == 1 and not user.transcript.is_streaming)
    user.press("Ctrl+Q")
    await user.sees("Keep the private conversation 'Another one.'?")
    user.click("Keep")
    await user.gone()
    await user.start()
    assert user.titles() == ["Another one."]


async def test_a_deleted_conversation_comes_back_by_undo(user: User) -> None:
    await user.start()
    # The worker that sums a conversation up gives it a title too.
    await user.ask(lambda services: services.settings.set("summarizer_conversation_enabled", False))
    await user.say("Do not lose me.")
    await user.until(lambda: user.titles() == ["Do not lose me."])
    await user.ask(lambda services: services.library.rename(ConversationId(1), "Do not lose me"))
    await user.until(lambda: user.titles() == ["Do not lose me"])
    await user.until(lambda: not user.transcript.is_streaming)

    user.press("Ctrl+Shift+Backspace")
    await user.sees("'Do not lose me' is in the trash for 30 days.")
    await user.until(lambda: user.titles() == [])
    user.click("Undo")

    await user.until(lambda: user.titles() == ["Do not lose me"])
    await user.until(lambda: user.window.chat.title.text() == "Do not lose me")
    user.press("F2")
    user.press("Ctrl+A")
    user.type("Kept")
    user.press("Return")
    await user.until(lambda: user.titles() == ["Kept"])
    user.press("Ctrl+D")
    await user.until(user.action("pin").isChecked)


async def test_drafts_are_kept_for_each_conversation(user: User) -> None:
    await user.start()
    await user.say("First")
    await user.until(lambda: user.titles() == ["First"])
    await user.until(lambda: not user.transcript.is_streaming)
    user.press("Ctrl+J")
    user.type("about the first")
    user.press("Ctrl+N")
    await user.until(lambda: user.window.chat.composer.text == "")
    user.type("something new")

    user.click_row(user.window.sidebar.conversation_list, "First")
    await user.until(lambda: user.window.chat.composer.text == "about the first")
    user.press("Ctrl+N")
    await user.until(lambda: user.window.chat.composer.text == "something new")
    await user.restart()
    assert user.window.chat.composer.text == "something new"

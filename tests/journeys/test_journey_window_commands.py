"""Slash commands: found and opened by number, a clean slate, workers asked and stopped, slips."""

from PySide6.QtWidgets import QPlainTextEdit

from app.bootstrap import Services
from app.domain.ids import ConversationId
from tests.fakes.user import User
from ui.controllers.importing import SAMPLE
from ui.views.command_panel import CommandPanel
from ui.widgets.transcript.panels import CLEAN_SLATE, Divider

SUMMARISERS = ("summarizer_exchange_enabled", "summarizer_conversation_enabled")
STOPPED = ("off", "stopping")  # a worker in the middle of something needs a moment


async def with_sample(user: User) -> None:
    """Start with the sample archive, all of it findable by its words."""
    await user.start()
    await user.bring(SAMPLE)
    await user.until_so(lambda services: services.overview.read().searchable_share == 1)
    await user.until_so(lambda services: services.search.search("knee").results)


def panel(user: User) -> CommandPanel:
    return user.program.commands.panel


def slates(user: User) -> list[str]:
    """Return what stands on the lines across that tell of clean slates."""
    lines = user.transcript.findChildren(Divider)
    return [each.accessibleName() for each in lines if each.accessibleName() == CLEAN_SLATE]


async def run(user: User, command: str) -> None:
    """Type a command and have it run; its list of completions is closed first."""
    await user.in_front()
    user.press("Ctrl+J")
    user.type(command)
    if user.window.chat.composer.completion.isVisible():
        user.press("Esc")
    user.press("Return")


async def answered(user: User, *words: str) -> None:
    """Wait until the panel says these words, and the composer is empty again."""
    await user.until(
        lambda: all(each in panel(user).markdown for each in words), f"{words} in the panel"
    )
    await user.until(lambda: not user.window.chat.composer.text)


async def answered_with_one_of(user: User, *words: str) -> None:
    """Wait until the panel says one of these."""
    await user.until(lambda: any(each in panel(user).markdown for each in words), f"one of {words}")


def messages(services: Services) -> int:
    """Return how many messages there are in all conversations."""
    ids = [each.id for each in services.conversations.listed()]
    return sum(len(services.exchanges.messages_in(each)) for each in ids)


async def test_what_a_command_finds_is_numbered_and_a_number_opens_it(user: User) -> None:
    await with_sample(user)
    before = await user.ask(messages)
    await run(user, "/search knee injury")
    await answered(user, "1. **[", "Running again after a knee injury", "`/open N`")
    await run(user, "/open 1")
    await user.until(lambda: user.window.chat.title.text() == "Running again after a knee injury")
    await user.until(lambda: not user.window.chat.composer.text)
    assert panel(user).isVisible()  # the list of what else can be opened stays

    opened = user.program.chat.conversation_id
    await run(user, f"/open commonplace://{opened}/0")
    await user.until(lambda: not user.window.chat.composer.text)
    assert await user.ask(messages) == before


async def test_a_clean_slate_survives_the_end_and_only_what_follows_is_sent(user: User) -> None:
    await user.start()
    await user.say("My bicycle is green")
    await user.until(lambda: user.transcript.turn_count == 1 and not user.transcript.is_streaming)
    await user.until(lambda: not user.window.chat.composer.text)
    await run(user, "/new")
    await user.until(lambda: slates(user) == [CLEAN_SLATE])
    assert not panel(user).isVisible()

    await user.restart()
    await user.until(lambda: slates(user) == [CLEAN_SLATE])
    await user.say("What colour is it")
    await user.until(lambda: user.transcript.turn_count == 2 and not user.transcript.is_streaming)
    await user.until(lambda: slates(user) == [CLEAN_SLATE])
    opened = user.program.chat.conversation_id
    assert opened is not None
    view = await user.ask(lambda services: services.library.open(ConversationId(opened)))
    assert [each.segment_number for each in view.path] == [0, 1]

    user.action("clean_slate").trigger()
    await user.until(lambda: slates(user) == [CLEAN_SLATE, CLEAN_SLATE])


async def test_workers_are_asked_and_stopped_and_vectors_made_anew_after_a_yes(user: User) -> None:
    await with_sample(user)
    await run(user, "/embeddings")
    await answered(user, "**Embeddings**", "built in")
    await run(user, "/summarizer off")
    for title in ("Exchange summaries", "Conversation summaries"):
        await answered_with_one_of(user, *(f"**{title}** \N{MIDDLE DOT} {so}" for so in STOPPED))
    assert not await user.ask(lambda services: any(map(services.settings.flag, SUMMARISERS)))

    await user.until_so(lambda services: services.workers.embedding and _is_embedded(services))
    await run(user, "/embeddings rebuild turns")
    await answered(user, "This deletes the", "at no cost", "Type **yes**")
    await run(user, "yess")
    await user.until(lambda: "not a yes" in panel(user).markdown)
    assert user.window.chat.composer.text == "yess"  # it may have been meant for someone else
    user.window.chat.composer.clear()
    await run(user, "/embeddings rebuild turns")
    await answered(user, "Type **yes**")
    await run(user, "yes")
    await answered(user, "**Embeddings** \N{MIDDLE DOT}")
    await user.until_so(_is_embedded)


async def test_a_slip_is_told_with_the_nearest_command_and_sends_nothing(user: User) -> None:
    await user.start()
    await run(user, "/serch tea")
    await user.sees("There is no command '/serch'", "Did you mean /search?")
    assert user.window.chat.composer.text == "/serch tea"
    user.press("Esc")
    await user.until(lambda: not panel(user).isVisible())
    user.window.chat.composer.clear()
    await run(user, "/usr/bin/env")
    await user.sees("There is no command '/usr/bin/env'")
    user.window.chat.composer.clear()
    await run(user, "/rag set rag_conversation_limit 0")
    await user.sees("rag_conversation_limit cannot be 0", "from 1 to 20")
    assert await user.ask(lambda services: len(services.conversations.listed())) == 0

    user.window.chat.composer.clear()
    await user.say(" /usr/bin/env is a message")
    await user.until(lambda: user.transcript.turn_count == 1)


async def test_a_command_is_completed_word_by_word(user: User) -> None:
    await user.start()
    composer = user.window.chat.composer
    user.press("Ctrl+J")
    user.type("/")
    assert "/search" in composer.completion.candidates
    user.type("em")
    assert composer.completion.candidates == ["/embeddings"]
    user.press("Tab")
    assert composer.text == "/embeddings "
    user.type("re")
    user.press("Return")
    assert composer.text == "/embeddings rebuild "
    user.press("Down")
    user.press("Down")
    user.press("Return")
    assert composer.text == "/embeddings rebuild exchanges"
    user.press("Esc")
    assert not composer.completion.isVisible()
    box = user.find(QPlainTextEdit, "Message")
    assert box.hasFocus()
    composer.clear()

    user.action("slash_commands").trigger()
    await answered(user, "`/summarizer`", "`/rag`", "`/import`")


def _is_embedded(services: Services) -> bool:
    embedded = services.overview.read().embedded
    return embedded is not None and embedded.share == 1

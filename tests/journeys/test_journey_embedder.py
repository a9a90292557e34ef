"""Search by meaning in the window: a paraphrase found, another embedder, and back again."""

import shutil
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu

from app.bootstrap import RunMode, Services, build
from app.domain.chat import StoredProvider
from app.domain.passages import PassageKind
from app.domain.workers import WorkerName
from app.providers.embedders import remote_models
from app.system.paths import DataPaths
from tests.fakes.libraries import embedded_sample
from tests.fakes.loopback import Loopback
from tests.fakes.stored import add_conversation
from tests.fakes.user import User
from ui.views.settings.embedder_page import EmbedderPage

PIPELINE = WorkerName.EMBEDDING_PIPELINE
PARAPHRASE = "money kept by the owner of the flat"
FOUND = "Landlord keeps part of the deposit"
VIOLINS = (
    "What do you know about the care of old violins, and of their strings?",
    "Wipe the rosin off after playing, and let no more than one string down at a time.",
)
BUILT_IN = "all-MiniLM-L6-v2, built in"
LOCAL = "nomic-embed-text at local"
OPENAI = "text-embedding-3-small at openai \N{MIDDLE DOT} sends your history to a server"
SHIPPED = Path(__file__).resolve().parents[2] / "resources/models/all-MiniLM-L6-v2"


@pytest.fixture
def server(server: Loopback, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    """Copy the embedded sample with the server as provider `local`."""
    monkeypatch.setattr(remote_models, "_LIST_LIMIT_S", 60.0)  # on a busy machine too
    shutil.copytree(embedded_sample(), data_dir)
    server.models = ["chat-model", "nomic-embed-text"]
    services = build(DataPaths(data_dir), RunMode.COMMAND_LINE)
    services.settings.put_provider(StoredProvider("local", "compatible", server.v1, None))
    services.close()
    return server


async def started(user: User) -> None:
    """Start and wait until search by meaning is ready."""
    await user.start()
    await user.until_so(lambda services: is_answering(services, "all_minilm"))
    await user.until_so(is_all_embedded)


def is_all_embedded(services: Services) -> bool:
    embedded = services.vector_search.embedded()
    return embedded is not None and embedded.share == 1


async def finds(user: User, words: str, title: str) -> None:
    """Search and see a conversation first."""
    user.press("Ctrl+K")
    user.press("Ctrl+A")
    user.type(words)
    await user.until(lambda: user.results()[:1] == [title], f"{title!r} first")
    user.press("Esc")


async def opened_page(user: User) -> EmbedderPage:
    """Open the settings at the page about search by meaning."""
    user.press("Ctrl+,")
    dialog = user.presenters.settings.open("Search by meaning")
    await user.until(dialog.isActiveWindow, "the settings")
    box = dialog.embedder.chooser.box
    await user.until(lambda: box.findText(LOCAL) >= 0 and box.findText(OPENAI) >= 0)
    return dialog.embedder


async def switched(user: User, page: EmbedderPage, embedder: str) -> None:
    """Pick an embedder that needs no consent, and use it."""
    user.choose(page.chooser.box, embedder)
    await user.until(page.chooser.use.isEnabled, "what it takes")
    user.click("Use this search model")
    await user.until(lambda: page.state.title.text() == embedder, "the embedder in use")


def is_answering(services: Services, name: str) -> bool:
    """Return whether the space whose name begins so is searched."""
    space = services.vector_search.answering_space
    return space is not None and space.name.startswith(name)


async def set_pipeline(user: User, *, on: bool) -> None:
    await user.ask(lambda services: services.workers.set_enabled(PIPELINE, on))


async def test_a_paraphrase_finds_its_turn_by_any_embedder(user: User, server: Loopback) -> None:
    await started(user)
    await finds(user, PARAPHRASE, FOUND)
    await set_pipeline(user, on=False)
    page = await opened_page(user)
    await switched(user, page, LOCAL)
    await user.sees("Reading your history: 0%", f"{BUILT_IN} stays in use")
    await user.sees("search by meaning is off")
    await user.dismiss()
    await finds(user, PARAPHRASE, FOUND)

    await set_pipeline(user, on=True)
    page = await opened_page(user)
    await user.sees("100% of", f"{BUILT_IN} \N{MIDDLE DOT} kept", "Delete\u2026")
    await user.until_so(lambda services: is_answering(services, "nomic"))
    await user.dismiss()
    user.press("Ctrl+K")
    user.type("a question for the server")
    await user.until(lambda: any("for the server" in str(seen.body) for seen in server.posts))
    user.press("Esc")

    page = await opened_page(user)
    user.choose(page.chooser.box, BUILT_IN)
    await user.sees("It has read everything already: you can use it at once, at no cost.")
    await switched(user, page, BUILT_IN)
    await user.until_so(lambda services: is_answering(services, "all_minilm"))
    await user.dismiss()
    await user.restart()

    page = await opened_page(user)
    await user.sees(f"{LOCAL} \N{MIDDLE DOT} kept", f"{BUILT_IN} \N{MIDDLE DOT} in use")
    assert page.state.title.text() == BUILT_IN
    await user.dismiss()
    await finds(user, PARAPHRASE, FOUND)


async def choose_folder(user: User, folder: Path) -> None:
    """Choose a folder in the file dialog."""
    user.click("ONNX folder\u2026")
    await user.until(lambda: isinstance(QApplication.activeModalWidget(), QFileDialog))
    dialog = QApplication.activeModalWidget()
    assert isinstance(dialog, QFileDialog)
    dialog.fileSelected.emit(str(folder))
    dialog.reject()


async def test_a_server_needs_consent_and_a_folder_a_usable_model(
    user: User, server: Loopback, tmp_path: Path
) -> None:
    await started(user)
    await set_pipeline(user, on=False)
    page = await opened_page(user)
    user.choose(page.chooser.box, OPENAI)
    await user.sees("Your history would be sent to https://api.openai.com/v1", "for about $0.01")
    question = "Send your history to api.openai.com?"
    for button, consents, title in (
        ("Cancel", 0, BUILT_IN), ("Send and use", 1, "text-embedding-3-small at openai")
    ):  # fmt: skip
        await user.until(page.chooser.use.isEnabled)
        user.click("Use this search model")
        await user.sees(question)
        user.click(button)
        await user.sees_no_more(question)
        await user.until(lambda title=title: page.state.title.text() == title)  # type: ignore[misc]
        given = await user.ask(lambda services: services.settings.text("embedder_consent"))
        assert given.count("openai:") == consents

    await choose_folder(user, tmp_path)
    await user.sees("there is no model.onnx in it")
    assert not page.chooser.use.isEnabled()
    await choose_folder(user, SHIPPED)
    await user.until(page.chooser.use.isEnabled)
    await user.sees_no_more("there is no model.onnx in it")
    user.click("Use this search model")
    await user.until(lambda: str(SHIPPED) in page.state.title.text())
    await user.dismiss()
    await finds(user, PARAPHRASE, FOUND)


async def test_kept_vectors_are_deleted_and_those_in_use_made_again_after_a_question(
    user: User, server: Loopback
) -> None:
    await started(user)
    page = await opened_page(user)
    await switched(user, page, LOCAL)
    await user.sees("Delete\u2026")
    user.click(f"Delete what {BUILT_IN} has read")
    await user.sees(f"Delete what {BUILT_IN} has read?")
    user.click("Delete")
    await user.until_so(lambda services: len(services.spaces.read().rows) == 1)
    await user.sees_no_more("Delete\u2026")
    await user.until_so(is_all_embedded)

    asked = len(server.posts)
    question = "Read everything again with this search model"
    for button in ("Cancel", "Delete and read again"):
        user.click("Read everything again\u2026")
        await user.sees(question)
        user.click(button)
        await user.sees_no_more(question)
    await user.until(lambda: len(server.posts) > asked)
    await user.until_so(is_all_embedded)
    await user.dismiss()


async def ask_in_menu(user: User) -> None:
    """Ask in the menu of the first question whether search finds it."""
    await user.until(lambda: user.turn_text(0), "the first turn")
    await user.until(lambda: user.transcript.is_settled)
    frame = user.turn(0).frames()[0]
    frame.open_menu(frame.mapToGlobal(frame.rect().center()))
    await user.until(lambda: isinstance(QApplication.activePopupWidget(), QMenu), "the menu")
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    (action,) = (each for each in menu.actions() if each.text() == "Is this found by search?")
    action.trigger()
    menu.close()


@pytest.mark.usefixtures("server")
async def test_dashboard_and_turn_menu_say_what_is_found_by_meaning(user: User) -> None:
    await started(user)
    user.click_row(user.window.sidebar.conversation_list, FOUND)
    user.press("Ctrl+Shift+W")
    by_kind = await user.ask(lambda services: services.overview.read().passages)
    assert set(by_kind) == {
        PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY, PassageKind.CONVERSATION_SUMMARY,
        PassageKind.FACT,
    }  # fmt: skip
    total = sum(by_kind.values())
    card = user.window.memory.dashboard.card(PIPELINE)
    await user.until(lambda: card.counts.text().startswith(f"{total} of {total}"), "all embedded")
    await user.sees("Turns", str(by_kind[PassageKind.TURN]), f"Found by meaning ({BUILT_IN})")
    await user.until(lambda: user.screen().count("100%") == 2, "both shares")
    await ask_in_menu(user)
    await user.sees("Turn 1: Found by its words and by its meaning.")

    card.switch.setFocus()
    user.press("Space")
    await user.until(lambda: card.state.text() == "off")
    await user.ask(lambda services: add_conversation(services.store, VIOLINS))
    await user.sees("search by meaning is off.")
    await user.until(lambda: user.screen().count("100%") == 1, "a smaller share")
    card.switch.setFocus()
    user.press("Space")
    await user.sees_no_more("search by meaning is off.")
    await user.until(lambda: user.screen().count("100%") == 2)

    await set_pipeline(user, on=False)
    for key in ("embedder", "embedder_before"):
        await user.ask(lambda s, key=key: s.settings.set(key, "local:nomic-embed-text"))  # type: ignore[misc]
    await user.until_so(lambda services: is_answering(services, "nomic"))
    await ask_in_menu(user)
    await user.sees("not by its meaning", "search by meaning is off")

"""Search by meaning in the window: found without a shared word, another embedder, and back again."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu

from app.bootstrap import Services
from app.domain.passages import PassageKind
from app.domain.workers import WorkerName
from app.storage.settings import ProviderRow
from tests.fakes.loopback import Loopback
from tests.fakes.stored import told
from tests.fakes.user import User
from ui.controllers.importing import SAMPLE
from ui.views.embedder_page import EmbedderPage

PIPELINE = WorkerName.EMBEDDING_PIPELINE
PARAPHRASE = "money kept by the owner of the flat"
FOUND = "Landlord keeps part of the deposit"
VIOLINS = (
    "What do you know about the care of old violins, and of their strings?",
    "Wipe the rosin off after playing, and let no more than one string down at a time.",
)
BUILT_IN = "all-MiniLM-L6-v2, built in"
LOCAL = "nomic-embed-text at local"
OPENAI = "text-embedding-3-small at openai \N{MIDDLE DOT} sends your history away"
SHIPPED = Path(__file__).resolve().parents[2] / "resources/models/all-MiniLM-L6-v2"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.models = ["chat-model", "nomic-embed-text"]
        yield running


def is_all_embedded(services: Services) -> bool:
    """Return whether the workers are through and all that is there is found by its meaning."""
    statuses = services.workers.refresh()
    embedded = services.meaning.embedded()
    is_done = all(each.total and each.done == each.total for each in statuses if each.enabled)
    return is_done and embedded is not None and embedded.share == 1


async def all_embedded(user: User) -> None:
    """Wait until the workers are through: 3 s of a machine that does nothing else."""
    deadline = time.monotonic() + 120
    while not await user.ask(is_all_embedded):
        assert time.monotonic() < deadline, await user.ask(lambda s: s.workers.refresh())
        await asyncio.sleep(0.1)


async def with_sample(user: User, server: Loopback) -> None:
    """Start with the sample archive, all of it found by its meaning, and a server to embed with."""
    await user.start()
    row = ProviderRow("local", "compatible", server.v1, None)
    await user.ask(lambda services: services.settings.put_provider(row))
    await user.bring(SAMPLE)
    await all_embedded(user)


async def finds(user: User, words: str, title: str) -> None:
    """Type a question and see a conversation first."""
    user.press("Ctrl+K")
    user.press("Ctrl+A")
    user.type(words)
    await user.until(lambda: user.results()[:1] == [title], f"{title!r} first")
    user.press("Esc")


async def opened_page(user: User) -> EmbedderPage:
    """Open the settings at the page about search by meaning."""
    user.press("Ctrl+,")
    dialog = user.program.settings.open("Search by meaning")
    await user.until(dialog.isActiveWindow, "the settings")
    box = dialog.embedder.chooser.box
    await user.until(lambda: box.findText(LOCAL) >= 0 and box.findText(OPENAI) >= 0)
    return dialog.embedder


async def closed_page(user: User) -> None:
    """Close the settings."""
    await user.dismiss()


async def switched(user: User, page: EmbedderPage, embedder: str) -> None:
    """Pick an embedder that needs no consent, and use it."""
    user.choose(page.chooser.box, embedder)
    await user.until(page.chooser.switch.isEnabled, "what it takes")
    user.click("Use this embedder")
    await user.until(lambda: page.state.title.text() == embedder, "the embedder in use")


async def test_a_paraphrase_finds_its_turn_through_every_change_of_embedder(
    user: User, server: Loopback
) -> None:
    await with_sample(user, server)
    await finds(user, PARAPHRASE, FOUND)

    await user.ask(lambda services: services.workers.set_enabled(PIPELINE, False))
    page = await opened_page(user)
    await switched(user, page, LOCAL)
    await user.sees("Reading your history: 0 %", f"{BUILT_IN}, goes on answering")
    await user.sees("the embedding pipeline is off")
    await closed_page(user)
    await finds(user, PARAPHRASE, FOUND)

    await user.ask(lambda services: services.workers.set_enabled(PIPELINE, True))
    page = await opened_page(user)
    await user.sees("100 % of", f"{BUILT_IN} \N{MIDDLE DOT} kept", "Delete\u2026")
    await user.until_so(lambda services: is_answering(services, "nomic"))
    await closed_page(user)
    user.press("Ctrl+K")
    user.type("a question for the server")
    await user.until(lambda: any("for the server" in str(seen.body) for seen in server.posts))
    user.press("Esc")

    page = await opened_page(user)
    user.choose(page.chooser.box, BUILT_IN)
    await user.sees("Everything is embedded with it already: it answers at once, at no cost.")
    await switched(user, page, BUILT_IN)
    await user.until_so(lambda services: is_answering(services, "all_minilm"))
    await closed_page(user)
    await finds(user, PARAPHRASE, FOUND)

    await user.restart()

    page = await opened_page(user)
    await user.sees(f"{LOCAL} \N{MIDDLE DOT} kept", f"{BUILT_IN} \N{MIDDLE DOT} answers")
    assert page.state.title.text() == BUILT_IN
    await closed_page(user)
    await finds(user, PARAPHRASE, FOUND)


def is_answering(services: Services, name: str) -> bool:
    """Return whether the space whose name begins so answers."""
    space = services.meaning.answering_space
    return space is not None and space.name.startswith(name)


async def test_history_goes_to_a_server_only_after_one_clear_yes(
    user: User, server: Loopback
) -> None:
    await with_sample(user, server)
    await user.ask(lambda services: services.workers.set_enabled(PIPELINE, False))
    page = await opened_page(user)
    user.choose(page.chooser.box, OPENAI)
    await user.sees("Your history would be sent to https://api.openai.com/v1", "for about $0.01")

    user.click("Use this embedder")
    await user.sees("Send your history to api.openai.com?")
    await user.sees("The text of your whole history, and of every later search, goes to")
    user.click("Cancel")
    await user.sees_no_more("Send your history to api.openai.com?")
    assert page.state.title.text() == BUILT_IN
    assert await user.ask(lambda services: services.settings.text("embedder_consent")) == ""

    await user.until(page.chooser.switch.isEnabled)
    user.click("Use this embedder")
    await user.sees("Send your history to api.openai.com?")
    user.click("Send and use")
    await user.until(lambda: page.state.title.text() == "text-embedding-3-small at openai")
    assert "openai" in await user.ask(lambda services: services.settings.text("embedder_consent"))
    await switched(user, page, BUILT_IN)
    await closed_page(user)
    await finds(user, PARAPHRASE, FOUND)


async def chosen_folder(user: User, folder: Path) -> None:
    """Choose a folder in the dialog for it."""
    user.click("ONNX folder\u2026")
    await user.until(lambda: isinstance(QApplication.activeModalWidget(), QFileDialog))
    dialog = QApplication.activeModalWidget()
    assert isinstance(dialog, QFileDialog)
    dialog.fileSelected.emit(str(folder))
    dialog.reject()


async def test_a_folder_is_checked_at_once_and_says_what_is_wrong(
    user: User, server: Loopback, tmp_path: Path
) -> None:
    await with_sample(user, server)
    page = await opened_page(user)
    await chosen_folder(user, tmp_path)
    await user.sees("holds no usable embedding model: there is no model.onnx in it")
    assert not page.chooser.switch.isEnabled()
    await chosen_folder(user, SHIPPED)
    await user.until(page.chooser.switch.isEnabled)
    await user.sees_no_more("holds no usable embedding model")
    user.click("Use this embedder")
    await user.until(lambda: str(SHIPPED) in page.state.title.text())
    await closed_page(user)
    await finds(user, PARAPHRASE, FOUND)


async def test_what_is_kept_is_deleted_and_what_is_in_use_made_again_after_a_question(
    user: User, server: Loopback
) -> None:
    await with_sample(user, server)
    page = await opened_page(user)
    await switched(user, page, LOCAL)
    await user.sees("Delete\u2026")
    user.click(f"Delete the vectors of {BUILT_IN}")
    await user.sees(f"Delete the vectors of {BUILT_IN}?", "Nothing that was said is lost.")
    user.click("Delete")
    await user.until_so(lambda services: len(services.spaces.read().rows) == 1)
    await user.sees_no_more("Delete\u2026")

    asked = len(server.posts)
    user.click("Embed everything again\u2026")
    await user.sees("vectors and make them again?", "Meanwhile search finds by words")
    user.click("Cancel")
    await user.sees_no_more("vectors and make them again?")
    user.click("Embed everything again\u2026")
    await user.sees("vectors and make them again?")
    user.click("Delete and embed again")
    await user.until(lambda: len(server.posts) > asked)
    await all_embedded(user)
    await closed_page(user)


async def test_the_dashboard_counts_what_the_database_holds(user: User, server: Loopback) -> None:
    await with_sample(user, server)
    user.press("Ctrl+Shift+W")
    by_kind = await user.ask(counted)
    assert set(by_kind) == {
        PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY, PassageKind.CONVERSATION_SUMMARY,
        PassageKind.FACT,
    }  # fmt: skip
    total = sum(by_kind.values())
    card = user.window.dashboard.card(PIPELINE)
    await user.until(lambda: card.counts.text().startswith(f"{total} of {total}"), "all embedded")
    await user.sees("Turns", str(by_kind[PassageKind.TURN]), "Exchange summaries")
    await user.sees("Found by words", f"Found by meaning ({BUILT_IN})")
    await user.until(lambda: user.screen().count("100 %") == 2, "both shares")

    card.switch.setFocus()
    user.press("Space")
    await user.until(lambda: card.state.text() == "off")
    await user.ask(lambda services: told(services.store, VIOLINS))
    await user.sees("the embedding pipeline is off.")
    await user.until(lambda: user.screen().count("100 %") == 1, "a smaller share")
    assert await user.ask(embedded_share) < 1

    card.switch.setFocus()
    user.press("Space")
    await user.sees_no_more("the embedding pipeline is off.")
    await user.until(lambda: user.screen().count("100 %") == 2)


def counted(services: Services) -> dict[PassageKind, int]:
    """Return the passages by kind, straight from the table."""
    rows = services.store.read(
        lambda cursor: cursor.execute("SELECT kind, count(*) FROM passage GROUP BY kind").fetchall()
    )
    return {PassageKind(kind): count for kind, count in rows}


def embedded_share(services: Services) -> float:
    """Return the share of the passages that have a vector, straight from the tables."""
    (share,) = services.store.read(
        lambda cursor: cursor.execute(
            "SELECT count(e.passage_id) / count(*) FROM passage p LEFT JOIN "
            "embedding_all_minilm_l6_v2 e ON e.passage_id = p.id AND e.chunk_number = 0"
        ).fetchone()
    ) or (0.0,)
    return float(share)


async def test_a_turn_says_in_its_menu_whether_search_finds_it(
    user: User, server: Loopback
) -> None:
    await with_sample(user, server)
    user.click_row(user.window.sidebar.conversation_list, FOUND)
    await asked_in_menu(user)
    await user.sees("Turn 0: Found by its words and by its meaning.")
    await user.ask(lambda services: services.workers.set_enabled(PIPELINE, False))
    await user.ask(lambda services: services.settings.set("embedder", "local:nomic-embed-text"))
    await user.ask(
        lambda services: services.settings.set("embedder_before", "local:nomic-embed-text")
    )
    await user.until_so(lambda services: is_answering(services, "nomic"))
    await asked_in_menu(user)
    await user.sees(
        "Turn 0: Found by its words, not yet by its meaning. "
        "It waits for its embedding, and the embedding pipeline is off."
    )


async def asked_in_menu(user: User) -> None:
    """Ask in the menu of the first question whether it is found."""
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

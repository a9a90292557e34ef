"""Gallery: every screen of the window in its states as PNG, drawn by the real program on sample data.

    python -m tests.bench.gallery FOLDER [VARIANT...]

Without variants all of them. Each runs in a process of its own, since language and scale are fixed when Qt
starts. With a display the real platform draws, else Qt's offscreen one. A file `texts.json` beside the images
holds the texts of each screen, those that are cut included.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.shared.measuring import ROOT
from tests.fakes.exports import chatgpt_message, chatgpt_row
from tests.fakes.libraries import SAMPLE

if TYPE_CHECKING:  # the language is chosen before anything with texts is imported
    from PySide6.QtWidgets import QWidget

    from app.bootstrap import Services
    from app.providers.configuration import ProviderConfig
    from tests.fakes.user import User

_SETTLE_S = 0.25


@dataclass(frozen=True, slots=True)
class Variant:
    """How the window is shown; `size` in pixels of the layout."""

    theme: str = "light"
    size: tuple[int, int] = (1280, 800)
    language: str = "en"
    scale: str = "1"


VARIANTS = {
    "light": Variant(), "dark": Variant("dark"), "small": Variant(size=(900, 600)),
    "double": Variant("dark", (900, 600), scale="2"), "german": Variant(language="de"),
    "german-small": Variant("dark", (900, 600), "de"),
}  # fmt: skip

_CODE = (
    "A loop keeps the best value:\n\n```python\nbest = max(rows, key=lambda row: row.score)\n"
    "print(f'{best.name}: {best.score:.2f}')\n```\n\n| Method | Error | Time |\n|---|---:|---:|\n"
    "| Least squares | 0.031 | 2 ms |\n| Ridge | 0.028 | 3 ms |\n\nThe estimate is "
    "$\\hat\\beta = (X^T X)^{-1} X^T y$, and for the whole sample\n\n"
    "$$\\sum_{i=1}^n (y_i - x_i^T \\beta)^2 \\to \\min$$\n\n> A quotation, with a [link](https://example.org).\n\n"
    "- [x] measured\n- [ ] written down"
)
_ARABIC = (
    "\u0645\u0627 \u0623\u0641\u0636\u0644 \u0648\u0642\u062a \u0644\u0632\u064a\u0627\u0631\u0629 \u0627\u0644\u0642\u0627\u0647\u0631\u0629\u061f",
    "\u0623\u0641\u0636\u0644 \u0648\u0642\u062a \u0647\u0648 \u0645\u0646 **\u0623\u0643\u062a\u0648\u0628\u0631** \u0625\u0644\u0649 \u0623\u0628\u0631\u064a\u0644:\n\n1. \u0627\u0644\u062c\u0648 \u0645\u0639\u062a\u062f\u0644.\n2. \u0627\u0644\u0645\u062a\u0627\u062d\u0641 \u0623\u0642\u0644 \u0627\u0632\u062f\u062d\u0627\u0645\u064b\u0627.",
)
_NOW = datetime.now(UTC)
_CELLO = (
    (
        "How should I practice the cello this week?",
        "Scales on the cello first, then the second movement.",
    ),
    ("And the bow?", "Long slow bows on the cello, ten minutes a day, with a metronome."),
)
_LONG_TITLE = "A title that is much longer than any header or list has room for, " * 3
_TALKS = (
    ("Regression in a notebook", (("How do I fit a line to these points?", _CODE),)),
    ("\u0632\u064a\u0627\u0631\u0629 \u0627\u0644\u0642\u0627\u0647\u0631\u0629", (_ARABIC,)),
    *((f"Cello practice, week {n}", _CELLO) for n in range(1, 7)),
    (_LONG_TITLE, tuple((f"Question {n}? " * 9, f"Answer {n}. " * 120) for n in range(1, 9))),
)


def _export() -> Iterator[dict[str, Any]]:
    """Yield the conversations as an export of ChatGPT has them."""
    for number, (title, turns) in enumerate(_TALKS):
        texts = [text for turn in turns for text in turn]
        messages = (
            chatgpt_message(
                f"{number}-{at}", "assistant" if at % 2 else "user", text, at=1.76e9 + 60 * at
            )
            for at, text in enumerate(texts)
        )
        name = f"gallery-{number}"
        times = {"create_time": 1.76e9, "update_time": 1.76e9 + number}
        yield chatgpt_row(*messages, title=title) | times | {"id": name, "conversation_id": name}


class Gallery:
    """A running program whose screens are stored one after the other."""

    def __init__(self, user: "User", folder: Path) -> None:
        self.user, self._folder = user, folder
        self.texts: dict[str, dict[str, list[str]]] = {}

    async def shot(self, name: str, widget: "QWidget | None" = None) -> None:
        """Store what a widget shows, by default the window, with its texts."""
        from tests.fakes.window_walk import texts_of

        await asyncio.sleep(_SETTLE_S)
        shown = widget or self.user.window
        shown.grab().save(str(self._folder / f"{name}.png"))
        self.texts[name] = texts_of(shown)

    async def dialogs(self, **openers: Callable[[], object]) -> None:
        """Store the dialogs that are opened so, by the names of their images."""
        from tests.fakes.window_walk import dialogs

        named = {name.replace("_", "-"): each for name, each in openers.items()}
        async for name, dialog in dialogs(self.user, named):
            await asyncio.sleep(4 * _SETTLE_S)  # what it loads
            await self.shot(name, dialog)

    async def open_talk(self, title: str) -> None:
        """Open the conversation whose title begins so."""
        listed = await self.user.ask(lambda services: services.conversations.listed())
        talk = next(each for each in listed if each.title.startswith(title))
        presenter = self.user.presenters.conversation
        presenter.open(talk.id, None, None)
        await self.user.until(lambda: presenter.conversation_id == talk.id)
        await asyncio.sleep(2 * _SETTLE_S)


async def _steps(gallery: Gallery) -> None:
    from tests.fakes.window_walk import memory_pages, settings_pages

    user = gallery.user
    sidebar, action = user.window.sidebar, user.action
    await gallery.shot("welcome")
    for title, name in (
        ("Regression", "conversation"), ("\u0632", "right-to-left"), ("A title that", "long"),
        ("Two job offers", "conversation-text"),
    ):  # fmt: skip
        await gallery.open_talk(title)
        await gallery.shot(name)
    async for page, _ in memory_pages(user):
        await gallery.shot(f"memory-{page}")
    sidebar.box.setText("water")
    await user.until(lambda: sidebar.results.rowCount() > 0)
    await asyncio.sleep(1.0)
    await gallery.shot("search")
    sidebar.box.setText("xyzzyq")
    await asyncio.sleep(1.5)
    await gallery.shot("search-nothing")
    sidebar.box.setText("")
    action("find").trigger()
    user.window.chat.find_bar.box.setText("the")
    await gallery.shot("find")
    user.window.chat.find_bar.dismiss()
    await _answer(gallery)
    await _groups(gallery)
    number = 0
    async for page, dialog in settings_pages(user):
        await gallery.shot(f"settings-{page if page == 'provider' else number}", dialog)
        number += 1
    names = ("shortcuts", "about", "palette", "why", "tag", "forget", "check")
    await gallery.dialogs(**{f"dialog_{name}": action(name).trigger for name in names})
    await _replies(gallery)


async def _answer(gallery: Gallery) -> None:
    """Store the screens of a message, its answer from memory, commands and the banner."""
    user, chat = gallery.user, gallery.user.window.chat
    user.action("new").trigger()
    await user.say("How long does the bulk rise take?")
    await user.until(lambda: len(user.transcript.heights) and not user.transcript.is_streaming)
    await asyncio.sleep(1)
    await gallery.shot("answer-from-memory")
    user.window.memory.open_page("sources")
    await gallery.shot("answer-sources")
    user.window.memory_dock.hide()
    chat.composer.box.setPlainText("/")
    await gallery.shot("commands")
    chat.composer.box.setPlainText("")
    user.presenters.commands.run("/help")
    await asyncio.sleep(_SETTLE_S)
    await gallery.shot("command-help")
    user.presenters.command_panel.dismiss()
    chat.banner.show_message(
        "The conversation was moved to the trash.", "Undo", lambda: None, brief=False
    )
    await gallery.shot("banner")
    chat.banner.dismiss()


async def _groups(gallery: Gallery) -> None:
    """Store the screens of topics, projects and routines, without content and with it."""
    from app.domain.records.projects import Project, RecallRule
    from app.domain.records.routines import Routine

    user, action = gallery.user, gallery.user.action
    await gallery.dialogs(topics=action("topics").trigger)
    await gallery.open_talk("Cello practice, week 6")
    await gallery.shot("trail")
    user.window.memory.open_page("sources")
    await gallery.shot("memory-related")
    user.window.memory_dock.hide()
    await gallery.dialogs(
        projects_proposed=action("proposed_projects").trigger,
        project_new=action("new_project").trigger,
    )
    travel = Project("", "Travel", "Answer with prices in euro.", "#0b6963", recall=RecallRule.ONLY)
    project = await user.ask(lambda services: services.projects.save(travel))
    listed = await user.ask(lambda services: services.conversations.listed())
    trips = [each.id for each in listed if each.title.startswith(("Ten days", "Which e-bike"))]
    await user.ask(lambda services: services.projects.move(trips, project.uid))
    await gallery.open_talk("Ten days")
    await gallery.shot("project")
    await gallery.dialogs(
        project_edit=action("edit_project").trigger, routines_none=action("routines").trigger
    )
    brief = Routine("", "Morning brief", "What is due today?", "0 9 * * 1-5", _NOW, _NOW)
    routine = await user.ask(lambda services: services.routines.save(brief, agreed=True))
    await user.ask(lambda services: services.routines.run_now(routine.uid))
    await user.until(user.window.chat.banner.isVisible)
    await gallery.shot("routine-ended")
    user.window.chat.banner.dismiss()
    await gallery.dialogs(
        routines=action("routines").trigger, routine_new=user.presenters.routines.add
    )


def _add_provider(config: "ProviderConfig", services: "Services") -> None:
    services.models.add_provider(config)


def _is_chosen(user: "User", model: str) -> bool:
    return user.presenters.models.chosen == model


async def _replies(gallery: Gallery) -> None:
    """Store a reply that waits and one that failed, from servers on this computer."""
    from app.providers.configuration import ProviderConfig

    user, chat = gallery.user, gallery.user.window.chat
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name, port in (("busy", silent.getsockname()[1]), ("error", 9)):
            config = ProviderConfig(name, "compatible", f"http://127.0.0.1:{port}/v1")
            await user.ask(partial(_add_provider, config))
            user.action("new").trigger()
            await asyncio.sleep(_SETTLE_S)
            chat.model.chosen.emit(model := f"{name}:model")
            await user.until(partial(_is_chosen, user, model), model)
            await user.say("Write a short poem about the sea.")
            await asyncio.sleep(3 if name == "busy" else 8)
            await gallery.shot(f"reply-{name}")
            user.presenters.compose.stop()
            await asyncio.sleep(1)


def _prepare(data: Path) -> None:
    """Fill a data folder with the sample and what the gallery needs besides; blocking, a minute."""
    program = [sys.executable, "-m", "app", "--data-dir", str(data)]
    extra = data.parent / "conversations.json"
    extra.write_text(json.dumps(list(_export())), encoding="utf-8")
    for command in (("import", SAMPLE), ("import", extra), ("work", "--until-idle")):
        subprocess.run([*program, *map(str, command)], check=True, cwd=ROOT, capture_output=True)


def _run_variant(variant: Variant, data: Path, folder: Path) -> None:
    """Render one variant in this process."""
    from app.domain.translation import choose_language

    choose_language(variant.language)
    import qasync
    from PySide6.QtWidgets import QApplication

    from tests.fakes.user import User
    from ui.main.start import use_language
    from ui.theme import STYLE

    application = QApplication(["commonplace", "-style", STYLE])
    application.setApplicationDisplayName("Commonplace")
    application.setQuitOnLastWindowClosed(False)
    use_language(application)

    async def live() -> None:
        user = User(application, data)
        gallery = Gallery(user, folder)
        await user.start()
        user.window.resize(*variant.size)
        await user.ask(lambda services: services.settings.set("theme", variant.theme))
        try:
            await _steps(gallery)
        finally:
            texts = json.dumps(gallery.texts, ensure_ascii=False, indent=1)
            (folder / "texts.json").write_text(texts, encoding="utf-8")
            await user.leave()

    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        runner.run(live())


def main() -> int:
    """Render the variants that are named, or all; return 1 if one failed."""
    folder = Path(sys.argv[1]).resolve()
    if "--inside" in sys.argv:
        _run_variant(VARIANTS[sys.argv[2]], Path(sys.argv[3]), folder)
        return 0
    failed = []
    with tempfile.TemporaryDirectory(prefix="commonplace-gallery-") as temporary:
        data = Path(temporary) / "data"
        _prepare(data)
        for name in sys.argv[2:] or VARIANTS:
            target, own = folder / name, Path(temporary) / name
            target.mkdir(parents=True, exist_ok=True)
            shutil.copytree(data, own)
            environ = os.environ | {"QT_SCALE_FACTOR": VARIANTS[name].scale}
            if "DISPLAY" not in os.environ:
                environ["QT_QPA_PLATFORM"] = "offscreen"
            inside = ["-m", "tests.bench.gallery", str(target), name, str(own), "--inside"]
            done = subprocess.run([sys.executable, *inside], env=environ, cwd=ROOT)
            failed += [name] if done.returncode else []
    if failed:
        sys.stderr.write(f"failed: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

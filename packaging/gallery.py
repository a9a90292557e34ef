"""Gallery: every screen of the window in its states as PNG, drawn by the real program on sample data.

`python packaging/gallery.py FOLDER [VARIANT...]`; without variants all of them. Each variant runs in a
process of its own, since language and scale are fixed when Qt starts. With a display the real platform
draws, else Qt's offscreen one. A file `texts.json` beside the images holds the texts of each screen, those
that are cut included.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
SAMPLE = ROOT / "resources" / "samples" / "sample-archive.json"
_PATIENCE_S = 60.0
_SETTLE_S = 0.25


@dataclass(frozen=True, slots=True)
class Variant:
    """How the window is shown; `size` in pixels of the layout."""

    theme: str = "light"
    size: tuple[int, int] = (1280, 800)
    language: str = "en"
    scale: str = "1"


VARIANTS = {
    "light": Variant(),
    "dark": Variant("dark"),
    "small": Variant(size=(900, 600)),
    "double": Variant("dark", (900, 600), scale="2"),
    "german": Variant(language="de"),
    "german-small": Variant("dark", (900, 600), "de"),
}
Step = Callable[["Gallery"], Coroutine[Any, Any, Any]]

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


def _export(talks: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> str:
    """Return conversations as an export of ChatGPT."""
    conversations = []
    for number, (title, turns) in enumerate(talks):
        texts = [text for turn in turns for text in turn]
        ids = [f"{number}-{at}" for at in range(len(texts) + 1)]
        mapping: dict[str, dict[str, Any]] = {
            ids[0]: {"id": ids[0], "children": ids[1:2], "parent": None}
        }
        for at, text in enumerate(texts, 1):
            author = "user" if at % 2 else "assistant"
            content = {"content_type": "text", "parts": [text]}
            message: dict[str, Any] = {
                "id": ids[at],
                "author": {"role": author},
                "content": content,
            }
            message["create_time"] = 1_760_000_000 + 60 * at
            node = {"id": ids[at], "message": message, "parent": ids[at - 1]}
            mapping[ids[at]] = node | {"children": ids[at + 1 : at + 2]}
        conversations.append({
            "title": title, "create_time": 1_760_000_000, "update_time": 1_760_000_000 + number,
            "mapping": mapping, "current_node": ids[-1], "conversation_id": f"gallery-{number}",
        })  # fmt: skip
    return json.dumps(conversations)


class Gallery:
    """A running program whose screens are stored one after the other."""

    def __init__(self, running: Any, folder: Path) -> None:
        self.running, self._folder = running, folder
        self.window = running.window
        self.texts: dict[str, dict[str, list[str]]] = {}

    @property
    def presenters(self) -> Any:
        """The program's presenters."""
        return self.running.presenters

    @property
    def services(self) -> Any:
        """What is below them."""
        return self.running.services

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition."""
        for _ in range(int(_PATIENCE_S / 0.05)):
            if condition():
                return
            await asyncio.sleep(0.05)
        raise TimeoutError("waited in vain")

    async def shot(self, name: str, widget: Any = None) -> None:
        """Store what a widget shows, by default the window, with its texts."""
        await asyncio.sleep(_SETTLE_S)
        shown = widget or self.window
        shown.grab().save(str(self._folder / f"{name}.png"))
        self.texts[name] = texts_of(shown)

    async def dialog(self, name: str, act: Callable[[], object]) -> None:
        """Store the dialog that an act opens, and close it."""
        from PySide6.QtWidgets import QApplication, QDialog

        act()
        found: list[Any] = []

        def appeared() -> bool:
            tops = [each for each in QApplication.topLevelWidgets() if isinstance(each, QDialog)]
            found[:] = [each for each in tops if each.isVisible()]
            return bool(found)

        await self.until(appeared)
        await asyncio.sleep(4 * _SETTLE_S)  # what it loads
        await self.shot(name, found[-1])
        found[-1].reject()
        await asyncio.sleep(_SETTLE_S)

    async def open_talk(self, title: str) -> None:
        """Open the conversation whose title begins so."""
        listed = await self.running.bridge.run(self.services.conversations.listed)
        talk = next(each for each in listed if each.title.startswith(title))
        self.presenters.conversation.open(talk.id, None, None)
        await self.until(lambda: self.presenters.conversation.conversation_id == talk.id)
        await asyncio.sleep(2 * _SETTLE_S)


def texts_of(top: Any) -> dict[str, list[str]]:
    """Return the texts on a screen: `shown`, and of those the ones that are `cut`."""
    from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

    shown, cut = [], []
    for part in [top, *top.findChildren(QWidget)]:
        if not part.isVisibleTo(top) or part.visibleRegion().isEmpty():
            continue
        for read in ("text", "placeholderText", "toolTip", "accessibleName", "currentText"):
            value = getattr(part, read, None)
            if callable(value) and isinstance(text := value(), str) and text.strip():
                shown.append(text)
        if isinstance(part, QLabel | QAbstractButton) and part.text().strip():
            needed = part.minimumSizeHint() if isinstance(part, QLabel) else part.sizeHint()
            is_wrapped = isinstance(part, QLabel) and part.wordWrap()
            lacks_height = is_wrapped and part.heightForWidth(part.width()) > part.height() + 1
            if (not is_wrapped and part.width() + 1 < needed.width()) or lacks_height:
                cut.append(part.text())
    return {"shown": shown, "cut": cut}


async def _steps(gallery: Gallery) -> None:
    window = gallery.window
    chat, memory, sidebar = window.chat, window.memory, window.sidebar
    actions = window.actions_by_name

    await gallery.shot("welcome")
    for title, name in (
        ("Regression", "conversation"), ("\u0632", "right-to-left"), ("A title that", "long"),
        ("Two job offers", "conversation-text"),
    ):  # fmt: skip
        await gallery.open_talk(title)
        await gallery.shot(name)
    for page in (
        "sources", "sent", "facts", "summaries", "profile", "core", "saved", "questions", "activity",
    ):  # fmt: skip
        memory.open_page(page)
        await gallery.shot(f"memory-{page}")
    window.memory_dock.hide()
    sidebar.box.setText("water")
    await gallery.until(lambda: sidebar.results.rowCount() > 0)
    await asyncio.sleep(1.0)
    await gallery.shot("search")
    sidebar.box.setText("xyzzyq")
    await asyncio.sleep(1.5)
    await gallery.shot("search-nothing")
    sidebar.box.setText("")
    actions["find"].trigger()
    chat.find_bar.box.setText("the")
    await gallery.shot("find")
    chat.find_bar.dismiss()
    await _answer(gallery)
    await _groups(gallery)
    await _settings(gallery)
    for name in ("shortcuts", "about", "palette", "why", "tag", "forget", "check"):
        await gallery.dialog(f"dialog-{name}", actions[name].trigger)
    await _replies(gallery)


async def _answer(gallery: Gallery) -> None:
    """Store the screens of a message, its answer from memory, commands and the banner."""
    window, presenters = gallery.window, gallery.presenters
    chat, memory = window.chat, window.memory
    window.actions_by_name["new"].trigger()
    await asyncio.sleep(_SETTLE_S)
    chat.composer.box.setPlainText("How long does the bulk rise take?")
    chat.composer.send_requested.emit(chat.composer.text)
    await gallery.until(lambda: _is_answered(chat.transcript))
    await asyncio.sleep(1)
    await gallery.shot("answer-from-memory")
    memory.open_page("sources")
    await gallery.shot("answer-sources")
    window.memory_dock.hide()
    chat.composer.box.setPlainText("/")
    await gallery.shot("commands")
    chat.composer.box.setPlainText("")
    presenters.commands.run("/help")
    await asyncio.sleep(_SETTLE_S)
    await gallery.shot("command-help")
    presenters.command_panel.dismiss()
    chat.banner.show_message(
        "The conversation was moved to the trash.", "Undo", lambda: None, brief=False
    )
    await gallery.shot("banner")
    chat.banner.dismiss()


async def _groups(gallery: Gallery) -> None:
    """Store the screens of topics, projects and routines, without content and with it."""
    from app.domain.projects import Project, RecallRule
    from app.domain.routines import Routine

    actions, services = gallery.window.actions_by_name, gallery.services
    run = gallery.running.bridge.run
    await gallery.dialog("topics", actions["topics"].trigger)
    await gallery.open_talk("Cello practice, week 6")
    await gallery.shot("trail")
    gallery.window.memory.open_page("sources")
    await gallery.shot("memory-related")
    gallery.window.memory_dock.hide()
    await gallery.dialog("projects-proposed", actions["proposed_projects"].trigger)
    await gallery.dialog("project-new", actions["new_project"].trigger)
    travel = Project("", "Travel", "Answer with prices in euro.", "#0b6963", recall=RecallRule.ONLY)
    project = await run(lambda: services.projects.save(travel))
    listed = await run(services.conversations.listed)
    trips = [each.id for each in listed if each.title.startswith(("Ten days", "Which e-bike"))]
    await run(lambda: services.projects.move(trips, project.uid))
    await gallery.open_talk("Ten days")
    await gallery.shot("project")
    await gallery.dialog("project-edit", actions["edit_project"].trigger)
    await gallery.dialog("routines-none", actions["routines"].trigger)
    routine = Routine("", "Morning brief", "What is due today?", "0 9 * * 1-5", _NOW, _NOW)
    routine = await run(lambda: services.routines.save(routine, agreed=True))
    await run(lambda: services.routines.run_now(routine.uid))
    await gallery.until(gallery.window.chat.banner.isVisible)
    await gallery.shot("routine-ended")
    gallery.window.chat.banner.dismiss()
    await gallery.dialog("routines", actions["routines"].trigger)
    await gallery.dialog("routine-new", gallery.presenters.routines.add)


async def _settings(gallery: Gallery) -> None:
    dialog = gallery.presenters.settings.open()
    names = dialog._names  # noqa: SLF001 - the list has no other name
    for row in range(names.count()):
        names.setCurrentRow(row)
        await gallery.shot(f"settings-{row}", dialog)
    names.setCurrentRow(0)
    dialog.models.opened.emit("openai")
    await gallery.shot("settings-provider", dialog)
    dialog.reject()
    await asyncio.sleep(_SETTLE_S)


async def _replies(gallery: Gallery) -> None:
    """Store a reply that waits and one that failed, from servers on this computer."""
    from app.providers.configuration import ProviderConfig

    chat, running = gallery.window.chat, gallery.running
    silent = socket.create_server(("127.0.0.1", 0))
    for name, port in (("busy", silent.getsockname()[1]), ("error", 9)):
        address = f"http://127.0.0.1:{port}/v1"
        config = ProviderConfig(name, "compatible", address)
        await running.bridge.run(partial(gallery.services.models.add_provider, config))
        gallery.window.actions_by_name["new"].trigger()
        await asyncio.sleep(_SETTLE_S)
        chat.model.chosen.emit(model := f"{name}:model")
        await gallery.until(partial(_is_chosen, chat, model))
        chat.composer.box.setPlainText("Write a short poem about the sea.")
        chat.composer.send_requested.emit(chat.composer.text)
        await asyncio.sleep(3 if name == "busy" else 8)
        await gallery.shot(f"reply-{name}")
        gallery.presenters.compose.stop()
        await asyncio.sleep(1)
    silent.close()


def _is_answered(transcript: Any) -> bool:
    """Return whether the reply of the first turn is there to its end."""
    turn = transcript.turn_widget(0) if transcript.turn_count == 1 else None
    return turn is not None and turn.content is not None and turn.content.status == "completed"


def _is_chosen(chat: Any, model: str) -> bool:
    return bool(chat.model.model == model)


def _prepare(data: Path) -> None:
    """Fill a data folder with the sample and what the gallery needs besides; blocking, a minute."""
    program = [sys.executable, "-m", "app", "--data-dir", str(data)]
    extra = data.parent / "conversations.json"
    extra.write_text(_export(_TALKS), encoding="utf-8")
    subprocess.run([*program, "import", str(SAMPLE)], check=True, cwd=ROOT, capture_output=True)
    subprocess.run([*program, "import", str(extra)], check=True, cwd=ROOT, capture_output=True)
    subprocess.run([*program, "work", "--until-idle"], check=True, cwd=ROOT, capture_output=True)


def _run_variant(variant: Variant, data: Path, folder: Path) -> None:
    """Render one variant in this process."""
    from app.domain.translation import choose_language
    from app.system.paths import DataPaths

    choose_language(variant.language)
    import qasync
    from PySide6.QtWidgets import QApplication

    from ui.main.application import DesktopApplication
    from ui.main.start import first_appearance, first_window, use_language
    from ui.theme import STYLE

    application = QApplication(["commonplace", "-style", STYLE])
    application.setApplicationDisplayName("Commonplace")
    application.setQuitOnLastWindowClosed(False)
    use_language(application)
    paths = DataPaths(data)

    async def live() -> None:
        appearance = first_appearance(application, {"theme": variant.theme})
        window = first_window(paths)
        window.resize(*variant.size)
        running = DesktopApplication(paths, appearance, window)
        gallery = Gallery(running, folder)
        running.open()
        await gallery.until(lambda: running.presenters and running.presenters.ready.is_set())
        await running.bridge.run(partial(gallery.services.settings.set, "theme", variant.theme))
        try:
            await _steps(gallery)
        finally:
            texts = json.dumps(gallery.texts, ensure_ascii=False, indent=1)
            (folder / "texts.json").write_text(texts, encoding="utf-8")
            running.leave()
            await running.finished.wait()

    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        runner.run(live())


def main() -> int:
    """Render the variants that are named, or all; return 1 if one failed."""
    folder = Path(sys.argv[1]).resolve()
    if "--inside" in sys.argv:
        _run_variant(VARIANTS[sys.argv[2]], Path(sys.argv[3]), folder)
        return 0
    names = sys.argv[2:] or list(VARIANTS)
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        _prepare(data)
        for name in names:
            target, own = folder / name, Path(temporary) / name
            target.mkdir(parents=True, exist_ok=True)
            shutil.copytree(data, own)
            environment = os.environ | {"QT_SCALE_FACTOR": VARIANTS[name].scale}
            if "DISPLAY" not in os.environ:
                environment["QT_QPA_PLATFORM"] = "offscreen"
            inside = [sys.executable, __file__, str(target), name, str(own), "--inside"]
            done = subprocess.run(inside, env=environment, cwd=ROOT)
            failed += [name] if done.returncode else []
    if failed:
        print("failed:", ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

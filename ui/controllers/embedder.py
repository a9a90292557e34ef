"""The page about search by meaning: embedders tried out, agreed to, switched; spaces deleted."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QFileDialog

from app.bootstrap import Services
from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.spaces import SwitchPlan
from app.workers.embedding_pipeline import Redo
from app.workers.wording import estimate_words
from ui.bridge import Bridge
from ui.controllers.asking import Question, ask
from ui.views.embedder_page import EmbedderPage, consent_words

_SHOW_EVERY_MS = 500
_CONCERNED = frozenset(("embedder", "embedder_before", "min_message_tokens"))


class EmbedderController(QObject):
    """Shows how search by meaning stands, and changes it when the user has agreed."""

    def __init__(self, services: Services, bridge: Bridge, page: EmbedderPage) -> None:
        super().__init__(page)
        self._services = services
        self._bridge = bridge
        self._page = page
        self._due = QTimer(self, singleShot=True, interval=_SHOW_EVERY_MS)
        self._due.timeout.connect(self._on_due_timeout)
        page.choice_picked.connect(self._on_choice_picked)
        page.folder_requested.connect(self._on_folder_requested)
        page.switch_requested.connect(self._on_switch_requested)
        page.redo_requested.connect(self._on_redo_requested)
        page.deletion_requested.connect(self._on_deletion_requested)
        bridge.changed.connect(self._on_changed)

    def show(self) -> None:
        """Show how it stands, and ask servers what they have."""
        self._bridge.start("embedder page", self._show())
        self._bridge.start("embedder choices", self._show_choices())

    async def _show(self) -> None:
        self._page.show_state(await self._bridge.run(self._services.spaces.read))

    async def _show_choices(self) -> None:
        """List what needs no asking at once, then what the servers say."""
        services = self._services
        state = await self._bridge.run(services.spaces.read)
        kept = {row.choice: row.model for row in state.rows} | {state.chosen: state.chosen_words}
        built_in = {"builtin": services.embedders.describe("builtin")}
        self._page.show_choices(tuple((built_in | kept).items()), state.chosen)
        listed = await self._bridge.run(services.embedders.choices)
        found = {each.value: _words(each.title, away=each.leaves_machine) for each in listed}
        self._page.show_choices(tuple((found | _without(kept, found)).items()), state.chosen)

    def _on_changed(self, changed: Changed) -> None:
        concerns = changed.vectors or changed.passages or changed.settings & _CONCERNED
        if concerns and self._page.isVisible() and not self._due.isActive():
            self._due.start()
        if changed.providers and self._page.isVisible():
            self._bridge.start("embedder choices", self._show_choices())

    def _on_due_timeout(self) -> None:
        self._bridge.start("embedder page", self._show())

    # -- choosing

    def _on_choice_picked(self, choice: str) -> None:
        self._bridge.start("embedder plan", self._told(self._plan(choice)))

    async def _plan(self, choice: str) -> None:
        self._page.show_plan(await self._bridge.run(lambda: self._services.spaces.plan(choice)))

    def _on_folder_requested(self) -> None:
        dialog = QFileDialog(self._page.window(), "A folder with an ONNX model")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._on_folder_selected)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_folder_selected(self, folder: str) -> None:
        self._bridge.start("embedder folder", self._told(self._try_out(Path(folder))))

    async def _try_out(self, folder: Path) -> None:
        choice = await self._bridge.run(lambda: self._services.spaces.folder_choice(folder))
        self._page.chooser.pick(choice, self._services.embedders.describe(choice))
        await self._plan(choice)

    def _on_switch_requested(self, choice: str) -> None:
        self._bridge.start("embedder switch", self._told(self._ask_to_switch(choice)))

    async def _ask_to_switch(self, choice: str) -> None:
        plan = await self._bridge.run(lambda: self._services.spaces.plan(choice))
        if plan.needs_consent:
            self._ask(
                "Send your history to a server",
                f"Send your history to {_server(plan)}?",
                consent_words(plan),
                "Send and use",
                lambda: self._switch(choice, agreed=True),
                lambda: self._page.show_plan(plan),
            )
        else:
            await self._switch(choice, agreed=False)

    async def _switch(self, choice: str, *, agreed: bool) -> None:
        await self._bridge.write(lambda: self._services.spaces.switch(choice, agreed=agreed))
        await self._show()

    # -- deleting

    def _on_deletion_requested(self, name: str, model: str) -> None:
        self._ask(
            "Delete vectors",
            f"Delete the vectors of {model}?",
            "Nothing that was said is lost. Going back to this embedder means embedding everything "
            "again.",
            "Delete",
            lambda: self._drop(name),
        )

    async def _drop(self, name: str) -> None:
        await self._bridge.write(lambda: self._services.spaces.drop(name))
        await self._show()

    def _on_redo_requested(self) -> None:
        self._bridge.start("embedder redo", self._told(self._ask_to_redo()))

    async def _ask_to_redo(self) -> None:
        if (pipeline := self._services.workers.embedding) is None:
            return
        redo = await self._bridge.run(pipeline.redo)
        chosen = self._services.settings.text("embedder")
        takes = await self._bridge.run(
            lambda: self._services.embedders.estimate(redo.passages, redo.tokens, chosen)
        )
        self._ask(
            "Embed everything again",
            _redo_question(redo),
            _redo_words(redo, estimate_words(takes.minutes, takes.cost_usd), takes.sent_to),
            "Delete and embed again",
            self._redo,
        )

    async def _redo(self) -> None:
        workers = self._services.workers
        if workers.embedding is not None:
            await self._bridge.write(workers.embedding.start_over)
            workers.wake([workers.embedding.name])
        await self._show()

    # -- asking and telling

    def _ask(
        self,
        title: str,
        question: str,
        words: str,
        yes: str,
        deed: Callable[[], Coroutine[Any, Any, None]],
        otherwise: Callable[[], None] = lambda: None,
    ) -> None:
        """Carry out a deed once the user has agreed to it in so many words."""
        ask(
            self._page.window(),
            Question(title, question, words, yes),
            lambda: self._bridge.carry_out(self._told(deed())),
            otherwise,
        )

    async def _told(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something; what the world keeps from being done is told on the page."""
        try:
            await work
        except KnownError as error:
            self._page.show_error(str(error))


def _words(title: str, *, away: bool) -> str:
    return f"{title} \N{MIDDLE DOT} sends your history away" if away else title


def _without(kept: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    return {choice: words for choice, words in kept.items() if choice not in found}


def _server(plan: SwitchPlan) -> str:
    return plan.sent_to.partition("://")[2].partition("/")[0] or plan.sent_to


def _redo_question(redo: Redo) -> str:
    if not redo.vectors:
        return "Embed everything from the beginning?"
    return f"Delete {redo.vectors:,} vectors and make them again?"


def _redo_words(redo: Redo, takes: str, sent_to: str) -> str:
    passages = "1 passage is" if redo.passages == 1 else f"{redo.passages:,} passages are"
    place = f" They go to {sent_to}." if sent_to else ""
    return (
        f"{passages} embedded again, about {redo.tokens:,} tokens: {takes}.{place} "
        "Meanwhile search finds by words what has no place yet."
    )

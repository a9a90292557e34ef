"""The page on search by meaning: choosing and trying an embedder, consent, deleting vectors."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.domain.passages import EmbeddingEstimate
from app.domain.translation import tr
from app.memory.search.embedders import BUILT_IN, MULTILINGUAL, EmbedderDirectory
from app.memory.search.spaces import SpaceService
from ui.bridge import Refresh
from ui.presenters.presenter import Presenter
from ui.presenters.settings.background import Regeneration, offer
from ui.views.dialogs.confirm import Confirmation, confirm, confirm_removal
from ui.views.settings.embedder_page import EmbedderPage, consent_text
from ui.widgets.dialog import ask_for_folder

_SHOW_EVERY_MS = 500
# Topics.
_SHOWN = frozenset(("vectors", "passages", "embedder", "embedder_before", "min_message_tokens"))


class EmbedderPresenter(Presenter):
    """Shows the state of search by meaning and changes it after a yes."""

    _spaces: SpaceService
    _embedders: EmbedderDirectory
    _vectors: Regeneration
    _page: EmbedderPage

    def _set_up(self) -> None:
        self.setParent(self._page)  # its timers end with the view
        self._refresh = Refresh(self, self._bridge, "embedder page", _SHOW_EVERY_MS, self._show)
        page, chooser = self._page, self._page.chooser
        chooser.picked.connect(lambda choice: self._start("plan", self._plan(choice)))
        chooser.folder.clicked.connect(self._on_folder_requested)
        chooser.requested.connect(lambda choice: self._start("switch", self._ask_to_switch(choice)))
        page.state.regenerate.clicked.connect(self._on_regeneration_requested)
        page.spaces.deletion_requested.connect(self._on_deletion_requested)
        self._bridge.subscribe(self._on_changed, *_SHOWN, "providers")

    def show(self) -> None:
        """Show the current state, and ask servers for their embedders."""
        self._bridge.start("embedder page", self._show())
        self._bridge.start("embedder choices", self._show_choices())

    async def _show(self) -> None:
        self._page.show_state(await self._bridge.run(self._spaces.read))

    async def _show_choices(self) -> None:
        """Show the choices that are known at once, then those that servers list."""
        state = await self._bridge.run(self._spaces.read)
        kept = {row.choice: row.model for row in state.rows} | {state.chosen: state.chosen_title}
        built_in = {choice: self._embedders.describe(choice) for choice in (BUILT_IN, MULTILINGUAL)}
        self._page.chooser.show_choices(tuple((built_in | kept).items()), state.chosen)
        listed = {
            each.value: _title(each.title, is_remote=each.leaves_machine)
            for each in await self._bridge.run(self._embedders.choices)
        }
        unlisted = {choice: title for choice, title in kept.items() if choice not in listed}
        self._page.chooser.show_choices(tuple((listed | unlisted).items()), state.chosen)

    def _on_changed(self, changed: ChangeSet) -> None:
        if not self._page.window().isVisible():  # another page may be open that leads to this one
            return
        if changed.topics & _SHOWN:
            self._refresh.request()
        if changed.providers:
            self._bridge.start("embedder choices", self._show_choices())

    # -- choosing

    async def _plan(self, choice: str) -> None:
        self._page.chooser.show_plan(await self._bridge.run(lambda: self._spaces.plan(choice)))

    def _on_folder_requested(self) -> None:
        ask_for_folder(
            self._page.window(),
            tr("Choose a folder with an ONNX model"),
            lambda folder: self._start("folder", self._try_folder(Path(folder))),
        )

    async def _try_folder(self, folder: Path) -> None:
        choice = await self._bridge.run(lambda: self._spaces.folder_choice(folder))
        self._page.chooser.pick(choice, self._embedders.describe(choice))
        await self._plan(choice)

    async def _ask_to_switch(self, choice: str) -> None:
        plan = await self._bridge.run(lambda: self._spaces.plan(choice))
        if plan.needs_consent:
            texts = Confirmation(
                tr("Send your history to a server"),
                tr("Send your history to {host}?").format(host=_host(plan)),
                consent_text(plan),
                tr("Send and use"),
            )
            confirm(
                self._page.window(),
                texts,
                lambda: self._start("switch", self._switch(choice, agreed=True)),
                lambda: self._page.chooser.show_plan(plan),
            )
        else:
            await self._switch(choice, agreed=False)

    async def _switch(self, choice: str, *, agreed: bool) -> None:
        await self._bridge.write(lambda: self._spaces.switch(choice, agreed=agreed))
        await self._show()

    # -- deleting

    def _on_deletion_requested(self, name: str, model: str) -> None:
        confirm_removal(
            self._page.window(),
            tr("Delete what was read"),
            tr("Delete what {model} has read?").format(model=model),
            tr(
                "No messages are lost. If you use this search model again, it has to read "
                "everything again."
            ),
            lambda: self._start("deletion", self._delete(name)),
            tr("Delete"),
        )

    async def _delete(self, name: str) -> None:
        await self._bridge.write(lambda: self._spaces.drop(name))
        await self._show()

    def _on_regeneration_requested(self) -> None:
        question = tr("Read everything again with this search model?")
        offer(
            self._bridge,
            self._vectors,
            self._page,
            (tr("Read everything again"), question, tr("Delete and read again")),
            self._page.chooser.show_error,
            self._on_error,
        )

    # -- errors

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._bridge.start(f"embedder {name}", work, self._on_error)

    def _on_error(self, error: KnownError) -> None:
        self._page.chooser.show_error(error.display_text)


def _title(title: str, *, is_remote: bool) -> str:
    return (
        tr("{title} · sends your history to a server").format(title=title) if is_remote else title
    )


def _host(plan: EmbeddingEstimate) -> str:
    return plan.sent_to.partition("://")[2].partition("/")[0] or plan.sent_to

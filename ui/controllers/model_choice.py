"""Which model answers: the chooser over the conversation, and the default for new ones."""

from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QInputDialog

from app.bootstrap import Services
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.events import Changed
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.views.main_window import MainWindow

_RECALL = ("recall:", "Recall (built in)")


class ModelController(QObject):
    """Keeps the chooser in step with the open conversation, the settings and the providers."""

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, chat: ChatController
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._pane = window.chat
        self._chat = chat
        self._for_new: str | None = None
        self._kept: str | None = None
        self._listed: list[tuple[str, str]] = []
        chat.opened.connect(self._on_chat_opened)
        bridge.changed.connect(self._on_changed)
        self._pane.models_requested.connect(self._on_models_requested)
        self._pane.model_chosen.connect(self._on_model_chosen)
        self._pane.other_model_requested.connect(self._on_other_model_requested)
        self._pane.default_model_requested.connect(self._on_default_model_requested)

    @property
    def chosen(self) -> str:
        """The model that answers in the open conversation."""
        kept = self._for_new if self._chat.view is None else self._kept
        return kept or self._default

    def model_for_new(self) -> str | None:
        """Return what to keep for a conversation that begins now; None where the default applies."""
        return self._for_new if self._chat.view is None else None

    @property
    def _default(self) -> str:
        return self._services.settings.text("default_model")

    def _show(self) -> None:
        rows = [_RECALL, *self._listed]
        known = {model for model, _ in rows}
        rows += [(each, each) for each in (self._default, self.chosen) if each not in known]
        self._pane.show_models(dict(rows), self.chosen, self._default)

    def _on_chat_opened(self, conversation: Conversation | None) -> None:
        self._kept = conversation.model if conversation is not None else None
        self._for_new = None
        self._show()

    def _on_changed(self, changed: Changed) -> None:
        if changed.providers:
            self._listed = []
        opened = self._chat.conversation_id
        if opened is not None and opened in changed.conversations:
            self._bridge.start("model of conversation", self._read_kept())
        elif changed.providers or "default_model" in changed.settings:
            self._show()

    async def _read_kept(self) -> None:
        opened = self._chat.conversation_id
        if opened is None:
            return
        try:
            found = await self._bridge.run(lambda: self._services.conversations.get(opened))
        except KnownError:
            return
        if self._chat.conversation_id == opened and found.model != self._kept:
            self._kept = found.model
            self._show()

    # -- the list

    def _on_models_requested(self) -> None:
        self._bridge.start("models", self._list_models())

    async def _list_models(self) -> None:
        """Ask every provider that could answer for its models; those that fail are named."""
        names = await self._bridge.run(self._usable_providers)
        rows: list[tuple[str, str]] = []
        failures: list[str] = []
        for name in names:
            call = self._services.chat.call(partial(self._services.models.models, name))
            try:
                cards = await self._bridge.wait(call)
            except KnownError as error:
                failures.append(f"{name}: {error.title}.")
                continue
            rows += [(str(card.ref), str(card.ref)) for card in cards if not card.is_embedding]
        self._pane.show_status(" ".join(failures))
        if rows != self._listed:
            self._listed = rows
            self._show()

    def _usable_providers(self) -> list[str]:
        models = self._services.models
        names = [state.config.name for state in models.providers()]
        return [name for name in names if models.has_key(name)]

    # -- choices

    def _on_model_chosen(self, model: str) -> None:
        self._bridge.carry_out(self._choose(model))

    async def _choose(self, model: str) -> None:
        services, opened = self._services, self._chat.conversation_id

        def keep() -> str:
            checked = services.models.check_name(model)
            if opened is not None:
                services.library.choose_model(opened, checked)
            return checked

        try:
            checked = await self._bridge.write(keep)
        except KnownError as error:
            self._pane.tell(error)
        else:
            if self._chat.conversation_id == opened:
                if opened is None:
                    self._for_new = None if checked == self._default else checked
                else:
                    self._kept = checked
        self._show()

    def _on_default_model_requested(self) -> None:
        chosen = self.chosen
        keep = partial(self._services.settings.set, "default_model", chosen)
        self._bridge.carry_out(self._bridge.write(keep))
        self._pane.banner.tell(f"New conversations begin with {chosen}.", brief=True)

    def _on_other_model_requested(self) -> None:
        self._show()
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle("Another model")
        dialog.setLabelText("The model, written PROVIDER:MODEL:")
        dialog.setTextValue(self.chosen)
        dialog.textValueSelected.connect(self._on_model_chosen)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

"""The model that answers: the picker above the conversation, and the default for new ones."""

from collections.abc import Callable, Sequence
from functools import partial

from app.chat.exchange_loop import ExchangeLoop
from app.chat.library import Library
from app.chat.models import ModelDirectory
from app.domain.changes import ChangeSet
from app.domain.errors import KnownError
from app.domain.text import sentences
from app.storage.tables.settings import Settings
from ui.bridge import Bridge
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter, ask_for_text
from ui.presenters.preset_choice import PresetPickerPresenter
from ui.views.chat_pane import ChatPane

_BUILT_IN = ("recall:", "Recall (built in)")


class ModelPickerPresenter(Presenter):
    """Keeps the picker up to date with the open conversation, the settings and the providers."""

    _models: ModelDirectory
    _settings: Settings
    _library: Library
    _exchanges: ExchangeLoop
    _view: ChatPane
    _conversation: ConversationPresenter
    _presets: PresetPickerPresenter

    def __post_init__(self) -> None:
        super().__post_init__()
        self._for_new: str | None = None
        self._listed: Sequence[str] = ()
        self._conversation.opened.connect(self._on_conversation_opened)
        self._conversation.updated.connect(self._show)
        self._bridge.subscribe(self._on_changed, "providers", "default_model")
        self._presets.changed.connect(self._show)
        self._presets.chosen_for_new.connect(self._on_preset_chosen)
        self._view.models_requested.connect(self._on_models_requested)
        self._view.model_chosen.connect(self._on_model_chosen)
        self._view.other_model_requested.connect(self._on_other_model_requested)
        self._view.default_model_requested.connect(self._on_default_model_requested)

    @property
    def chosen(self) -> str:
        """The model that answers in the open conversation."""
        return self._model or self._otherwise

    def model_for_new(self) -> str | None:
        """Return the model of a conversation that begins now, None for the default."""
        return self._for_new if self._conversation.view is None else None

    @property
    def _model(self) -> str | None:
        view = self._conversation.view
        return self._for_new if view is None else view.conversation.model

    @property
    def _otherwise(self) -> str:
        """The model without a choice for this conversation: the preset's, else the default."""
        return self._presets.model or self._settings.text("default_model")

    def _show(self, *_: object) -> None:
        default = self._settings.text("default_model")
        chosen = self.chosen
        rows = dict([_BUILT_IN])
        for model in (*self._listed, default, chosen):
            rows.setdefault(model, model)
        self._view.show_models(rows, chosen, default)

    def _on_conversation_opened(self, _conversation: object) -> None:
        self._for_new = None
        self._show()

    def _on_preset_chosen(self) -> None:
        if self._presets.model is not None:
            self._for_new = None
        self._show()

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.providers:
            self._listed = ()
        self._show()

    # -- the list

    def _on_models_requested(self) -> None:
        self._bridge.start("models", self._list_models())

    async def _list_models(self) -> None:
        found, failures = await list_models(self._models, self._exchanges, self._bridge)
        self._view.show_status(" ".join(failures))
        if found != self._listed:
            self._listed = found
            self._show()

    # -- choices

    def _on_model_chosen(self, model: str) -> None:
        view = self._conversation.view
        opened = view.conversation.id if view else None

        def store() -> str:
            checked = self._models.check_name(model)
            if opened is not None:
                self._library.choose_model(opened, checked)
            return checked

        def show(checked: str) -> None:
            if opened is None and self._conversation.view is None:
                self._for_new = None if checked == self._otherwise else checked
                self._show()

        def on_error(error: KnownError) -> None:
            self._view.banner.show_error(error)
            self._show()

        self._bridge.save(store, show, on_error)

    def _on_default_model_requested(self) -> None:
        chosen, text = self.chosen, f"New conversations will use {self.chosen}."
        self._bridge.save(
            lambda: self._settings.set("default_model", chosen),
            lambda _: self._view.banner.show_message(text, brief=True),
        )

    def _on_other_model_requested(self) -> None:
        self._show()
        label = "The model, as PROVIDER:MODEL:"
        ask_for_text(
            self._view.window(), "Another model", label, self.chosen, self._on_model_chosen
        )


async def list_models(
    models: ModelDirectory,
    exchanges: ExchangeLoop,
    bridge: Bridge,
    show: Callable[[Sequence[str]], object] = lambda _: None,
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the chat models (PROVIDER:MODEL) of all providers with a key, and failures as text.

    `show` is called with the models so far, after each provider that answers.
    """

    def usable() -> list[str]:
        names = [state.config.name for state in models.providers()]
        return [name for name in names if models.has_key(name)]

    found: list[str] = []
    failures: list[str] = []
    for name in await bridge.run(usable):
        try:
            cards = await bridge.wait(exchanges.call(partial(models.models, name)))
        except KnownError as error:
            failures.append(sentences(f"{name}: {error.title}"))
        else:
            found += [str(card.ref) for card in cards if not card.is_embedding]
            show(found)
    return found, failures

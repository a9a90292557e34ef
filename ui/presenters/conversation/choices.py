"""Choices of what answers: the preset and the model, chosen below the message, and those of new conversations."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from PySide6.QtCore import Signal

from app.chat.exchange_loop import ExchangeLoop
from app.chat.library import Library
from app.chat.models import ModelCard, ModelDirectory
from app.chat.presets import Presets
from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.domain.records.presets import BUILT_IN_PRESET, Preset
from app.domain.text import sentences
from app.domain.translation import tr
from app.providers.configuration import title_of
from app.storage.tables.settings import Settings
from ui.bridge import Bridge
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.chat_pane import ChatPane
from ui.widgets.banner import Banner
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.model_rows import ModelGroup, ModelRow, model_name, model_rows

_DEFAULT = tr("Use this preset for new conversations")
_EDIT = tr("Edit presets\u2026")
_BUILT_IN = ModelRow(
    "recall:", model_name("recall:"), "", tr("free"), tr("Answers from your history")
)
_FAVORITES, _RECENT = "favorite_models", "recent_models"
_RECENT_MAX = 5


class PresetPickerPresenter(Presenter):
    """Keeps the choice up to date with the open conversation and the presets.

    Signals:
        changed: Another preset applies, or the one that applies has changed.
        page_requested: Show the page of the settings.
    """

    changed = Signal()
    page_requested = Signal()

    _presets: Presets
    _library: Library
    _box: ChoiceBox
    _conversation: ConversationPresenter
    _messages: Banner

    def _set_up(self) -> None:
        self._listed: Sequence[Preset] = (BUILT_IN_PRESET,)
        self._default = BUILT_IN_PRESET.uid
        for shown in (self._conversation.opened, self._conversation.updated):
            shown.connect(self._show)
        self._bridge.subscribe(self._load, "presets", "default_preset")
        self._box.chosen.connect(self.choose)
        self._box.command_chosen.connect(self._on_command_chosen)
        self._load()

    @property
    def model(self) -> str | None:
        """The model of the preset that applies; None for the conversation's."""
        return self._applying.model

    def open(self) -> None:
        """Open the list, or the page of the settings where there is no room for it."""
        if not self._box.isVisible():
            self.page_requested.emit()
            return
        self._box.setFocus()
        self._box.showPopup()

    def choose(self, uid: str) -> None:
        """Choose the preset of the open conversation, or of the one that begins."""
        view = self._conversation.view
        if view is None:
            chosen = None if uid == self._default else uid
            self._conversation.new = replace(self._conversation.new, preset=chosen)
            if self.model is not None:  # it answers in place of the model chosen before
                self._conversation.new = replace(self._conversation.new, model=None)
            self._show()
            return

        def on_error(error: KnownError) -> None:
            self._messages.show_error(error)
            self._show()

        here = view.conversation.id
        self._bridge.save(
            lambda: self._library.choose_preset(here, self._presets.get(uid)), on_error=on_error
        )

    @property
    def _applying(self) -> Preset:
        view = self._conversation.view
        wanted = self._conversation.new.preset if view is None else view.conversation.preset
        known = {preset.uid: preset for preset in self._listed}
        return known.get(wanted or "") or known.get(self._default) or self._listed[0]

    def _load(self, _changed: object = None) -> None:
        self._bridge.load(
            "presets", lambda: (self._presets.listed(), self._presets.default().uid), self._take
        )

    def _take(self, found: tuple[Sequence[Preset], str]) -> None:
        self._listed, self._default = found
        self._show()

    def _show(self, *_: object) -> None:
        applying = self._applying.uid
        names = {preset.uid: preset.name for preset in self._listed}
        is_default = applying == self._default
        self._box.show_choices(names, applying, (_EDIT,) if is_default else (_DEFAULT, _EDIT))
        self.changed.emit()

    def _on_command_chosen(self, text: str) -> None:
        if text == _EDIT:
            self.page_requested.emit()
            return
        applying = self._applying
        self._bridge.save(
            lambda: self._presets.choose_default(applying.uid),
            lambda _: self._messages.show_message(
                tr("New conversations will use {name}.").format(name=applying.name), brief=True
            ),
        )


class ModelPickerPresenter(Presenter):
    """Keeps the picker up to date with the open conversation, the settings and the providers.

    A choice is also that of new conversations.
    """

    _models: ModelDirectory
    _settings: Settings
    _library: Library
    _exchanges: ExchangeLoop
    _view: ChatPane
    _conversation: ConversationPresenter
    _presets: PresetPickerPresenter

    def _set_up(self) -> None:
        self._listed: dict[str, ModelGroup] = {}  # by provider, once it has answered
        self._names: Sequence[str] = ()
        for shown in (self._conversation.opened, self._conversation.updated):
            shown.connect(self._show)
        self._bridge.subscribe(self._on_changed, "providers", "default_model")
        self._presets.changed.connect(self._show)
        self._view.model.opening.connect(self._on_models_requested)
        self._view.model.chosen.connect(self._on_model_chosen)
        self._view.model.favorite_toggled.connect(self._on_favorite_toggled)

    @property
    def chosen(self) -> str:
        """The model that answers in the open conversation."""
        return self._model or (self._presets.model or self._settings.text("default_model"))

    @property
    def _model(self) -> str | None:
        view = self._conversation.view
        return self._conversation.new.model if view is None else view.conversation.model

    def _show(self, *_: object) -> None:
        self._view.show_model(self.chosen)

    def _on_changed(self, changed: ChangeSet) -> None:
        for name in changed.providers:
            self._listed.pop(name, None)
        self._show()

    # -- the list

    def _on_models_requested(self) -> None:
        self._show_groups()
        self._bridge.start("models", self._list_models())

    async def _list_models(self) -> None:
        """Ask all providers; an open list changes at most once, when providers were not known."""
        self._names = await self._bridge.run(partial(usable_providers, self._models))
        is_complete = all(name in self._listed for name in self._names)
        if not is_complete:
            self._show_groups()
        call, cards = self._exchanges.call, self._models.cards
        asked = {name: call(partial(cards, name)) for name in self._names}
        self._listed = {name: await self._group(name, found) for name, found in asked.items()}
        if not is_complete:
            self._show_groups()

    async def _group(self, name: str, found: "Future[tuple[ModelCard, ...]]") -> ModelGroup:
        title = title_of(name)
        try:
            cards = await self._bridge.wait(found)
        except KnownError as error:
            return ModelGroup(title, note=error.title)
        return ModelGroup(title, model_rows(cards), "" if cards else tr("It lists no models."))

    def _show_groups(self) -> None:
        favorites = self._settings.listed(_FAVORITES, str)
        elsewhere = {*favorites, _BUILT_IN.model}
        recent = dict.fromkeys((self.chosen, *self._settings.listed(_RECENT, str)))
        rows = {row.model: row for group in self._listed.values() for row in group.rows}
        rows[_BUILT_IN.model] = _BUILT_IN

        def row(model: str) -> ModelRow:
            known = rows.get(model) or ModelRow(model, model_name(model), tip=model)
            return replace(known, is_favorite=model in favorites)

        others = [each for each in recent if each not in elsewhere]
        first = ((tr("Favorites"), favorites), (tr("Recent"), others))
        groups = [ModelGroup(title, tuple(map(row, models))) for title, models in first if models]
        groups.append(ModelGroup(tr("Built in"), (row(_BUILT_IN.model),)))
        for name in self._names:
            group = self._listed.get(name) or ModelGroup(title_of(name), note=tr("Loading\u2026"))
            groups.append(replace(group, rows=tuple(row(each.model) for each in group.rows)))
        self._view.model.show_groups(groups)

    # -- choices

    def _on_model_chosen(self, model: str) -> None:
        view = self._conversation.view
        opened = view.conversation.id if view else None

        def store() -> str:
            checked = self._models.check_name(model)
            if opened is not None:
                self._library.choose_model(opened, checked)
            self._settings.set("default_model", checked)
            others = [each for each in self._settings.listed(_RECENT, str) if each != checked]
            recent = [checked, *others][:_RECENT_MAX]
            self._settings.set(_RECENT, json.dumps(recent))
            return checked

        def show(checked: str) -> None:
            if opened is None and self._conversation.view is None:
                self._conversation.new = replace(self._conversation.new, model=checked)
            self._show()

        def on_error(error: KnownError) -> None:
            self._view.banner.show_error(error)
            self._show()

        self._bridge.save(store, show, on_error)

    def _on_favorite_toggled(self, model: str) -> None:
        def store() -> None:
            kept = self._settings.listed(_FAVORITES, str)
            kept = [each for each in kept if each != model] if model in kept else [*kept, model]
            self._settings.set(_FAVORITES, json.dumps(kept))

        self._bridge.save(store, lambda _: self._show_groups())


def usable_providers(models: ModelDirectory) -> list[str]:
    """Return the names of the providers that have a key or need none. Blocking."""
    names = [state.config.name for state in models.providers()]
    return [name for name in names if models.has_key(name)]


async def list_models(
    models: ModelDirectory,
    exchanges: ExchangeLoop,
    bridge: Bridge,
    show: Callable[[Sequence[str]], object] = lambda _: None,
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the chat models (PROVIDER:MODEL) of all providers with a key, and failures as text.

    `show` is called with the models so far, after each provider that answers.
    """
    found: list[str] = []
    failures: list[str] = []
    for name in await bridge.run(partial(usable_providers, models)):
        try:
            cards = await bridge.wait(exchanges.call(partial(models.models, name)))
        except KnownError as error:
            failures.append(sentences(f"{name}: {error.title}"))
        else:
            found += [str(card.ref) for card in cards if not card.is_embedding]
            show(found)
    return found, failures

"""The preset of a conversation: the choice beside the model, and the default for new ones."""

from collections.abc import Sequence

from PySide6.QtCore import Signal

from app.chat.library import Library
from app.chat.presets import Presets
from app.domain.errors import KnownError
from app.domain.presets import BUILT_IN_PRESET, Preset
from app.domain.translation import tr
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner
from ui.widgets.choice_box import ChoiceBox

_DEFAULT = tr("Use this preset for new conversations")
_EDIT = tr("Edit presets\u2026")


class PresetPickerPresenter(Presenter):
    """Keeps the choice up to date with the open conversation and the presets.

    Signals:
        changed: Another preset applies, or the one that applies has changed.
        chosen_for_new: A preset was chosen for a conversation that has not begun.
        page_requested: Show the page of the settings.
    """

    changed = Signal()
    chosen_for_new = Signal()
    page_requested = Signal()

    _presets: Presets
    _library: Library
    _box: ChoiceBox
    _conversation: ConversationPresenter
    _messages: Banner

    def _set_up(self) -> None:
        self._listed: Sequence[Preset] = (BUILT_IN_PRESET,)
        self._default = BUILT_IN_PRESET.uid
        self._for_new: str | None = None
        self._conversation.opened.connect(self._on_conversation_opened)
        self._conversation.updated.connect(self._show)
        self._bridge.subscribe(self._load, "presets", "default_preset")
        self._box.chosen.connect(self.choose)
        self._box.command_chosen.connect(self._on_command_chosen)
        self._load()

    @property
    def model(self) -> str | None:
        """The model of the preset that applies; None for the conversation's."""
        return self._applying.model

    def preset_for_new(self) -> str | None:
        """Return the preset of a conversation that begins now, None for the default."""
        return self._for_new if self._conversation.view is None else None

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
            self._for_new = None if uid == self._default else uid
            self._show()
            self.chosen_for_new.emit()
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
        wanted = self._for_new if view is None else view.conversation.preset
        known = {preset.uid: preset for preset in self._listed}
        return known.get(wanted or "") or known.get(self._default) or self._listed[0]

    def _load(self, _changed: object = None) -> None:
        self._bridge.load(
            "presets", lambda: (self._presets.listed(), self._presets.default().uid), self._take
        )

    def _take(self, found: tuple[Sequence[Preset], str]) -> None:
        self._listed, self._default = found
        self._show()

    def _on_conversation_opened(self) -> None:
        self._for_new = None
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

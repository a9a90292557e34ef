"""The presets page of the settings: showing, saving, adding, copying and removing presets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from app.chat.models import ModelDirectory
from app.chat.presets import Presets
from app.domain.chat import ModelRef
from app.domain.errors import KnownError
from app.domain.records.named import free_name
from app.domain.records.presets import BUILT_IN_PRESET, Preset
from app.domain.translation import tr
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import confirm_removal
from ui.views.settings.presets_page import PresetsPage

_NEW_NAME = tr("New preset")


class PresetsPresenter(Presenter):
    """Keeps the page and the stored presets in step.

    `tools` returns the descriptions of the tools by name; `list_models` returns the models of all
    providers with a key, and failures as text.
    """

    _presets: Presets
    _models: ModelDirectory
    _tools: Callable[[], Mapping[str, str]]
    _list_models: Callable[[], Awaitable[tuple[Sequence[str], Sequence[str]]]]
    _page: PresetsPage

    def _set_up(self) -> None:
        self._added = ""  # the uid of a preset to select once it is shown
        page = self._page
        topics = ("presets", "default_preset", "system_prompt", "tool_servers")
        self._bridge.subscribe(lambda _: self.show(), *topics)
        page.form.edited.connect(self._save)
        page.add_requested.connect(lambda: self._add(self._new))
        page.copy_requested.connect(lambda uid: self._add(lambda: self._presets.duplicate(uid)))
        page.default_requested.connect(
            lambda uid: self._change(lambda: self._presets.choose_default(uid))
        )
        page.removal_requested.connect(self._ask_to_remove)
        page.form.model_changed.connect(self._show_options)
        page.form.model.opening.connect(
            lambda: self._bridge.start("preset models", self._show_models())
        )

    def show(self) -> None:
        presets = self._presets

        def read() -> tuple[Sequence[Preset], str, str]:
            default = presets.default().uid
            return presets.listed(), default, presets.instructions(BUILT_IN_PRESET)

        def show(found: tuple[Sequence[Preset], str, str]) -> None:
            select = ""
            if any(preset.uid == self._added for preset in found[0]):
                select, self._added = self._added, ""
            self._page.show_presets(*found, select)

        self._bridge.load("preset tools", self._tools, self._page.form.show_tools)
        self._bridge.load("presets page", read, show)

    async def _show_models(self) -> None:
        found, _ = await self._list_models()
        self._page.form.show_models(found)

    def _show_options(self, model: str) -> None:
        if not model:
            self._bridge.cancel("preset options")
            self._page.form.show_options("", None)
            return
        ref = ModelRef.parse(model)
        self._bridge.load(
            "preset options",
            lambda: self._models.options(ref),
            lambda options: self._page.form.show_options(model, options),
            lambda _: self._page.form.show_options("", None),
        )

    def _save(self, preset: Preset) -> None:
        def save() -> None:
            if preset.model is not None:
                self._models.check_name(preset.model)
            self._presets.save(preset)

        self._change(save)

    def _new(self) -> Preset:
        names = [preset.name for preset in self._presets.listed()]
        return self._presets.save(Preset("", free_name(_NEW_NAME, names)))

    def _add(self, add: Callable[[], Preset]) -> None:
        def select(added: Preset) -> None:
            self._added = added.uid
            self.show()

        self._bridge.save(add, select, self._show_error)

    def _change(self, change: Callable[[], object]) -> None:
        self._bridge.save(change, lambda _: self._page.form.error.show_text(""), self._show_error)

    def _show_error(self, error: KnownError) -> None:
        self._page.form.error.show_text(error.display_text)

    def _ask_to_remove(self, uid: str) -> None:
        self._bridge.load(
            "preset removal", lambda: self._presets.get(uid), self._confirm, self._show_error
        )

    def _confirm(self, preset: Preset) -> None:
        title, yes = tr("Remove a preset"), tr("Remove")
        question = tr("Remove the preset “{name}”?").format(name=preset.name)
        details = tr("Its conversations use the default preset from then on.")
        if preset.is_built_in:
            title, yes = tr("Restore a preset"), tr("Restore")
            question = tr("Restore Commonplace's own instructions and options?")
            details = tr("What you changed in this preset is lost.")

        def remove() -> None:
            self._change(lambda: self._presets.remove(preset.uid))

        confirm_removal(self._page, title, question, details, remove, yes)

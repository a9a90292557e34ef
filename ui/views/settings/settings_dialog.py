"""The settings dialog: pages drawn from the table of settings, and pages of their own."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QListWidget, QStackedWidget, QVBoxLayout, QWidget

from app.domain.settings_schema import SETTINGS, SettingPage, SettingValue
from app.domain.translation import tr
from ui.views.settings.background_page import BackgroundPage
from ui.views.settings.embedder_page import EmbedderPage
from ui.views.settings.memory_page import MemoryPage
from ui.views.settings.models_page import ModelsPage
from ui.views.settings.presets_page import PresetsPage
from ui.views.settings.programs_page import ProgramsPage
from ui.views.settings.tools_page import ToolsPage
from ui.widgets.controls import closing_buttons, row_of, scroll_area
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.setting_editor import SettingEditor

_NAMES_MARGIN_PX = 24
_PRESETS = tr("Presets")
_EMBEDDER = tr("Search by meaning")
_PROGRAMS = tr("Other programs")
_TOOLS = tr("Tools")


class SettingsDialog(QDialog):
    """Pages of settings; every change applies at once.

    Signals:
        edited: (key, value) to save. reset_requested: The key to reset to its default.
    """

    edited = Signal(str, object)
    reset_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Settings"))
        resize_on_screen(self, 1040, 680)
        self.editors: dict[str, SettingEditor] = {}
        self._names = QListWidget(self)  # created first: Tab begins here
        self._names.setAccessibleName(tr("Pages of settings"))
        self._names.setFocus()
        self.models = ModelsPage(self)
        self.presets = PresetsPage(self)
        self.embedder = EmbedderPage(self)
        self.background = BackgroundPage(self)
        self.memory = MemoryPage(self)
        self.programs = ProgramsPage(self)
        self.tools = ToolsPage(self)
        self._pages = QStackedWidget(self)
        background = self.background
        for editor in (*background.limits, *background.tasks, *self.memory.editors):
            self._take_editor(editor)
        for name, page in (
            (tr(SettingPage.MODELS.value), self.models),
            (tr(SettingPage.GENERAL.value), self._page_of(SettingPage.GENERAL)),
            (_PRESETS, self.presets),
            (tr(SettingPage.RECALL.value), self.memory),
            (_EMBEDDER, self.embedder),
            (tr(SettingPage.CONTEXT.value), self._page_of(SettingPage.CONTEXT)),
            (tr(SettingPage.WORKERS.value), background),
            (tr(SettingPage.NETWORK.value), self._page_of(SettingPage.NETWORK)),
            (_TOOLS, self.tools),
            (_PROGRAMS, self.programs),
        ):
            self._add_page(name, page)
        self._names.setFixedWidth(self._names.sizeHintForColumn(0) + _NAMES_MARGIN_PX)
        self._names.currentRowChanged.connect(self._pages.setCurrentIndex)
        self._names.setCurrentRow(0)
        column = QVBoxLayout(self)
        column.addLayout(row_of(self._names, (self._pages, 1)), 1)
        column.addWidget(closing_buttons(self)[0])

    def show_value(
        self, key: str, value: SettingValue, *, is_default: bool, ruled_by: str | None
    ) -> None:
        """Show a value; `ruled_by` is the environment variable that overrides it, if any."""
        if (editor := self.editors.get(key)) is not None:
            editor.show_value(value, is_default=is_default, ruled_by=ruled_by)

    def show_page(self, name: str) -> None:
        """Bring a page to the front, by its name."""
        for item in self._names.findItems(tr(name), Qt.MatchFlag.MatchExactly):
            self._names.setCurrentItem(item)

    def _add_page(self, name: str, page: QWidget) -> None:
        self._names.addItem(name)
        area = scroll_area(self, page)
        area.setAccessibleName(name)
        self._pages.addWidget(area)

    def _take_editor(self, editor: SettingEditor) -> None:
        editor.edited.connect(self.edited)
        editor.reset_requested.connect(self.reset_requested)
        self.editors[editor.setting.key] = editor

    def _page_of(self, page: SettingPage) -> QWidget:
        body = QWidget(self)
        column = QVBoxLayout(body)
        column.setContentsMargins(16, 8, 16, 16)
        for setting in SETTINGS.values():
            if setting.page is page:
                editor = SettingEditor(setting, body)
                self._take_editor(editor)
                column.addWidget(editor)
        column.addStretch(1)
        return body

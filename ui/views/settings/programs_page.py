"""The programs page of the settings: sessions of other programs that are followed, and programs that read memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.domain.errors import KnownError
from app.domain.records.sources import SOURCES, SourceState
from app.domain.text import sentences
from app.domain.translation import format_moment, format_size, tr, trn
from app.mcp.access import Access, Reading
from app.mcp.clients import ClientConfiguration
from app.mcp.server import HttpAccess
from ui.widgets.choice_box import SelectBox
from ui.widgets.controls import button, column_in, refill, row_of
from ui.widgets.plain_label import PlainLabel, plain_label

_LOG_PX = 160
_ABOUT_SOURCES = (
    tr("Sessions to follow"),
    tr(
        "Programs with sessions on this computer. What is imported stays here when the program "
        "deletes it."
    ),
)
_ABOUT_PROGRAMS = (
    tr("Programs that read your memory"),
    tr(
        "What a program reads goes to the model that it uses. Private conversations are never "
        "shown, keys and passwords are hidden."
    ),
)
_ABOUT_CONNECTING = (
    tr("Connect a program"),
    tr("Programs that speak MCP start this one when they look something up."),
)
_CHOICES = {
    Access.ASK: tr("Not decided"),
    Access.ALLOWED: tr("May read"),
    Access.DENIED: tr("May not read"),
}


@dataclass(frozen=True, slots=True)
class ProgramsShown:
    """What the page shows: sources, programs that asked with what was decided, the last readings.

    `http` is None while memory is not served over HTTP.
    """

    sources: Sequence[SourceState]
    programs: Sequence[tuple[str, Access]]
    readings: Sequence[Reading]
    configurations: Sequence[ClientConfiguration]
    http: HttpAccess | None


class ProgramsPage(QWidget):
    """Switches of sources, decisions about programs, what they read, and their configuration.

    Signals:
        source_switched: (SourceName, on). decided: (a program's name, Access).
        link_opened: The first link of a line of the log. copy_requested: A text.
        http_switched: Whether memory is served over HTTP.
    """

    source_switched = Signal(object, bool)
    decided = Signal(str, object)
    link_opened = Signal(str)
    copy_requested = Signal(str)
    http_switched = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.error = plain_label(self, "error")
        self.error.hide()
        self._http: HttpAccess | None = None
        self._sources = QVBoxLayout()
        self._programs = QVBoxLayout()
        self.log = QListWidget(self)
        self.log.setAccessibleName(tr("What programs read"))
        self.log.setFixedHeight(_LOG_PX)
        self.log.itemActivated.connect(
            lambda item: self.link_opened.emit(item.data(Qt.ItemDataRole.UserRole))
        )
        self.program = SelectBox(self)
        self.program.setAccessibleName(tr("Program to connect"))
        self.program.currentIndexChanged.connect(self._show_configuration)
        self._place = plain_label(self, "small")
        self.configuration = plain_label(self, "code")
        self.copy = button(
            self, tr("Copy"), lambda: self.copy_requested.emit(self.configuration.text())
        )
        self._log_title = PlainLabel(tr("What they read"), self, tone="heading")
        self.http = QCheckBox(tr("Also over HTTP, for programs on this computer"), self)
        self.http.clicked.connect(self.http_switched)
        self.http_address, self.http_header = plain_label(self, "code"), plain_label(self, "code")
        self.copy_key = button(self, tr("Copy key"), self._copy_key)
        column_in(
            self, self.error, *self._heading(*_ABOUT_SOURCES), self._sources,
            *self._heading(*_ABOUT_PROGRAMS), self._programs, self._log_title, self.log,
            *self._heading(*_ABOUT_CONNECTING), row_of(self.program, (self._place, 1)),
            row_of((self.configuration, 1), self.copy), self.http,
            self.http_address, row_of((self.http_header, 1), self.copy_key), None, margins=(16, 8, 16, 16), spacing=8,
        )  # fmt: skip

    def show_programs(self, shown: ProgramsShown) -> None:
        self.error.hide()
        if not self.program.count():
            for each in shown.configurations:
                self.program.addItem(each.program, each)
        self._http = http = shown.http
        self.http.setChecked(http is not None)
        header = "Authorization: Bearer <key>"  # as programs call it in every language
        self.http_address.setText(http.url if http else "")
        self.http_header.setText(http.problem or header if http else "")
        for part in (self.http_address, self.http_header, self.copy_key):
            part.setVisible(http is not None)
        no_source = tr("No program with sessions was found.")
        no_program = tr("No program has asked yet.")
        refill(self._sources, map(self._source, shown.sources), no_source)
        refill(self._programs, (self._program(*each) for each in shown.programs), no_program)
        self.log.clear()
        self.log.setVisible(bool(shown.readings))
        self._log_title.setVisible(bool(shown.readings))
        for reading in shown.readings:
            text = f"{format_moment(reading.at)}  {reading.client}  {reading.tool}"
            item = QListWidgetItem("  ".join([text, *reading.links[:3]]), self.log)
            item.setData(Qt.ItemDataRole.UserRole, reading.links[0] if reading.links else "")

    def show_error(self, error: KnownError) -> None:
        """Show why a change failed."""
        self.error.show_text(error.display_text)

    def _heading(self, title: str, about: str) -> tuple[int, PlainLabel, PlainLabel]:
        return 8, PlainLabel(title, self, tone="heading"), plain_label(self, "small", about)

    def _show_configuration(self) -> None:
        _, place, text = self.program.currentData()
        self._place.setText(place)
        self.configuration.setText(text)

    def _copy_key(self) -> None:
        if self._http is not None:
            self.copy_requested.emit(self._http.key)

    def _source(self, state: SourceState) -> QWidget:
        spec = SOURCES[state.name]
        row = QWidget(self)
        switch = QCheckBox(spec.title, row)
        switch.setChecked(state.is_on)
        switch.clicked.connect(lambda on, name=state.name: self.source_switched.emit(name, on))
        kept = ""
        if state.kept_only_here:
            kept = tr("{files} kept only here").format(
                files=trn("{count} file", "{count} files", state.kept_only_here)
            )
        found = tr("{files} ({size}) in {folder}").format(
            files=trn("{count} file", "{count} files", state.files),
            size=format_size(state.size_bytes),
            folder=state.folder,
        )
        about = plain_label(row, "small", sentences(found, kept, tr(spec.deletes)))
        column_in(row, switch, about, margins=(0, 0, 0, 0))
        return row

    def _program(self, name: str, access: Access) -> QWidget:
        row = QWidget(self)
        choice = SelectBox(row)
        choice.setAccessibleName(tr("Access of {program}").format(program=name))
        for each, text in _CHOICES.items():
            choice.addItem(text, each)
        choice.setCurrentIndex(list(_CHOICES).index(access))
        choice.activated.connect(lambda at: self.decided.emit(name, Access(choice.itemData(at))))
        row.setLayout(row_of((PlainLabel(name, row), 1), choice))
        return row

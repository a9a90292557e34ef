"""The programs page of the settings: sessions of other programs that are followed, and programs that read memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QLabel, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.domain.formatting import format_moment, format_size
from app.domain.sources import SOURCES, SourceState
from app.domain.text import sentences
from app.domain.translation import tr, trn
from app.mcp.access import Access, Reading
from app.mcp.http import HttpAccess
from ui.widgets.choice_box import SelectBox
from ui.widgets.controls import button, row_of
from ui.widgets.plain_label import PlainLabel, plain_label

_LOG_PX = 160
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
    configuration: str
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
        self.configuration = plain_label(self, "code")
        self.copy = button(
            self, tr("Copy"), lambda: self.copy_requested.emit(self.configuration.text())
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 8, 16, 16)
        column.setSpacing(8)
        column.addWidget(self.error)
        for title, about, content in (
            (
                tr("Sessions to follow"),
                tr(
                    "Programs with sessions on this computer. What is imported stays here when the program "
                    "deletes it."
                ),
                self._sources,
            ),
            (
                tr("Programs that read your memory"),
                tr(
                    "What a program reads goes to the model that it uses. Private conversations are never "
                    "shown, keys and passwords are hidden."
                ),
                self._programs,
            ),
        ):
            column.addSpacing(8)
            column.addWidget(PlainLabel(title, self, tone="heading"))
            column.addWidget(plain_label(self, "small", about))
            column.addLayout(content)
        self._log_title = PlainLabel(tr("What they read"), self, tone="heading")
        column.addWidget(self._log_title)
        column.addWidget(self.log)
        column.addSpacing(8)
        column.addWidget(PlainLabel(tr("Connect a program"), self, tone="heading"))
        column.addWidget(
            plain_label(
                self,
                "small",
                tr(
                    "Add this to the configuration of Claude Desktop, Claude Code, Cursor or another program "
                    "that speaks MCP. ChatGPT takes servers on the internet only."
                ),
            )
        )
        column.addLayout(row_of((self.configuration, 1), self.copy))
        self.http = QCheckBox(tr("Also over HTTP, for programs on this computer"), self)
        self.http.clicked.connect(self.http_switched)
        self.http_address = plain_label(self, "code")
        self.copy_key = button(self, tr("Copy key"), self._copy_key)
        column.addWidget(self.http)
        column.addLayout(row_of((self.http_address, 1), self.copy_key))
        column.addStretch(1)

    def show_programs(self, shown: ProgramsShown) -> None:
        """Show everything anew."""
        self.error.hide()
        self.configuration.setText(shown.configuration)
        self._http = http = shown.http
        self.http.setChecked(http is not None)
        self.http_address.setText(f"{http.url}  {http.problem}".strip() if http else "")
        self.http_address.setVisible(http is not None)
        self.copy_key.setVisible(http is not None)
        _fill(
            self._sources,
            [self._source(each) for each in shown.sources],
            lambda: plain_label(self, "small", tr("No program with sessions was found.")),
        )
        _fill(
            self._programs,
            [self._program(*each) for each in shown.programs],
            lambda: plain_label(self, "small", tr("No program has asked yet.")),
        )
        self.log.clear()
        self.log.setVisible(bool(shown.readings))
        self._log_title.setVisible(bool(shown.readings))
        for reading in shown.readings:
            text = f"{format_moment(reading.at)}  {reading.client}  {reading.tool}"
            item = QListWidgetItem("  ".join([text, *reading.links[:3]]), self.log)
            item.setData(Qt.ItemDataRole.UserRole, reading.links[0] if reading.links else "")

    def show_error(self, text: str) -> None:
        """Show why a change failed."""
        self.error.setText(text)
        self.error.show()

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
        column = QVBoxLayout(row)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(switch)
        column.addWidget(about)
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


def _fill(layout: QVBoxLayout, rows: Sequence[QWidget], nothing: Callable[[], QLabel]) -> None:
    """Replace what is in a layout."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
    for row in rows or [nothing()]:
        layout.addWidget(row)

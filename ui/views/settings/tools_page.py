"""The tools page of the settings: servers with tools for models, permission for each, and adding one."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QVBoxLayout, QWidget

from app.domain.translation import tr, trn
from app.mcp.tool_servers import Permission, ServerTool, ToolServer
from ui.widgets.cards import Card
from ui.widgets.controls import (
    button,
    combo_box,
    filled,
    form_of,
    key_edit,
    line_edit,
    refill,
    row_of,
)
from ui.widgets.plain_label import PlainLabel, breakable, plain_label

_PERMISSIONS = (
    (tr("Never"), Permission.NEVER),
    (tr("Ask"), Permission.ASK),
    (tr("Always"), Permission.ALWAYS),
)


@dataclass(frozen=True, slots=True)
class ToolServerFields:
    """What the form holds, as typed: `command` is one line, `variables` are separated by spaces."""

    name: str
    command: str
    url: str
    folder: str
    variables: str
    key: str


class ToolsPage(QWidget):
    """Servers that were accepted, what a new one offers, and the form to add one.

    Signals:
        connect_requested: The `ToolServerFields` of a new server. accepted, discarded: What it offers.
        refresh_requested, removal_requested: A server's name. switched: (its name, on).
        permitted: (its name, a tool's name, Permission).
    """

    connect_requested = Signal(object)
    accepted = Signal()
    discarded = Signal()
    refresh_requested = Signal(str)
    removal_requested = Signal(str)
    switched = Signal(str, bool)
    permitted = Signal(str, str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._servers, self._offer = QVBoxLayout(), QVBoxLayout()
        card = Card(tr("Add a tool server"), self)
        self.name = line_edit(card, "files", name=tr("Name"))
        self.command = line_edit(card, "npx -y @example/server ~/Documents", name=tr("Command"))
        self.url = line_edit(card, "https://tools.example.com/mcp", name=tr("Or address"))
        self.key = key_edit(card, tr("optional"), tr("Key of the address"))
        self.folder = line_edit(card, tr("optional"), name=tr("Working folder"))
        self.variables = line_edit(card, tr("optional"), name=tr("Environment variables"))
        rows = form_of(card, *((each.accessibleName(), each) for each in self._fields()))
        for field in self._fields():
            field.returnPressed.connect(self._connect)
        self.connect_button = button(card, tr("Connect\u2026"), self._connect, kind="primary")
        card.column.addLayout(rows)
        card.column.addLayout(row_of(self.connect_button, None))
        self.outcome = card.line()
        about = plain_label(
            self,
            "small",
            tr(
                "Programs and services that offer tools over MCP, such as files, calendars or issue "
                "trackers. Models call them in your conversations. What a model passes to a tool goes to "
                "that program or service."
            ),
        )
        parts = (about, self._servers, self._offer, card, None)
        filled(QVBoxLayout(self), *parts, margins=(16, 8, 16, 16), spacing=10)

    def show_servers(self, servers: Sequence[ToolServer]) -> None:
        refill(self._servers, map(self._server, servers))

    def show_offer(self, server: ToolServer | None) -> None:
        """Show what a server offers, to be accepted; None for nothing."""
        self.show_outcome("", "muted")
        refill(self._offer, [self._offered(server)] if server else [])

    def show_outcome(self, text: str, tone: str) -> None:
        """Show what connecting led to; `tone` is one of the style sheet's."""
        self.outcome.show_text(text, tone)
        self.connect_button.setEnabled(tone != "small")

    def clear(self) -> None:
        for field in self._fields():
            field.clear()

    def _fields(self) -> tuple[QLineEdit, ...]:
        return (self.name, self.command, self.url, self.key, self.folder, self.variables)

    def _connect(self) -> None:
        if self.connect_button.isEnabled():
            name, command, url, key, folder, variables = (each.text() for each in self._fields())
            fields = ToolServerFields(name.strip(), command, url.strip(), folder, variables, key)
            self.connect_requested.emit(fields)

    def _server(self, server: ToolServer) -> QWidget:
        card = Card(server.name, self)
        switch = QCheckBox(tr("Offer its tools to models"), card)
        switch.setAccessibleName(tr("Offer the tools of {name}").format(name=server.name))
        switch.setChecked(server.is_on)
        switch.clicked.connect(lambda on: self.switched.emit(server.name, on))
        card.line("code", address_text(server))
        card.column.addWidget(switch)
        for tool in server.tools:
            card.column.addLayout(self._tool(card, server, tool))
        again = button(
            card,
            tr("Look again\u2026"),
            lambda: self.refresh_requested.emit(server.name),
            name=tr("Look again at the tools of {name}").format(name=server.name),
        )
        remove = button(
            card,
            tr("Remove\u2026"),
            lambda: self.removal_requested.emit(server.name),
            kind="danger",
            name=tr("Remove {name}").format(name=server.name),
        )
        card.column.addLayout(row_of(again, None, remove))
        return card

    def _tool(self, card: Card, server: ToolServer, tool: ServerTool) -> QVBoxLayout:
        choice = combo_box(
            card,
            tr("Permission of {tool}").format(tool=tool.name),
            _PERMISSIONS,
            on_activated=lambda at: self.permitted.emit(
                server.name, tool.name, _PERMISSIONS[at][1]
            ),
        )
        choice.setCurrentIndex([each for _, each in _PERMISSIONS].index(tool.permission))
        choice.setEnabled(server.is_on)
        rows = QVBoxLayout()
        rows.addLayout(row_of((PlainLabel(tool.name, card), 1), choice))
        if tool.description:
            rows.addWidget(plain_label(card, "small", tool.description))
        return rows

    def _offered(self, server: ToolServer) -> QWidget:
        offer = trn("offers {count} tool", "offers {count} tools", len(server.tools))
        card = Card(f"{server.name} {offer}", self)
        card.line(
            "small",
            tr(
                "The descriptions are the server's words and go to the model. You are asked before each "
                "call; you can change that afterwards."
            ),
        )
        for tool in server.tools:
            card.line("", tool.name)
            for text in (tool.description, breakable("\n".join(tool.arguments))):
                card.line("small", text)
        accept = button(card, tr("Accept"), self.accepted, kind="primary")
        card.column.addLayout(row_of(accept, button(card, tr("Discard"), self.discarded), None))
        return card


def address_text(server: ToolServer) -> str:
    """Return how a server is reached, as it is shown and accepted."""
    import shlex

    return server.url or shlex.join(server.command)

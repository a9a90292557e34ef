"""All actions of the window in one table: name, menu, text and shortcuts."""

from dataclasses import dataclass

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

_Keys = str | QKeySequence.StandardKey | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ActionRow:
    """An action; `name` identifies it, `keys` are its shortcuts, "" for none."""

    name: str
    menu: str
    text: str
    keys: _Keys = ""
    checkable: bool = False
    separated: bool = False


_K = QKeySequence.StandardKey
_ROWS = (
    ActionRow("new", "&Conversation", "&New conversation", _K.New),
    ActionRow("new_private", "&Conversation", "New pri&vate conversation", "Ctrl+Shift+N"),
    ActionRow("clean_slate", "&Conversation", "Clean s&late from here", "Ctrl+Shift+E"),
    ActionRow("rename", "&Conversation", "&Rename\u2026", "F2", separated=True),
    ActionRow("pin", "&Conversation", "&Pin", "Ctrl+D", checkable=True),
    ActionRow("archive", "&Conversation", "&Archive", "Ctrl+Shift+A", checkable=True),
    ActionRow("tag", "&Conversation", "&Tags\u2026", "Ctrl+T"),
    ActionRow("summaries", "&Conversation", "S&ummaries\u2026", "Ctrl+Shift+S"),
    ActionRow("preset", "&Conversation", "Pre&set\u2026", "Ctrl+Shift+O"),
    ActionRow("model", "&Conversation", "M&odel\u2026", "Ctrl+Shift+M"),
    ActionRow("memory_here", "&Conversation", "Use &memory here", "Ctrl+Shift+U", checkable=True),
    ActionRow("delete", "&Conversation", "&Delete", "Ctrl+Shift+Backspace"),
    ActionRow("restore", "&Conversation", "Restore &from the trash"),
    ActionRow("forget", "&Conversation", "For&get permanently\u2026"),
    ActionRow("import", "&Conversation", "&Import\u2026", "Ctrl+I", separated=True),
    ActionRow("export", "&Conversation", "&Export this conversation\u2026", "Ctrl+E"),
    ActionRow("export_all", "&Conversation", "Export e&verything\u2026"),
    ActionRow("settings", "&Conversation", "&Settings\u2026", "Ctrl+,", separated=True),
    ActionRow("presets", "&Conversation", "E&dit presets\u2026"),
    ActionRow("quit", "&Conversation", "&Quit", "Ctrl+Q"),
    ActionRow("attach", "&Edit", "&Attach files\u2026", "Ctrl+U"),
    ActionRow("copy_link", "&Edit", "Copy &link to the last turn", "Ctrl+Shift+L"),
    ActionRow("stop", "&Edit", "&Stop the reply", ("Ctrl+.", "Esc")),
    ActionRow("regenerate", "&Edit", "&Regenerate the last reply", "Ctrl+R"),
    ActionRow("search", "&Find", "&Search everything", "Ctrl+K"),
    ActionRow("find", "&Find", "Find in this &conversation", _K.Find),
    ActionRow("back", "&Find", "&Back", "Alt+Left"),
    ActionRow("forward", "&Find", "F&orward", "Alt+Right"),
    ActionRow("open_link", "&Find", "&Open a turn\u2026", "Ctrl+L"),
    ActionRow("why", "&Find", "&Why wasn't this recalled?\u2026", "Ctrl+Shift+Y", separated=True),
    ActionRow("probes", "&Find", "&Probe questions\u2026"),
    ActionRow("sidebar", "&View", "&Sidebar", "Ctrl+B", checkable=True),
    ActionRow("sources", "&View", "S&ources", "Ctrl+Shift+I", checkable=True, separated=True),
    ActionRow("sent", "&View", "What was sen&t", checkable=True),
    ActionRow("facts", "&View", "&Facts", "Ctrl+Shift+F", checkable=True),
    ActionRow("profile", "&View", "&Profile", "Ctrl+Shift+K", checkable=True),
    ActionRow("core", "&View", "&Core memory", checkable=True),
    ActionRow("saved", "&View", "Sa&ved memories", checkable=True),
    ActionRow("activity", "&View", "&Activity", "Ctrl+Shift+W", checkable=True),
    ActionRow("larger", "&View", "&Larger text", ("Ctrl++", "Ctrl+="), separated=True),
    ActionRow("smaller", "&View", "S&maller text", _K.ZoomOut),
    ActionRow("actual", "&View", "&Normal text", "Ctrl+0"),
    ActionRow("focus_composer", "&View", "&Write a message", "Ctrl+J", separated=True),
    ActionRow("palette", "&View", "Comman&ds\u2026", "Ctrl+Shift+P"),
    ActionRow("shortcuts", "&Help", "&Keyboard shortcuts", _K.HelpContents),
    ActionRow("slash_commands", "&Help", "&Slash commands"),
    ActionRow("backup", "&Help", "&Back up now", separated=True),
    ActionRow("check", "&Help", "&Check the database"),
    ActionRow("open_folder", "&Help", "Show the data &folder", separated=True),
    ActionRow("about", "&Help", "&About Commonplace"),
)


def _sequences(keys: _Keys) -> list[QKeySequence]:
    """Return the key sequences; the first one is shown in menus."""
    if isinstance(keys, QKeySequence.StandardKey):
        return QKeySequence.keyBindings(keys)
    return [QKeySequence(each) for each in ((keys,) if isinstance(keys, str) else keys) if each]


def add_actions(window: QMainWindow) -> dict[str, QAction]:
    """Add all actions to the menu bar of a window; return them by name."""
    actions: dict[str, QAction] = {}
    menus: dict[str, QMenu] = {}
    for row in _ROWS:
        menu = menus.get(row.menu)
        if menu is None:
            menu = menus[row.menu] = window.menuBar().addMenu(row.menu)
        action = QAction(row.text, window)
        action.setObjectName(row.name)
        action.setShortcuts(_sequences(row.keys))
        action.setCheckable(row.checkable)
        if row.separated:
            menu.addSeparator()
        menu.addAction(action)
        actions[row.name] = action
    return actions

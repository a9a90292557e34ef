"""All actions of the window in one table: name, menu, text and shortcuts."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

from app.domain.translation import tr

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
    ActionRow("new", tr("&Conversation"), tr("&New conversation"), "Ctrl+N"),
    ActionRow("new_private", tr("&Conversation"), tr("New pri&vate conversation"), "Ctrl+Shift+N"),
    ActionRow("clean_slate", tr("&Conversation"), tr("&Clean slate from here"), "Ctrl+Shift+E"),
    ActionRow("rename", tr("&Conversation"), tr("&Rename\u2026"), "F2", separated=True),
    ActionRow("pin", tr("&Conversation"), tr("&Pin"), "Ctrl+D", checkable=True),
    ActionRow("archive", tr("&Conversation"), tr("&Archive"), "Ctrl+Shift+A", checkable=True),
    ActionRow("tag", tr("&Conversation"), tr("&Tags\u2026"), "Ctrl+T"),
    ActionRow("preset", tr("&Conversation"), tr("Pr&eset\u2026"), "Ctrl+Shift+O"),
    ActionRow("model", tr("&Conversation"), tr("M&odel\u2026"), "Ctrl+Shift+M"),
    ActionRow(
        "memory_here", tr("&Conversation"), tr("Use memory &here"), "Ctrl+Shift+U", checkable=True
    ),
    ActionRow("delete", tr("&Conversation"), tr("De&lete"), "Ctrl+Shift+Backspace"),
    ActionRow("restore", tr("&Conversation"), tr("Restore &from the trash")),
    ActionRow("forget", tr("&Conversation"), tr("For&get permanently\u2026")),
    ActionRow("import", tr("&Conversation"), tr("&Import\u2026"), "Ctrl+I", separated=True),
    ActionRow("past_imports", tr("&Conversation"), tr("Past i&mports\u2026")),
    ActionRow("documents", tr("&Conversation"), tr("Doc&uments\u2026"), "Ctrl+Shift+G"),
    ActionRow("export", tr("&Conversation"), tr("E&xport this conversation\u2026"), "Ctrl+E"),
    ActionRow("export_all", tr("&Conversation"), tr("Export ever&ything\u2026")),
    ActionRow("settings", tr("&Conversation"), tr("&Settings\u2026"), "Ctrl+,", separated=True),
    ActionRow("presets", tr("&Conversation"), tr("E&dit presets\u2026")),
    ActionRow("quit", tr("&Conversation"), tr("&Quit"), "Ctrl+Q"),
    ActionRow(
        "move", tr("&Project"), tr("&Move this conversation to a project\u2026"), "Ctrl+Shift+J"
    ),
    ActionRow("edit_project", tr("&Project"), tr("&Edit this project\u2026")),
    ActionRow("new_project", tr("&Project"), tr("&New project\u2026"), separated=True),
    ActionRow("proposed_projects", tr("&Project"), tr("&Proposed projects\u2026")),
    ActionRow("attach", tr("&Edit"), tr("&Attach files\u2026"), "Ctrl+U"),
    ActionRow("copy_link", tr("&Edit"), tr("Copy &link to the last turn"), "Ctrl+Shift+L"),
    ActionRow("stop", tr("&Edit"), tr("&Stop the reply"), ("Ctrl+.", "Esc")),
    ActionRow("regenerate", tr("&Edit"), tr("&Regenerate the last reply"), "Ctrl+R"),
    ActionRow("search", tr("&Find"), tr("&Search everything"), "Ctrl+K"),
    ActionRow("find", tr("&Find"), tr("Find in this &conversation"), _K.Find),
    ActionRow("back", tr("&Find"), tr("&Back"), "Alt+Left"),
    ActionRow("forward", tr("&Find"), tr("Fo&rward"), "Alt+Right"),
    ActionRow("open_link", tr("&Find"), tr("&Open a turn\u2026"), "Ctrl+L"),
    ActionRow(
        "why", tr("&Find"), tr("&Why wasn't this recalled?\u2026"), "Ctrl+Shift+Y", separated=True
    ),
    ActionRow("topics", tr("&Find"), tr("Top&ics\u2026"), "Ctrl+Shift+T"),
    ActionRow("secrets", tr("&Find"), tr("&Keys and passwords\u2026")),
    ActionRow("sidebar", tr("&View"), tr("&Sidebar"), "Ctrl+B", checkable=True),
    ActionRow(
        "sources", tr("&View"), tr("S&ources"), "Ctrl+Shift+I", checkable=True, separated=True
    ),
    ActionRow("sent", tr("&View"), tr("What was sen&t"), checkable=True),
    ActionRow("facts", tr("&View"), tr("&Facts"), "Ctrl+Shift+F", checkable=True),
    ActionRow("summaries", tr("&View"), tr("S&ummaries"), "Ctrl+Shift+S", checkable=True),
    ActionRow("profile", tr("&View"), tr("&Profile"), "Ctrl+Shift+K", checkable=True),
    ActionRow("core", tr("&View"), tr("&Core memory"), checkable=True),
    ActionRow("saved", tr("&View"), tr("Sa&ved memories"), checkable=True),
    ActionRow("questions", tr("&View"), tr("Test &questions"), checkable=True),
    ActionRow("activity", tr("&View"), tr("&Activity"), "Ctrl+Shift+W", checkable=True),
    ActionRow("routines", tr("&View"), tr("&Routines\u2026"), "Ctrl+Shift+H"),
    ActionRow("larger", tr("&View"), tr("&Larger text"), ("Ctrl++", "Ctrl+="), separated=True),
    ActionRow("smaller", tr("&View"), tr("S&maller text"), _K.ZoomOut),
    ActionRow("actual", tr("&View"), tr("&Normal text"), "Ctrl+0"),
    ActionRow("focus_composer", tr("&View"), tr("&Write a message"), "Ctrl+J", separated=True),
    ActionRow("palette", tr("&View"), tr("Comman&ds\u2026"), "Ctrl+Shift+P"),
    ActionRow("shortcuts", tr("&Help"), tr("&Keyboard shortcuts"), _K.HelpContents),
    ActionRow("slash_commands", tr("&Help"), tr("&Slash commands")),
    ActionRow("tour", tr("&Help"), tr("&Tour of the window")),
    ActionRow("backup", tr("&Help"), tr("&Back up now"), separated=True),
    ActionRow("restore_backup", tr("&Help"), tr("&Restore a backup\u2026")),
    ActionRow("check", tr("&Help"), tr("&Check the database")),
    ActionRow("privacy", tr("&Help"), tr("&Privacy\u2026"), separated=True),
    ActionRow("open_folder", tr("&Help"), tr("Show the data &folder")),
    ActionRow("about", tr("&Help"), tr("&About Commonplace")),
)


def _sequences(keys: _Keys) -> list[QKeySequence]:
    """Return the key sequences; the first one is shown in menus."""
    if isinstance(keys, QKeySequence.StandardKey):
        return QKeySequence.keyBindings(keys)
    return [QKeySequence(each) for each in ((keys,) if isinstance(keys, str) else keys) if each]


def follow_key(action: QAction, show: Callable[[str], object]) -> None:
    """Call `show` with an action's key as menus show it, "" for none, now and after each change."""

    def update() -> None:
        show(action.shortcut().toString(QKeySequence.SequenceFormat.NativeText))

    action.changed.connect(update)
    update()


def add_actions(window: QMainWindow) -> dict[str, QAction]:
    """Add all actions to the menu bar of a window; return them by name."""
    actions: dict[str, QAction] = {}
    menus: dict[str, QMenu] = {}
    for row in _ROWS:
        menu = menus.get(row.menu)
        if menu is None:
            menu = menus[row.menu] = window.menuBar().addMenu(row.menu)
        action = QAction(row.text, window, checkable=row.checkable)
        action.setObjectName(row.name)
        action.setShortcuts(_sequences(row.keys))
        if row.separated:
            menu.addSeparator()
        menu.addAction(action)
        actions[row.name] = action
    return actions

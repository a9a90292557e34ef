"""The start of the window: shows the first frame in the stored state, then runs the application.

Only what the first frame needs is imported here: no asyncio, no DuckDB, no vendor SDK, no Markdown
rendering. A thread imports `application`, which does the rest, while the window answers the user.
"""

import locale
import sys
from collections.abc import Mapping
from importlib import import_module

from PySide6.QtCore import QEventLoop, QLibraryInfo, QLocale, QThread, QTimer, QTranslator
from PySide6.QtWidgets import QApplication

from app.domain.translation import ENGLISH, language
from app.system.paths import DataPaths
from ui.icons import app_icon
from ui.theme import STYLE, Appearance, ThemeChoice
from ui.views.main_window import MainWindow

_NAME = "commonplace"
_MAX_PERCENT = 1_000
_SWITCH_INTERVAL_S = 0.0005
_PAINT_TIMEOUT_MS = 1_000
_LOCALES = {
    "en": QLocale(QLocale.Language.English, QLocale.Country.UnitedStates),
    "de": QLocale(QLocale.Language.German, QLocale.Country.Germany),
}


def start(paths: DataPaths, settings: Mapping[str, object], *, smoke: bool) -> int:
    """Run the window with the `settings` of last time; return the exit code."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    # By argument: setStyle() returns a QStyle, whose many enums take Python 15 ms to create.
    # The first argument names the window's class, by which desktops find its icon.
    application = QApplication([_NAME, "-style", STYLE])
    use_language(application)
    application.setApplicationName(_NAME)
    application.setApplicationDisplayName("Commonplace")
    application.setDesktopFileName(_NAME)
    application.setQuitOnLastWindowClosed(False)
    appearance = first_appearance(application, settings)
    window = first_window(paths)
    _wait_for_the_first_frame(window)
    window.chat.composer.box.setFocus()
    application.setWindowIcon(app_icon())
    if not _import_the_rest(window):
        return 0
    from app.system.process import limit_malloc_retention, wait_for_threads_at_exit
    from ui.main.application import run

    limit_malloc_retention()
    wait_for_threads_at_exit()

    return run(application, paths, appearance, window, smoke=smoke)


def use_language(application: QApplication) -> None:
    """Have Qt write its numbers, dates and own texts in the language of the interface.

    QApplication sets the user's locale, whose dates would appear in sentences of another language.
    """
    QLocale.setDefault(_LOCALES[language()])
    locale.setlocale(locale.LC_TIME, "C")
    if language() == ENGLISH:
        return
    texts = QTranslator(application)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if texts.load(f"qtbase_{language()}", folder):
        application.installTranslator(texts)


def first_appearance(application: QApplication, stored: Mapping[str, object]) -> Appearance:
    """Return the appearance of last time, before the settings can be read."""
    theme, text_size = stored.get("theme"), stored.get("text_size")
    known = theme if theme in list(ThemeChoice) else ThemeChoice.SYSTEM
    size = text_size if isinstance(text_size, int) and 0 < text_size < _MAX_PERCENT else 100
    still = stored.get("reduced_motion") is True
    return Appearance(application, ThemeChoice(str(known)), size, reduced_motion=still)


def first_window(paths: DataPaths) -> MainWindow:
    """Return the window on screen, in its stored state, before the library is open."""
    window = MainWindow()
    window.restore_state(paths.window)
    window.set_usable(False)
    window.setFocus()  # the composer's border shows its own, which takes 7 ms the first time
    window.show()
    return window


def _wait_for_the_first_frame(window: MainWindow) -> None:
    """Wait until the window is painted, at most a second: a minimized one never is.

    User input stays in the queue until the application runs.
    """
    waiting = QEventLoop()
    window.painted.connect(waiting.quit)
    QTimer.singleShot(_PAINT_TIMEOUT_MS, waiting.quit)
    waiting.exec(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)


class _Imports(QThread):
    """Imports the application: for a second on a slow computer."""

    # Qt overrides

    def run(self) -> None:
        import_module("ui.main.application")


def _import_the_rest(window: MainWindow) -> bool:
    """Import the application in a thread; return False if the user has closed the window meanwhile."""
    waiting, imports = QEventLoop(), _Imports()
    imports.finished.connect(waiting.quit)
    for left in (window.close_requested, window.quit_requested):
        left.connect(window.hide)
    imports.start()
    waiting.exec()
    imports.wait()
    stays = not window.isHidden()
    for left in (window.close_requested, window.quit_requested):
        left.disconnect(window.hide)
    return stays

"""The entry point of the window: `python -m ui.main [--data-dir DIR] [--smoke]`.

It chooses the language before any module with texts is imported; `start` does the rest.
"""

import argparse
import gc
from importlib import import_module

from app.domain.translation import choose_language
from app.system.paths import DataPaths, stored_settings


def main() -> int:
    """Run the window; return the exit code."""
    gc.disable()  # the cyclic collector may destroy QObjects in a worker's thread: a timer collects
    given = _arguments()
    paths = DataPaths.choose(given.data_dir)
    settings = stored_settings(paths.window)
    choose_language(str(settings.get("language", "system")))
    skip_source_scan()
    from ui.main.start import start

    return start(paths, settings, smoke=given.smoke)


def skip_source_scan() -> None:
    """Keep PySide from reading the source of each module that is imported after it.

    It looks for modules that switch features of its own on, as none here does, and `linecache` keeps
    every line: 57 MB and a tenth of the processor time of a start (PySide 6.11, feature.py in its
    support library, `_mod_uses_pyside`).
    """
    import_module("PySide6.QtCore")
    feature = import_module("shibokensupport.feature")
    feature._mod_uses_pyside = lambda _module: False  # type: ignore[attr-defined]  # noqa: SLF001


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="commonplace", description="The window of Commonplace.")
    parser.add_argument("--data-dir", metavar="DIR", help="the data directory")
    parser.add_argument("--smoke", action="store_true", help="start, wait until ready, leave")
    return parser.parse_args()

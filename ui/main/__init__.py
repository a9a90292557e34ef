"""The entry point of the window: `python -m ui.main [--data-dir DIR] [--smoke]`.

It chooses the language before any module with texts is imported; `start` does the rest.
"""

import argparse

from app.domain.translation import choose_language
from app.system.paths import DataPaths
from ui.main.window_state import stored_settings


def main() -> int:
    """Run the window; return the exit code."""
    given = _arguments()
    paths = DataPaths.choose(given.data_dir)
    settings = stored_settings(paths.window)
    choose_language(str(settings.get("language", "system")))
    from ui.main.start import start

    return start(paths, settings, smoke=given.smoke)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="commonplace", description="The window of Commonplace.")
    parser.add_argument("--data-dir", metavar="DIR", help="the data directory")
    parser.add_argument("--smoke", action="store_true", help="start, wait until ready, leave")
    return parser.parse_args()

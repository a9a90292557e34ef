"""The program's log: a few rotating files in the data directory, never a key or a conversation."""

import logging
from logging.handlers import RotatingFileHandler

from app.system.paths import DataPaths

_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
_FILE_LIMIT_BYTES = 1 << 20
_FILES = 3
_QUIET = ("httpx2", "httpcore2", "openai", "anthropic", "markdown_it", "asyncio")


def start_log(paths: DataPaths) -> None:
    """Write this process's log to the data directory from now on; a second call moves it."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _LogFile)]:
        root.removeHandler(handler)
        handler.close()
    log = _LogFile(paths.logs / "commonplace.log", maxBytes=_FILE_LIMIT_BYTES, backupCount=_FILES,
                   encoding="utf-8", delay=True)  # fmt: skip
    log.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(log)
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


class _LogFile(RotatingFileHandler):
    """Our own handler among those that others may have put on the root."""

"""The program's log: a few rotating files in the data directory, never a key or a conversation."""

import logging
import traceback
from logging.handlers import RotatingFileHandler
from types import TracebackType

from app.domain.errors import KnownError
from app.system.paths import DataPaths

_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
_FILE_LIMIT_BYTES = 1 << 20
_FILES = 3
_LONGEST_CHAIN = 5
_QUIET = ("httpx2", "httpcore2", "openai", "anthropic", "markdown_it", "asyncio")


def start_log(paths: DataPaths) -> None:
    """Write this process's log to the data directory from now on; a second call moves it."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _LogFile)]:
        root.removeHandler(handler)
        handler.close()
    log = _LogFile(paths.logs / "commonplace.log", maxBytes=_FILE_LIMIT_BYTES, backupCount=_FILES,
                   encoding="utf-8", delay=True)  # fmt: skip
    log.setFormatter(_Unquoting(_FORMAT))
    root.addHandler(log)
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def trace_of(error: BaseException) -> str:
    """Return where an error came from: files, lines and types.

    Messages are left out but those of `KnownError`: others may quote a server or a conversation.
    """
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < _LONGEST_CHAIN:
        places = "".join(traceback.format_tb(cause.__traceback__))
        words = f" ({cause})" if isinstance(cause, KnownError) else ""
        parts.append(f"{type(cause).__name__}{words} at\n{places}")
        cause = cause.__cause__ or cause.__context__
    return "caused by ".join(parts)


class _Unquoting(logging.Formatter):
    """Writes exceptions as `trace_of` does."""

    # Overrides of logging.Formatter

    def format(self, record: logging.LogRecord) -> str:
        """Return a line of the log, with the trace below it."""
        others, record.exc_text = record.exc_text, None  # what another handler made of it quotes
        try:
            return super().format(record)
        finally:
            record.exc_text = others

    def formatException(  # noqa: N802 - logging's name
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        """Return the trace of what was raised."""
        return "" if ei[1] is None else trace_of(ei[1])


class _LogFile(RotatingFileHandler):
    """Our own handler among those that others may have put on the root."""

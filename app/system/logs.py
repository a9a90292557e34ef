"""The log: rotating files in the data directory that contain no keys and no conversation text."""

import logging
import traceback
from logging.handlers import RotatingFileHandler
from types import TracebackType

from app.domain.errors import KnownError
from app.system.paths import DataPaths

_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
_FILE_LIMIT_BYTES = 1 << 20
_FILES = 3
_CAUSES_MAX = 5
_HANDLER = "commonplace"
_QUIET = ("httpx2", "httpcore2", "openai", "anthropic", "markdown_it", "asyncio")


def configure_logging(paths: DataPaths) -> None:
    """Write the log of this process to the data directory; a second call changes the directory."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if each.name == _HANDLER]:
        root.removeHandler(handler)
        handler.close()
    log = RotatingFileHandler(paths.logs / "commonplace.log", maxBytes=_FILE_LIMIT_BYTES, backupCount=_FILES,
                   encoding="utf-8", delay=True)  # fmt: skip
    log.name = _HANDLER
    log.setFormatter(_Formatter(_FORMAT))
    root.addHandler(log)
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def format_traceback(error: BaseException) -> str:
    """Return the files, lines and types of an exception and its causes.

    Only the messages of `KnownError` are included: others may quote a server or a conversation.
    """
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < _CAUSES_MAX:
        frames = "".join(traceback.format_tb(cause.__traceback__))
        message = f" ({cause})" if isinstance(cause, KnownError) else ""
        parts.append(f"{type(cause).__name__}{message} at\n{frames}")
        cause = cause.__cause__ or cause.__context__
    return "caused by ".join(parts)


class _Formatter(logging.Formatter):
    """Formats exceptions with `format_traceback`."""

    # Overrides of logging.Formatter

    def format(self, record: logging.LogRecord) -> str:
        """Return a line of the log, followed by the traceback."""
        cached, record.exc_text = record.exc_text, None  # the cached text of other handlers quotes
        try:
            return super().format(record)
        finally:
            record.exc_text = cached

    def formatException(  # noqa: N802 - logging's name
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        return "" if ei[1] is None else format_traceback(ei[1])

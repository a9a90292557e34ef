"""Paths inside the data directory, and durable writes. No other module joins such a path."""

import errno
import json
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from platformdirs import user_data_path

ENVIRONMENT_VARIABLE = "COMMONPLACE_DATA_DIR"
FIRST_SETTINGS = ("theme", "text_size", "reduced_motion", "language")


class DataPaths:
    """The data directory and what it holds; folders 0700, files 0600.

    Attributes:
        database: The DuckDB file; only DuckDB itself ever opens it.
        wal: DuckDB's write-ahead log beside the database.
        journal: Segments of the journal.
        index: Caches that may be deleted at any time.
        attachments: Attached files, named by the hash of their content.
        backups: Verified copies of the database.
        kept_attachments: Copies of the attached files that backups refer to.
        damaged: Files that recovery put into quarantine; never deleted by the program.
        logs: The program's log.
        lock: Held with flock while a program has the database open.
        socket: The socket on which a running window serves the command line.
        window: Geometry of the window, readable before the database opens.
        keys: API keys encrypted with a passphrase, where the system has no keyring.
        checked: An empty file; its modification time is when every table was last read in full.
        migrated: An empty file, from an update of the schema until what was stored before is checked and repaired.
        reserve: Disk space that is released when the disk is full.
        closed: Size and time of the database at its last clean end; does not exist while it is open.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "commonplace.duckdb"
        self.wal = root / "commonplace.duckdb.wal"
        self.journal = root / "journal"
        self.index = root / "index"
        self.attachments = root / "attachments"
        self.backups = root / "backups"
        self.kept_attachments = self.backups / "attachments"
        self.damaged = root / "damaged"
        self.logs = root / "logs"
        self.lock = root / "lock"
        self.socket = root / "socket"
        self.window = root / "window.json"
        self.keys = root / "keys.json"
        self.checked = root / "checked"
        self.migrated = root / "migrated"
        self.reserve = root / "reserve"
        self.closed = root / "closed"

    @classmethod
    def choose(cls, given: str | None) -> "DataPaths":
        """Return the folder given, else the environment's, else the user's own; made absolute."""
        chosen = given or os.environ.get(ENVIRONMENT_VARIABLE)
        root = Path(chosen).expanduser() if chosen else user_data_path("commonplace", False)
        return cls(root.absolute())

    def mark_closed(self) -> None:
        """Record the database as it is now as that of a clean end; raises OSError."""
        self.closed.touch(0o600)
        self.closed.write_text(self._database_stamp())

    def is_as_closed(self) -> bool:
        """Return whether the database is the one of the last clean end, as far as size and time tell."""
        with suppress(OSError):
            return self.closed.read_text() == self._database_stamp()
        return False

    def _database_stamp(self) -> str:
        found = self.database.stat()
        return f"{found.st_size} {found.st_mtime_ns}"

    def make(self) -> None:
        """Create the folders and keep other users out of the root.

        Raises ReadOnlyStorage where that fails, and for a folder that its owner has made read-only: its
        permissions are never widened. Raises InvalidInput for a path that DuckDB reads as another one.
        """
        _refuse_unusable(self.root)
        try:
            for folder in (self.root, self.journal, self.index, self.backups, self.logs):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if not _is_writable(folder):
                    raise PermissionError(errno.EACCES, f"the folder '{folder}' is read-only")
            self.root.chmod(self.root.stat().st_mode & 0o700)
            os.umask(0o077)
        except OSError as error:
            from app.domain.errors import ReadOnlyStorage

            raise ReadOnlyStorage(
                f"The data directory '{self.root}' cannot be written: {error.strerror or error}",
                "Choose another with --data-dir, or make it writable.",
            ) from error


def _refuse_unusable(root: Path) -> None:
    """Refuse what DuckDB 2.0.0 takes for the query of a web address or a separator, and what is no UTF-8."""
    text = str(root)
    found = [each for each in "?\\" if each in text and each != os.sep]
    if found or text.encode("utf-8", "replace").decode() != text:
        from app.domain.errors import InvalidInput

        what = f"'{found[0]}'" if found else "bytes that are no text"
        raise InvalidInput(
            f"The path of the data directory contains {what}: {text!r}",
            "Choose another with --data-dir.",
        )


def _is_writable(folder: Path) -> bool:
    """Return whether files can be created in a folder and its owner allows it.

    Root may write to any folder, so the owner's permission is looked at too. On Windows the
    read-only attribute of a folder has another meaning.
    """
    owner_allows = os.name == "nt" or bool(folder.stat().st_mode & stat.S_IWUSR)
    return owner_allows and os.access(folder, os.W_OK | os.X_OK)


def refuse_data_directory(root: Path, target: Path) -> None:
    """Raise InvalidInput for a file that the user would write into the data directory at `root`."""
    if target.resolve().is_relative_to(root.resolve()):
        from app.domain.errors import InvalidInput

        raise InvalidInput(
            f"'{target}' is inside the data directory, which belongs to the program",
            "Choose another place.",
        )


def fsync_file(descriptor: int) -> None:
    """Make a file's content durable; raises OSError."""
    if sys.platform == "darwin":
        import fcntl

        # macOS: fsync only reaches the drive's cache (man 2 fsync).
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def fsync_folder(folder: Path) -> None:
    """Make the names in `folder` durable; a file's own fsync does not. Raises OSError."""
    if os.name == "nt":
        return  # NTFS journals its names, and a folder cannot be opened there
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stored_settings(file: Path) -> dict[str, object]:
    """Return the settings that the first frame needs, as they were last time; blocking."""
    try:
        return dict(json.loads(file.read_text(encoding="utf-8"))["settings"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def note_setting(file: Path, key: str, value: object) -> None:
    """Have the first frame of the next window know a setting that was set without one; blocking."""
    if key not in FIRST_SETTINGS:
        return
    try:
        stored = dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        stored = {}
    store_state(file, json.dumps(stored | {"settings": stored_settings(file) | {key: value}}))


def store_state(file: Path, state: str) -> None:
    """Store a window's state atomically; blocking. On an error the last state stays."""
    coming = file.with_suffix(".new")
    try:
        coming.write_text(state, encoding="utf-8")
        coming.replace(file)
    except OSError as error:
        import logging  # the first frame is shown without it

        logging.getLogger(__name__).warning("the window's state could not be stored: %s", error)

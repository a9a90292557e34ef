"""API keys: read from the environment, the system keyring or an encrypted file, else kept for the session.

A key is saved for a provider's name and the origin of its base URL, so that a changed base URL needs the
key again. Keys are never in the database, logs, exceptions or any repr. Calls may block while the keyring
asks to be unlocked: do not call them on the GUI thread.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from app.domain.errors import InvalidInput, KnownError
from app.domain.translation import tr_noop
from app.system.key_file import KeyFile

T = TypeVar("T")
SERVICE = "commonplace"
KEY_FILE_VARIABLE = "COMMONPLACE_PASSPHRASE"
_log = logging.getLogger(__name__)


class Secret:
    """A text that `repr` and `str` hide and that cannot be pickled or copied."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text; do not store or print it."""
        return self._text

    @property
    def is_sendable(self) -> bool:
        """Whether it is valid in a header: printable ASCII without spaces."""
        return bool(self._text) and all("!" <= character <= "~" for character in self._text)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied")


class KeyLocation(StrEnum):
    """The location of a key."""

    ENVIRONMENT = "environment"
    KEYRING = "keyring"
    FILE = "file"
    SESSION = "session"


class KeyStorage(StrEnum):
    """Where keys that are saved now would go; `LOCKED` while the key file needs its passphrase."""

    KEYRING = "keyring"
    FILE = "file"
    LOCKED = "locked"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key and its location; `variable` is the name of the environment variable, if any."""

    secret: Secret
    place: KeyLocation
    variable: str = ""

    @property
    def location_text(self) -> str:
        return {
            KeyLocation.ENVIRONMENT: self.variable,
            KeyLocation.KEYRING: tr_noop("the keyring"),
            KeyLocation.FILE: tr_noop("the key file"),
            KeyLocation.SESSION: tr_noop("this session"),
        }[self.place]

    @property
    def remedy(self) -> str:
        """The hint for the user when a server rejects the key."""
        if self.place is KeyLocation.ENVIRONMENT:
            return tr_noop(
                f"Correct {self.variable}; the environment takes precedence over saved keys"
            )
        if self.place is KeyLocation.SESSION:  # it was typed a moment ago, perhaps in that page
            return tr_noop("Check that it is complete, and that it belongs to this address")
        return tr_noop("Enter a valid key in Settings, Models")


class KeyStore:
    """Finds, saves and deletes keys; thread-safe. The keyring is asked once for each key.

    The `keyring` package is imported on first use (0.1 s and D-Bus). Its backends raise arbitrary
    exceptions; they are logged by type only, and the key then counts as not saved.
    """

    def __init__(
        self, environ: Mapping[str, str] | None = None, file: KeyFile | None = None
    ) -> None:
        """`file` is used where there is no keyring; the environment may hold its passphrase."""
        self._environ = environ if environ is not None else os.environ
        self._file = file
        self._known: dict[str, FoundKey | None] = {}
        self._is_usable: bool | None = None
        self._tried_environment = False
        self._lock = threading.Lock()

    def find(self, provider: str, origin: str, variable: str | None = None) -> FoundKey | None:
        """Return the key for a provider at an origin ("https://api.example.com"), None for none.

        `variable` names the environment variable that takes precedence over saved keys.
        """
        if variable and (text := self._environ.get(variable, "").strip()):
            return FoundKey(Secret(text), KeyLocation.ENVIRONMENT, variable)
        account = _account(provider, origin)
        with self._lock:
            if account not in self._known:
                saved = self._call("read from", lambda ring: ring.get_password(SERVICE, account))
                self._known[account] = (
                    FoundKey(Secret(saved), KeyLocation.KEYRING) if saved else None
                )
            if self._known[account] is None and self._file is not None and self._is_file_open():
                kept = self._file.find(account)
                self._known[account] = FoundKey(Secret(kept), KeyLocation.FILE) if kept else None
            return self._known[account]

    @property
    def storage(self) -> KeyStorage:
        """Where a key that is saved now would go. May block."""
        with self._lock:
            return self._storage()

    def is_locked(self, provider: str, origin: str) -> bool:
        """Return whether the key for a provider is in the key file, which needs its passphrase."""
        with self._lock:
            return (
                self._file is not None
                and not self._is_file_open()
                and _account(provider, origin) in self._file.accounts
            )

    def unlock(self, passphrase: str) -> None:
        """Open the key file, or begin one with the keys of this session. Takes 0.5 s.

        Raises InvalidInput for a wrong or too short passphrase, StorageError.
        """
        if self._file is None:
            return
        with self._lock:
            self._file.unlock(passphrase)
            for account, found in self._known.items():
                if found is not None and found.place is KeyLocation.SESSION:
                    self._file.save(account, found.secret.reveal())
                    self._known[account] = FoundKey(found.secret, KeyLocation.FILE)

    def save(self, provider: str, origin: str, key: str) -> KeyLocation:
        """Save a key and return where: in the keyring or the unlocked key file, else for this session.

        Raises InvalidInput for a text that cannot be a key, without quoting it, and StorageError.
        """
        secret = self.session_key(key).secret
        account = _account(provider, origin)

        def set_password(ring: Any) -> bool:
            ring.set_password(SERVICE, account, secret.reveal())
            return bool(ring.get_password(SERVICE, account) == secret.reveal())

        with self._lock:
            place = KeyLocation.SESSION
            if self._call("write to", set_password):
                place = KeyLocation.KEYRING
            elif self._is_file_open(begins=True) and self._file is not None:
                self._file.save(account, secret.reveal())
                place = KeyLocation.FILE
            self._known[account] = FoundKey(secret, place)
            return place

    @staticmethod
    def session_key(key: str) -> FoundKey:
        """Return a typed key; raise InvalidInput for a text that cannot be one, without quoting it."""
        secret = Secret(key.strip())
        if not secret.is_sendable:
            raise InvalidInput(
                "This is not an API key: keys consist of plain letters, digits and signs without spaces",
                "Copy the key again from the provider's page",
            )
        return FoundKey(secret, KeyLocation.SESSION)

    def forget(self, provider: str, origin: str) -> None:
        """Delete a saved key; keys in the environment are not changed."""
        account = _account(provider, origin)

        def delete_password(ring: Any) -> None:
            if ring.get_password(SERVICE, account) is not None:
                ring.delete_password(SERVICE, account)

        with self._lock:
            self._known[account] = None
            self._call("delete from", delete_password)
            if self._file is not None and self._file.is_unlocked:
                self._file.save(account, None)

    def _storage(self) -> KeyStorage:
        if self._call("look for", lambda _: True):
            return KeyStorage.KEYRING
        if self._is_file_open(begins=True):
            return KeyStorage.FILE
        is_locked = self._file is not None and self._file.exists
        return KeyStorage.LOCKED if is_locked else KeyStorage.SESSION

    def _is_file_open(self, *, begins: bool = False) -> bool:
        """Return whether the key file is open; the environment may have its passphrase.

        With `begins` a file that does not exist is begun. A wrong passphrase is tried once and logged.
        """
        if self._file is None or self._file.is_unlocked:
            return self._file is not None
        if self._tried_environment or not (begins or self._file.exists):
            return False
        self._tried_environment = True
        if passphrase := self._environ.get(KEY_FILE_VARIABLE, ""):
            try:
                self._file.unlock(passphrase)
            except KnownError as error:
                _log.warning("%s does not open the key file: %s", KEY_FILE_VARIABLE, error.title)
        return self._file.is_unlocked

    def _call(self, action: str, call: Callable[[Any], T]) -> T | None:
        """Return the result of a call with the `keyring` module; None without a usable keyring."""
        try:
            import keyring

            # Backends that save nothing (null, fail) have a priority of 0 or less, plain files below 1.
            if self._is_usable is None:
                self._is_usable = bool(keyring.get_keyring().priority >= 1)
            return call(keyring) if self._is_usable else None
        except Exception as error:  # noqa: BLE001 - see the class
            _log.warning("cannot %s the system keyring: %s", action, type(error).__name__)
            return None


def _account(provider: str, origin: str) -> str:
    return f"{provider} at {origin}"

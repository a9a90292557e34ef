"""API keys: the environment's first, then the system keyring's, else for this session only.

A key is saved for a provider's name *and* the origin of its base URL, so that a changed base URL
asks for it again. Keys are never in the database, in logs, exceptions or any repr. Calls may
block (a keyring that asks to be unlocked): not for the GUI thread.
"""

import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, Protocol

from app.domain.errors import InvalidInput

SERVICE = "commonplace"
_log = logging.getLogger(__name__)


class Secret:
    """A text that shows itself only when asked to."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself; do not keep it, do not print it."""
        return self._text

    @property
    def is_sendable(self) -> bool:
        """Whether it may stand in a header: printable ASCII without spaces."""
        return bool(self._text) and all("!" <= character <= "~" for character in self._text)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied into files")


class KeyPlace(StrEnum):
    """Where a key is kept."""

    ENVIRONMENT = "environment"
    KEYRING = "keyring"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key and where it came from; `variable` is the environment variable's name, if any."""

    secret: Secret
    place: KeyPlace
    variable: str = ""

    @property
    def place_text(self) -> str:
        """Where it came from, for people."""
        return {
            KeyPlace.ENVIRONMENT: self.variable,
            KeyPlace.KEYRING: "the keyring",
            KeyPlace.SESSION: "this session",
        }[self.place]

    @property
    def remedy(self) -> str:
        """What to do when a server does not accept it."""
        if self.place is KeyPlace.ENVIRONMENT:
            return f"Correct {self.variable}: the environment wins over what is saved"
        return "Enter a valid key in Settings, Models"


class Vault(Protocol):
    """A place that keeps secrets across sessions."""

    def usable(self) -> bool:
        """Whether anything can be kept here."""
        ...

    def get(self, account: str) -> str | None:
        """Return what was kept for the account, None if nothing was."""
        ...

    def put(self, account: str, text: str) -> bool:
        """Keep it; whether that worked."""
        ...

    def drop(self, account: str) -> None:
        """Forget it; nothing happens when nothing was kept."""
        ...


class SystemKeyring:
    """The desktop's keyring, through `keyring` (loaded on first use: 0.1 s, and D-Bus).

    Backends raise whatever their system does, with no common root; a failure is logged by its
    type alone and counts as "not kept".
    """

    def usable(self) -> bool:
        """Whether a real backend is there.

        Those that keep nothing (null, fail) have a priority of 0 and less, those that keep plain
        files one below 1: neither will do.
        """
        try:
            import keyring

            return bool(keyring.get_keyring().priority >= 1)
        except Exception as error:  # noqa: BLE001  see the class
            self._report("look for", error)
            return False

    def get(self, account: str) -> str | None:
        """Return what was kept for the account, None if nothing was or it cannot be read."""
        try:
            import keyring

            return keyring.get_password(SERVICE, account)
        except Exception as error:  # noqa: BLE001  see the class
            self._report("read from", error)
            return None

    def put(self, account: str, text: str) -> bool:
        """Keep it, and read it back to be sure."""
        try:
            import keyring

            keyring.set_password(SERVICE, account, text)
            return keyring.get_password(SERVICE, account) == text
        except Exception as error:  # noqa: BLE001  see the class
            self._report("write to", error)
            return False

    def drop(self, account: str) -> None:
        """Forget it."""
        try:
            import keyring

            if keyring.get_password(SERVICE, account) is not None:
                keyring.delete_password(SERVICE, account)
        except Exception as error:  # noqa: BLE001  see the class
            self._report("delete from", error)

    @staticmethod
    def _report(action: str, error: Exception) -> None:
        _log.warning("cannot %s the system keyring: %s", action, type(error).__name__)


class KeyStore:
    """Finds, saves and forgets keys. Thread-safe; what was found in the vault is remembered."""

    def __init__(
        self, vault: Vault | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._vault = vault if vault is not None else SystemKeyring()
        self._environ = environ if environ is not None else os.environ
        self._known: dict[str, FoundKey | None] = {}
        self._usable: bool | None = None
        self._lock = threading.Lock()

    def find(self, provider: str, origin: str, variable: str | None = None) -> FoundKey | None:
        """Return the key for a provider at an origin ("https://api.example.com"), None if there is none.

        `variable` names the environment variable that wins over everything saved.
        """
        if variable and (text := self._environ.get(variable, "").strip()):
            return FoundKey(Secret(text), KeyPlace.ENVIRONMENT, variable)
        account = _account(provider, origin)
        with self._lock:
            if account not in self._known:
                kept = self._vault.get(account) if self._is_usable() else None
                self._known[account] = FoundKey(Secret(kept), KeyPlace.KEYRING) if kept else None
            return self._known[account]

    def save(self, provider: str, origin: str, key: str) -> KeyPlace:
        """Keep a key and return where: in the keyring, or for this session where there is none.

        Raises InvalidInput for what cannot be a key, without quoting it.
        """
        secret = Secret(key.strip())
        if not secret.is_sendable:
            raise InvalidInput(
                "This is no API key: keys have no spaces and only plain letters, digits and signs",
                "Copy it again from the provider's page",
            )
        account = _account(provider, origin)
        with self._lock:
            kept = self._is_usable() and self._vault.put(account, secret.reveal())
            place = KeyPlace.KEYRING if kept else KeyPlace.SESSION
            self._known[account] = FoundKey(secret, place)
            return place

    def forget(self, provider: str, origin: str) -> None:
        """Remove a saved key; one from the environment stays where it is."""
        account = _account(provider, origin)
        with self._lock:
            self._known[account] = None
            if self._is_usable():
                self._vault.drop(account)

    def saves_to(self) -> KeyPlace:
        """Return where `save` would keep a key, so that the user can be told beforehand."""
        with self._lock:
            return KeyPlace.KEYRING if self._is_usable() else KeyPlace.SESSION

    def _is_usable(self) -> bool:
        if self._usable is None:
            self._usable = self._vault.usable()
        return self._usable


def _account(provider: str, origin: str) -> str:
    return f"{provider} at {origin}"

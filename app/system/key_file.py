"""The key file: API keys encrypted with a passphrase, for systems without a keyring.

JSON with the names of the keys in clear text and the keys encrypted with AES-256-GCM (NIST SP 800-38D),
which also authenticates the rest. The encryption key is derived by scrypt (RFC 7914) with the parameters of
OWASP's Password Storage Cheat Sheet: 128 MB of memory, some 0.5 s.
"""

import base64
import json
import os
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from app.domain.errors import InvalidInput, StorageError
from app.system.paths import fsync_file, fsync_folder

_VERSION = 1
_SCRYPT = {"n": 2**17, "r": 8, "p": 1}
_MOST_MEMORY_BYTES = 256 * 1024 * 1024  # for scrypt; a file that asks for more is damaged
_SALT_BYTES, _NONCE_BYTES, _KEY_BYTES = 16, 12, 32
MIN_PASSPHRASE_CHARS = 8


class KeyFile:
    """Keys by account in one encrypted file. Not thread-safe; deriving the key blocks for 0.5 s.

    Attributes:
        path: The file, readable by its owner only.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._salt = b""
        self._encryption_key = b""
        self._keys: dict[str, str] = {}

    @property
    def exists(self) -> bool:
        return self.path.exists()

    @property
    def is_unlocked(self) -> bool:
        """Whether its passphrase was given, so that keys can be read and saved."""
        return bool(self._encryption_key)

    @property
    def accounts(self) -> Collection[str]:
        """The accounts with a key, also while it is locked."""
        if self.is_unlocked:
            return self._keys
        try:
            return list(self._read()["accounts"]) if self.exists else ()
        except (StorageError, KeyError, TypeError):
            return ()

    def unlock(self, passphrase: str) -> None:
        """Open the file, or begin one that is written with its first key.

        Raises InvalidInput for a wrong or too short passphrase, StorageError for a damaged file.
        """
        if not self.exists:
            if len(passphrase) < MIN_PASSPHRASE_CHARS:
                raise InvalidInput(
                    "The passphrase is too short",
                    f"Choose one of at least {MIN_PASSPHRASE_CHARS} characters.",
                )
            self._salt = os.urandom(_SALT_BYTES)
            self._encryption_key = _derived(passphrase, self._salt, _SCRYPT)
            return
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        header = self._read()
        try:
            salt, nonce, box = (
                base64.b64decode(header[name], validate=True) for name in ("salt", "nonce", "keys")
            )
            derived = _derived(passphrase, salt, header["scrypt"])
            text = AESGCM(derived).decrypt(nonce, box, _authenticated(header))
            keys = json.loads(text)
        except InvalidTag as error:
            raise InvalidInput(
                "This is not the passphrase of the key file",
                f"Try again. If it is lost, delete '{self.path}' and enter the keys again.",
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged() from error
        self._salt, self._encryption_key, self._keys = salt, derived, keys

    def find(self, account: str) -> str | None:
        """Return the key of an account, None for none and while it is locked."""
        return self._keys.get(account)

    def save(self, account: str, key: str | None) -> None:
        """Save the key of an account, or (None) delete it; raises StorageError."""
        keys = {name: value for name, value in self._keys.items() if name != account}
        if key is not None:
            keys[account] = key
        self._write(keys)
        self._keys = keys

    def _write(self, keys: Mapping[str, str]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        header: dict[str, Any] = {
            "version": _VERSION,
            "scrypt": _SCRYPT,
            "salt": _encoded(self._salt),
            "accounts": sorted(keys),
        }
        box = AESGCM(self._encryption_key).encrypt(
            nonce, json.dumps(keys).encode(), _authenticated(header)
        )
        text = json.dumps({**header, "nonce": _encoded(nonce), "keys": _encoded(box)}, indent=1)
        try:
            # A temporary file is readable by its owner only.
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", prefix=self.path.name, dir=self.path.parent, delete=False
            ) as file:
                file.write(text)
                file.flush()
                fsync_file(file.fileno())
            Path(file.name).replace(self.path)
            fsync_folder(self.path.parent)
        except OSError as error:
            raise StorageError(
                f"The key file '{self.path}' cannot be written: {error.strerror}"
            ) from error

    def _read(self) -> dict[str, Any]:
        try:
            header = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise self._damaged() from error
        if not isinstance(header, dict) or header.get("version") != _VERSION:
            raise self._damaged()
        return header

    def _damaged(self) -> StorageError:
        return StorageError(
            f"The key file '{self.path}' cannot be read", "Delete it and enter the keys again."
        )


def _derived(passphrase: str, salt: bytes, parameters: Mapping[str, Any]) -> bytes:
    """Return the encryption key; raise ValueError for parameters that take too much memory."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    n, r, p = (int(parameters[name]) for name in ("n", "r", "p"))
    if 128 * n * r * p > _MOST_MEMORY_BYTES:
        raise ValueError("too much memory")
    return bytes(Scrypt(salt, _KEY_BYTES, n, r, p).derive(passphrase.encode()))


def _authenticated(header: Mapping[str, Any]) -> bytes:
    """Return the part of a file in clear text as the bytes that its encryption authenticates."""
    known = {name: header[name] for name in ("version", "scrypt", "salt", "accounts")}
    return json.dumps(known, sort_keys=True).encode()


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()

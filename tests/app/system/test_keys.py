"""API keys: precedence, where they are saved, and that they are never shown."""

import copy
import json
import logging
import pickle
import stat
import threading
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

from app.domain.errors import InvalidInput, StorageError
from app.system.key_file import KeyFile
from app.system.keys import KEY_FILE_VARIABLE, FoundKey, KeyLocation, KeyStorage, KeyStore, Secret

CANARY = "sk-canary-0123456789"
PASSPHRASE = "correct horse battery"
ORIGIN = "https://api.example.com"
ACCOUNT = ("commonplace", f"p at {ORIGIN}")


class Backend(KeyringBackend):
    """A keyring in memory that counts reads and can fail or discard."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.saved: dict[tuple[str, str], str] = {}
        self.reads = 0
        self.failure: Exception | None = None
        self.discards = False

    def get_password(self, service: str, username: str) -> str | None:
        self.reads += 1
        if self.failure:
            raise self.failure
        return self.saved.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.failure:
            raise self.failure
        if not self.discards:
            self.saved[(service, username)] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.saved[(service, username)]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    made = Backend()
    monkeypatch.setattr(keyring.core, "_keyring_backend", made)
    return made


def reveal(found: FoundKey | None) -> str | None:
    return None if found is None else found.secret.reveal()


def storage_of(store: KeyStore) -> KeyStorage:
    return store.storage


@pytest.mark.usefixtures("backend")
def test_the_environment_takes_precedence() -> None:
    store = KeyStore({"MY_KEY": f" {CANARY}\n", "EMPTY": "  "})
    store.save("p", ORIGIN, "sk-other")
    found = store.find("p", ORIGIN, "MY_KEY")
    assert (reveal(found), found.location_text) == (CANARY, "MY_KEY")
    assert "MY_KEY" in found.remedy
    for variable in ("OTHER_KEY", "EMPTY", None):
        assert reveal(store.find("p", ORIGIN, variable)) == "sk-other"


def test_a_key_belongs_to_a_provider_at_an_origin(backend: Backend) -> None:
    assert KeyStore({}).save("p", ORIGIN, CANARY) is KeyLocation.KEYRING
    assert backend.saved == {ACCOUNT: CANARY}
    again = KeyStore({})
    found = again.find("p", ORIGIN)
    assert (reveal(found), found.location_text) == (CANARY, "the keyring")
    assert "MY_KEY" not in found.remedy
    for other in (("q", ORIGIN), ("p", "https://evil.example"), ("p", "http://api.example.com")):
        assert again.find(*other) is None
    for _ in range(2):
        again.forget("p", ORIGIN)
        assert backend.saved == {}
        assert again.find("p", ORIGIN) is None


def test_the_keyring_is_read_once_for_a_key_by_all_threads(backend: Backend) -> None:
    backend.saved[ACCOUNT] = CANARY
    store = KeyStore({})
    found: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: found.append(reveal(store.find("p", ORIGIN))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [CANARY] * 8
    assert backend.reads == 1


@pytest.mark.parametrize("unusable", ["none", "plain files", "discards"])
def test_without_a_usable_keyring_a_key_lasts_for_the_session(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, unusable: str
) -> None:
    if unusable != "none":  # tests/conftest.py has selected keyring's null backend
        backend = request.getfixturevalue("backend")
        backend.discards = unusable == "discards"
        monkeypatch.setattr(Backend, "priority", 5.0 if backend.discards else 0.5)
    store = KeyStore({})
    assert store.save("p", ORIGIN, CANARY) is KeyLocation.SESSION
    found = store.find("p", ORIGIN)
    assert (reveal(found), found.location_text) == (CANARY, "this session")
    assert KeyStore({}).find("p", ORIGIN) is None


def test_a_failure_s_log_has_no_key(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    backend.failure = RuntimeError(f"D-Bus says no to {CANARY}")
    store = KeyStore({})
    assert store.find("p", ORIGIN) is None
    assert store.save("p", ORIGIN, CANARY) is KeyLocation.SESSION
    assert "cannot write to the system keyring: RuntimeError" in caplog.text
    assert CANARY not in caplog.text + str([record.__dict__ for record in caplog.records])


def test_without_a_keyring_keys_are_in_a_file_that_a_passphrase_opens(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    store = KeyStore({}, KeyFile(path))
    assert storage_of(store) is KeyStorage.SESSION
    assert store.save("p", ORIGIN, CANARY) is KeyLocation.SESSION
    with pytest.raises(InvalidInput):
        store.unlock("short")
    assert not path.exists()
    store.unlock(PASSPHRASE)
    assert storage_of(store) is KeyStorage.FILE
    assert store.save("q", ORIGIN, "sk-q") is KeyLocation.FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any(secret in path.read_text("utf-8") for secret in (CANARY, "sk-q", PASSPHRASE))

    again = KeyStore({}, KeyFile(path))
    assert (again.storage, again.find("p", ORIGIN)) == (KeyStorage.LOCKED, None)
    assert again.is_locked("p", ORIGIN)
    assert not again.is_locked("p", "https://evil.example")
    with pytest.raises(InvalidInput) as caught:
        again.unlock(f"{PASSPHRASE}!")
    assert PASSPHRASE not in str(caught.value)
    assert again.save("r", ORIGIN, "sk-r") is KeyLocation.SESSION
    again.unlock(PASSPHRASE)
    found = again.find("p", ORIGIN)
    assert (reveal(found), found.location_text) == (CANARY, "the key file")
    assert not again.is_locked("p", ORIGIN)
    again.forget("q", ORIGIN)
    last = KeyStore({KEY_FILE_VARIABLE: PASSPHRASE}, KeyFile(path))
    names = {"p": CANARY, "q": None, "r": "sk-r"}
    assert {name: reveal(last.find(name, ORIGIN)) for name in names} == names


@pytest.mark.parametrize("part", ["accounts", "scrypt", "salt", "nonce", "keys", "version", ""])
def test_a_changed_key_file_is_not_believed(tmp_path: Path, part: str) -> None:
    path = tmp_path / "keys.json"
    file = KeyFile(path)
    file.unlock(PASSPHRASE)
    file.save("p", CANARY)
    changed = json.loads(path.read_text("utf-8"))
    changed[part] = {
        "accounts": ["p", "q"], "scrypt": {"n": 2**30, "r": 8, "p": 1}, "version": 2,
    }.get(part, "AAAA")  # fmt: skip
    path.write_text(json.dumps(changed) if part else "{", "utf-8")
    with pytest.raises((InvalidInput, StorageError)):
        KeyFile(path).unlock(PASSPHRASE)
    assert KeyStore({KEY_FILE_VARIABLE: PASSPHRASE}, KeyFile(path)).find("p", ORIGIN) is None


@pytest.mark.usefixtures("backend")
def test_with_a_keyring_no_key_file_is_written(tmp_path: Path) -> None:
    store = KeyStore({KEY_FILE_VARIABLE: PASSPHRASE}, KeyFile(tmp_path / "keys.json"))
    assert (store.storage, store.save("p", ORIGIN, CANARY)) == (
        KeyStorage.KEYRING, KeyLocation.KEYRING,
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("typed", ["", "  ", "two words", f"{CANARY}\nX: 1", "schlüssel", "a\x00b"])
def test_an_invalid_key_is_refused_and_not_quoted(typed: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        KeyStore({}).save("p", ORIGIN, typed)
    assert CANARY not in str(caught.value)


def test_a_secret_is_hidden_and_cannot_be_copied() -> None:
    secret = Secret(CANARY)
    found = FoundKey(secret, KeyLocation.KEYRING)
    store = KeyStore({"MY_KEY": CANARY})
    store.save("p", ORIGIN, CANARY)
    shown = f"{secret} {secret!r} {found} {found!r} {store!r} {vars(store)['_known']!r} {[secret]}"
    assert CANARY not in shown
    assert secret.reveal() == CANARY
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            copying(secret)

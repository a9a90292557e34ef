"""Keys: who wins, where they are kept, and that they show themselves nowhere."""

import copy
import logging
import pickle
import threading

import keyring
import pytest
from keyring.backend import KeyringBackend

from app.domain.errors import InvalidInput
from app.system.keys import FoundKey, KeyPlace, KeyStore, Secret, SystemKeyring

CANARY = "sk-canary-0123456789"
ORIGIN = "https://api.example.com"


class MemoryVault:
    """A vault in memory that counts how often it is opened."""

    def __init__(self, *, broken: bool = False) -> None:
        self.kept: dict[str, str] = {}
        self.reads = 0
        self._broken = broken

    def usable(self) -> bool:
        return True

    def get(self, account: str) -> str | None:
        self.reads += 1
        return self.kept.get(account)

    def put(self, account: str, text: str) -> bool:
        if not self._broken:
            self.kept[account] = text
        return not self._broken

    def drop(self, account: str) -> None:
        self.kept.pop(account, None)


def reveal(found: FoundKey | None) -> str | None:
    return None if found is None else found.secret.reveal()


def test_the_environment_wins_and_is_named() -> None:
    store = KeyStore(MemoryVault(), {"MY_KEY": f" {CANARY}\n"})
    store.save("p", ORIGIN, "sk-other")
    found = store.find("p", ORIGIN, "MY_KEY")
    assert found is not None
    assert (found.secret.reveal(), found.place_text) == (CANARY, "MY_KEY")
    assert reveal(store.find("p", ORIGIN, "OTHER_KEY")) == "sk-other"
    assert reveal(store.find("p", ORIGIN)) == "sk-other"


def test_an_empty_variable_counts_as_none() -> None:
    assert KeyStore(MemoryVault(), {"MY_KEY": "  "}).find("p", ORIGIN, "MY_KEY") is None


def test_a_key_belongs_to_a_provider_at_an_origin() -> None:
    vault = MemoryVault()
    KeyStore(vault, {}).save("p", ORIGIN, CANARY)
    again = KeyStore(vault, {})
    assert reveal(again.find("p", ORIGIN)) == CANARY
    assert again.find("q", ORIGIN) is None
    assert again.find("p", "https://evil.example") is None
    assert again.find("p", "http://api.example.com") is None


def test_the_vault_is_opened_once_for_a_key() -> None:
    vault = MemoryVault()
    store = KeyStore(vault, {})
    for _ in range(3):
        assert store.find("p", ORIGIN) is None
    assert vault.reads == 1
    store.save("p", ORIGIN, CANARY)
    assert reveal(store.find("p", ORIGIN)) == CANARY
    assert vault.reads == 1


def test_a_key_that_cannot_be_kept_lasts_for_the_session() -> None:
    store = KeyStore(MemoryVault(broken=True), {})
    assert store.save("p", ORIGIN, CANARY) is KeyPlace.SESSION
    found = store.find("p", ORIGIN)
    assert found is not None
    assert found.place_text == "this session"


def test_forgetting_removes_it_everywhere_but_from_the_environment() -> None:
    vault = MemoryVault()
    store = KeyStore(vault, {"MY_KEY": CANARY})
    store.save("p", ORIGIN, "sk-other")
    store.forget("p", ORIGIN)
    assert vault.kept == {}
    assert store.find("p", ORIGIN) is None
    assert reveal(store.find("p", ORIGIN, "MY_KEY")) == CANARY


@pytest.mark.parametrize("typed", ["", "  ", "two words", f"{CANARY}\nX: 1", "schlüssel", "a\x00b"])
def test_what_cannot_be_a_key_is_refused_unquoted(typed: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        KeyStore(MemoryVault(), {}).save("p", ORIGIN, typed)
    assert CANARY not in str(caught.value)


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret(CANARY)
    found = FoundKey(secret, KeyPlace.KEYRING)
    store = KeyStore(MemoryVault(), {"MY_KEY": CANARY})
    store.save("p", ORIGIN, CANARY)
    shown = f"{secret} {secret!r} {found} {found!r} {store!r} {vars(store)['_known']!r} {[secret]}"
    assert CANARY not in shown
    assert secret.reveal() == CANARY
    for careless in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            careless(secret)


class Backend(KeyringBackend):
    """A keyring backend with a priority and a temper."""

    priority = 5.0

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.failure = failure
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        if self.failure:
            raise self.failure
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.failure:
            raise self.failure
        self.kept[(service, username)] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[(service, username)]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    made = Backend()
    monkeypatch.setattr(keyring.core, "_keyring_backend", made)
    return made


def test_the_system_keyring_keeps_and_forgets(backend: Backend) -> None:
    store = KeyStore(SystemKeyring(), {})
    assert store.saves_to() is KeyPlace.KEYRING
    assert store.save("p", ORIGIN, CANARY) is KeyPlace.KEYRING
    assert backend.kept == {("commonplace", f"p at {ORIGIN}"): CANARY}
    assert reveal(KeyStore(SystemKeyring(), {}).find("p", ORIGIN)) == CANARY
    store.forget("p", ORIGIN)
    store.forget("p", ORIGIN)
    assert backend.kept == {}


def test_a_keyring_that_keeps_nothing_is_no_keyring() -> None:
    # tests/conftest.py has chosen keyring's null backend
    store = KeyStore(SystemKeyring(), {})
    assert store.saves_to() is KeyPlace.SESSION
    assert store.save("p", ORIGIN, CANARY) is KeyPlace.SESSION


def test_a_keyring_of_plain_files_is_not_good_enough(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backend, "priority", 0.5)
    assert KeyStore(SystemKeyring(), {}).saves_to() is KeyPlace.SESSION


def test_a_keyring_that_fails_is_reported_without_the_key(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    backend.failure = RuntimeError(f"D-Bus says no to {CANARY}")
    store = KeyStore(SystemKeyring(), {})
    assert store.find("p", ORIGIN) is None
    assert store.save("p", ORIGIN, CANARY) is KeyPlace.SESSION
    assert "cannot write to the system keyring: RuntimeError" in caplog.text
    assert CANARY not in caplog.text + str([record.__dict__ for record in caplog.records])


def test_many_threads_find_the_same_key() -> None:
    vault = MemoryVault()
    vault.kept[f"p at {ORIGIN}"] = CANARY
    store = KeyStore(vault, {})
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
    assert vault.reads == 1

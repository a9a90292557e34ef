"""What screens are told of providers: where the key comes from, and whether it can be removed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat.models import ModelDirectory
from app.storage.settings import Settings
from app.storage.store import Store
from app.system.keys import KeyStore
from tests.app.test_provider_registry import NoVault
from tests.fakes.stored import opened


def states(store: Store, environ: dict[str, str]) -> dict[str, tuple[str, bool]]:
    keys = KeyStore(NoVault(), environ)
    models = ModelDirectory(Settings(store), keys, lambda *_: ())
    models.save_key("anthropic", "sk-mine")
    return {each.config.name: (each.key_from, each.has_saved_key) for each in models.providers()}


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as store:
        yield store


def test_only_a_saved_key_can_be_removed_not_the_environments(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    known = states(store, {"OPENAI_API_KEY": "sk-theirs"})
    assert known["openai"] == ("OPENAI_API_KEY", False)
    assert known["anthropic"] == ("this session", True)

"""Embedder selection: the active and the answering one, consent and estimates."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.bootstrap import RunMode, build
from app.cli import entry
from app.cli.terminal import Terminal
from app.domain.chat import StoredProvider
from app.domain.errors import EmbedderUnavailable, InvalidSetting, KnownError, TimedOut
from app.domain.passages import Space
from app.domain.ports import Embedder
from app.domain.settings_schema import setting_for
from app.memory.search.embedders import BUILT_IN, MULTILINGUAL, EmbedderChoice, EmbedderDirectory
from app.providers.embedders.local import LocalEmbedder
from app.providers.embedders.remote import RemoteEmbedder
from app.providers.registry import provider_registry
from app.storage.tables.settings import Settings
from app.system.keys import KeyStore
from tests.fakes.command_line import CommandLine
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import stall
from tests.fakes.stored import add_conversation, made, opened

SHIPPED = Path(__file__).resolve().parents[4] / "resources/models/all-MiniLM-L6-v2"
OPENAI = "openai:text-embedding-3-small"
LOCAL = "local:nomic-embed-text"
FAR = "far:e5-embed"
MINI_LM = "all_minilm_l6_v2"


@dataclass(frozen=True)
class Desk:
    """Settings of a store, and the directory over them."""

    settings: Settings
    embedders: EmbedderDirectory

    def choose(self, embedder: str, before: str | None = None) -> None:
        self.settings.set("embedder", embedder)
        if before is not None:
            self.settings.set("embedder_before", before)

    def put(self, name: str, url: str, key_env: str | None = None) -> None:
        self.settings.put_provider(StoredProvider(name, "compatible", url, key_env))

    def answering(self, **shares: float) -> str:
        """Return the name of the space that answers, given coverages by the beginning of a name."""
        return name_of(self.embedders.answering(covering(**shares)))

    def unavailable(self) -> EmbedderUnavailable:
        with pytest.raises(EmbedderUnavailable) as refusal:
            self.embedders.active()
        assert refusal.value.hint
        return refusal.value


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.models = ["chat-model", "nomic-embed-text"]
        yield running


@pytest.fixture
def desk(data_dir: Path, server: Loopback) -> Iterator[Desk]:
    with opened(data_dir) as store:
        settings = Settings(store)
        registry = provider_registry(settings, KeyStore())
        embedders = EmbedderDirectory(settings, registry, query_limit_s=30.0, decision_s=0.0)
        desk = Desk(settings, embedders)
        desk.put("local", server.v1)
        desk.put("far", "https://far.example/v1")
        yield desk
        embedders.close()


def covering(**shares: float) -> Callable[[Space], float]:
    """Return coverages by the beginning of a space's name; other spaces are empty."""
    return lambda space: next(
        (share for name, share in shares.items() if space.name.startswith(name)), 0.0
    )


def never(_: Space) -> float:
    raise AssertionError("the coverage is not needed")


def name_of(embedder: Embedder) -> str:
    return embedder.space.name


# -- the setting
@pytest.mark.parametrize(
    "value",
    ["builtin", MULTILINGUAL, "onnx:/models/e5", "onnx:C:\\Models\\é 1", OPENAI,
     "my-server:org/model:latest"],
)  # fmt: skip
def test_the_setting_takes_embedders(value: str) -> None:
    assert setting_for("embedder").parse(value) == value


@pytest.mark.parametrize(
    "value",
    ["", "none", "built in", "onnx:", "onnx:/a\0b", "openai:", "openai", ":model", "OpenAI:model",
     "openai:a model", "builtin:", "builtin:x", " builtin", "openai:m\n", "openai:\ud800"],
)  # fmt: skip
def test_the_setting_takes_nothing_else_and_names_the_forms(value: str) -> None:
    with pytest.raises(InvalidSetting, match="onnx:FOLDER, or PROVIDER:MODEL"):
        setting_for("embedder").parse(value)


# -- the active embedder
def test_the_built_in_one_is_the_default_and_made_once(desk: Desk) -> None:
    embedder = desk.embedders.active()
    assert isinstance(embedder, LocalEmbedder)
    assert embedder.space.name == MINI_LM
    assert desk.embedders.active() is embedder
    assert desk.embedders.answering(never) is embedder
    assert not desk.embedders.is_remote
    assert desk.embedders.describe() == "all-MiniLM-L6-v2, built in"


def test_an_onnx_folder_is_an_embedder(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "my model"
    shutil.copytree(SHIPPED, folder)
    desk.choose(f"onnx:{folder}")
    assert name_of(desk.embedders.active()) == MINI_LM
    assert str(folder) in desk.embedders.describe()


@pytest.mark.parametrize(
    ("value", "words"),
    [("onnx:/no/such/folder", "no usable embedding model"),
     ("onnx:models/mine", "does not have the full path"),
     ("onnx:~nobody-of-that-name/models", "full path"),
     ("nowhere:model", "There is no provider “nowhere”"),
     ("anthropic:model", "anthropic has no embedding models"), ("plain:model", "unencrypted")],
)  # fmt: skip
def test_an_unusable_choice_is_named_with_the_reason(desk: Desk, value: str, words: str) -> None:
    desk.put("plain", "http://far.example/v1")
    desk.choose(value)
    assert words in desk.unavailable().title


def test_a_local_server_needs_no_consent_and_has_a_rate_limit(desk: Desk, server: Loopback) -> None:
    desk.choose(LOCAL)
    embedder = desk.embedders.active()
    assert isinstance(embedder, RemoteEmbedder)
    assert embedder.embed(["a"]).shape == (1, 8)
    assert desk.embedders.active() is embedder
    assert desk.embedders.is_remote
    assert desk.embedders.describe() == "nomic-embed-text at local"
    assert server.posts[0].body["model"] == "nomic-embed-text"
    desk.settings.set("embedding_requests_per_minute", 1)
    with pytest.raises(KnownError, match="1 requests a minute"):
        desk.embedders.answering(covering(nomic=1.0)).embed(["second"])


def test_a_provider_that_moved_is_a_new_embedder_and_the_old_one_loses_the_key(
    desk: Desk, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine")
    desk.put("local", server.v1, "MY_KEY")
    desk.choose(LOCAL)
    embedder = desk.embedders.active()
    embedder.embed(["a"])
    desk.put("local", f"{server.url}/v2", "MY_KEY")
    assert desk.embedders.active() is not embedder
    embedder.embed(["b"])
    assert [seen.headers.get("authorization") for seen in server.posts] == ["Bearer sk-mine", None]


# -- consent and estimates
def test_consent_is_to_one_model_at_one_place(desk: Desk) -> None:
    desk.choose(FAR)
    refusal = desk.unavailable()
    assert "https://far.example/v1" in refusal.title
    assert f"config set embedder {FAR} --yes" in refusal.hint
    desk.embedders.choose(FAR, agreed=True)
    assert isinstance(desk.embedders.active(), RemoteEmbedder)
    desk.embedders.choose(OPENAI, agreed=True)
    assert isinstance(desk.embedders.active(), RemoteEmbedder)
    desk.choose("far:other-embed")
    desk.unavailable()
    desk.choose(FAR)
    assert isinstance(desk.embedders.active(), RemoteEmbedder)
    desk.put("far", "https://further.example")
    assert "further.example" in desk.unavailable().title


def test_an_invalid_choice_is_neither_set_nor_agreed_to(desk: Desk) -> None:
    for agreed in (True, False):
        with pytest.raises(InvalidSetting):
            desk.embedders.choose("far:", agreed=agreed)
    assert desk.settings.get("embedder") == BUILT_IN
    assert desk.settings.get("embedder_consent") == ""


def test_an_estimate_has_time_price_and_place(desk: Desk) -> None:
    estimate = desk.embedders.estimate(10_000, 5_000_000, OPENAI)
    assert estimate.cost_usd == pytest.approx(0.10)
    assert estimate.minutes == pytest.approx(5.0)
    assert (estimate.sent_to, estimate.needs_consent) == ("https://api.openai.com/v1", True)
    desk.settings.set("embedding_requests_per_minute", 10)
    assert desk.embedders.estimate(10_000, 5_000_000, OPENAI).minutes == pytest.approx(20.0)
    for choice in (BUILT_IN, LOCAL):
        estimate = desk.embedders.estimate(100, 15_000, choice)
        assert (estimate.sent_to, estimate.cost_usd, estimate.needs_consent) == ("", 0.0, False)
        assert estimate.minutes > 0
    with pytest.raises(EmbedderUnavailable):
        desk.embedders.estimate(1, 1, "nowhere:model")


def test_choices_are_built_in_openais_and_those_of_servers(desk: Desk, server: Loopback) -> None:
    desk.settings.remove_provider("far")
    desk.put("gone", "http://127.0.0.1:9/v1")
    desk.put("odd", "no base URL")
    large = "text-embedding-3-large"
    assert desk.embedders.choices() == (
        EmbedderChoice("builtin", "all-MiniLM-L6-v2, built in", leaves_machine=False),
        EmbedderChoice(MULTILINGUAL, "multilingual-e5-small, built in", leaves_machine=False),
        EmbedderChoice(OPENAI, "text-embedding-3-small at openai", leaves_machine=True),
        EmbedderChoice(f"openai:{large}", f"{large} at openai", leaves_machine=True),
        EmbedderChoice(LOCAL, "nomic-embed-text at local", leaves_machine=False),
    )
    assert [seen.path for seen in server.requests] == ["/v1/models"]


def test_the_multilingual_embedder_is_local_and_free(desk: Desk) -> None:
    desk.choose(MULTILINGUAL)
    assert name_of(desk.embedders.active()) == "multilingual_e5_small"
    assert not desk.embedders.is_remote
    estimate = desk.embedders.estimate(10, 1000)
    assert (estimate.cost_usd, estimate.sent_to, estimate.needs_consent) == (0.0, "", False)


# -- the answering embedder
def test_the_space_before_answers_until_the_new_one_covers_as_much(desk: Desk) -> None:
    desk.choose(LOCAL)
    for share in (0.0, 0.5, 0.94):
        assert desk.answering(all_minilm=1.0, nomic=share) == MINI_LM
    assert desk.settings.get("embedder_before") == BUILT_IN
    answering = desk.embedders.answering(covering(all_minilm=1.0, nomic=0.95))
    assert name_of(answering).startswith("nomic_embed_text_")
    assert isinstance(answering, RemoteEmbedder)
    assert answering.limit_s == 30.0
    assert desk.settings.get("embedder_before") == LOCAL
    assert name_of(desk.embedders.answering(never)) == name_of(answering)


@pytest.mark.parametrize(
    ("choices", "shares", "answering"),
    [([LOCAL], {"all_minilm": 0.2, "nomic": 0.2}, "nomic_embed_text_"),
     ([LOCAL, "local:other-embed"], {"all_minilm": 1.0, "nomic": 0.3, "other": 0.1}, MINI_LM),
     ([FAR], {"all_minilm": 1.0}, MINI_LM), (["nowhere:model"], {"all_minilm": 1.0}, MINI_LM),
     (["onnx:/no/such/folder"], {"all_minilm": 1.0}, MINI_LM)],
    ids=["as poor", "second change", "no consent", "no provider", "no folder"],
)  # fmt: skip
def test_the_space_that_covers_most_of_those_usable_answers(
    desk: Desk, choices: list[str], shares: dict[str, float], answering: str
) -> None:
    for choice in choices:
        desk.choose(choice)
        found = desk.answering(**shares)
    assert found.startswith(answering)


@pytest.mark.parametrize(
    ("before", "kept"), [("nowhere:model", BUILT_IN), ("off:model", "off:model")]
)
def test_the_new_space_answers_when_the_old_one_cannot(desk: Desk, before: str, kept: str) -> None:
    desk.put("off", "http://127.0.0.1:9/v1")
    desk.choose(BUILT_IN, before)
    assert desk.answering(all_minilm=0.1) == MINI_LM
    assert desk.settings.get("embedder_before") == kept


def test_when_neither_can_answer_the_reason_is_the_new_ones(desk: Desk) -> None:
    desk.choose("nowhere:model", before="lost:model")
    with pytest.raises(EmbedderUnavailable, match="nowhere"):
        desk.embedders.answering(never)


def test_coverage_is_cached_and_hanging_servers_given_up(desk: Desk, server: Loopback) -> None:
    registry = provider_registry(desk.settings, KeyStore())
    patient = EmbedderDirectory(desk.settings, registry, query_limit_s=0.2, decision_s=3600.0)
    try:
        desk.choose("local:unknown")
        assert name_of(patient.answering(covering(all_minilm=1.0))) == MINI_LM
        assert name_of(patient.answering(never)) == MINI_LM
        desk.choose(LOCAL, before=LOCAL)
        server.always(stall(before_headers=True))
        with pytest.raises(TimedOut):
            patient.answering(never).embed(["where?"])
    finally:
        patient.close()


# -- config set embedder
@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    made(data_dir)
    with opened(data_dir) as store:
        add_conversation(store, "How do I keep basil alive?", "And mint?")
    return CommandLine(data_dir, capsys)


def test_a_cloud_embedder_is_set_after_a_yes_which_is_remembered(cli: CommandLine) -> None:
    ran = cli("config", "set", "embedder", OPENAI)
    assert ran.code == 1
    for words in ("2 passages", "https://api.openai.com/v1 for about $0.01", "--yes"):
        assert words in ran.err
    for value in ("nowhere:model", "onnx:/no/such/folder", "some words"):
        refused = cli("config", "set", "embedder", value)
        assert (refused.code, len(refused.err.splitlines())) == (1, 1)
    assert cli.json("config", "get", "embedder")["value"] == BUILT_IN
    agreed = cli.json("config", "set", "embedder", OPENAI, "--yes")
    assert agreed == {"key": "embedder", "value": OPENAI}
    assert "api.openai.com" not in cli.done("config", "set", "embedder", OPENAI).err


@pytest.mark.parametrize(
    ("typed", "value"), [("yes\n", OPENAI), ("no\n", BUILT_IN), ("", BUILT_IN)]
)
def test_a_user_may_type_yes(cli: CommandLine, data_dir: Path, typed: str, value: str) -> None:
    output: list[str] = []
    terminal = Terminal(
        output.append, output.append, lambda: typed, Path.cwd(), lambda: False, is_watched=True
    )
    services = build(made(data_dir), RunMode.COMMAND_LINE)
    try:
        entry.execute(services, ["config", "set", "embedder", OPENAI], terminal)
    finally:
        services.close()
    assert "Type yes" in "".join(output)
    assert cli.json("config", "get", "embedder")["value"] == value

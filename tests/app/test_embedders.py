"""Which embedder is active and which one answers, what leaves the machine, and who agreed to it."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.bootstrap import Role, build
from app.cli import entry
from app.cli.terminal import Terminal
from app.domain.errors import EmbedderUnavailable, InvalidSetting, KnownError
from app.domain.passages import Space
from app.domain.ports import Embedder
from app.domain.provider_errors import TimedOut
from app.domain.settings_schema import setting_for
from app.memory.embedders import (
    BUILT_IN,
    EmbedderChoice,
    EmbedderDirectory,
    amount_to_embed,
    provider_registry,
)
from app.providers.local_embedder import LocalEmbedder
from app.providers.remote_embedder import QuestionEmbedder, RemoteEmbedder
from app.storage.settings import ProviderRow, Settings
from app.storage.store import Store
from app.system.keys import KeyStore
from app.system.paths import DataPaths
from tests.fakes.command_line import CommandLine
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import stall
from tests.fakes.stored import made, opened, told

SHIPPED = Path(__file__).resolve().parents[2] / "resources/models/all-MiniLM-L6-v2"
OPENAI = "openai:text-embedding-3-small"
LOCAL = "local:nomic-embed-text"
FAR = "far:e5-embed"


@dataclass(frozen=True)
class Desk:
    """Settings of a store, and the directory over them."""

    store: Store
    settings: Settings
    embedders: EmbedderDirectory

    def active_fails(self) -> EmbedderUnavailable:
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
        settings.put_provider(ProviderRow("local", "compatible", server.v1, None))
        settings.put_provider(ProviderRow("far", "compatible", "https://far.example/v1", None))
        registry = provider_registry(settings, KeyStore())
        embedders = EmbedderDirectory(settings, registry, question_limit_s=30.0, decision_s=0.0)
        yield Desk(store, settings, embedders)
        embedders.close()


def covering(**shares: float) -> Callable[[Space], float]:
    """Return coverages by the beginning of a space's name; other spaces are empty."""
    return lambda space: next(
        (share for name, share in shares.items() if space.name.startswith(name)), 0.0
    )


def never(_: Space) -> float:
    raise AssertionError("nobody should ask")


def name_of(embedder: Embedder) -> str:
    return embedder.space.name


# -- the setting


@pytest.mark.parametrize(
    "value",
    ["builtin", "onnx:/models/e5", "onnx:C:\\Models\\é 1", OPENAI, "my-server:org/model:latest"],
)
def test_what_can_be_an_embedder_is_taken(value: str) -> None:
    assert setting_for("embedder").parse(value) == value


@pytest.mark.parametrize(
    "value",
    ["", "none", "built in", "onnx:", "onnx:/a\0b", "openai:", "openai", ":model", "OpenAI:model",
     "openai:a model", "builtin:", "builtin:x", " builtin", "openai:m\n", "openai:\ud800"],
)  # fmt: skip
def test_what_cannot_be_one_is_refused_with_the_forms_there_are(value: str) -> None:
    with pytest.raises(InvalidSetting, match="onnx:FOLDER, or PROVIDER:MODEL"):
        setting_for("embedder").parse(value)


# -- active


def test_the_built_in_one_is_the_default_and_made_once(desk: Desk) -> None:
    embedder = desk.embedders.active()
    assert isinstance(embedder, LocalEmbedder)
    assert embedder.space.name == "all_minilm_l6_v2"
    assert desk.embedders.active() is embedder
    assert not desk.embedders.is_remote
    assert desk.embedders.describe() == "all-MiniLM-L6-v2, built in"


def test_an_onnx_folder_is_an_embedder(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "my model"
    shutil.copytree(SHIPPED, folder)
    desk.settings.set("embedder", f"onnx:{folder}")
    assert name_of(desk.embedders.active()) == "all_minilm_l6_v2"
    assert str(folder) in desk.embedders.describe()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("onnx:/no/such/folder", "no usable embedding model"),
        ("onnx:models/mine", "does not name the whole path"),
        ("onnx:~nobody-of-that-name/models", "whole path"),
        ("nowhere:model", "There is no provider 'nowhere'"),
        ("anthropic:model", "anthropic has no embedding models"),
        ("plain:model", "unencrypted"),
    ],
)
def test_a_choice_that_names_nothing_usable_says_what_and_what_next(
    desk: Desk, value: str, words: str
) -> None:
    desk.settings.put_provider(ProviderRow("plain", "compatible", "http://far.example/v1", None))
    desk.settings.set("embedder", value)
    assert words in desk.active_fails().title


def test_a_server_on_this_machine_needs_no_consent(desk: Desk, server: Loopback) -> None:
    desk.settings.set("embedder", LOCAL)
    embedder = desk.embedders.active()
    assert isinstance(embedder, RemoteEmbedder)
    assert embedder.embed(["a"]).shape == (1, 8)
    assert desk.embedders.active() is embedder
    assert desk.embedders.is_remote
    assert desk.embedders.describe() == "nomic-embed-text at local"
    assert server.posts[0].body["model"] == "nomic-embed-text"


def test_a_provider_that_moved_is_a_new_embedder(desk: Desk, server: Loopback) -> None:
    desk.settings.set("embedder", LOCAL)
    first = desk.embedders.active()
    desk.settings.put_provider(ProviderRow("local", "compatible", f"{server.url}/v2", None))
    assert desk.embedders.active() is not first


def test_requests_keep_to_the_setting(desk: Desk) -> None:
    desk.settings.set("embedder", LOCAL)
    embedder = desk.embedders.answering(covering(nomic=1.0))
    assert embedder.embed(["first"]).shape == (1, 8)
    desk.settings.set("embedding_requests_per_minute", 1)
    with pytest.raises(KnownError, match="1 requests a minute"):
        embedder.embed(["second"])


def test_a_key_is_not_sent_where_a_provider_has_moved_to_meanwhile(
    desk: Desk, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine")
    desk.settings.put_provider(ProviderRow("local", "compatible", server.v1, "MY_KEY"))
    desk.settings.set("embedder", LOCAL)
    embedder = desk.embedders.active()
    embedder.embed(["a"])
    desk.settings.put_provider(ProviderRow("local", "compatible", "https://new.example", "MY_KEY"))
    embedder.embed(["b"])
    assert [seen.headers.get("authorization") for seen in server.posts] == ["Bearer sk-mine", None]


# -- consent


def test_history_goes_nowhere_before_someone_agreed(desk: Desk) -> None:
    desk.settings.set("embedder", FAR)
    refusal = desk.active_fails()
    assert "would send your history to https://far.example/v1" in refusal.title
    assert f"config set embedder {FAR} --yes" in refusal.hint
    desk.embedders.choose(FAR, agreed=True)
    assert isinstance(desk.embedders.active(), RemoteEmbedder)


def test_consent_is_to_one_model_at_one_place(desk: Desk) -> None:
    desk.embedders.choose(FAR, agreed=True)
    desk.embedders.choose(OPENAI, agreed=True)
    assert isinstance(desk.embedders.active(), RemoteEmbedder)
    desk.settings.set("embedder", "far:other-embed")
    desk.active_fails()
    desk.settings.set("embedder", FAR)
    assert isinstance(desk.embedders.active(), RemoteEmbedder)
    desk.settings.put_provider(ProviderRow("far", "compatible", "https://further.example", None))
    assert "further.example" in desk.active_fails().title


def test_what_cannot_be_a_choice_is_neither_set_nor_agreed_to(desk: Desk) -> None:
    for agreed in (True, False):
        with pytest.raises(InvalidSetting):
            desk.embedders.choose("far:", agreed=agreed)
    assert desk.settings.get("embedder") == BUILT_IN
    assert desk.settings.get("embedder_consent") == ""


def test_consent_survives_a_new_start(desk: Desk) -> None:
    desk.embedders.choose(FAR, agreed=True)
    again = Settings(desk.store)
    embedders = EmbedderDirectory(again, provider_registry(again, KeyStore()))
    assert isinstance(embedders.active(), RemoteEmbedder)


def test_an_estimate_has_time_price_and_place(desk: Desk) -> None:
    estimate = desk.embedders.estimate(10_000, 5_000_000, OPENAI)
    assert estimate.cost_usd == pytest.approx(0.10)
    assert estimate.minutes == pytest.approx(5.0)
    assert estimate.sent_to == "https://api.openai.com/v1"
    assert not estimate.is_agreed
    desk.settings.set("embedding_requests_per_minute", 10)
    assert desk.embedders.estimate(10_000, 5_000_000, OPENAI).minutes == pytest.approx(10.0)


def test_what_stays_here_is_free_and_needs_no_yes(desk: Desk) -> None:
    for choice in (BUILT_IN, LOCAL):
        estimate = desk.embedders.estimate(100, 15_000, choice)
        assert (estimate.sent_to, estimate.cost_usd, estimate.is_agreed) == ("", 0.0, True)
        assert estimate.minutes > 0
    with pytest.raises(EmbedderUnavailable):
        desk.embedders.estimate(1, 1, "nowhere:model")


def test_the_amount_to_embed_is_what_the_store_holds(desk: Desk) -> None:
    assert amount_to_embed(desk.store) == (0, 0)
    told(desk.store, "How do I keep basil alive through the winter?", "And mint?")
    passages, tokens = amount_to_embed(desk.store)
    assert passages == 2
    assert tokens > 10


# -- choices


def test_choices_are_built_in_openais_and_what_servers_list(desk: Desk, server: Loopback) -> None:
    desk.settings.remove_provider("far")
    desk.settings.put_provider(ProviderRow("gone", "compatible", "http://127.0.0.1:9/v1", None))
    desk.settings.put_provider(ProviderRow("odd", "compatible", "no base URL", None))
    assert desk.embedders.choices() == (
        EmbedderChoice("builtin", "all-MiniLM-L6-v2, built in", leaves_machine=False),
        EmbedderChoice(OPENAI, "text-embedding-3-small at openai", leaves_machine=True),
        EmbedderChoice(
            "openai:text-embedding-3-large", "text-embedding-3-large at openai", leaves_machine=True
        ),
        EmbedderChoice(LOCAL, "nomic-embed-text at local", leaves_machine=False),
    )
    assert [seen.path for seen in server.requests] == ["/v1/models"]


def test_a_choice_tells_whether_texts_are_sent_away(desk: Desk) -> None:
    desk.settings.remove_provider("far")
    away = [choice.value for choice in desk.embedders.choices() if choice.leaves_machine]
    assert away == [OPENAI, "openai:text-embedding-3-large"]


# -- answering


def test_the_only_embedder_answers_and_nobody_counts(desk: Desk) -> None:
    assert desk.embedders.answering(never) is desk.embedders.active()


def test_the_space_before_answers_until_the_new_one_covers_as_much(desk: Desk) -> None:
    desk.settings.set("embedder", LOCAL)
    for share in (0.0, 0.5, 0.94):
        answering = desk.embedders.answering(covering(all_minilm=1.0, nomic=share))
        assert name_of(answering) == "all_minilm_l6_v2"
    assert desk.settings.get("embedder_before") == BUILT_IN
    answering = desk.embedders.answering(covering(all_minilm=1.0, nomic=0.95))
    assert name_of(answering).startswith("nomic_embed_text_")
    assert isinstance(answering, QuestionEmbedder)
    assert desk.settings.get("embedder_before") == LOCAL
    assert name_of(desk.embedders.answering(never)) == name_of(answering)


def test_which_space_answers_is_not_counted_out_at_every_question(desk: Desk) -> None:
    registry = provider_registry(desk.settings, KeyStore())
    patient = EmbedderDirectory(desk.settings, registry, question_limit_s=30.0, decision_s=3600.0)
    desk.settings.set("embedder", LOCAL)
    assert name_of(patient.answering(covering(all_minilm=1.0))) == "all_minilm_l6_v2"
    assert name_of(patient.answering(never)) == "all_minilm_l6_v2"
    desk.settings.set("embedder", "local:other-embed")
    assert name_of(patient.answering(covering(other=1.0))).startswith("other_embed_")
    patient.close()


def test_a_new_space_answers_as_soon_as_it_covers_as_much_as_a_poor_one(desk: Desk) -> None:
    desk.settings.set("embedder", LOCAL)
    answering = desk.embedders.answering(covering(all_minilm=0.2, nomic=0.2))
    assert isinstance(answering, QuestionEmbedder)


def test_going_back_answers_at_once(desk: Desk) -> None:
    desk.settings.set("embedder", LOCAL)
    desk.embedders.answering(covering(all_minilm=1.0, nomic=1.0))
    desk.settings.set("embedder", BUILT_IN)
    answering = desk.embedders.answering(covering(all_minilm=1.0, nomic=1.0))
    assert name_of(answering) == "all_minilm_l6_v2"


def test_a_second_change_of_mind_keeps_the_space_that_is_covered(desk: Desk) -> None:
    desk.settings.set("embedder", LOCAL)
    desk.embedders.answering(covering(all_minilm=1.0, nomic=0.3))
    desk.settings.set("embedder", "local:other-embed")
    answering = desk.embedders.answering(covering(all_minilm=1.0, nomic=0.3, other=0.1))
    assert name_of(answering) == "all_minilm_l6_v2"


@pytest.mark.parametrize("value", [FAR, "nowhere:model", "onnx:/no/such/folder"])
def test_the_space_before_answers_when_the_new_one_cannot(desk: Desk, value: str) -> None:
    desk.settings.set("embedder", value)
    assert name_of(desk.embedders.answering(covering(all_minilm=1.0))) == "all_minilm_l6_v2"


def test_the_new_space_answers_when_the_one_before_is_gone(desk: Desk) -> None:
    desk.settings.set("embedder_before", "nowhere:model")
    assert name_of(desk.embedders.answering(covering(all_minilm=0.1))) == "all_minilm_l6_v2"
    assert desk.settings.get("embedder_before") == BUILT_IN


def test_the_new_space_stands_in_while_the_server_of_the_one_before_is_off(desk: Desk) -> None:
    desk.settings.put_provider(ProviderRow("off", "compatible", "http://127.0.0.1:9/v1", None))
    desk.settings.set("embedder_before", "off:model")
    assert name_of(desk.embedders.answering(covering(all_minilm=0.1))) == "all_minilm_l6_v2"
    assert desk.settings.get("embedder_before") == "off:model"


def test_when_neither_can_answer_the_reason_is_the_new_ones(desk: Desk) -> None:
    desk.settings.set("embedder", "nowhere:model")
    desk.settings.set("embedder_before", "lost:model")
    with pytest.raises(EmbedderUnavailable, match="nowhere"):
        desk.embedders.answering(never)


def test_a_question_to_a_hanging_server_gives_up_soon(desk: Desk, server: Loopback) -> None:
    registry = provider_registry(desk.settings, KeyStore())
    hasty = EmbedderDirectory(desk.settings, registry, question_limit_s=0.2)
    desk.settings.set("embedder", LOCAL)
    desk.settings.set("embedder_before", LOCAL)
    server.always(stall(before_headers=True))
    with pytest.raises(TimedOut):
        hasty.answering(never).embed(["where?"])
    hasty.close()


# -- config set embedder


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str], server: Loopback) -> CommandLine:
    made(data_dir)
    with opened(data_dir) as store:
        told(store, "How do I keep basil alive?", "And mint?")
        Settings(store).put_provider(ProviderRow("local", "compatible", server.v1, None))
    return CommandLine(data_dir, capsys)


def test_a_cloud_embedder_is_not_set_before_a_yes(cli: CommandLine) -> None:
    ran = cli("config", "set", "embedder", OPENAI)
    assert ran.code == 1
    assert "2 passages" in ran.err
    assert "would be sent to https://api.openai.com/v1 for about $0.01" in ran.err
    assert "Add --yes to agree." in ran.err
    assert cli.json("config", "get", "embedder")["value"] == BUILT_IN


def test_yes_sets_it_and_is_remembered(cli: CommandLine) -> None:
    agreed = cli.json("config", "set", "embedder", OPENAI, "--yes")
    assert agreed == {"key": "embedder", "value": OPENAI}
    assert "would be sent to" not in cli.done("config", "set", "embedder", OPENAI).err


def test_what_stays_here_is_set_without_asking(cli: CommandLine, tmp_path: Path) -> None:
    assert "would be sent" not in cli.done("config", "set", "embedder", LOCAL).err
    shutil.copytree(SHIPPED, tmp_path / "mine")
    cli.done("config", "set", "embedder", f"onnx:{tmp_path / 'mine'}")
    assert cli.json("config", "get", "embedder")["value"] == f"onnx:{tmp_path / 'mine'}"
    cli.done("config", "reset", "embedder")
    assert cli.json("config", "get", "embedder")["value"] == BUILT_IN


@pytest.mark.parametrize("value", ["nowhere:model", "onnx:/no/such/folder", "some words"])
def test_what_does_not_exist_is_not_set(cli: CommandLine, value: str) -> None:
    ran = cli("config", "set", "embedder", value)
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1
    assert cli.json("config", "get", "embedder")["value"] == BUILT_IN


@pytest.mark.parametrize(
    ("typed", "value"), [("yes\n", OPENAI), ("no\n", BUILT_IN), ("", BUILT_IN)]
)
def test_a_person_who_looks_on_may_type_yes(
    cli: CommandLine, data_dir: Path, typed: str, value: str
) -> None:
    said: list[str] = []
    terminal = Terminal(
        said.append, said.append, lambda: typed, Path.cwd(), lambda: False, is_watched=True
    )
    services = build(DataPaths(data_dir), Role.COMMAND_LINE)
    try:
        entry.execute(services, ["config", "set", "embedder", OPENAI], terminal)
        assert "Type yes" in "".join(said)
        unseen = replace(terminal, is_watched=False, as_json=True)
        said.clear()
        entry.execute(services, ["config", "get", "embedder", "--json"], unseen)
        assert json.loads("".join(said))["value"] == value
    finally:
        services.close()

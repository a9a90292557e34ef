"""Surroundings of every test: a home of its own, no network, nothing left running.

Qt is not imported here: `tests/app` runs without it. The thread pool is looked at only when
something else has loaded Qt.
"""

import gc
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pytestqt.qtbot import QtBot

from app.domain.errors import Cancelled
from app.domain.passages import Space
from app.domain.ports import Embedder
from app.index.space_traits import SpaceTraits, measure_space
from app.memory.search import space_measurements
from app.providers.embedders import local
from app.providers.embedders.model_folder import EmbedderFolder
from tests.fakes import leftovers
from tests.fakes.network import NetworkGuard

# The collector runs in whichever thread allocates. A QObject that ends in another than its own leaves
# its timers behind, and the next event loop dies of one. So it is asked here alone, between tests.
gc.disable()
_FULLY_EVERY = 200
_tests_ended = itertools.count(1)

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["LANGUAGE"] = "en"  # on any system; the embedder of a new library depends on it
if "PYTEST_XDIST_WORKER" in os.environ:  # measured itself by now; the programs it starts are not
    os.environ.pop("COVERAGE_PROCESS_START", None)
# The same examples on every machine and in every run; an explicit @settings still wins.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("ci")
# For a night: pytest --hypothesis-profile=thorough
settings.register_profile(
    "thorough", parent=settings.get_profile("ci"), derandomize=False, max_examples=2000
)

WAIT_MS = 60_000
# pytest-qt waits five seconds for a condition, which a busy machine exceeds.
for _wait in (QtBot.waitUntil, QtBot.waitSignal, QtBot.waitExposed):
    (_wait.__kwdefaults__ or {})["timeout"] = WAIT_MS

# A shell starts what runs in its background deaf to SIGINT, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

RESOURCES = Path(__file__).resolve().parents[1] / "resources"
ROOT_FIXTURES = {"disk", "frozen", "read_only"}
FOREIGN_PREFIXES = ("OPENAI_", "ANTHROPIC_", "COMMONPLACE_", "OLLAMA_", "XDG_")
FOREIGN_SUFFIXES = ("_API_KEY", "_PROXY")


@pytest.fixture(scope="session", autouse=True)
def shipped_model_is_loaded_and_measured_once() -> Iterator[None]:
    """Keep the model of resources/ and the traits of its space between tests: they never change.

    Loading takes 0.3 s, measuring 1 s. Other folders are loaded as ever; whoever damages a copy sees
    the damage.
    """
    load = local._load
    kept: dict[Path, local._Loaded] = {}

    def load_once(folder: EmbedderFolder) -> local._Loaded:
        if RESOURCES not in folder.path.parents:
            return load(folder)
        if folder.path not in kept:
            kept[folder.path] = load(folder)
        return kept[folder.path]

    traits: dict[Space, SpaceTraits] = {}

    def measure_once(embedder: Embedder, cancelled: Callable[[], bool]) -> SpaceTraits:
        if not (
            isinstance(embedder, local.LocalEmbedder) and RESOURCES in embedder._folder.path.parents
        ):
            return measure_space(embedder, cancelled)
        if cancelled():
            raise Cancelled("Embedding was stopped")
        if embedder.space not in traits:
            traits[embedder.space] = measure_space(embedder, cancelled)
        return traits[embedder.space]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "_load", load_once)
        patch.setattr(space_measurements, "measure_space", measure_once)
        yield


def _has_root_fixture(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(f"def {name}(" in text for name in ROOT_FIXTURES)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over files without tests as root where only those are wanted: to collect all takes 20 s."""
    is_file = collection_path.suffix == ".py" and config.option.markexpr == "root"
    return True if is_file and not _has_root_fixture(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that mount a disk as root; as an ordinary user they skip or use permissions."""
    for item in items:
        if not ROOT_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            assert _has_root_fixture(item.path), "the fixture has to be in the file of its tests"
            item.add_marker("root")


def pytest_collection_finish() -> None:
    """Exempt modules and tests from collection: each full one took 0.4 s."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Leave what a test marked `unmeasured` does on its own thread out of the coverage."""
    tracer = sys.gettrace()
    if item.get_closest_marker("unmeasured"):
        sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Collect cyclic garbage in the main thread; modules that were imported meanwhile are exempted too."""
    if next(_tests_ended) % _FULLY_EVERY:
        gc.collect(1)
    else:
        pytest_collection_finish()


def pytest_unconfigure() -> None:
    """Release what holds objects of DuckDB to the end, which it then reports as leaked."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    gc.callbacks.clear()  # hypothesis leaves one that keeps the tests' modules, and so DuckDB's, to the end
    gc.unfreeze()
    if (gui := sys.modules.get("PySide6.QtGui")) is not None and gui.QGuiApplication.instance():
        gui.QGuiApplication.clipboard().clear()  # Qt deletes its data after Python has ended
    gc.collect()


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail a test that leaves a thread, a task, work in Qt's global pool or an open window behind."""
    before = leftovers.snapshot()
    yield
    if left := leftovers.since(before):
        pytest.fail("left behind: " + "; ".join(left))


@pytest.fixture(autouse=True)
def clean_home(nothing_left_running: None) -> Iterator[Path]:
    """Give the test an empty home, no keys, no proxies, and a keyring that keeps nothing."""
    home = Path(tempfile.mkdtemp(prefix="commonplace-home-"))
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().startswith(FOREIGN_PREFIXES) or name.upper().endswith(FOREIGN_SUFFIXES):
                patch.delenv(name)
        # The other XDG folders follow from HOME once their variables are gone.
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_RUNTIME_DIR", str(home))
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        if (core := sys.modules.get("keyring.core")) is not None:
            patch.setattr(core, "_keyring_backend", None)  # what an earlier test loaded
        yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(autouse=True)
def network(clean_home: Path) -> Iterator[NetworkGuard]:
    """Refuse every connection but loopback and local sockets; fail if one was tried unseen."""
    guard = NetworkGuard()
    with guard:
        yield guard
    if guard.refused:
        pytest.fail(f"tried to reach the network: {', '.join(guard.refused)}")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Return a data directory that does not exist yet."""
    return tmp_path / "data"

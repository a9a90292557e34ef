"""How long the window takes to switch a worker off, and to close, while a server never answers.

Run: .venv/bin/python -m tests.bench.worker_endings [--rounds 5]

The real window, offscreen, the model server in a process of its own. All workers that ask a model
are in the middle of a request; seconds are from the click until the card says that the worker is
stopped, and from closing the window until everything behind it is closed. The goal is 3 s.
"""

import argparse
import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import qasync
from PySide6.QtWidgets import QApplication

from app.bootstrap import Services
from app.domain.workers import WorkerName, WorkerState, WorkerStatus
from app.storage.settings import ProviderRow
from tests.bench.window_stalls import SWITCH_INTERVAL_S, model_server
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.user import User
from ui.theme import STYLE

_ASKING = (
    WorkerName.EXCHANGE_SUMMARIZER,
    WorkerName.CONVERSATION_SUMMARIZER,
    WorkerName.EMBEDDING_PIPELINE,
    WorkerName.KNOWLEDGE_EXTRACTOR,
)
_PATIENCE_S = 60.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how workers and the window end.")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder, "conversations.json")
        write_chatgpt_export(export, Shape(40, 12, 60))
        application = QApplication([sys.argv[0], "-style", STYLE])
        application.setQuitOnLastWindowClosed(False)
        with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
            user = User(application, Path(folder, "data"))
            figures = runner.run(_measured(user, export, options.rounds))
        gc.unfreeze()
    print(json.dumps(figures, indent=1))  # noqa: T201


async def _measured(user: User, export: Path, rounds: int) -> dict[str, object]:
    off: dict[str, list[float]] = {name: [] for name in _ASKING}
    left: list[float] = []
    with model_server("--silent") as base_url:
        await user.start()
        await user.ask(lambda services: _choose(services, base_url))
        user.drop(user.window, [export])
        await _until(lambda: not user.program.importing.running)
        await user.dismiss()
        for _ in range(rounds):
            await _until(lambda: all(_status(user, name).current_item for name in _ASKING))
            for name in _ASKING:
                off[name].append(await _switched_off(user, name))
                user.window.dashboard.switched.emit(name, True)
            await _until(lambda: all(_status(user, name).current_item for name in _ASKING))
            began = time.perf_counter()
            await user.leave()
            left.append(round(time.perf_counter() - began, 2))
            await user.start()
        await user.leave()
    return {"switched_off_after_s": off, "left_after_s": left}


async def _switched_off(user: User, name: WorkerName) -> float:
    began = time.perf_counter()
    user.window.dashboard.switched.emit(name, False)
    await _until(lambda: _status(user, name).state is WorkerState.STOPPED)
    return round(time.perf_counter() - began, 2)


def _status(user: User, name: WorkerName) -> WorkerStatus:
    services = user.running.services
    assert services is not None
    return next(each for each in services.workers.statuses() if each.name is name)


def _choose(services: Services, base_url: str) -> None:
    services.settings.put_provider(ProviderRow("bench", "compatible", base_url, None))
    services.settings.set("background_model", "bench:chat")
    services.settings.set("embedder", "bench:embed")
    services.settings.set("embedder_before", "bench:embed")


async def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    main()

"""Benchmark of ends: switching a worker off and closing the window while a server never answers.

Run: .venv/bin/python -m tests.bench.worker_endings [--rounds 5]

The real window, offscreen, the model server in a process of its own. All workers that ask a model
are in the middle of a request; seconds are from the click until the card says that the worker is
stopped, and from closing the window until everything behind it is closed. The goal is 3 s.
"""

import time
from pathlib import Path

from app.domain.workers import WorkerName, WorkerState
from tests.bench.shared.measuring import Figures, options, print_json
from tests.bench.shared.window import (
    choose_models,
    import_files,
    measured_in_window,
    model_server,
    status_of,
    until,
)
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.user import User

_ASKING = (
    WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER,
    WorkerName.EMBEDDING_PIPELINE, WorkerName.KNOWLEDGE_EXTRACTOR,
)  # fmt: skip


def main() -> None:
    rounds = options(__doc__, rounds=5).rounds
    print_json(measured_in_window(lambda user, folder: _measured(user, folder, rounds)))


async def _measured(user: User, folder: Path, rounds: int) -> Figures:
    export = write_chatgpt_export(folder / "conversations.json", Shape(40, 12, 60))
    off: dict[str, list[float]] = {name: [] for name in _ASKING}
    left: list[float] = []

    async def all_are_asking() -> None:
        await until(lambda: all(status_of(user, name).current_item for name in _ASKING))

    with model_server("--silent") as base_url:
        await user.start()
        await user.ask(lambda each: choose_models(each, base_url, "bench:embed", "bench:chat"))
        await import_files(user, [export])
        await user.dismiss()
        for _ in range(rounds):
            await all_are_asking()
            for name in _ASKING:
                off[name].append(await _switched_off(user, name))
                user.window.memory.dashboard.switched.emit(name, True)
            await all_are_asking()
            began = time.perf_counter()
            await user.leave()
            left.append(round(time.perf_counter() - began, 2))
            await user.start()
        await user.leave()
    return {"switched_off_after_s": off, "left_after_s": left}


async def _switched_off(user: User, name: WorkerName) -> float:
    began = time.perf_counter()
    user.window.memory.dashboard.switched.emit(name, False)
    await until(lambda: status_of(user, name).state is WorkerState.STOPPED)
    return round(time.perf_counter() - began, 2)


if __name__ == "__main__":
    main()

"""The real window in a process of its own, driven by words on its command line; for killing it.

python -m tests.fakes.driven_window DATA_DIR "What is said once it is ready"
python -m tests.fakes.driven_window DATA_DIR --routines

With --routines, those that are due run at once.
"""

import asyncio
import gc
import sys
from pathlib import Path

import qasync
from PySide6.QtWidgets import QApplication

from app.workers.jobs import routine_runner
from tests.fakes.user import User


def main(data_dir: str, words: str) -> None:
    """Open the window, say something in it, and stay until the process is killed."""
    gc.disable()
    application = QApplication(sys.argv[:1])
    application.setQuitOnLastWindowClosed(False)
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        runner.run(_stay(User(application, Path(data_dir)), words))


async def _stay(user: User, words: str) -> None:
    if words == "--routines":
        routine_runner._SPACING_S = 0.0
    await user.start()
    if words != "--routines":
        await user.say(words)
    await asyncio.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], " ".join(sys.argv[2:]))

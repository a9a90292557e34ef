"""How fast a transcript opens, jumps and streams, as JSON on standard output.

Run: .venv/bin/python -m tests.bench.transcript_open

Times of opening and jumping are ratios to a conversation of 20 messages, with the milliseconds
beside them; a gap is how long the GUI thread did not answer a 5 ms heartbeat, and busy how much of
that it worked itself (CPU time), which other programs on the machine cannot stretch.
"""

import gc
import os
import statistics
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.domain.conversations import ExchangeStatus, Message, Role, Text
from app.domain.ids import ConversationId, MessageId
from tests.bench.shared.measuring import options, peak_mb, print_json, timed
from tests.bench.shared.window import Heartbeat
from ui.theme import Appearance
from ui.widgets.transcript.values import TurnContent, TurnHeader
from ui.widgets.transcript.view import TranscriptView

SMALL_TURNS, LARGE_TURNS = 10, 5_000
STREAMED_CHARS, PIECE_CHARS = 100_000, 24
ROUNDS = 5
REPAINT_MS = 33
START = datetime(2024, 1, 1, tzinfo=UTC)
ANSWER = """The short answer is **yes**, with one condition: keep the *anchor*, not the pixel.

1. Remember which turn the eye rests on.
2. Guess heights from lengths, then correct them.
3. Never lay out what nobody sees.

```python
def top_for(anchor, heights, view_height):
    start = heights.before(anchor.index)
    return max(0, start + anchor.offset)  # never above the top
```

| Approach | First paint | Jumps |
|:--|--:|:--:|
| Everything | 4,200 ms | no |
| Anchors | 41 ms | no |

> A guess is a guess; see [the notes](https://example.org/notes) and `heights.py`.

"""


def main() -> None:
    options(__doc__)
    application = QApplication.instance() or QApplication(sys.argv)
    assert isinstance(application, QApplication)
    bench = Bench(Appearance(application))
    bench.opening(SMALL_TURNS)  # warm: fonts, style sheet, Pygments
    small = statistics.median(bench.opening(SMALL_TURNS) for _ in range(ROUNDS))
    large = statistics.median(bench.opening(LARGE_TURNS) for _ in range(ROUNDS))
    jump = statistics.median(bench.jump(LARGE_TURNS) for _ in range(ROUNDS))
    before_mb = peak_mb()
    stream = bench.stream()
    print_json(
        {
            "first_paint_10000_messages_ms": round(large, 1),
            "first_paint_20_messages_ms": round(small, 1),
            "first_paint_ratio": round(large / small, 2),
            "jump_to_middle_ms": round(jump, 1),
            "jump_ratio": round(jump / small, 2),
            **stream,
            "memory_grown_mb": round(peak_mb() - before_mb, 1),
            "memory_peak_mb": round(peak_mb(), 1),
        }
    )


class Bench:
    def __init__(self, appearance: Appearance) -> None:
        self._appearance = appearance

    def opening(self, turns: int) -> float:
        """Return the milliseconds from `show_conversation` to the first paint with text."""
        view = self._view()
        heads = _heads(turns)
        return self._painted_after(view, lambda: view.show_conversation(heads))

    def jump(self, turns: int) -> float:
        """Return the milliseconds from `scroll_to_turn` to a paint of that turn with its text."""
        view = self._view()
        view.show_conversation(_heads(turns))
        _until(lambda: _has_text(view))
        return self._painted_after(view, lambda: view.scroll_to_turn(turns // 2))

    def _painted_after(self, view: TranscriptView, act: Callable[[], object]) -> float:
        def act_and_paint() -> None:
            act()
            _until(lambda: _has_text(view))
            view.grab()

        took = timed(act_and_paint)
        _close(view)
        return took.ms

    def stream(self) -> dict[str, float]:
        """Stream 100 KB in small pieces; return the worst gaps and how long drawing took in all."""
        view = self._view()
        view.show_conversation(_heads(SMALL_TURNS))
        _until(lambda: _has_text(view))
        head = TurnHeader(SMALL_TURNS, START + timedelta(days=1))
        view.add_turn(head, TurnContent((_message(1, Role.USER, "Go on"),), ExchangeStatus.RUNNING))
        view.begin_reply()
        text = (ANSWER * (STREAMED_CHARS // len(ANSWER) + 1))[:STREAMED_CHARS]
        heart = Heartbeat()
        streamed_s = timed(lambda: _feed(view, text)).wall_s
        gaps, busy = heart.take()
        view.finish_reply()
        _until(lambda: view.is_settled)
        end_gaps, end_busy = heart.take()
        figures = {
            "stream_worst_gap_ms": round(max(gaps), 1),
            "stream_p99_gap_ms": round(statistics.quantiles(gaps, n=100)[-1], 1),
            "stream_worst_busy_ms": round(max(busy), 1),
            "stream_p99_busy_ms": round(statistics.quantiles(busy, n=100)[-1], 1),
            "stream_finish_worst_gap_ms": round(max(end_gaps), 1),
            "stream_finish_worst_busy_ms": round(max(end_busy), 1),
            "stream_seconds": round(streamed_s, 2),
        }
        heart.stop()
        _close(view)
        return figures

    def _view(self) -> TranscriptView:
        view = TranscriptView(self._appearance.theme)
        view.resize(900, 800)

        def give(first: int, last: int) -> None:
            for index in range(first, last + 1):
                view.provide(index, _content(index))

        view.content_requested.connect(give)
        view.show()
        return view


def _feed(view: TranscriptView, text: str) -> None:
    """Append `text` as fast as a model that sends a small piece each millisecond.

    The pieces are joined between two repaints, as `RunningReplies` does.
    """
    loop, at, arrived = QEventLoop(), 0, 0
    pieces, repaint = QTimer(interval=1), QTimer(interval=REPAINT_MS)

    def arrive() -> None:
        nonlocal arrived
        arrived += PIECE_CHARS

    def drain() -> None:
        nonlocal at
        view.append(Text(text[at:arrived]))
        at = arrived
        if at >= len(text):
            pieces.stop()
            repaint.stop()
            loop.quit()

    pieces.timeout.connect(arrive)
    repaint.timeout.connect(drain)
    pieces.start()
    repaint.start()
    loop.exec()


def _has_text(view: TranscriptView) -> bool:
    first, last = view.visible_items
    widgets = [view.turn_widget(index) for index in range(first, last + 1)]
    return bool(widgets) and all(each is not None and each.content is not None for each in widgets)


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 5)


def _close(view: TranscriptView) -> None:
    view.close()
    view.deleteLater()
    QApplication.processEvents()
    gc.collect()


def _heads(turns: int) -> list[TurnHeader]:
    return [
        TurnHeader(index, START + timedelta(minutes=index), 60, len(ANSWER) * (1 + index % 4))
        for index in range(turns)
    ]


def _content(index: int) -> TurnContent:
    question = _message(2 * index, Role.USER, f"Question {index}: how do I keep the place?")
    return TurnContent(
        (question, _message(2 * index + 1, Role.ASSISTANT, ANSWER * (1 + index % 4)))
    )


def _message(number: int, role: Role, text: str) -> Message:
    at = START + timedelta(minutes=number)
    return Message(MessageId(number), "", ConversationId(1), None, role, (Text(text),), at)


if __name__ == "__main__":
    main()

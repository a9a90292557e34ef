"""The background of an embedder's space, and so one scale for all of them.

A cosine means nothing by itself: unrelated texts have .06 in one space and .75 in another. So each
space is measured once on questions and messages that have nothing to do with each other, and a
cosine counts by how far it stands out from those. What is made of it: `app.index.evidence`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.domain.ports import Embedder

_TALK = Path(__file__).resolve().parents[2] / "resources" / "calibration" / "talk.txt"
_TOPIC, _QUESTION = "# ", "? "
LEAST_DEVIATION = 1e-3  # of an embedder that finds everything alike

# What somebody says in one chat is nearer to their other chats than our topics are to each other:
# with the built-in model .062 with a deviation of .086 on chats between people, .044 and .077 here.
# Relevance was fitted to the former, so every space is moved by as much.
_NEARER_BY_DEVIATIONS = 0.23
_WIDER_TIMES = 1.12


@dataclass(frozen=True, slots=True)
class Background:
    """The cosines of questions and messages of unrelated chats: their mean and deviation."""

    mean: float
    deviation: float


def measured(embedder: Embedder, cancelled: Callable[[], bool] | None = None) -> Background:
    """Return the background of an embedder's space.

    Embeds 180 short texts: 1 s for the built-in model, one or two requests for a remote one.
    Blocking. Raises whatever `Embedder.embed` does.
    """
    questions, messages = _read_talk()
    texts = [text for _, text in questions + messages]
    vectors = embedder.embed(texts, cancelled)
    cosines = vectors[: len(questions)] @ vectors[len(questions) :].T
    asked_about = np.array([topic for topic, _ in questions])
    spoken_about = np.array([topic for topic, _ in messages])
    unrelated = cosines[asked_about[:, None] != spoken_about[None]]
    mean, deviation = float(unrelated.mean()), float(unrelated.std())
    return Background(mean + _NEARER_BY_DEVIATIONS * deviation, _WIDER_TIMES * deviation)


def _read_talk() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The questions and the messages, each with its topic.

    In the file a line that begins with "# " names the topic of those below, one that begins with
    "? " is a question, any other that is not empty a message.
    """
    questions: list[tuple[str, str]] = []
    messages: list[tuple[str, str]] = []
    topic = ""
    for line in _TALK.read_text(encoding="utf-8").splitlines():
        if line.startswith(_TOPIC):
            topic = line.removeprefix(_TOPIC)
        elif line.startswith(_QUESTION):
            questions.append((topic, line.removeprefix(_QUESTION)))
        elif line:
            messages.append((topic, line))
    return questions, messages


def sigmoid(x: float) -> float:
    """Return a probability (0-1) for log odds."""
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))

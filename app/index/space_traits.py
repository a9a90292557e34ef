"""Traits of an embedder's space, measured once with the sample texts of resources/calibration.

The background is the mean cosine of questions and messages about different topics, and how far the
nearest message stands out from it. The direction of preferences is how messages that state a
preference or an instruction differ from others, the direction of requests how questions that ask for
something new differ from those about what was said. Neither needs a list of words.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.domain.ports import Embedder
from app.index.relevance import MIN_DEVIATION, Background

_FOLDER = Path(__file__).resolve().parents[2] / "resources" / "calibration"
_TOPIC, _QUESTION = "# ", "? "

# The relevance was fitted to real chats in the built-in space. There the nearest message of the
# sample is 3.89 deviations of real chats above the mean, and their mean is .205 deviations above
# that of the sample: messages of one person's chats are nearer to each other than the topics of the
# sample.
_NEAREST_DEVIATIONS = 3.89
_MEAN_SHIFT_DEVIATIONS = 0.205

_STEEPNESS = 3.0  # two thirds of the way from the middle to the requests are a likelihood of .88


@dataclass(frozen=True, slots=True)
class SpaceTraits:
    """The background of a space, and its directions.

    `preference` is a unit vector. `request` gives the sample questions about the past a mean product
    of -1 with a question's vector, less `request_middle`, and sample requests one of 1; traits of
    earlier versions have none.
    """

    background: Background
    preference: tuple[float, ...]
    request: tuple[float, ...] = ()
    request_middle: float = 0.0

    @property
    def is_current(self) -> bool:
        """Whether this version measured them."""
        return bool(self.request)

    def request_likelihood(self, question: npt.NDArray[np.float32]) -> float:
        """Return how likely (0-1) a question, (dim,), asks for something new rather than about the past.

        0.5 with traits of earlier versions.
        """
        if not self.is_current:
            return 0.5
        side = float(question @ np.array(self.request, np.float32)) - self.request_middle
        return float(1 / (1 + np.exp(-_STEEPNESS * side)))


def measure_space(embedder: Embedder, cancelled: Callable[[], bool] | None = None) -> SpaceTraits:
    """Return the traits of an embedder's space.

    Embeds 300 short texts: 1 to 2 s with a built-in model, two requests or more to a server.
    Blocking. Raises what `Embedder.embed` raises.
    """
    questions, messages = read_samples()
    asked = embedder.embed([text for _, text in questions], cancelled, as_queries=True)
    said = embedder.embed([text for _, text in messages], cancelled)
    stated = embedder.embed(read_lines("preferences"), cancelled)
    requests = embedder.embed(read_lines("requests"), cancelled, as_queries=True)
    cosines = asked @ said.T
    question_topics = np.array([topic for topic, _ in questions])
    message_topics = np.array([topic for topic, _ in messages])
    mean = float(cosines[question_topics[:, None] != message_topics[None]].mean())
    # The standard deviation of unrelated cosines is no measure: in some spaces it is mostly the
    # distance that a message has from every question.
    deviation = (float(cosines.max(axis=1).mean()) - mean) / _NEAREST_DEVIATIONS
    background = Background(mean + _MEAN_SHIFT_DEVIATIONS * deviation, deviation)
    request, middle = _divide(asked, requests)
    return SpaceTraits(background, _direction(said, stated), request, middle)


def _direction(said: npt.NDArray[np.float32], stated: npt.NDArray[np.float32]) -> tuple[float, ...]:
    """Return the unit vector between the means of two groups; any unit vector if they are equal."""
    difference = stated.mean(axis=0) - said.mean(axis=0)
    length = float(np.linalg.norm(difference))
    unit = difference / length if length > MIN_DEVIATION else np.eye(1, len(difference))[0]
    return tuple(np.round(unit.astype(float), 6).tolist())


def _divide(
    one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]
) -> tuple[tuple[float, ...], float]:
    """Return a vector and the middle: products with it, less the middle, have means of -1 and 1."""
    difference = other.mean(axis=0) - one.mean(axis=0)
    vector = difference * (2 / max(float(difference @ difference), MIN_DEVIATION))
    middle = float((one.mean(axis=0) + other.mean(axis=0)) @ vector) / 2
    return tuple(np.round(vector.astype(float), 6).tolist()), middle


def read_lines(name: str) -> list[str]:
    """Return the sample texts of a kind: "preferences" (and instructions) or "requests"."""
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def read_samples() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the sample questions and messages, each as (topic, text).

    A line of the file that begins with "# " names the topic of the lines below; one that begins
    with "? " is a question; any other non-empty line is a message.
    """
    questions: list[tuple[str, str]] = []
    messages: list[tuple[str, str]] = []
    topic = ""
    for line in (_FOLDER / "talk.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(_TOPIC):
            topic = line.removeprefix(_TOPIC)
        elif line.startswith(_QUESTION):
            questions.append((topic, line.removeprefix(_QUESTION)))
        elif line:
            messages.append((topic, line))
    return questions, messages

"""Relevance: the calibrated likelihood (0-1) that what was found answers the question.

A ranking always has a best hit, so the relevance of the best hit is judged from three signals: how far the
nearest messages stand out from the other messages of the library, which share of the question's words their
contexts contain, and whether people talk there (their messages are short). In a small library less is near by
chance. Each other hit gets less, by the distance of its score from the best.

A cosine alone says nothing: unrelated texts have .06 in one space and .75 in another. Each space is therefore
measured once on questions and messages about different topics. Fit and evaluation:
packaging/decisions/0032-recall-threshold.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.domain.ports import Embedder
from app.index.ranking import Cosines, Numbers, Ranked, talk_share
from app.index.text_snapshot import CandidateTable

_SAMPLES = Path(__file__).resolve().parents[2] / "resources" / "calibration" / "talk.txt"
_TOPIC, _QUESTION = "# ", "? "
MIN_DEVIATION = 1e-3  # for an embedder that gives every text the same vector

# Messages of one person's chats are nearer to each other than the topics of the sample: with the
# built-in model mean .062 and deviation .086 between real chats, .044 and .077 in the sample. The
# weights below were fitted to real chats, so each measured background is shifted accordingly.
_MEAN_SHIFT_DEVIATIONS = 0.23
_DEVIATION_FACTOR = 1.12

_NEAREST = 10  # messages; the mean of their nearness counts beside the nearest alone
_NEAREST_SHARE = 0.55
_BEST = 5  # hits whose share of the question's words counts
_PASSAGES_PER_HIT = 25  # at most 1 in so many passages is used for either: most are off topic
_MIN_SHARE = 0.05
_FEW_PASSAGES = 10
_MEASURED_CHUNKS = 50  # that the measured mean counts as, beside those of the library

_SMALL = 600  # passages; in a smaller library less is near by chance
_BIAS, _NEARNESS, _SHARE = -8.76, 2.05, 2.01
_TALK, _SMALLNESS, _SMALL_TALK = 1.74, 1.35, 0.4
_WORDS_BIAS, _WORDS_SHARE = 0.42, 2.5
_WORDS_TALK, _WORDS_SMALLNESS, _WORDS_SMALL_TALK = 1.4, 0.8, 0.3
_MAX_LOG_ODDS = 3.0  # above it every hit near the best would pass
_FALL = 1.0  # log odds lost per unit of score below the best

_TYPICAL_SHARE = 0.3  # share of the words where no text index is available


@dataclass(frozen=True, slots=True)
class Background:
    """Mean and deviation of the cosines between questions and messages of unrelated chats."""

    mean: float
    deviation: float

    def of_question(self, cosines: "npt.NDArray[np.floating]") -> "Background":
        """Return the background of one question; `cosines` are those with a sample of the library's chunks.

        A name that occurs in every message makes all of them near.
        """
        total = float(cosines.sum()) + _MEASURED_CHUNKS * self.mean
        return replace(self, mean=total / (len(cosines) + _MEASURED_CHUNKS))


def measure_background(
    embedder: Embedder, cancelled: Callable[[], bool] | None = None
) -> Background:
    """Return the background of an embedder's space.

    Embeds 180 short texts: 1 to 2 s with a built-in model, two requests or more to a server.
    Blocking. Raises what `Embedder.embed` raises.
    """
    questions, messages = _read_samples()
    asked = embedder.embed([text for _, text in questions], cancelled, as_queries=True)
    cosines = asked @ embedder.embed([text for _, text in messages], cancelled).T
    question_topics = np.array([topic for topic, _ in questions])
    message_topics = np.array([topic for topic, _ in messages])
    unrelated = cosines[question_topics[:, None] != message_topics[None]]
    mean, deviation = float(unrelated.mean()), float(unrelated.std())
    return Background(mean + _MEAN_SHIFT_DEVIATIONS * deviation, _DEVIATION_FACTOR * deviation)


def _read_samples() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the sample questions and messages, each as (topic, text).

    A line of the file that begins with "# " names the topic of the lines below; one that begins with
    "? " is a question; any other non-empty line is a message.
    """
    questions: list[tuple[str, str]] = []
    messages: list[tuple[str, str]] = []
    topic = ""
    for line in _SAMPLES.read_text(encoding="utf-8").splitlines():
        if line.startswith(_TOPIC):
            topic = line.removeprefix(_TOPIC)
        elif line.startswith(_QUESTION):
            questions.append((topic, line.removeprefix(_QUESTION)))
        elif line:
            messages.append((topic, line))
    return questions, messages


def with_relevance(
    ranked: Sequence[Ranked],
    table: CandidateTable,
    cosines: Cosines | None,
    background: Background | None,
    passages: int,
    prior: float = 0.0,
) -> list[Ranked]:
    """Return a ranking (best first) with relevances, in the same order.

    `passages` is the number of passages searched; `prior` is added to the log odds. Without `cosines`
    only words count.
    """
    if not ranked:
        return []
    share, talk, small = (
        _word_share(ranked, table, passages),
        talk_share(table),
        _smallness(passages),
    )
    if cosines and background is not None:
        own = [cosine for each in ranked if (cosine := cosines.get(each.part_id)) is not None]
        odds = answer_log_odds(own, share, background, passages)
        odds += talk * (_TALK + (_SMALL_TALK - _SMALLNESS) * small)
    else:
        odds = _WORDS_BIAS + _WORDS_SHARE * share + _WORDS_SMALLNESS * small
        odds += talk * (_WORDS_TALK + (_WORDS_SMALL_TALK - _WORDS_SMALLNESS) * small)
    top, best = min(odds + prior, _MAX_LOG_ODDS), ranked[0].score
    return [each.with_relevance(sigmoid(top - _FALL * (best - each.score))) for each in ranked]


def answer_log_odds(
    cosines: Sequence[float], share: float, background: Background, passages: int
) -> float:
    """Return the log odds that there is an answer; `cosines` are those of the messages, in any order.

    `share` is the log of the share of the question's words, or `typical_word_share()`.
    """
    nearness = 0.0  # how far the nearest messages stand out, in deviations of the background
    if cosines:
        nearest = np.sort(np.asarray(cosines))[::-1][: _few(_NEAREST, passages)]
        mixed = _NEAREST_SHARE * nearest.mean() + (1 - _NEAREST_SHARE) * nearest[0]
        nearness = float((mixed - background.mean) / max(background.deviation, MIN_DEVIATION))
    smallness = _SMALLNESS * _smallness(passages)
    return _BIAS + _NEARNESS * nearness + _SHARE * share + smallness


def typical_word_share() -> float:
    """Return the log share of the words to assume where no text index is available."""
    return math.log(_MIN_SHARE + _TYPICAL_SHARE)


def sigmoid(log_odds: float) -> float:
    """Return the probability (0-1) for log odds."""
    return (
        1 / (1 + math.exp(-log_odds))
        if log_odds > 0
        else math.exp(log_odds) / (1 + math.exp(log_odds))
    )


def _word_share(ranked: Sequence[Ranked], table: CandidateTable, passages: int) -> float:
    """Return the log of the mean share of the question's words in the contexts of the best hits.

    At least the share in the hits themselves: words that occur in every context have no weight there.
    """
    if not table.weight:
        return math.log(_MIN_SHARE)
    row = {int(part): at for at, part in enumerate(table.parts)}
    best = [row[each.part_id] for each in ranked[: _few(_BEST, passages)]]
    shares: Numbers = np.maximum(table.context[best] / table.weight, table.coverage[best])
    return math.log(_MIN_SHARE + float(shares.mean()))


def _few(most: int, passages: int) -> int:
    return max(1, min(most, passages // _PASSAGES_PER_HIT))


def _smallness(passages: int) -> float:
    return math.log(max(1.0, _SMALL / (_FEW_PASSAGES + passages)))

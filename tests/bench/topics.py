"""Topics: purity, stability of names, trails and speed, printed as JSON.

    python -m tests.bench.topics --data FOLDER [--set beam-dev] [--messages 8] [--most 1000] [--conversations 10000]

The subjects are the conversations of a set, cut into pieces of `--messages` messages, each of which is a conversation
here; at most `--most` of a subject, spread evenly. Purity and NMI compare topics with subjects. Stability adds the last tenth of the pieces and
counts earlier pieces whose topic kept its number and its name. Trails: one subject after the other is left out;
`false` is the share of its pieces that would get a trail, `true` that of left-out pieces of known subjects. Speed is
measured on random vectors around as many centers as there are clusters.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.memory.topics.clusters import (
    assign,
    centered,
    cluster,
    cluster_count,
    linked,
    match,
    means,
    unit_rows,
)
from app.memory.topics.names import TermCounts, TitledText
from app.memory.topics.service import is_clear
from app.providers.embedders.local import LocalEmbedder
from tests.bench.evaluation import read_evaluation
from tests.bench.shared.made_up import unit_vectors
from tests.bench.shared.measuring import MODEL, Figures, options, print_json, timed

_TEXT_CHARS, _NAMED_CHARS, _NAMED_MESSAGES = 1_500, 240, 3
_BATCH = 32
_LEFT_OUT = 0.15
Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def main() -> None:
    given = options(
        __doc__, required=["data"], data=Path, set="beam-dev", messages=8, most=1_000,
        conversations=10_000,
    )  # fmt: skip
    path = given.data / f"{given.set}.json"
    texts, labels, pieces = read_pieces(path, given.messages, given.most)
    rows = embedded(pieces)
    print_json(
        {
            "set": given.set,
            "pieces": len(texts),
            "subjects": len(set(labels.tolist())),
            **agreement(rows, labels),
            "stability": stability(rows, texts),
            "trails": trails(rows, labels),
            "speed": speed(given.conversations),
        }
    )


def read_pieces(
    path: Path, messages: int, most: int
) -> tuple[list[TitledText], Labels, list[list[str]]]:
    """Return what pieces are named from, their subjects, and the texts of their turns."""
    texts, labels, pieces = [], [], []
    for label, talk in enumerate(read_evaluation(path).talks):
        cut = [
            [turn.text for turn in session.turns[start : start + messages]]
            for session in talk.sessions
            for start in range(0, len(session.turns) - messages // 2, messages)
        ]
        for said in cut[:: max(1, -(-len(cut) // most))]:
            asked = said[::2][:_NAMED_MESSAGES]
            words = "\n".join(each[:_NAMED_CHARS] for each in asked)
            texts.append(TitledText(" ".join(asked[0].split()[:8]), words))
            labels.append(label)
            turns = (said[at : at + 2] for at in range(0, len(said), 2))
            pieces.append(["\n".join(each)[:_TEXT_CHARS] for each in turns])
    return texts, np.array(labels, np.int64), pieces


def embedded(pieces: list[list[str]]) -> Vectors:
    """Return the mean of the turns of each piece, as unit rows."""
    embedder = LocalEmbedder(MODEL)
    turns = [turn for piece in pieces for turn in piece]
    found = [embedder.embed(turns[at : at + _BATCH]) for at in range(0, len(turns), _BATCH)]
    owners = np.repeat(np.arange(len(pieces)), [len(each) for each in pieces])
    return means(np.concatenate(found), owners, len(pieces))


def agreement(vectors: Vectors, subjects: Labels) -> Figures:
    found = cluster(centered(vectors))
    groups = linked(found.centroids)
    wider = np.where(groups[found.labels] >= 0, groups[found.labels], -1 - found.labels)
    return {
        "topics": {"count": len(found.centroids), **_scores(found.labels, subjects)},
        "wider": {"count": len(set(wider.tolist())), **_scores(wider, subjects)},
    }


def stability(vectors: Vectors, texts: list[TitledText]) -> Figures:
    """Return the shares of pieces whose topic keeps its number, and its name, after 10 % more."""
    order = np.random.default_rng(5).permutation(len(vectors))
    known = np.sort(order[: len(order) * 10 // 11])
    before = cluster(centered(vectors[known]))
    names = _names([texts[each] for each in known], before.labels, None)
    place = {int(each): number for number, each in enumerate(known)}
    rows = centered(vectors)
    start = means(rows[known], before.labels, len(before.centroids))
    after = cluster(rows, start)
    continues = match(after.centroids, start)
    earlier = [
        names[continues[each]] if each in continues else "" for each in range(len(after.centroids))
    ]
    again = _names(texts, after.labels, earlier)
    same_number = same_name = 0
    for each in known.tolist():
        label, old = int(after.labels[each]), int(before.labels[place[each]])
        same_number += continues.get(label) == old
        same_name += again[label] == names[old]
    return {"number": round(same_number / len(known), 3), "name": round(same_name / len(known), 3)}


def _names(texts: list[TitledText], labels: Labels, earlier: list[str] | None) -> list[str]:
    groups = [np.flatnonzero(labels == each).tolist() for each in range(int(labels.max()) + 1)]
    return TermCounts(texts).names(groups, earlier)


def trails(vectors: Vectors, subjects: Labels) -> Figures:
    random = np.random.default_rng(0)
    shares: dict[str, list[float]] = {"true": [], "false": []}
    for subject in set(subjects.tolist()):
        others = np.flatnonzero(subjects != subject)
        late = random.choice(others, int(_LEFT_OUT * len(others)), replace=False)
        known = np.setdiff1d(others, late)
        middle = vectors[known].mean(axis=0)
        found = cluster(unit_rows(vectors[known] - middle))
        for name, which in (("true", late), ("false", np.flatnonzero(subjects == subject))):
            near = assign(unit_rows(vectors[which] - middle), found.centroids)
            clear = [
                is_clear(float(cosine), float(own.mean()), len(own))
                for label, cosine in zip(near.labels, near.cosines, strict=True)
                if len(own := found.cosines[found.labels == label])
            ]
            shares[name].append(float(np.mean(clear)))
    return {name: round(float(np.mean(each)), 3) for name, each in shares.items()}


def speed(conversations: int) -> Figures:
    random = np.random.default_rng(1)
    centers = unit_vectors(random, cluster_count(conversations), 384)
    rows = centers[random.integers(len(centers), size=conversations)]
    rows = unit_rows(rows + 1.2 * unit_vectors(random, conversations, 384))
    took = timed(lambda: linked(cluster(centered(rows)).centroids))
    return {
        "conversations": conversations,
        "seconds": round(took.wall_s, 2),
        "processor_seconds": round(took.cpu_s, 2),
    }


def _scores(found: Labels, subjects: Labels) -> Figures:
    """Return purity and normalized mutual information (arithmetic mean of the entropies)."""
    _, rows = np.unique(found, return_inverse=True)
    table = np.zeros((rows.max() + 1, subjects.max() + 1))
    np.add.at(table, (rows, subjects), 1)
    shares = table / table.sum()
    of_rows, of_columns = shares.sum(axis=1), shares.sum(axis=0)
    there = shares > 0
    shared = (shares[there] * np.log(shares[there] / np.outer(of_rows, of_columns)[there])).sum()
    nmi = shared / ((_entropy(of_rows) + _entropy(of_columns)) / 2)
    return {
        "purity": round(float(table.max(axis=1).sum() / table.sum()), 3),
        "nmi": round(float(nmi), 3),
    }


def _entropy(shares: npt.NDArray[np.float64]) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


if __name__ == "__main__":
    main()

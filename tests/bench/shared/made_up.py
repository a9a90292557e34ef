"""Made-up text, exports and vectors, the same each time."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_PER_PASSAGE
from app.domain.passages import Space
from app.language.languages import STOP_WORDS
from app.storage.engine.connection import Connection
from app.storage.engine.store import Store
from app.storage.tables.passages.spaces import table_of
from app.storage.tables.passages.vector_rows import to_blobs

Vectors = npt.NDArray[np.float32]

_VOCABULARY, _EXPONENT = 60_000, 1.05
_SYLLABLES = [
    a + b for a in "bdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "al", "en", "ir")
]
_ENDINGS = ("", "s", "ing", "ed", "er", "ly", "ness")
_VECTOR_BATCH = 5_000


class ZipfText:
    """Words by Zipf's law: 60,000 different ones, the commonest being English stop words."""

    def __init__(self, seed: int = 7) -> None:
        self.source = np.random.default_rng(seed)
        small = sorted(STOP_WORDS["english"])
        coined = [
            "".join(self.source.choice(_SYLLABLES, 2 + number % 2))
            + _ENDINGS[number % len(_ENDINGS)]
            for number in range(_VOCABULARY - len(small))
        ]
        self._words = np.array(small + coined, dtype=object)
        weights = 1 / np.arange(1, _VOCABULARY + 1) ** _EXPONENT
        self._cumulated = np.cumsum(weights / weights.sum())

    def text(self, words: int) -> str:
        places = np.searchsorted(self._cumulated, self.source.random(words))
        drawn = self._words[np.minimum(places, _VOCABULARY - 1)].tolist()
        return ". ".join(" ".join(drawn[at : at + 12]) for at in range(0, words, 12))


def unit_vectors(source: np.random.Generator, count: int, dimension: int) -> Vectors:
    """Return random vectors, float32, (count, dimension), rows of unit length."""
    drawn = source.standard_normal((count, dimension), dtype=np.float32)
    unit: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def insert_vectors(store: Store, space: Space, columns: Sequence[npt.NDArray[np.int64]]) -> None:
    """Write random vectors straight into the table of a space, which exists.

    `columns` are passage, number of the chunk in it, part, start and end.
    """
    source = np.random.default_rng(3)
    statement = (
        f"INSERT INTO {table_of(space.name)} SELECT unnest($1), unnest($2), unnest($3), "
        "unnest($4), unnest($5), unnest($6), now()::TIMESTAMP"
    )

    def insert(values: list[object], connection: Connection) -> None:
        connection.execute(statement, values)

    for at in range(0, len(columns[0]), _VECTOR_BATCH):
        some = [column[at : at + _VECTOR_BATCH].tolist() for column in columns]
        vectors = to_blobs(unit_vectors(source, len(some[0]), space.dimension))
        store.write_derived(partial(insert, [*some, vectors])).result()
    store.checkpoint().result()


def one_chunk_each(first: int, count: int) -> list[npt.NDArray[np.int64]]:
    """Return the columns for `insert_vectors` of passages of one part and one chunk."""
    passages = np.arange(first, first + count)
    zeros = np.zeros_like(passages)
    return [passages, zeros, passages * PARTS_PER_PASSAGE, zeros, zeros + 9]


CONTENT = r"""The short answer is **yes**, with one condition: keep the *anchor*, not the pixel.

1. Remember which turn the eye rests on.
2. Guess heights from lengths, then correct them.

```python
def top_for(anchor, heights, view_height):
    start = heights.before(anchor.index)
    return max(0, start + anchor.offset)  # never above the top
```

| Approach | First paint | Jumps |
|:--|--:|:--:|
| Everything | 4,200 ms | no |
| Anchors | $t_0 + 41$ ms | no |

The error is $\epsilon_n = \frac{h_n - \hat h_n}{h_n}$, and with $\sigma^2 = 1$ it is bounded by

$$
\sum_{k=1}^{n} \epsilon_k \le \sqrt{\frac{2 \log n}{n}}
$$

> A guess is a guess; see [the notes](https://example.org/notes) and `heights.py`.

"""
"""A reply of every kind of content: a list, code, a table, formulas, a quotation."""

"""The embedder on this machine: one of the included models, or an ONNX model in a folder.

onnxruntime and tokenizers are imported by the first use (0.2 s on a warm disk).
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.domain.errors import Cancelled, EmbedderUnavailable
from app.domain.passages import Space
from app.domain.ports import TokenVectors
from app.domain.text import is_mostly_latin
from app.providers.embedders.chunks import chunk_spans, encodable, token_spans
from app.providers.embedders.model_folder import EmbedderFolder, Pooling, read_folder
from app.providers.embedders.unigram import UnigramTokenizer, load_tokenizer

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, RunOptions
    from tokenizers import Encoding, Tokenizer

    AnyTokenizer = Tokenizer | UnigramTokenizer

Vectors = npt.NDArray[np.float32]

# Larger batches are no faster: 512 tokens take 25 MB, 1,024 take 50, 8,192 take 250
BATCH_TOKENS = 512
_CHARS_PER_TOKEN = 32  # text beyond max_tokens times this is not tokenized
_LOG_ERRORS_ONLY = 3
_TOKENS_OUTPUT = "token_embeddings"
_PROJECTED_ROWS = 16  # with more, BLAS starts threads, which compete with the other batches
_LEAST_LENGTH = np.float32(1e-6)


@dataclass(frozen=True, slots=True)
class _Loaded:
    tokenizer: "AnyTokenizer"
    session: "InferenceSession"
    input_names: frozenset[str]
    output: str
    pooling: Pooling
    freeing_options: "RunOptions"  # of the last batch: frees the memory of all batches
    token_projection: Vectors | None  # (dimension of a token, 32)


class LocalEmbedder:
    """The embedder of a model folder; thread-safe, loaded once.

    Attributes:
        threads: The number of concurrent batches, each on one core. 1 leaves the machine to a user
            who is typing. It may change at any time and applies to the next call of `embed`.
    """

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        """Read the folder's metadata; raise `EmbedderUnavailable` if it has no model."""
        self.threads = threads
        self._folder = read_folder(folder)
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def space(self) -> Space:
        """The space of the model: its name, dimension and longest text."""
        return self._folder.space

    @property
    def same_cosine(self) -> float:
        """The cosine from which two statements say the same."""
        return self._folder.same_cosine

    def reads(self, text: str) -> bool:
        """Return whether the model knows the script of most letters of a text."""
        return not self._folder.latin_only or is_mostly_latin(text)

    def load(self) -> None:
        """Load the model unless it is loaded.

        Takes 0.1 to 0.3 s during which onnxruntime keeps the interpreter locked, so call it in the
        background before the first search. Raises `EmbedderUnavailable` for missing, damaged or
        invalid files.
        """
        self._model()

    def embed(
        self,
        texts: Sequence[str],
        cancelled: Callable[[], bool] | None = None,
        *,
        as_queries: bool = False,
    ) -> Vectors:
        """Return float32, (n, dim), rows of unit length, in the order of `texts`.

        Each text gets the model's prefix for queries or for passages. Text beyond
        `space.max_tokens` is ignored. Raises `Cancelled` if `cancelled()` is true between
        two batches, `EmbedderUnavailable` when the model cannot run or returns invalid vectors.
        """
        return self._embed(texts, cancelled, None, as_queries=as_queries)

    @property
    def token_model(self) -> str:
        """The identity of its token vectors, "" for a model without."""
        return self._folder.token_model

    @property
    def unrelated_tokens(self) -> float:
        """The mean cosine of a question's tokens with the nearest ones of an unrelated message."""
        return self._folder.unrelated_tokens

    def embed_with_tokens(
        self,
        texts: Sequence[str],
        cancelled: Callable[[], bool] | None = None,
        *,
        as_queries: bool = False,
    ) -> tuple[Vectors, Sequence[TokenVectors]]:
        """Return the vectors of `embed`, and of the same pass the tokens of each text.

        Raises as `embed`.
        """
        tokens: dict[int, TokenVectors] = {}
        vectors = self._embed(texts, cancelled, tokens, as_queries=as_queries)
        return vectors, [tokens[row] for row in range(len(texts))]

    def _embed(
        self,
        texts: Sequence[str],
        cancelled: Callable[[], bool] | None,
        tokens: dict[int, TokenVectors] | None,
        *,
        as_queries: bool,
    ) -> Vectors:
        """Return the vectors of texts; add their tokens to `tokens` by number of the text."""
        model = self._model()
        vectors = np.empty((len(texts), self.space.dimension), np.float32)
        if not texts:
            return vectors
        prefixes = self._folder.prefixes
        prefix = prefixes.query if as_queries else prefixes.passage
        encoded = self._encode(model.tokenizer, [prefix + text for text in texts])
        batches = list(in_batches([len(one.ids) for one in encoded]))

        def run(rows: list[int]) -> None:
            if cancelled is not None and cancelled():
                raise Cancelled("Embedding was stopped")
            end = model.freeing_options if len(texts) > 1 and rows is batches[-1] else None
            batch = [encoded[row] for row in rows]
            vectors[rows], states = self._run(model, batch, end, with_tokens=tokens is not None)
            if tokens is not None:
                tokens.update(zip(rows, _tokens(batch, states, model, len(prefix)), strict=True))

        if self.threads > 1 and len(batches) > 1:
            with ThreadPoolExecutor(self.threads, thread_name_prefix="embed") as pool:
                jobs = [pool.submit(run, rows) for rows in batches]
                try:
                    for job in jobs:
                        job.result()
                finally:
                    pool.shutdown(cancel_futures=True)
        else:
            for rows in batches:
                run(rows)
        return vectors

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> list[tuple[int, int]]:
        """Return the (start, end) positions of the pieces of `text` that each get a vector.

        In reading order, cut at the end of a paragraph, sentence or word where possible; one piece when
        the text is short enough, none when it is blank. If `max_tokens` exceeds the limit of the space,
        it is lowered to it, and the overlap to at most a tenth.
        """
        tokenizer = self._model().tokenizer
        prefix = tokenizer.encode(self._folder.prefixes.passage)  # with the model's marks
        limit = self.space.max_tokens - len(prefix.ids)
        if max_tokens > limit:
            max_tokens, overlap_tokens = limit, min(overlap_tokens, limit // 10)
        stripped = text.strip()
        # A token has a character or more.
        if 0 < len(stripped) <= max_tokens and stripped.isascii():
            start = text.index(stripped[0])
            return [(start, start + len(stripped))]
        return chunk_spans(text, token_spans(tokenizer, text), max_tokens, overlap_tokens)

    def _encode(self, tokenizer: "AnyTokenizer", texts: Sequence[str]) -> list["Encoding"]:
        """The tokens of the texts with the model's marks, truncated to the limit of the space."""
        longest = self.space.max_tokens
        cut = [encodable(text[: longest * _CHARS_PER_TOKEN]) for text in texts]
        encoded = tokenizer.encode_batch(cut)
        for row, one in enumerate(encoded):
            if len(one.ids) > longest:
                bare = tokenizer.encode(cut[row], add_special_tokens=False)
                bare.truncate(longest - tokenizer.num_special_tokens_to_add(False))
                encoded[row] = tokenizer.post_process(bare)
        return encoded

    def _model(self) -> _Loaded:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _load(self._folder)
        return self._loaded

    def _run(
        self,
        model: _Loaded,
        encoded: Sequence["Encoding"],
        options: "RunOptions | None",
        *,
        with_tokens: bool,
    ) -> tuple[Vectors, Vectors]:
        """The unit vectors of one batch, padded to the longest in it, and those of its tokens."""
        ids = np.zeros((len(encoded), max(len(one.ids) for one in encoded)), np.int64)
        mask = np.zeros_like(ids)
        for row, one in enumerate(encoded):
            ids[row, : len(one.ids)] = one.ids
            mask[row, : len(one.ids)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: value for name, value in feed.items() if name in model.input_names}
        outputs = [model.output, _TOKENS_OUTPUT][: 1 + with_tokens]
        try:
            out, *states = model.session.run(outputs, feed, options)
        except Exception as error:  # onnxruntime's errors have no narrower base class
            raise _cannot("run", self._folder, error) from error
        vectors = _pool(np.asarray(out, np.float32), mask, model.pooling)
        if vectors.shape != (len(encoded), self.space.dimension):
            raise EmbedderUnavailable(
                f"The model in “{self._folder.path}” returns vectors of shape {vectors.shape[1:]}, "
                f"not of {self.space.dimension} numbers",
                "Correct hidden_size in its config.json, or choose another folder.",
            )
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(length).all() or not length.all():
            raise EmbedderUnavailable(
                f"The model in “{self._folder.path}” returns vectors that are not numbers",
                "Choose another folder or the built-in embedder.",
            )
        return vectors / length, states[0] if states else vectors


def in_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows grouped by length, the longest first; at most BATCH_TOKENS including padding."""
    rows = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    batch: list[int] = []
    for row in rows:
        if batch and lengths[batch[0]] * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _tokens(
    encoded: Sequence["Encoding"], states: Vectors, model: _Loaded, prefix_chars: int
) -> Iterator[TokenVectors]:
    """Yield the tokens of each text of a batch, without the prefix; `states` is (texts, longest, dim)."""
    assert model.token_projection is not None
    for one, rows in zip(encoded, states, strict=True):
        spans = np.array(one.offsets, np.int32).reshape(-1, 2) - prefix_chars
        own = np.flatnonzero((np.array(one.special_tokens_mask) == 0) & (spans[:, 1] > 0))
        wide, vectors = rows[own], np.empty((len(own), model.token_projection.shape[1]), np.float32)
        for first in range(0, len(own), _PROJECTED_ROWS):
            some = slice(first, first + _PROJECTED_ROWS)
            np.dot(wide[some], model.token_projection, out=vectors[some])
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _LEAST_LENGTH)
        yield TokenVectors(np.maximum(spans[own], 0), vectors)


def _pool(out: Vectors, mask: npt.NDArray[np.int64], pooling: Pooling) -> Vectors:
    if pooling is Pooling.IN_GRAPH:
        return out
    if pooling is Pooling.FIRST:
        first: Vectors = out[:, 0]
        return first
    weight = mask[:, :, None].astype(np.float32)
    mean: Vectors = (out * weight).sum(axis=1) / weight.sum(axis=1)
    return mean


def _load(folder: EmbedderFolder) -> _Loaded:
    folder.verify()
    # Parallel tokenization takes every core, and warns at a later fork.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # batches run concurrently instead: `LocalEmbedder.threads`
    options.inter_op_num_threads = 1
    options.log_severity_level = _LOG_ERRORS_ONLY
    try:
        tokenizer = load_tokenizer(folder.tokenizer)
        session = onnxruntime.InferenceSession(
            str(folder.model), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # both libraries raise bare exceptions for invalid files
        raise _cannot("be loaded", folder, error) from error
    output, pooling = _choose_output(session.get_outputs(), folder)
    names = frozenset(one.name for one in session.get_inputs())
    freeing_options = onnxruntime.RunOptions()
    freeing_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    projection = None if folder.token_projection is None else np.load(folder.token_projection)
    return _Loaded(tokenizer, session, names, output, pooling, freeing_options, projection)


def _choose_output(outputs: Sequence[Any], folder: EmbedderFolder) -> tuple[str, Pooling]:
    """The output with one vector for each text, else the first one, with one for each token."""
    for one in outputs:
        if len(one.shape) == 2:  # (texts, dim)
            return one.name, Pooling.IN_GRAPH
    return outputs[0].name, folder.pooling


def _cannot(what: str, folder: EmbedderFolder, error: Exception) -> EmbedderUnavailable:
    first_line = (str(error).splitlines() or [type(error).__name__])[0]
    return EmbedderUnavailable(
        f"The embedding model in “{folder.path}” cannot {what}: {first_line[:200]}",
        "Choose another folder or the built-in embedder.",
    )

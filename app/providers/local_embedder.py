"""The embedder that runs on this machine: all-MiniLM-L6-v2 as shipped, or an ONNX folder.

What a folder holds is `embedder_folder`'s business, where a long text is cut `token_chunks`'.
onnxruntime and tokenizers are imported by the first use: they take 0.2 s on a warm disk.
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
from app.providers.embedder_folder import EmbedderFolder, Pooling, read_folder
from app.providers.token_chunks import chunk_spans, encodable, token_spans

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, RunOptions
    from tokenizers import Encoding, Tokenizer

Vectors = npt.NDArray[np.float32]

BATCH_TOKENS = 512  # as fast as any; a batch takes 25 MB, of 1,024 tokens 50, of 8,192 250
_CHARS_PER_TOKEN = 32  # text beyond max_tokens times this is not even tokenised
_LOG_ERRORS_ONLY = 3


@dataclass(frozen=True, slots=True)
class _Loaded:
    tokenizer: "Tokenizer"
    session: "InferenceSession"
    input_names: frozenset[str]
    output: str
    pooling: Pooling
    giving_back: "RunOptions"  # for a last batch: the memory that batches took is freed after it


class LocalEmbedder:
    """Texts to vectors by a model in a folder; thread-safe, loaded once.

    Attributes:
        threads: How many batches run at once, each on one core. 1 leaves the machine to a user who
            is typing. May be changed at any time; the next call of `embed` goes by it.
    """

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        """Read what the folder says of itself; raise `EmbedderUnavailable` if it is no model."""
        self.threads = threads
        self._folder = read_folder(folder)
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def space(self) -> Space:
        """The space of the model: its name, dimension and longest text."""
        return self._folder.space

    def load(self) -> None:
        """Load the model unless it is loaded.

        Takes 0.1 to 0.3 s during which Python's other threads stand still (onnxruntime keeps the
        interpreter locked while loading), so call it in the background before the first search.
        Raises `EmbedderUnavailable` when files are missing, damaged or not what they claim.
        """
        self._model()

    def embed(self, texts: Sequence[str], cancelled: Callable[[], bool] | None = None) -> Vectors:
        """Return float32, (n, dim), rows of unit length, in the order of `texts`.

        Text beyond `space.max_tokens` is ignored. Raises `Cancelled` when `cancelled()` says so
        between two batches, `EmbedderUnavailable` when the model cannot run or answers nonsense.
        """
        model = self._model()
        vectors = np.empty((len(texts), self.space.dimension), np.float32)
        if not texts:
            return vectors
        encoded = self._encode(model.tokenizer, texts)
        batches = list(in_batches([len(one.ids) for one in encoded]))

        def run(rows: list[int]) -> None:
            if cancelled is not None and cancelled():
                raise Cancelled("Embedding was stopped")
            end = model.giving_back if len(texts) > 1 and rows is batches[-1] else None
            vectors[rows] = self._run(model, [encoded[row] for row in rows], end)

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

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many of the model's tokens each text has, its own two marks not counted."""
        return [len(token_spans(self._model().tokenizer, text)) for text in texts]

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> list[tuple[int, int]]:
        """Return the (start, end) offsets of the pieces of `text` that get a vector each.

        In reading order, cut at the end of a paragraph, sentence or word where there is one; one
        piece when the text is short enough, none when it is blank. `max_tokens` is lowered to what
        the space allows; then the overlap is a tenth at most.
        """
        tokenizer = self._model().tokenizer
        room = self.space.max_tokens - tokenizer.num_special_tokens_to_add(False)
        if max_tokens > room:
            max_tokens, overlap_tokens = room, min(overlap_tokens, room // 10)
        said = text.strip()
        if 0 < len(said) <= max_tokens and said.isascii():  # no token is shorter than a character
            start = text.index(said[0])
            return [(start, start + len(said))]
        return chunk_spans(text, token_spans(tokenizer, text), max_tokens, overlap_tokens)

    def _encode(self, tokenizer: "Tokenizer", texts: Sequence[str]) -> list["Encoding"]:
        """The texts' tokens with the model's marks around them, no more than it can read."""
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
        self, model: _Loaded, encoded: Sequence["Encoding"], options: "RunOptions | None"
    ) -> Vectors:
        """The unit vectors of one batch, padded to the longest in it."""
        ids = np.zeros((len(encoded), max(len(one.ids) for one in encoded)), np.int64)
        mask = np.zeros_like(ids)
        for row, one in enumerate(encoded):
            ids[row, : len(one.ids)] = one.ids
            mask[row, : len(one.ids)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: value for name, value in feed.items() if name in model.input_names}
        try:
            out = np.asarray(model.session.run([model.output], feed, options)[0], np.float32)
        except Exception as error:  # onnxruntime derives its errors from nothing narrower
            raise _cannot("run", self._folder, error) from error
        vectors = _pool(out, mask, model.pooling)
        if vectors.shape != (len(encoded), self.space.dimension):
            raise EmbedderUnavailable(
                f"The model in “{self._folder.path}” gives vectors of shape {vectors.shape[1:]}, "
                f"not of {self.space.dimension} numbers",
                "Correct hidden_size in its config.json, or choose another folder.",
            )
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(length).all() or not length.all():
            raise EmbedderUnavailable(
                f"The model in “{self._folder.path}” gives vectors that are no numbers",
                "Choose another folder or the built-in embedder.",
            )
        unit: Vectors = vectors / length
        return unit


def in_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows grouped by length, the longest group first; at most BATCH_TOKENS with padding."""
    rows = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    batch: list[int] = []
    for row in rows:
        if batch and lengths[batch[0]] * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


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
    # Parallel tokenising takes every core from whoever is typing, and warns at a later fork.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # batches run side by side instead: `LocalEmbedder.threads`
    options.inter_op_num_threads = 1
    options.log_severity_level = _LOG_ERRORS_ONLY
    try:
        tokenizer = Tokenizer.from_file(str(folder.tokenizer))
        session = onnxruntime.InferenceSession(
            str(folder.model), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # both libraries raise bare ones for bad files
        raise _cannot("be loaded", folder, error) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()  # `LocalEmbedder` cuts by itself: `chunks` needs every token
    output, pooling = _choose_output(session.get_outputs(), folder)
    names = frozenset(one.name for one in session.get_inputs())
    giving_back = onnxruntime.RunOptions()
    giving_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return _Loaded(tokenizer, session, names, output, pooling, giving_back)


def _choose_output(outputs: Sequence[Any], folder: EmbedderFolder) -> tuple[str, Pooling]:
    """The output that is a vector for each text, else the first one, which is one for each token."""
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

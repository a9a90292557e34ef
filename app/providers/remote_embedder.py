"""The embedder that is a server: OpenAI's, or any with a `/v1/embeddings` of that kind.

The SDK is asked for plain JSON, as for conversations (`connection`): its typed call asks every
server for base64 unless told otherwise, and would misread the plain numbers that some send back.
Nothing is tried again here; errors carry the server's Retry-After to whoever does.
"""

import asyncio
import hashlib
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from app.domain.errors import Cancelled, EmbedderUnavailable
from app.domain.passages import Space
from app.domain.provider_errors import ContextTooLong
from app.domain.workers import Ledger
from app.providers.base_url import BaseUrl
from app.providers.connection import Endpoint, OpenAIConnection
from app.providers.embedding_reply import Vectors, tokens_told, unit_vectors
from app.providers.estimated_tokens import estimated_spans, estimated_tokens, first_tokens
from app.providers.limits import SizeLimits
from app.providers.loop_thread import LoopThread
from app.providers.refusals import Silent
from app.providers.request_pace import RequestPace
from app.providers.streaming import translated
from app.providers.token_chunks import Span, chunk_spans, encodable

BATCH_LIMIT_S = 300.0  # a slow machine may read 32,768 tokens at 110 a second
QUESTION_LIMIT_S = 2.0  # then a search answers by words alone
MOST_INPUTS = 2048  # platform.openai.com/docs/api-reference/embeddings/create
_OPENAI_REQUEST_TOKENS = 300_000  # the same page
_OTHERS_REQUEST_TOKENS = 32_768
_OPENAI_TEXT_TOKENS = 8191
_OTHERS_TEXT_TOKENS = 512  # what most small models read, and llama.cpp takes unless told more
_OPENAI_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_SLACK = 0.875  # of the longest text is used, since its tokens are only estimated
_MORE = 1.3  # tokens are estimated, a cap is not
_SHORTER, _SHORTENINGS = 0.6, 4
_REPLY_BYTES = 256 << 20  # 2,048 vectors of 4,096 numbers in decimals are 180 MB
_PROBE = "dimension"


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """An embedding model of a server. `dimension` None is found out by the first request.

    `max_tokens` is the longest text, `request_tokens` the most of one request, both estimated.
    """

    name: str
    space_name: str
    dimension: int | None
    max_tokens: int
    request_tokens: int
    sends_base64: bool = False


def is_openai_place(base_url: BaseUrl) -> bool:
    """Whether this is OpenAI itself, in any of its regions."""
    return base_url.host == "openai.com" or base_url.host.endswith(".openai.com")


def remote_model(name: str, base_url: BaseUrl) -> RemoteModel:
    """Return what is known of a model at a place.

    OpenAI's spaces have the model's name. Elsewhere eight digits of the whole name and the host
    follow: two servers never share a space by accident.
    """
    short = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40] or "model"
    if is_openai_place(base_url):
        return RemoteModel(
            name,
            short,
            _OPENAI_DIMENSIONS.get(name),
            _OPENAI_TEXT_TOKENS,
            _OPENAI_REQUEST_TOKENS,
            sends_base64=True,
        )
    digest = hashlib.sha256(f"{name} at {base_url.origin.partition('://')[2]}".encode()).hexdigest()
    space_name = f"{short}_{digest[:8]}"
    return RemoteModel(name, space_name, None, _OTHERS_TEXT_TOKENS, _OTHERS_REQUEST_TOKENS)


class RemoteEmbedder:
    """Texts to vectors by a server; thread-safe. Requests run on `loop`, whose closing ends them.

    `cost_of` gives the USD of so many tokens, None when unknown. `batch_limit_s` is the most a
    request may take, `question_limit_s` a question in all (`for_questions`).
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: RemoteModel,
        loop: LoopThread,
        pace: RequestPace,
        *,
        cost_of: Callable[[int], float | None] = lambda _: None,
        batch_limit_s: float = BATCH_LIMIT_S,
        question_limit_s: float = QUESTION_LIMIT_S,
    ) -> None:
        times = replace(endpoint.times, first_byte_s=batch_limit_s)
        sizes = SizeLimits(reply_bytes=_REPLY_BYTES)
        self._connection = _EmbeddingConnection(replace(endpoint, times=times, sizes=sizes))
        self._model = model
        self._loop = loop
        self._pace = pace
        self._cost_of = cost_of
        self._batch_limit_s = batch_limit_s
        self._question_limit_s = question_limit_s
        self._dimension = model.dimension
        self._tokens = 0
        self._lock = threading.Lock()
        loop.at_close(self._connection.aclose)

    @property
    def space(self) -> Space:
        """The space of the model. Where the dimension is not known yet, asks the server: blocks.

        Raises as `embed` does.
        """
        return self.space_within(None)

    @property
    def space_name(self) -> str:
        """The name of `space`, without asking anybody."""
        return self._model.space_name

    @property
    def knows_space(self) -> bool:
        """Whether `space` asks nobody."""
        return self._dimension is not None

    def space_within(self, question_limit_s: float | None) -> Space:
        """`space`, found out within so many seconds where the server must be asked."""
        if self._dimension is None:
            self.embed_within([_PROBE], None, question_limit_s)
        return Space(self._model.space_name, self._dimension or 0, self._model.max_tokens)

    def for_questions(self) -> "QuestionEmbedder":
        """Return the same embedder with a short time limit, for what a person waits for."""
        return self.within(self._question_limit_s)

    def within(self, limit_s: float) -> "QuestionEmbedder":
        """Return the same embedder with another time limit for each request."""
        return QuestionEmbedder(self, limit_s)

    def embed(self, texts: Sequence[str], cancelled: Callable[[], bool] | None = None) -> Vectors:
        """Return float32, (n, dim), rows of unit length, in the order of `texts`. Blocks.

        Text beyond `space.max_tokens` (estimated) is ignored. Raises `Cancelled` within 50 ms of
        `cancelled()`, also in mid-request; `ProviderError` for what the server or the way there
        does, with its Retry-After; `EmbedderUnavailable` for vectors that are none.
        """
        return self.embed_within(texts, cancelled, None)

    def embed_within(
        self,
        texts: Sequence[str],
        cancelled: Callable[[], bool] | None,
        question_limit_s: float | None,
    ) -> Vectors:
        """`embed`, each request as a question of at most so many seconds; None is no question."""
        if not texts:
            return np.empty((0, self.space_within(question_limit_s).dimension), np.float32)
        sendable = [self._sendable(text) for text in texts]
        parts: list[Vectors] = []
        for batch in self._requests(sendable):
            if cancelled is not None and cancelled():
                raise Cancelled("Embedding was stopped")
            ask = partial(self._ask, batch, question_limit_s)
            parts.append(self._loop.call(ask, cancelled))
        return np.concatenate(parts)

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> list[Span]:
        """Return the (start, end) offsets of the pieces of `text` that get a vector each.

        As `LocalEmbedder.chunks`, with estimated tokens. Asks nobody.
        """
        room = int(self._model.max_tokens * _SLACK)
        if max_tokens > room:
            max_tokens, overlap_tokens = room, min(overlap_tokens, room // 10)
        return chunk_spans(
            text, estimated_spans(text, self._model.name), max_tokens, overlap_tokens
        )

    def take_usage(self) -> Ledger | None:
        """Return what was used since the last call, questions included; None for nothing.

        May block: the first price takes 0.25 s.
        """
        with self._lock:
            tokens, self._tokens = self._tokens, 0
        return Ledger(tokens, self._cost_of(tokens)) if tokens else None

    def most(self, texts: Sequence[str]) -> tuple[int, float | None]:
        """Return the most tokens that embedding texts may take, and USD; None is an unknown price.

        May block, as `take_usage`.
        """
        longest = self._model.max_tokens
        tokens = sum(min(longest, estimated_tokens(text, self._model.name)) for text in texts)
        most = math.ceil(tokens * _MORE)
        return most, self._cost_of(most)

    def _sendable(self, text: str) -> str:
        """The text as JSON can carry it and servers take it: never empty."""
        cut = first_tokens(text, self._model.name, self._model.max_tokens)
        return encodable(cut).replace("\0", " ") or " "

    def _requests(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The texts in order, as many at once as a request may hold."""
        batch: list[str] = []
        held = 0
        for text in texts:
            tokens = estimated_tokens(text, self._model.name)
            if batch and (
                len(batch) == MOST_INPUTS or held + tokens > self._model.request_tokens * _SLACK
            ):
                yield batch
                batch, held = [], 0
            batch.append(text)
            held += tokens
        yield batch

    async def _ask(self, texts: list[str], question_limit_s: float | None) -> Vectors:
        """One request; what turns out to be too long is shortened, for tokens are only estimated."""
        longest = max(estimated_tokens(text, self._model.name) for text in texts)
        for shortening in range(_SHORTENINGS + 1):
            try:
                return await self._ask_once(texts, question_limit_s)
            except ContextTooLong:
                if shortening == _SHORTENINGS or question_limit_s is not None:
                    raise
            longest = max(1, int(longest * _SHORTER))
            texts = [first_tokens(text, self._model.name, longest) or " " for text in texts]
        raise AssertionError("unreachable")

    async def _ask_once(self, texts: list[str], question_limit_s: float | None) -> Vectors:
        await self._pace.turn(question_limit_s)
        body: dict[str, Any] = {"model": self._model.name, "input": texts}
        if self._model.sends_base64:
            body["encoding_format"] = "base64"
        try:
            return self._read(await self._post(body, question_limit_s), texts)
        except EmbedderUnavailable:
            raise
        except Exception as caught:  # noqa: BLE001  the edge: foreign errors have no one root
            error = caught
        raise translated(error, self._connection, self._model.name)

    async def _post(self, body: dict[str, Any], question_limit_s: float | None) -> object:
        """The answer within the limit. A batch does not count the seconds that loading takes."""
        if question_limit_s is None:
            await self._connection.load()
        limit_s = question_limit_s or self._batch_limit_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._connection.post_json("/embeddings", body)
        except TimeoutError as error:
            raise Silent(limit_s) from error

    def _read(self, reply: object, texts: list[str]) -> Vectors:
        """The vectors of a reply; its tokens count as used, whatever the vectors are."""
        told = tokens_told(reply)
        if told is None:
            told = sum(estimated_tokens(text, self._model.name) for text in texts)
        with self._lock:
            self._tokens += told
        who = f"'{self._model.name}' at {self._connection.provider}"
        vectors = unit_vectors(reply, len(texts), self._dimension, who)
        self._dimension = vectors.shape[1]
        return vectors


class QuestionEmbedder:
    """A `RemoteEmbedder` that would rather fail soon than keep a person waiting."""

    def __init__(self, embedder: RemoteEmbedder, limit_s: float) -> None:
        self._embedder = embedder
        self._limit_s = limit_s

    @property
    def space(self) -> Space:
        """The space, as `RemoteEmbedder.space`, within the limit."""
        return self._embedder.space_within(self._limit_s)

    def embed(self, texts: Sequence[str], cancelled: Callable[[], bool] | None = None) -> Vectors:
        """Return vectors as `RemoteEmbedder.embed`, or raise `TimedOut` at the limit."""
        return self._embedder.embed_within(texts, cancelled, self._limit_s)

    def within(self, limit_s: float) -> "QuestionEmbedder":
        """Return the same embedder with another limit."""
        return self._embedder.within(limit_s)

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> list[Span]:
        """Return the pieces of `text`, as `RemoteEmbedder.chunks`."""
        return self._embedder.chunks(text, max_tokens, overlap_tokens)


class _EmbeddingConnection(OpenAIConnection):
    """OpenAI's SDK, whole answers instead of streams."""

    async def post_json(self, path: str, body: dict[str, Any]) -> object:
        """Return the decoded JSON that answers `body`."""
        sdk = await self._ready()
        return await sdk.post(path, cast_to=object, body=body, options={"headers": self._headers()})

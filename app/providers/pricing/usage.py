"""Usage of requests: what the server reports, completed by estimates where it reports nothing.

The estimate is scaled by what the last report of the same model came to, so that it includes what
the model's tokenizer and the server's template make of the text. What an unreported request read
from the prompt cache is estimated from what it begins with like the conversation's previous one.

Tokens of a text are estimated where a model's tokenizer is not available: a run of letters is split by the
average bytes per token of the model's family; punctuation and letters beyond Latin weigh more, as they do in
byte-pair vocabularies. There is no tokenizer here: tiktoken downloads its tables at run time.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import takewhile
from threading import Lock

from app.domain.attachments import image_tokens
from app.domain.chat import ChatRequest, ModelRef, UsageReported
from app.domain.conversations import Attachment, Block, Image, Message, Text, ToolCall, ToolResult
from app.domain.ids import ConversationId

# Averages over English prose, code and German, with the vendors' own tokenizers as they publish them
# (openai.com/tokenizer, docs.claude.com/en/docs/about-claude/models, the Llama 3 and Qwen model
# cards).
_BYTES_PER_TOKEN = (
    ("claude", 3.5),
    ("gpt-3", 3.9),
    ("gpt-4-", 3.9),
    ("gpt", 4.2),
    ("o1", 4.2),
    ("o3", 4.2),
    ("o4", 4.2),
    ("gemini", 4.0),
    ("llama", 4.0),
    ("qwen", 3.9),
    ("mistral", 3.7),
    ("deepseek", 3.9),
)
_OTHER_BYTES_PER_TOKEN = 3.7


def estimated_spans(text: str, model: str) -> list[tuple[int, int]]:
    """Return the estimated (start, end) of each token of `text`, in order, without white space."""
    return [match.span() for match in _pieces(model).finditer(text)]


def estimated_tokens(text: str, model: str = "") -> int:
    """Return the estimated number of tokens of `text`, for any model by default."""
    return sum(1 for _ in _pieces(model).finditer(text))


def first_tokens(text: str, model: str, count: int) -> str:
    """Return the first `count` tokens of `text`, estimated; all of it when it is shorter."""
    for number, match in enumerate(_pieces(model).finditer(text), 1):
        if number > count:
            return text[: match.start()]
    return text


def bytes_per_token(model: str) -> float:
    """Return the average UTF-8 bytes per token of the model's family."""
    name = model.casefold().rpartition("/")[2]
    known = (size for prefix, size in _BYTES_PER_TOKEN if name.startswith(prefix))
    return next(known, _OTHER_BYTES_PER_TOKEN)


@cache
def _pieces(model: str) -> re.Pattern[str]:
    letters = round(bytes_per_token(model)) + 1  # the average includes the space before a word
    return re.compile(
        rf"[A-Za-z]{{1,{letters}}}|[0-9]{{1,3}}|[!-/:-@\[-`{{-~]{{1,2}}"
        rf"|[\u0080-\u07ff]{{1,{letters // 2}}}|\S"
    )


_MESSAGE_TOKENS = 4  # the role, and what separates messages
_LEAST_LEARNED_TOKENS = 20  # shorter texts say little about the tokenizer
_FACTORS = (0.4, 2.5)  # beyond these something else was counted, such as hidden reasoning

# platform.openai.com/docs/guides/prompt-caching: what is cached, and for 5 to 10 minutes.
_CACHE_LEAST_TOKENS, _CACHE_STEP_TOKENS, _CACHE_S = 1_024, 128, 600.0
_CONVERSATIONS_KEPT = 64


_Parts = tuple[tuple[int, int], ...]  # (hash, estimated tokens): system and tools, then messages


class UsageEstimator:
    """Completes reported usage, and learns from it. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._factors: dict[tuple[ModelRef, str], float] = {}
        self._sent: OrderedDict[tuple[ModelRef, ConversationId], tuple[float, _Parts]] = (
            OrderedDict()
        )
        self._without_cache: set[ModelRef] = set()

    def input_tokens(self, ref: ModelRef, request: ChatRequest) -> int:
        return self._scaled(ref, "input", request_tokens(request))

    def complete(
        self,
        ref: ModelRef,
        request: ChatRequest,
        written: str,
        reported: UsageReported | None,
        *,
        is_finished: bool,
    ) -> UsageReported:
        """Return the usage of a request whose reply so far is `written`, thinking and calls included.

        It is `reported` itself if that is complete; a count of 0 is not believed. What was reported
        before an unfinished reply ended counts the output only in part. To be called once for each
        request, in their order.
        """
        parts = _parts(request)
        given = sum(tokens for _, tokens in parts)
        made = estimated_tokens(written, ref.model)
        repeated = self._scaled(ref, "input", self._note_sent(ref, request, parts))
        found = reported or UsageReported(0, 0)
        if not found.input_tokens:
            tokens, cached = self._scaled(ref, "input", given), self._cached(ref, repeated)
            found = replace(found, input_tokens=tokens, cached_tokens=cached)
        elif is_finished:
            self._learn(ref, "input", found.input_tokens, given)
            self._learn_cache(ref, repeated, found.cached_tokens)
        if is_finished and found.output_tokens:
            self._learn(ref, "output", found.output_tokens, made)
        else:
            output = max(found.output_tokens, self._scaled(ref, "output", made))
            found = replace(found, output_tokens=output) if output != found.output_tokens else found
        return found

    def _scaled(self, ref: ModelRef, side: str, tokens: int) -> int:
        with self._lock:
            return round(tokens * self._factors.get((ref, side), 1.0))

    def _learn(self, ref: ModelRef, side: str, real: int, estimated: int) -> None:
        if estimated >= _LEAST_LEARNED_TOKENS and _FACTORS[0] < real / estimated < _FACTORS[1]:
            with self._lock:
                self._factors[ref, side] = real / estimated

    # -- the prompt cache

    def _note_sent(self, ref: ModelRef, request: ChatRequest, parts: _Parts) -> int:
        """Keep what was sent; return the tokens that the conversation's last request began with."""
        key, now_s = (ref, request.messages[-1].conversation_id), self._clock()
        with self._lock:
            sent_s, before = self._sent.pop(key, (now_s, ()))
            self._sent[key] = (now_s, parts)
            if len(self._sent) > _CONVERSATIONS_KEPT:
                self._sent.popitem(last=False)
        if now_s - sent_s > _CACHE_S:
            return 0
        pairs = zip(before, parts, strict=False)
        return sum(tokens for _, (_, tokens) in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def _cached(self, ref: ModelRef, repeated_tokens: int) -> int:
        if repeated_tokens < _CACHE_LEAST_TOKENS or ref in self._without_cache:
            return 0
        return repeated_tokens // _CACHE_STEP_TOKENS * _CACHE_STEP_TOKENS

    def _learn_cache(self, ref: ModelRef, repeated_tokens: int, cached_tokens: int) -> None:
        """Note a server that has no cache, or does not report it."""
        if cached_tokens:
            self._without_cache.discard(ref)
        elif repeated_tokens >= 2 * _CACHE_LEAST_TOKENS:
            self._without_cache.add(ref)


def request_tokens(request: ChatRequest) -> int:
    """Return the estimated tokens of a request by text alone, tools and attachments included."""
    return sum(tokens for _, tokens in _parts(request))


def _parts(request: ChatRequest) -> _Parts:
    tools = (f"{each.name} {each.description} {each.parameters_json}" for each in request.tools)
    texts = (request.system, *tools)
    head = sum(estimated_tokens(text, request.model) for text in texts)
    return ((hash(texts), head), *(_part(each, request) for each in request.messages))


def _part(message: Message, request: ChatRequest) -> tuple[int, int]:
    tokens = sum(_block_tokens(block, request) for block in message.blocks)
    return hash((message.role, message.blocks)), tokens + _MESSAGE_TOKENS


def _block_tokens(block: Block, request: ChatRequest) -> int:
    """Return the tokens of a block; an image that the request does not contain is sent as its name."""
    model = request.model
    match block:
        case Text(text=text) | ToolResult(text=text) | Attachment(text=text):
            return estimated_tokens(text, model)
        case ToolCall(name=name, arguments=arguments):
            return estimated_tokens(f"{name} {arguments}", model)
        case Image(name=name):
            is_sent = (block.sent_hash or block.content_hash) in request.images
            return image_tokens(block) if is_sent else estimated_tokens(name, model)
    return 0

"""How many tokens a text is, before it is sent: bytes per token by family, corrected by use.

No tokenizer: tiktoken downloads its tables at run time. What the provider reports is the truth,
and each report teaches the estimate. The bytes per token are averages over English prose, code
and German, counted with the vendors' own tokenizers as published by them (openai.com/tokenizer,
docs.claude.com/en/docs/about-claude/models, the Llama 3 and Qwen model cards).
"""

import json
import threading
from collections.abc import Iterable, Mapping

from app.domain.chat import ChatRequest, ModelRef, ToolSchema
from app.domain.conversations import Attachment, Image, Message, Text, ToolCall, ToolResult

_FAMILIES = (
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
_MESSAGE_TOKENS = 4  # roles and separators around each message (OpenAI cookbook, token counting)
_IMAGE_TOKENS = 1100  # a picture of a megapixel, the larger of the two vendors' formulas
_LEAST_FACTOR, _MOST_FACTOR = 0.4, 2.5
_LEARNING_RATE = 0.2
_LEAST_LESSON_TOKENS = 50


class TokenEstimator:
    """Estimates tokens by model, learning a factor for each from reported usage; thread-safe.

    `factors` are what an earlier session learned, by `PROVIDER:MODEL`.
    """

    def __init__(self, factors: Mapping[str, float] | None = None) -> None:
        self._factors = {name: _bounded(factor) for name, factor in (factors or {}).items()}
        self._lock = threading.Lock()

    def text(self, text: str, ref: ModelRef) -> int:
        """Return about how many tokens a text is; 0 only for an empty one."""
        if not text:
            return 0
        size_bytes = len(text.encode("utf-8", "replace"))
        return max(1, round(size_bytes / bytes_per_token(ref.model) * self._factor(ref)))

    def message(self, message: Message, ref: ModelRef) -> int:
        """Return about how many tokens a message takes in a prompt; thinking is not sent back."""
        tokens = _MESSAGE_TOKENS
        for block in message.blocks:
            match block:
                case Text(text=text) | ToolResult(text=text) | Attachment(text=text):
                    tokens += self.text(text, ref)
                case ToolCall(name=name, arguments=arguments):
                    tokens += self.text(name + arguments, ref) + _MESSAGE_TOKENS
                case Image():
                    tokens += _IMAGE_TOKENS
        return tokens

    def tools(self, tools: Iterable[ToolSchema], ref: ModelRef) -> int:
        """Return about how many tokens tool schemas take."""
        return sum(
            self.text(tool.name + tool.description + tool.parameters_json, ref) + _MESSAGE_TOKENS
            for tool in tools
        )

    def request(self, request: ChatRequest, provider: str) -> int:
        """Return about how many tokens a whole request is."""
        ref = ModelRef(provider, request.model)
        return (
            self.text(request.system, ref)
            + self.tools(request.tools, ref)
            + sum(self.message(message, ref) for message in request.messages)
        )

    def learn(self, ref: ModelRef, estimated: int, reported: int) -> None:
        """Correct the model's factor by what one request of `estimated` tokens really was."""
        if min(estimated, reported) < _LEAST_LESSON_TOKENS:
            return
        with self._lock:
            factor = self._factors.get(str(ref), 1.0)
            wanted = factor * reported / estimated
            self._factors[str(ref)] = _bounded(factor + _LEARNING_RATE * (wanted - factor))

    def factors_json(self) -> str:
        """Return what was learned, as JSON, for the next session."""
        with self._lock:
            return json.dumps({name: round(value, 4) for name, value in self._factors.items()})

    def _factor(self, ref: ModelRef) -> float:
        with self._lock:
            return self._factors.get(str(ref), 1.0)


def bytes_per_token(model: str) -> float:
    """Return how many UTF-8 bytes a token of the model's family is on average."""
    name = model.casefold().rpartition("/")[2]
    known = (size for prefix, size in _FAMILIES if name.startswith(prefix))
    return next(known, _OTHER_BYTES_PER_TOKEN)


def _bounded(factor: float) -> float:
    return min(_MOST_FACTOR, max(_LEAST_FACTOR, factor))

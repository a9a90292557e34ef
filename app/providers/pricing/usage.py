"""Usage of requests: what the server reports, completed by estimates where it reports nothing.

The estimate is scaled by what the last report of the same model came to, so that it includes what
the model's tokenizer and the server's template make of the text.
"""

from dataclasses import replace
from threading import Lock

from app.domain.chat import ChatRequest, ModelRef, UsageReported
from app.domain.conversations import Attachment, Block, Image, Text, ToolCall, ToolResult
from app.providers.pricing.estimated_tokens import estimated_tokens

_MESSAGE_TOKENS = 4  # the role, and what separates messages
_IMAGE_TOKENS = 1_000  # about a megapixel: docs.claude.com/en/docs/build-with-claude/vision
_LEAST_LEARNED_TOKENS = 20  # shorter texts say little about the tokenizer
_FACTORS = (0.4, 2.5)  # beyond these something else was counted, such as hidden reasoning


class UsageEstimator:
    """Completes reported usage, and learns from it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._factors: dict[tuple[ModelRef, str], float] = {}

    def input_tokens(self, ref: ModelRef, request: ChatRequest) -> int:
        """Return the estimated tokens of a request."""
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
        before an unfinished reply ended counts the output only in part.
        """
        given, made = request_tokens(request), estimated_tokens(written, ref.model)
        found = reported or UsageReported(0, 0)
        if not found.input_tokens:
            found = replace(found, input_tokens=self._scaled(ref, "input", given))
        elif is_finished:
            self._learn(ref, "input", found.input_tokens, given)
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


def request_tokens(request: ChatRequest) -> int:
    """Return the estimated tokens of a request by text alone, tools and attachments included."""
    tools = (f"{each.name} {each.description} {each.parameters_json}" for each in request.tools)
    blocks = [block for message in request.messages for block in message.blocks]
    images = sum(isinstance(block, Image) for block in blocks)
    texts = (request.system, *tools, *map(_text, blocks))
    tokens = sum(estimated_tokens(text, request.model) for text in texts)
    return tokens + _MESSAGE_TOKENS * len(request.messages) + _IMAGE_TOKENS * images


def _text(block: Block) -> str:
    match block:
        case Text(text=text) | ToolResult(text=text) | Attachment(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name} {arguments}"
    return ""

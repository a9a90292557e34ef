"""Context-length refusals: the sizes that servers name in them.

Texts of vLLM, llama.cpp, LM Studio, OpenAI, Anthropic, OpenRouter, Mistral, Gemini, xAI, Cohere, TGI
and Moonshot; llama.cpp adds numbers as fields. Ollama names only by how much a prompt is too long.
"""

import re

from app.domain.errors import ContextTooLong

_NUMBER = r"(\d[\d,]*)"
_BETWEEN = r"(?:(?! by )[^\d+>]){0,40}?"
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"> ?{_NUMBER}(?: maximum|, decrease)",
        rf"{_NUMBER}(?:-token)?(?: maximum)? context",
        rf"context (?:length|window|size|limit){_BETWEEN}{_NUMBER}(?![\d,]* ?\+)",
        rf"(?:(?:model|prompt) length|limit|number of tokens|cannot exceed|<=){_BETWEEN}{_NUMBER}",
    )
)
_PROMPT = re.compile(  # where a refusal names the prompt and the reply apart
    rf"{_NUMBER} (?:(?:tokens )?(?:in|from) the (?:messages|prompt)|of text input|`?inputs?`? tokens)"
    rf"|{_NUMBER} ?\+ ?[\d,]+ ?>",
    re.IGNORECASE,
)
_REPLY = re.compile(r"completion|output|max_\w*tokens", re.IGNORECASE)
_ANY_NUMBER = re.compile(_NUMBER)
_LEAST_TOKENS, _MOST_TOKENS = 256, 100_000_000


def refused_sizes(message: str) -> tuple[int | None, int | None]:
    """Return (the model's window, the refused prompt) in tokens, as far as the server names them."""
    found = (pattern.search(message) for pattern in _LIMITS)
    numbers = (_tokens(match[1]) for match in found if match)
    limit = next((each for each in numbers if _LEAST_TOKENS <= each <= _MOST_TOKENS), None)
    if limit is None:
        return None, None
    if (prompt := _PROMPT.search(message)) is not None:
        return limit, _tokens(prompt[1] or prompt[2])
    if _REPLY.search(message):
        return limit, None  # what else it names contains the reply
    most = max(_tokens(each) for each in _ANY_NUMBER.findall(message))
    return limit, most if limit < most <= _MOST_TOKENS else None


def reply_tokens_after(most: int | None, refusal: ContextTooLong, least_share: float) -> int | None:
    """Return how long a reply may be after a refusal; None for the model's default.

    `most` is how long it might have been, `least_share` the part of the window that its prompt leaves free
    in any case.
    """
    limit = refusal.limit_tokens
    if limit is None or (most is None and not refusal.is_by_reply):
        return most
    prompt = limit if refusal.prompt_tokens is None else refusal.prompt_tokens
    room = max(limit - prompt, int(limit * least_share))
    return room if most is None else min(most, room)


def _tokens(text: str) -> int:
    return int(text.replace(",", "")[:12])

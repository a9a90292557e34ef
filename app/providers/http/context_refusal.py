"""Context-length refusals: the sizes that servers name in them.

Texts of vLLM, llama.cpp, LM Studio, OpenAI, Anthropic, OpenRouter, Mistral, Gemini, xAI, Cohere, TGI
and Moonshot; llama.cpp adds numbers as fields. Ollama names only by how much a prompt is too long.
"""

import re

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
_ANY_NUMBER = re.compile(_NUMBER)
_LEAST_TOKENS, _MOST_TOKENS = 256, 100_000_000


def refused_sizes(message: str) -> tuple[int | None, int | None]:
    """Return (the model's window, the refused request) in tokens, as far as the server names them."""
    found = (pattern.search(message) for pattern in _LIMITS)
    numbers = (_tokens(match[1]) for match in found if match)
    limit = next((each for each in numbers if _LEAST_TOKENS <= each <= _MOST_TOKENS), None)
    if limit is None:
        return None, None
    most = max(_tokens(each) for each in _ANY_NUMBER.findall(message))
    return limit, most if limit < most <= _MOST_TOKENS else None


def _tokens(text: str) -> int:
    return int(text.replace(",", "")[:12])

"""Estimates of tokens and their positions, for models whose tokenizer is not available.

A run of letters is split by the average bytes per token of the model's family; punctuation and
letters beyond Latin weigh more, as they do in byte-pair vocabularies. There is no tokenizer here:
tiktoken downloads its tables at run time.
"""

import re
from functools import cache

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

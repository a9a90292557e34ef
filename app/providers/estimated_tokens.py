"""Where a text's tokens would end, for models whose tokenizer is elsewhere: an estimate.

A run of letters is cut by the bytes per token of the model's family (`tokens`), signs and letters
beyond Latin weigh more, as they do in byte-pair vocabularies.
"""

import re
from functools import cache

from app.providers.token_chunks import Span
from app.providers.tokens import bytes_per_token


def estimated_spans(text: str, model: str) -> list[Span]:
    """Return (start, end) of about every token of `text`, in order; white space belongs to none."""
    return [match.span() for match in _pieces(model).finditer(text)]


def estimated_tokens(text: str, model: str) -> int:
    """Return about how many tokens `text` is."""
    return sum(1 for _ in _pieces(model).finditer(text))


def first_tokens(text: str, model: str, count: int) -> str:
    """Return the beginning of `text` that is about `count` tokens; all of it when it is shorter."""
    for number, match in enumerate(_pieces(model).finditer(text), 1):
        if number > count:
            return text[: match.start()]
    return text


@cache
def _pieces(model: str) -> re.Pattern[str]:
    # The average counts the space before a word, which comes on top here.
    letters = round(bytes_per_token(model)) + 1
    return re.compile(
        rf"[A-Za-z]{{1,{letters}}}|[0-9]{{1,3}}|[!-/:-@\[-`{{-~]{{1,2}}"
        rf"|[\u0080-\u07ff]{{1,{letters // 2}}}|\S"
    )

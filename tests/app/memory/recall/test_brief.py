"""Tokens of a brief: their estimate is never below the highest number of tokenizers; what is said if nothing is found."""

from types import SimpleNamespace
from typing import cast

import pytest

from app.memory.recall.answers import AnswerFinder
from app.memory.recall.brief import MIN_TOKENS, Briefs, most_tokens
from app.storage.engine.store import Store


@pytest.mark.parametrize(
    ("text", "tokens"),
    [  # of cl100k_base, o200k_base and Claude's tokenizer the one that counts most
        ("We decided to keep the northern dyke closed until the herons leave.", 15),
        ("2026-09-03T10:07:00Z [12] 127.0.0.1:8012 GET /a/b?x=444 212 20.40ms", 42),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 44),
        ("我们决定在苍鹭离开之前保持北部堤坝关闭。", 25),
        ("เราตัดสินใจปิดเขื่อนทางเหนือไว้จนกว่านกกระสาจะจากไป", 89),
        ("Tuliamua kufunga tuta la kaskazini hadi korongo waondoke kwenye kinamasi.", 30),
        ("Úgy döntöttünk, hogy az északi gátat zárva tartjuk.", 27),
        ("🦩🌊🔒✅🚧🧪", 17),
    ],
)
def test_no_tokenizer_counts_more_tokens(text: str, tokens: int) -> None:
    assert tokens <= most_tokens(text) <= 2.2 * tokens


@pytest.mark.parametrize(
    "question",
    ["Which dyke?", "Решили ли мы держать северную плотину закрытой до отлёта цапель?"[:60], "鹭" * 46, "🦩" * 120],
)  # fmt: skip
def test_a_brief_in_which_nothing_was_found_says_so_at_the_least_limit(
    store: Store, question: str
) -> None:
    finder = cast(AnswerFinder, SimpleNamespace(find=lambda *_: ()))
    text = Briefs(store, finder).write(question, MIN_TOKENS)
    assert "Nothing about this was found." in text
    assert "does not fit" not in text
    assert most_tokens(text) <= MIN_TOKENS

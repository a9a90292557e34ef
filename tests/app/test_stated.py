"""The statements of a message, without its questions and quotations."""

import pytest

from app.chat.tools.stated import stated_in

NOTHING = (
    "What do I know about bees?", "so what do I know about bees",
    "Which hives have I bought, by the way?", "Have I ever kept bees",
    "Show me what I noted about bees.", "Explain how one keeps bees",
    "Write a poem about someone who keeps bees", "Schreib mir ein Gedicht über Bienen",
    "Can you remember what I said about bees?", "Was weiß ich über Bienen",
    "Que sais-je des abeilles\xa0?", "¿Qué sé de abejas?", "我养蜜蜂吗", "> I keep bees",
    "```\nI keep bees\n```", "can you " * 20_000 + '"„«「' * 20_000,
)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        *((text, "") for text in NOTHING),
        ("I live in Oslo, what should I pack?", "i live in oslo"),
        ("Could you note that my name is Ada?", "my name is ada"),
        ("Kannst du dir merken, dass ich in Oslo wohne?", "ich in oslo wohne"),
        ("Is it 3.5 km?\nI run it daily", "i run it daily"),
        ("I wonder if I keep bees", "i "),
        ("What I want is short answers", "what i want is short answers"),
        ("When I was ten I moved to Oslo", "when i was ten i moved to oslo"),
        ("Do not use emoji", "do not use emoji"),
        ("That is my dog", "that is my dog"),
        ("Write short answers", "write short answers"),
        ("Explain things simply", "explain things simply"),
        ('Call me "Ada"', 'call me "ada"'),
        ("我养蜜蜂", "我养蜜蜂"),
    ],
    ids=range(29),
)
def test_only_statements_are_returned(said: str, stated: str) -> None:
    assert stated_in(said) == stated

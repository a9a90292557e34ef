"""Made-up prose that reads a little like a conversation; the same for the same random source."""

import random


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_WORDS = _listed(
    "the a of to and in is that it for on with as at by from this be are was or an which if not but "
    "we you they when then how why what where can should would will there have has had do does"
)
_SUBJECTS = _listed(
    "garden kettle engine query sonata recipe window ladder novel bicycle budget harbour mountain "
    "index table thread keyboard lantern theorem bread orchestra passport battery compiler river "
    "museum contract forest satellite violin journal magnet saddle telescope vineyard"
)
_ACTIONS = _listed(
    "compare measure repair translate refactor plan simmer rehearse insulate classify draft prune "
    "calibrate summarise balance deploy sketch ferment tune archive"
)


def paragraph(source: random.Random, words: int) -> str:
    """Return sentences of about so many words, sometimes with code or umlauts in them."""
    wanted = max(3, int(source.gauss(words, words / 4)))
    sentences = []
    while wanted > 0:
        length = min(wanted, source.randint(6, 16))
        sentences.append(_sentence(source, length))
        wanted -= length
    text = " ".join(sentences)
    roll = source.random()
    if roll < 0.05:
        text += f'\n\n```python\nprint("{source.choice(_SUBJECTS)}")\n```'
    elif roll < 0.1:
        text += " Grüße aus Köln, 東京 and «Москва» 🙂."
    return text


def topic(source: random.Random) -> str:
    """Return something like a title."""
    return f"{source.choice(_ACTIONS)} the {source.choice(_SUBJECTS)}".capitalize()


def _sentence(source: random.Random, length: int) -> str:
    picked = [
        source.choice(_SUBJECTS if place % 4 == 2 else _ACTIONS if place % 7 == 3 else _WORDS)
        for place in range(length)
    ]
    return " ".join(picked).capitalize() + source.choice((".", ".", ".", "?", ","))

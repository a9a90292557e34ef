"""Named speakers of a conversation between people, whose messages begin with their names."""

import re
from collections import Counter
from collections.abc import Collection, Iterable

_PREFIX = re.compile(r"([A-Z][\w'.-]{0,30}(?: [A-Z][\w'.-]{0,30}){0,2}): (?=\S)")
_LEAST_MESSAGES = 2
_SHARE_OF_A_TALK = 0.75


def find_speakers(messages: Iterable[str]) -> frozenset[str]:
    """Return the named speakers of a conversation, from its messages or their first 100 characters.

    Only a conversation between named people has speakers: each name starts several messages, and
    together they start most of them.
    """
    led = [found[1] if (found := _PREFIX.match(message)) else "" for message in messages]
    counts = Counter(name for name in led if name)
    names = frozenset(name for name, count in counts.items() if count >= _LEAST_MESSAGES)
    most = sum(counts[name] for name in names) >= _SHARE_OF_A_TALK * len(led)
    return names if most else frozenset()


def split_speaker(text: str, speakers: Collection[str]) -> tuple[str, str]:
    """Return the speaker of a message ("Ann" of "Ann: Hello") and the rest; "" for none of `speakers`."""
    found = _PREFIX.match(text)
    if found is None or found[1] not in speakers:
        return "", text
    return found[1], text[found.end() :]

"""What of a text is a command and what is an ordinary message.

A command begins with one slash and a word right after it. A message may begin with a slash all the
same: after a space, as `//` (a comment in many languages), or where the first word cannot be a
command's name (`/*`, `/usr/bin/env`) and more follows it. Alone, such a word is held back: it may be
a slip, and a path by itself is no question. Nothing that was typed is changed.
"""

import re

from app.chat.commands.values import Given, Place

_NAME = re.compile(r"/([a-z][a-z0-9_-]*)", re.IGNORECASE)


def is_command(text: str) -> bool:
    """Return whether a text is for the program, known or not, and not for a model."""
    if not text.startswith("/") or text.startswith("//"):
        return False
    words = text.split(maxsplit=1)
    return _NAME.fullmatch(words[0]) is not None or len(words) == 1


def parse(text: str, place: Place) -> Given:
    """Return a command's name, in small letters, and what follows it, for which `is_command` holds."""
    words = text.split(maxsplit=1)
    rest = words[1].strip() if len(words) > 1 else ""
    return Given(words[0].removeprefix("/").casefold(), rest, place)

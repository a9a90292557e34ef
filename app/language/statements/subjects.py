"""Subjects of facts that have one value at a time, such as "ann: employer". English.

Two facts with the same subject and different values contradict each other.
"""

import re

_RELATION = "wife|husband|spouse|partner|girlfriend|boyfriend|fiancée|fiancé|fiancee|fiance"
_END = r"(?=\s+(?:since|because|in (?:\w+ )?\d{4}|on \d|around \d|as an?|now|these days|currently|and|but|for|with|after|as of|when|where|from|originally)\b|[,.;]|$)"
_VALUE = rf"(?P<value>[^,.;]+?){_END}"
_AT = r"(?:currently |now |still |just |recently |also |actually )*"

# Attributes of WHO with one value at a time, and the position of the value.
_SINGLE = (
    ("name", rf"WHOSE (?:first |full |real )?name is {_VALUE}"),
    ("form of address", rf"WHO asks to call them (?P<value>\w+){_END}"),
    ("nickname", rf"WHOSE nickname is {_VALUE}"),
    ("age", r"WHO is (?P<value>\d{1,3})(?: years old)?$"),
    ("birthday", rf"WHOSE birthday is (?:on )?{_VALUE}"),
    ("home", rf"WHO {_AT}(?:lives?|is living|is based) in {_VALUE}"),
    ("home", rf"WHO (?:has )?{_AT}(?:moved|relocated) (?:back )?(?:from [\w ]+? )?to {_VALUE}"),
    ("origin", rf"WHO is {_AT}(?:originally )?from {_VALUE}"),
    ("hometown", rf"WHOSE home ?town is {_VALUE}"),
    ("employer", rf"WHO {_AT}(?:works|is working) (?:\w+ time )?(?:as an? [\w -]+? )?(?:at|for) (?!home\b|a living|myself|a\b|an\b|\d)(?:the )?{_VALUE}"),
    ("employer", rf"WHO (?:has )?{_AT}(?:joined|started (?:working )?at|started a (?:new )?job at) (?!a\b|an\b|the\b|my\b|their\b)(?P<value>[A-Z][\w&.-]*(?: [A-Z][\w&.-]*)*){_END}"),
    ("job", rf"WHO {_AT}(?:works|is working) as (?:an? |the )?{_VALUE}(?= at | for |$)"),
    ("job", rf"WHOSE job is (?:as )?(?:an? |being an? )?{_VALUE}"),
    ("diet", r"WHO is (?:an? |now )*(?P<value>vegan|vegetarian|pescatarian)\b"),
    ("marital status", r"WHO (?:is|got|has gotten|has got) (?:now )?(?P<value>married|single|divorced|engaged|widowed)\b"),
    ("pronouns", rf"WHOSE pronouns are {_VALUE}"),
    ("time zone", rf"WHOSE time ?zone is {_VALUE}"),
    ("native language", rf"WHOSE (?:native language|mother tongue) is {_VALUE}"),
)  # fmt: skip
_FAVOURITE = (
    rf"WHOSE (?:all-time )?favou?rite (?P<what>[\w' -]{{2,40}}?) (?:is|are|was) (?:now )?{_VALUE}"
)
_PARTNER = (
    rf"WHOSE (?:{_RELATION})(?:'s name is|(?: is|,)? (?:called |named )?)\s*(?P<value>[A-Z]\w+)"
)
_TOOL = rf"WHO {_AT}(?:uses|prefers to use|switched to|has switched to) (?P<value>[^,.;]+?) for (?P<what>[^,.;]+?){_END}"
_LANGUAGE = r"WHO asks (?:always )?to (?:answer|respond|reply|speak|talk)(?: to them)? (?:only |always )?in (?P<value>[A-Z]\w+(?: [A-Z]\w+)?)"


def subject_and_value(text: str, who: str) -> tuple[str, str]:
    """Return (subject, value) of a statement about `who` in lower case; ("", "") for none."""
    said = text.rstrip(".")
    key = who.lower().removeprefix("the ")
    for name, pattern in _SINGLE:
        if (found := _match(pattern, said, who)) is not None:
            return f"{key}: {name}", _value(found)
    if (found := _match(_FAVOURITE, said, who)) is not None:
        return f"{key}: favourite {found['what'].lower().strip()}", _value(found)
    if (found := _match(_PARTNER, said, who, exact=True)) is not None:
        return f"{key}: partner", _value(found)
    if (found := _match(_TOOL, said, who)) is not None and len(found["what"].split()) <= 5:
        return f"{key}: for {_plain(found['what'])}", _value(found)
    if (found := _match(_LANGUAGE, said, who)) is not None:
        return f"{key}: language of answers", _value(found)
    return "", ""


def _match(pattern: str, said: str, who: str, *, exact: bool = False) -> re.Match[str] | None:
    name = re.escape(who)
    owner = f"{name}'s?"
    filled = pattern.replace("WHOSE", owner).replace("WHO", name)
    return re.match(filled, said, 0 if exact else re.IGNORECASE)


def _value(found: re.Match[str]) -> str:
    return re.sub(r" (?:recently|lately|again|too|as well)$", "", _plain(found["value"]))


def _plain(words: str) -> str:
    return re.sub(r"^(?:the|a|an|their|my) ", "", " ".join(words.lower().split()))

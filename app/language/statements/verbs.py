"""English verb forms: the base of an inflected form, and the third person."""

from types import MappingProxyType

from app.language.word_lists import read_words

_VERBS = read_words("english_verbs")
_FORMS = [forms.split("/") for forms in _VERBS["irregular"]]
_PAST = {past: base for base, past, *_ in _FORMS}
_PARTICIPLES = {forms[-1]: forms[0] for forms in _FORMS}
_PARTICIPLES["got"] = "get"
BASES = frozenset(_VERBS["regular"]) | frozenset(_PAST.values())
_THIRD = MappingProxyType({"be": "is", "have": "has", "do": "does", "go": "goes"})
_VOWELS = frozenset("aeiou")


def past_base(word: str) -> str | None:
    """Return the base of a past form in lower case, None for any other word."""
    if word in _VERBS["unchanged past"]:
        return word
    return _PAST.get(word) or _regular_base(word)


def participle_base(word: str) -> str | None:
    """Return the base of a past participle, None for any other word."""
    return _PARTICIPLES.get(word) or _regular_base(word)


def gerund_base(word: str) -> str | None:
    """Return the base of a form in -ing that is known, None for any other word."""
    if not word.endswith("ing") or len(word) < 5:
        return None
    stem = word[:-3]
    for base in (stem, stem + "e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem):
        if base in BASES:
            return base
    return {"lying": "lie", "dying": "die", "being": "be"}.get(word)


def third_form(base: str) -> str:
    """Return the third person: works, carries, has."""
    if base in _THIRD:
        return _THIRD[base]
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _regular_base(word: str) -> str | None:
    if not word.endswith("ed") or word in _VERBS["not past"] or len(word) < 4:
        return None
    stem = word[:-2]
    if word.endswith("ied"):
        return stem[:-1] + "y"
    for base in (stem, stem + "e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem):
        if base in BASES:
            return base
    return stem

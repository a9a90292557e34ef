"""Whether a turn tells anything: "I do not know" after a question holds all its words and answers none.

Told by what the turn lacks: the user only asks, and what comes back asks too, or says in a few words
that it does not know and names nothing, no number and no name, that the question has not.
"""

import re
from functools import cache

from app.index.analyser import surface_of
from app.index.stop_words import STOP_WORDS
from app.index.traits import asking_share

_ONLY_ASKS = 0.75  # of the words
_MOST_WORDS = 60  # of an answer that says no more than that there is none
_SAMPLE_CHARS = 1_200
_NOT_KNOWING = re.compile(
    r"\b(?:do|does|did|have|has|had|is|are|was|were|ca|could|can)(?: ?not|n['’]?t)\b[^.!?\n]{0,60}?"
    r"\b(?:know|information|records?|recall|remember|access|mention(?:ed)?|told|tell|said|shared?"
    r"|provided|details?|context|find|found|sure|certain|aware|answer)\b"
    r"|\b(?:no|any|without|unable to) (?:\w+ ){0,2}(?:information|records?|memory|recall|details?"
    r"|context|mention|access|idea|answer|find|know)\b|\bfound nothing\b"
    r"|\b(?:weiß|weiss|kenne|finde|erinnere|habe|liegen)\b[^.!?\n]{0,40}?\b(?:nicht|nichts|kein\w*)\b"
    r"|\bkeine (?:ahnung|informationen|angaben)\b"
    r"|\b(?:sais|connais|trouve|souviens|ai|dispose)\b[^.!?\n]{0,20}?\b(?:pas|aucune?|rien)\b"
    r"|\bno (?:lo |la |me )?(?:sé|tengo|conozco|recuerdo|encuentro|acuerdo|dispongo)\b"
    r"|\bnon (?:lo |la |mi )?(?:so|ho|conosco|ricordo|trovo|dispongo)\b"
    r"|\bnão (?:o |a |me )?(?:sei|tenho|conheço|lembro|encontro|encontrei)\b"
    r"|\bweet\b[^.!?\n]{0,20}?\bniet\b|\bgeen (?:idee|informatie)\b|\b(?:vet|ved) (?:inte|ikke)\b"
    r"|\bnie (?:wiem|znam|pamiętam|mam)\b"
    r"|\bне (?:знаю|помню|наш[её]л|могу)\b|\bнет (?:информации|данных)\b"
    r"|(?:わかり|分かり|知り)ません|情報が?あり?ません|不知道|不清楚|[没沒]有.{0,8}(?:信息|[資资]料|[记記][录錄])"
    r"|모르|알 수 없",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_SENTENCE_START = re.compile(r"(?:^|[.!?…\n])[\s\"“„«(*_>-]*$")


def tells_nothing(asked: str, answered: str, question: str = "") -> bool:
    """Return whether a turn only asks, by what the user and the other side said in it.

    `question` is what is asked now: to say just that is to ask, whatever signs are missing.
    """
    if asking_share(asked) < _ONLY_ASKS and not _words(asked) <= _words(question):
        return False
    if not answered.strip() or asking_share(answered) >= _ONLY_ASKS:
        return True
    if len(answered) > _SAMPLE_CHARS or len(_WORD.findall(answered)) > _MOST_WORDS:
        return False
    return _NOT_KNOWING.search(answered) is not None and not _names_anything(answered, asked)


def _names_anything(answered: str, asked: str) -> bool:
    """Return whether an answer has a number, or a name within a sentence, that the question has not."""
    known = _words(asked) | _small()
    return any(
        found[0].casefold() not in known
        for found in _WORD.finditer(answered)
        if found[0][0].isdigit()
        or (found[0][0].isupper() and not _SENTENCE_START.search(answered[: found.start()]))
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(surface_of(text[:_SAMPLE_CHARS].casefold()))


@cache
def _small() -> frozenset[str]:
    return frozenset({"i'm", "i've", "i'd"}).union(*STOP_WORDS.values())

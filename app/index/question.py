"""What a question asks for, besides its words: a time, somebody, and which of its words matter.

The word lists here are English; in other languages only the words of a request are left out.
"""

import re
from dataclasses import dataclass

from app.index.requests import without_request

_TIME = re.compile(
    r"\b(?:when|how long|how recently|how often|what (?:date|day|time|month|year|season)"
    r"|which (?:date|day|month|year|week)|what is the date)\b",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\b(?:suggest(?:ions?)?|recommend(?:ations?)?|advice|tips|should i|how (?:can|could|do) i"
    r"|i['’]?m (?:looking|planning|trying|thinking|working|about)|help me|what options)\b",
    re.IGNORECASE,
)
_LOOKING_BACK = re.compile(
    r"\b(?:summary|summari[sz]e|overview|recap|(?:order|sequence) in which|in (?:what|which) order"
    r"|in order(?! (?:to|for|that)\b))\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?")
_POSSESSIVE = re.compile(r"['’]s?$")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_HOW_TO_ANSWER = re.compile(
    r"^\W*(?:please\s+)?(?:answer|respond|reply|keep it|be (?:brief|concise|specific)|list (?:only|just)"
    r"|use (?:bullet|short)|in (?:one|two|a few) (?:word|sentence)|only (?:use|give|mention)"
    r"|limit (?:your|the)|give (?:a|me a) (?:short|brief)|explain your|mention only)\b",
    re.IGNORECASE,
)
_ABOUT_TALK = re.compile(
    r"\b(?:can|could|would) you\b|\bplease\b|\b(?:tell|remind|give|show|help) me\b"
    r"|\b(?:our|my|your|the|previous|earlier|past|prior) (?:conversation|chat|discussion|message)s?\b"
    r"|\b(?:across|in|throughout) (?:all )?(?:our|my) (?:session|request|question)s\b"
    r"|\bwalk me through\b|\b(?:the )?(?:order|sequence) in which\b|\bin (?:what|which) order\b"
    r"|\bin order\b(?! (?:to|for|that)\b)|\b(?:different|various) (?:aspects|parts) of\b"
    r"|\b(?:has|have) (?:developed|progressed|evolved)(?=,| (?:over|so|through\w*|across|including)\b)"
    r"|\b(?:over time|so far|along the way)\b"
    r"|\bincluding (?:the |any )?(?:key|main|most important)\b"
    r"|\b(?:did|have|had) (?:i|we|you) (?:ever |previously |already )?(?:say|said|mention|mentioned|"
    r"discuss|discussed|talk|talked|tell|told|ask|asked)(?: about| you)?\b"
    r"|\b(?:mentioned|discussed|talked about|told you|asked you|brought up)\b"
    r"|\b(?:said|say|says|told|wrote|spoke)(?: (?:me|us|him|her|them))?(?= (?:about|regarding|concerning)\b)"
    r"|\b(?:provide|write|give|create)?\s?(?:a |an )?(?:comprehensive |brief |detailed |short |clear )*"
    r"(?:summary|overview|recap) of\b|\bsummari[sz]e\b|\baccording to\b|\bthroughout\b|\bacross\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A query read as a question.

    `asked` is what is to be found, without sentences that only say how to answer, without the words of
    a request and without those about the talk itself: what is embedded and searched. `names` are capitalised words, case folded.
    """

    asked: str
    wants_time: bool
    wants_advice: bool
    looks_back: bool
    names: frozenset[str]


def read_question(text: str) -> Question:
    """Return what `text` asks for; `asked` is never empty unless `text` is blank."""
    sentences = [each[0] for each in _SENTENCE.finditer(text)]
    kept = [each for each in sentences if not _HOW_TO_ANSWER.match(each)] or sentences
    whole = without_request("".join(kept).strip())
    bare = " ".join(_ABOUT_TALK.sub(" ", whole).split())
    asked = bare if len(bare.split()) > 1 else whole or text.strip()
    names = set()
    for match in _NAME.finditer(text):
        words = [_POSSESSIVE.sub("", word).casefold() for word in match[0].split()]
        names.update(words)
        names.add(" ".join(words))
    return Question(
        asked,
        wants_time=_TIME.search(text) is not None,
        wants_advice=_ADVICE.search(text) is not None,
        looks_back=_LOOKING_BACK.search(text) is not None,
        names=frozenset(names),
    )

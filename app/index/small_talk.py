"""Small talk and non-answers: messages that name nothing to recall, and turns that state nothing.

Small talk is short, and none of its words names a subject: all are function words of some language, courtesies
or words that many messages contain. A non-answer is a turn in which the user only asks, and the reply asks
too, or says in a few words that it does not know, without a number or name that the question lacks.
"""

import re
from collections.abc import Mapping
from functools import cache

from app.index.message_traits import question_share
from app.language.analyzer import surface_words_of
from app.language.word_lists import ALL_STOP_WORDS, word_sets

_SHORT_WORDS = 8
_VERY_SHORT_WORDS = 3
_COMMON_SHARE = 0.02  # a word in more of the messages identifies nothing
_MANY_MESSAGES = 500  # too few messages say nothing about common words


_WORDS = word_sets("requests")
COURTESIES = _WORDS["courtesies"]
_UNSPACED = _WORDS["unspaced courtesies"]
_HOW_ARE_YOU = re.compile(
    r"how(?: are|'re|’re) (?:you|things)(?: doing)?(?: today)?|how(?:'s|’s| is) it going|what(?:'s|’s) up"
    r"|wie geht(?:'s|’s|s| es) ?(?:dir|ihnen|euch)?(?: heute)?|comment (?:ça|ca) va|(?:ça|ca) va"
    r"|(?:qué|que) tal|como (?:estás|vai|está)|come (?:stai|va)|как (?:дела|ты)|jak się masz"
)
_SIGNS = " \t\r\n.,!?…~。、！？，．’'\"-–—:;)("
_QUESTION_SHARE = 0.75  # of the words, for a text that only asks
_MAX_ANSWER_WORDS = 60  # in an answer that only says there is none
_SAMPLE_CHARS = 1_200
_NO_ANSWER = re.compile(
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
_KNOWN_WORDS = ALL_STOP_WORDS | {"i'm", "i've", "i'd"}


def is_small_talk(text: str, frequencies: Mapping[str, int], messages: int) -> bool:
    """Return whether `text` names nothing that could be recalled.

    `frequencies` gives for each content word of it the number of messages, of all `messages`, with the word.
    """
    bare = text.strip(_SIGNS).casefold()
    if bare in _UNSPACED:
        return True
    rest = _HOW_ARE_YOU.sub(" ", bare)
    words = [word for word in surface_words_of(rest) if any(map(str.isalnum, word))]
    if not words:
        return True
    if len(words) > _SHORT_WORDS:
        return False
    if all(word in _uninformative_words() for word in words):
        return True
    is_question = text.rstrip().endswith(("?", "？"))
    if len(words) > _VERY_SHORT_WORDS or is_question or messages < _MANY_MESSAGES:
        return False
    common = _COMMON_SHARE * messages
    return bool(frequencies) and all(count > common for count in frequencies.values())


def is_non_answer(user: str, reply: str, question: str = "") -> bool:
    """Return whether a turn of a user message and a reply states nothing.

    `question` is the current question: a message of the same words counts as a question.
    """
    if question_share(user) < _QUESTION_SHARE and not _words(user) <= _words(question):
        return False
    if not reply.strip() or question_share(reply) >= _QUESTION_SHARE:
        return True
    if len(reply) > _SAMPLE_CHARS or len(_WORD.findall(reply)) > _MAX_ANSWER_WORDS:
        return False
    return _NO_ANSWER.search(reply) is not None and not _names_anything(reply, user)


@cache
def _uninformative_words() -> frozenset[str]:
    """Return courtesies and function words of every language, as `surface_words_of` splits them."""
    text = " ".join(COURTESIES | ALL_STOP_WORDS)
    return frozenset(surface_words_of(text.casefold()))


def _names_anything(reply: str, user: str) -> bool:
    """Return whether a reply has a number, or a name within a sentence, that the user's message lacks."""
    known = _words(user) | _KNOWN_WORDS
    return any(
        found[0].casefold() not in known
        for found in _WORD.finditer(reply)
        if found[0][0].isdigit()
        or (found[0][0].isupper() and not _SENTENCE_START.search(reply[: found.start()]))
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(surface_words_of(text[:_SAMPLE_CHARS].casefold()))

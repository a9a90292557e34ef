"""Questions: what to search for, whether a time is asked for, whether anything is asked.

Words that only phrase a request are removed: "search" and "tell me" occur in few messages, so they
would weigh more than the subject of the question. A request is recognized by position and kind of
words: courtesies, a modal with a pronoun, and a verb of searching or telling before a function word
of any language, as "search" in "search for the sourdough" but not in "search engines compared".
Verbs of saying are removed after a request. After the last question of a text, a request says how
to answer it, and is removed.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from app.domain.text import count_words, is_question
from app.index.message_traits import COURTESIES
from app.language.date_phrases import asks_for_time
from app.language.languages import ALL_STOP_WORDS, read_phrases, word_sets
from app.language.sentences import unspaced_runs

_NAME_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_POSSESSIVE = re.compile(r"['’]s?$")
_SENTENCE_WORDS = 6  # fewer are keywords
_UNSPACED_NAME = range(2, 5)  # characters
_CONVERSATION_WORDS = read_phrases("phrases")["about the conversation"]

_WORDS = word_sets("requests")
_OPENINGS = COURTESIES | _WORDS["openings"]
_VERBS = _WORDS["verbs"]
_ANSWERING = _WORDS["verbs of answering"]
_SAYING = _WORDS["verbs of saying"]
_PARTICLES = _WORDS["particles"]
_ENDINGS = _WORDS["endings"]
_FOLLOWING = _PARTICLES | _ENDINGS
_WEIGHTLESS = ALL_STOP_WORDS | _ENDINGS | COURTESIES
_UNSPACED_REQUEST = re.compile(
    r"(?:请|請|麻烦|麻煩)?(?:帮我|幫我|给我|給我)?(?:搜索|搜尋|搜一下|查找|查一下|找一下|找找|找|"
    r"告诉我|告訴我|提醒我|说说|說說|给我看)(?:关于|關於|有关|有關|一下)?"
)
_UNSPACED_COURTESY = re.compile(r"\W*(?:请|請|麻烦|麻煩)")
_UNSPACED_ENDING = re.compile(
    r"(?:について|に関して|のこと)?を?(?:教えて|探して|検索して|見せて|思い出させて|調べて)"
    r"(?:ください|下さい|くれる|くれ|ほしい|ね|よ)*$"
)
_WORD = re.compile(r"[^\s,.;:!?¿¡…\"“”„«»()]+")
_ELIDED = re.compile(r"^(?:qu|[cdjlmnst])'(?=\w)")
_MARKS = " \t\r\n,.;:!¿¡…-–—"


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A query parsed as a question.

    `core` is the text to search for and to embed, without request words, what follows its last
    question as a request, and words about the conversation itself. `states` is true for a sentence
    that neither asks nor requests anything: what it reminds of is wanted; `is_keywords` for fewer
    words than a sentence has that neither ask nor request: messages that contain them are wanted.
    `names` are what may be a speaker's name in it: its words and pairs of words, and in scripts
    without spaces any few characters, case folded.
    """

    core: str
    wants_time: bool
    states: bool
    is_keywords: bool
    names: frozenset[str]


def parse_question(text: str, *, is_message: bool = False) -> ParsedQuestion:
    """Parse `text`, a chat message if `is_message`; `core` is empty only for a blank one."""
    said = without_answer_format(text.strip())
    whole = strip_request(said)
    bare = " ".join(_CONVERSATION_WORDS.sub(" ", whole).split())
    core = bare if len(bare.split()) > 1 else whole or text.strip()
    asks = whole != said or is_question(text)
    is_sentence = count_words(text) >= _SENTENCE_WORDS
    return ParsedQuestion(
        core,
        wants_time=asks_for_time(text),
        states=is_sentence and not asks,
        is_keywords=not (is_sentence or asks or is_message),
        names=_possible_names(text),
    )


def without_answer_format(text: str) -> str:
    """Return a text without the request that follows its last question."""
    end = max(text.rfind("?"), text.rfind("？")) + 1
    rest = text[end:]
    words = (match[0].casefold() for match in _WORD.finditer(rest))
    first = next((word for word in words if word not in COURTESIES), "")
    is_request = first in _ANSWERING | _VERBS or _UNSPACED_COURTESY.match(rest)
    return text[:end] if end and is_request else text


def _possible_names(text: str) -> frozenset[str]:
    folded = text.casefold()
    words = [_POSSESSIVE.sub("", match[0]) for match in _NAME_WORD.finditer(folded)]
    names = {*words, *(f"{one} {other}" for one, other in pairwise(words))}
    for run in unspaced_runs(folded):
        names.update(
            run[at : at + size] for size in _UNSPACED_NAME for at in range(len(run) - size + 1)
        )
    return frozenset(names)


def strip_request(text: str) -> str:
    """Return `text` without request words, or unchanged when nothing would be left."""
    whole = text.strip()
    bare = without_opening(whole)
    if bare != whole:
        bare = _without_saying(bare)
    if bare != whole or not whole.endswith("?"):
        bare = " ".join(_without_ending(bare).split())
    return bare if any(map(_has_weight, _WORD.findall(bare))) else text


def without_opening(text: str) -> str:
    """Return `text` without the words that open a request: courtesies, "can you", a verb of telling."""
    if unspaced := _UNSPACED_REQUEST.match(text):
        return text[unspaced.end() :].strip(_MARKS)
    words = list(_WORD.finditer(text))
    names = [match[0].casefold().replace("’", "'") for match in words]
    start = 0
    while start < len(names) and names[start] in _OPENINGS:
        start += 1
    request, after = (*names[start:], "", "")[:2]
    is_request = "-" in request or after in _FOLLOWING or after in ALL_STOP_WORDS
    if request not in _VERBS or not after or not is_request:
        return text
    start += 1
    while start < len(names) and names[start] in _FOLLOWING:
        start += 1
    return text[words[start].start() :] if start < len(words) else ""


def _without_saying(text: str) -> str:
    """Return `text` without verbs of saying and the function words before the first one."""
    words = _WORD.findall(text)
    kept = [word for word in words if word.casefold() not in _SAYING]
    if len(kept) == len(words):
        return text
    first = next(at for at, word in enumerate(words) if word.casefold() in _SAYING)
    start = 0 if any(map(_has_weight, words[:first])) else first
    while start < len(kept) and kept[start].casefold() in _PARTICLES:
        start += 1
    return " ".join(kept[start:])


def _without_ending(text: str) -> str:
    if (unspaced := _UNSPACED_ENDING.search(text)) is not None:
        text = text[: unspaced.start()]
    words = list(_WORD.finditer(text))
    end = len(words)
    while end > 1 and words[end - 1][0].casefold() in _ENDINGS:
        end -= 1
    return text if end == len(words) else text[: words[end - 1].end()]


def _has_weight(word: str) -> bool:
    name = _ELIDED.sub("", word.casefold().replace("’", "'"))
    return any(map(str.isalnum, name)) and name not in _WEIGHTLESS

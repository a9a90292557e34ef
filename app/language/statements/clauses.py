"""Clauses of a message in which its writer states something. English.

Code, quotations, pasted text, questions and suppositions are left out.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from app.language.sentences import split_sentences
from app.language.statements.grammar import LEADING
from app.language.statements.statement import WORDS
from app.language.statements.verbs import BASES

_MOST_CHARS = 20_000
_MOST_OF_A_CLAUSE_CHARS = 300

# The text after "Here is my draft:" is pasted, not a statement.
_PASTE = re.compile(
    r"(?:\b(?:here(?:'s| is| are)|this|below|following|text|e-?mail|article|letter|log|logs|transcript|"
    r"essay|draft|message|paragraph|review|poem|story|chapter|code|output|error|translate|summari[sz]e|"
    r"rewrite|rephrase|proofread|paraphrase|edit|correct|improve|fix)\b[^.\n]{0,80}:\s*(?:\n|\"|“|$))"
    r"|^(?:from|subject|to|cc|date): |^(?:dear|hello|hi) [\w .]{2,40},\s*$|^-{3,}\s*$|^[ \t]*\d{4}-\d\d-\d\d[T ]\d\d:",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_ASKS_ABOUT_TEXT = re.compile(
    r"\b(?:translate|summari[sz]e|rewrite|rephrase|proofread|paraphrase|correct|edit|improve)\b[^.?!\n]{0,60}"
    r"(?::|\b(?:this|the following|below)\b)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\[[^\[\]]{0,300}\]|\((?:[^()]{0,200})\)|[\U0001f000-\U0001ffff☀-➿️‍]+")
_LONG_QUOTE = re.compile(r"[\"“][^\"”“]{25,}(?:[\"”]|$)|[\"“]\s*I\b[^\"”]*(?:[\"”]|$)")
_BREAK = re.compile(
    r"\s+[–—-]+\s+|\s*[–—]\s*|;|\s*\.{2,}\s*|…|:\s|"
    r",?\s+(?:and|but|so|then|plus|yet|though|although)\s+(?=(?:then |now |also )?(?:I|we|my|our|it|it's|they|he|she|that|that's|this|there|you)\b(?:'|\s))|"
    r",\s+(?=(?:I|we|my|our|it|it's|they|he|she|that's|this|there|you)\b(?:'|\s))|"
    r",\s+(?=which\s)|(?<=\w)-\s+",
)
_ASKING = re.compile(
    r"(?:^|,|\b(?:and|so|but|then)\b)\s*(?:(?:and|so|but|then|now|also|btw)\s+)*(?:please\s+)?(?:"
    r"(?:can|could|would|will|won't|do|did|are|have) you\b|(?:can|could|should|may|do|did|am) (?:I|we)\b|"
    r"(?:how|what|why|which|where|when|who)(?:'s| is| are| do| does| did| can| could| should| would| will|"
    r" about| if| kind| type| steps| would| are| was| were)\b|(?:is|are|does|do|did|was|were|has|have|any|got)"
    r" (?:it|there|this|that|they|the|any|anyone|someone|ideas|tips|advice|thoughts|suggestions|other|fun|plans)\b|"
    r"(?:help|tell|show|give|teach|explain|walk|let)(?: me)? |any (?:ideas|tips|advice|thoughts|suggestions))",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"^(?:(?:please|now|just|so|ok|okay|let's|let us),? )*(?:if|unless|suppose|supposing|imagine|what if|let's say|say,|assuming|pretend|act(?:ing)? (?:as|like)|role-?play|maybe|perhaps|hopefully|"
    r"in case|whether|as if|as though|for example|e\.g\.|for instance)\b|\bif only\b|"
    r"\bas (?:if|though) (?:you|I) (?:were|are|am|was)\b",
    re.IGNORECASE,
)
# Text before a colon or a comma that introduces reported speech or text to be written.
_REPORTED = re.compile(
    r"(?:^|\s)(?!(?:I|we|also|just|then|once|always|have|had|\w+ly)\s)[\w'.]+ "
    r"(?:(?:also|just|then|once|always|\w+ly) )?(?:said|says|saying|wrote|writes|asked|asks|replied|"
    r"replies|answered|answers|shouted|whispered|texted|tweeted|posted|claimed|claims|stated|states|"
    r"(?:told|tells|asked|asks) (?:me|us|him|her|them|you))$",
    re.IGNORECASE,
)
_DICTATED = re.compile(
    r"^(?:(?:please|now|just|then|can you|could you) )*(?:write|say|repeat|complete|continue|finish|type|"
    r"print|echo|answer|respond|reply|begin|start|quote|parse|classify|analy[sz]e|spell|translate|"
    r"read|format|convert|summari[sz]e|act|play)\b|\b(?:as|like) me$",
    re.IGNORECASE,
)
# "as I said" has no content.
_AS_SAID = re.compile(
    r"(?:^|,?\s+)(?:as|like) (?:I|we|you)(?:'ve| have)?(?: (?:just|already|once|always))? "
    r"(?:said|say|mentioned|told (?:you|him|her|them)|know|explained|wrote|noted)"
    r"(?: (?:before|earlier|above|already|previously|last time))*(?:,(?=\s)|(?=[.!;]|$))"
    r"|,\s+(?:by the way|btw)(?=[.!;]|$)",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(r"(?:please |always|never|do not|don't|from now)", re.IGNORECASE)
_CONDITION = re.compile(r"(?:,|\s)\s*(?:if|unless|in case)\b", re.IGNORECASE)
_LEAD = re.compile(
    r"^(?:yeah|yea|yes|yep|yup|nope|no|hey|hi|hiya|hello|oh|ooh|wow|whoa|woah|well|so|and|but|also|plus|"
    r"thanks|thanx|thank you|thx|actually|honestly|btw|by the way|anyways?|ok|okay|right|sure|haha|lol|"
    r"absolutely|definitely|totally|exactly|cool|great|awesome|amazing|nice|sweet|sorry|hmm|um|uh|"
    r"of course|for sure|no worries|no problem|you know|i mean|to be honest|tbh|fyi|speaking of which|personally|"
    r"in fact|guess what|luckily|fortunately|unfortunately|sadly|oh yeah|man|dude|true|indeed|aww?|ah|"
    r"good to hear|that's great|no doubt|you're right|because|since then|then|now|still|yet|and yes|"
    r"ever since then|besides|additionally|furthermore|however|therefore|thus|basically|first|firstly|secondly|finally|lastly)"
    r"(?:(?: so much| a lot| again| a bunch| man| dude| bro| for (?:asking|sharing|that))*"
    r"(?:[,!.:~]+\s*|\s+(?=(?:I|we|my|our|I'm|I've|I'd|I'll|we're|we've|we'll)\b)|\s*$))",
    re.IGNORECASE,
)
_VOCATIVE = re.compile(
    r"^[A-Z][a-z]+(?: [A-Z][a-z]+)?[,!]\s+(?=[A-Z])|,\s+(?:[A-Z][a-z]+|man|dude|bro|buddy)\s*[.!]*$"
)

_PREFIX = re.compile(r"([A-Z][\w'.-]{0,30}(?: [A-Z][\w'.-]{0,30}){0,2}): (?=\S)")
_NO_NAMES = WORDS["no names"]
_NAMES_TOO = frozenset({"hope"})
_LEAST_MESSAGES = 2
_SHARE_OF_A_TALK = 0.75


def find_speakers(messages: Iterable[str]) -> frozenset[str]:
    """Return the named speakers of a conversation, from its messages or their first 100 characters.

    Only a conversation between named people has speakers: each name starts several messages, and
    together they start most of them. Elsewhere "Here: " and "Translate: " are words with a colon.
    """
    led = [_name_before(message) for message in messages]
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


def _name_before(text: str) -> str:
    found = _PREFIX.match(text)
    if found is None:
        return ""
    first = found[1].lower().split()[0]
    is_word = first in _NO_NAMES or (first in BASES and first not in _NAMES_TOO)
    return "" if is_word else found[1]


def split_clauses(text: str) -> Iterator[str]:
    """Yield the statements of a message, clause by clause, in order."""
    said = _without_pasted(_QUOTED_LINE.sub("", text[:_MOST_CHARS]))
    for sentence, _ in split_sentences(
        _ASIDE.sub(" ", said.replace("’", "'").replace("\u00a0", " "))
    ):
        yield from _clauses(sentence)


def _without_pasted(text: str) -> str:
    if (found := _PASTE.search(text)) is not None:
        # The request comes before it; a second part of the message may be pasted as well.
        return text[: found.start()] if found.start() else ""
    if (found := _ASKS_ABOUT_TEXT.search(text)) is not None:
        return text[: found.start()]
    return text


def _clauses(sentence: str) -> Iterator[str]:
    if _LONG_QUOTE.search(sentence):
        return
    sentence = _AS_SAID.sub("", sentence).strip()
    asks = sentence.rstrip("\"')* ").endswith("?")
    found = _ASKING.search(sentence)
    if found is not None and (
        asks or found.start() > 0 or found[0].strip().lower().split()[-1:] != ["let"]
    ):
        sentence = sentence[: found.start()]
    elif asks:
        return
    start = 0
    for mark in (*_BREAK.finditer(sentence), None):
        end = len(sentence) if mark is None else mark.start()
        clause = _bare(sentence[start:end])
        if mark is not None and mark[0].strip() == "," and LEADING.match(clause):
            continue  # the time belongs to the event
        start = end if mark is None else mark.end()
        if _SUPPOSED.search(clause) or (
            mark is not None and _introduces_foreign_text(clause, mark[0].strip())
        ):
            return  # the following clauses depend on the supposition
        is_sized = len(clause.split()) > 1 and len(clause) <= _MOST_OF_A_CLAUSE_CHARS
        if is_sized and (_INSTRUCTION.match(clause) or not _CONDITION.search(clause)):
            yield clause


def _introduces_foreign_text(clause: str, mark: str) -> bool:
    """Return whether the text after a clause and a mark is not the writer's own statement."""
    if mark == ":":
        return bool(_REPORTED.search(clause) or _DICTATED.search(clause))
    return mark == "," and bool(_REPORTED.search(clause))


def _bare(clause: str) -> str:
    """Return a clause without greetings and exclamations around it."""
    clause = clause.strip().strip("*_~").strip()
    while True:
        shorter = _VOCATIVE.sub("", _LEAD.sub("", clause)).strip()
        if shorter == clause:
            return clause.strip(" ,.!;:")
        clause = shorter

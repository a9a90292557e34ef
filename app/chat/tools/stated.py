"""Statements in a message: the sentences that are neither questions nor quotations.

Recognized by form alone, in the most common languages: questions by their mark or first words,
quotations by their marks. The content of a request to remember counts as stated, also in polite
form. In doubt a sentence is not a statement; the user can repeat what depends on it.
"""

import re
from collections.abc import Iterator

from app.language.analyzer import surface_words_of

_QUOTED_WORDS = 3  # fewer are a name or an emphasis
_BEFORE_CHARS = 60
_QUOTATION = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*>.*$|\"[^\"\n]+\"|[“„][^“”„\n]+[“”]|«[^«»\n]+»|»[^«»\n]+«|「[^「」\n]+」",
    re.MULTILINE | re.DOTALL,
)
SENTENCE_END = re.compile(r"((?:[.;!?]+(?=[\s\"”“»)]|$))|[\n。！？；]+)")
_NAMING = re.compile(
    r"\b(?:[Ii] am|[Ii]['’]m|[Cc]all me|[Ii]ch bin|[Ii]ch hei(?:ß|ss)e|[Jj]e m['’]appelle|"
    r"[Mm]e llamo|[Mm]i chiamo)\s+(?=[^\W\d_a-z])"
)  # then a capital: it is a name
_PART_END = re.compile(r"[,;:\u2013\u2014]\s")

_KEEP = (
    r"\b(?:remember|note|save|store|memori[sz]e|keep|write (?:it |this )?down|merken?|notieren?|"
    r"speicher[en]|behalten?|retiens|retenir|noter?|recuerdes?|recordar|apuntar?|guardar?|"
    r"ricordar?e?|onthouden|запомни(?:ть)?)\b|记住|記住|覚えて"
)
_KEEPING = re.compile(_KEEP)
_POLITELY_KEEPING = re.compile(
    r"(?:can|could|would|will|kannst|kann|könntest|würdest|könnten|peux|pourrais|puedes|podrías|"
    rf"puoi|potresti|kun|можешь)\b.{{0,24}}?(?:{_KEEP})(?P<kept>.*)",
    re.DOTALL,
)
_FILLER = re.compile(
    r"(?:(?:and|but|so|well|ok|okay|hi|hey|hello|now|then|please|also|und|aber|bitte|et|mais|y|"
    r"pero|por favor|e|en)\b|[\s,:¿\u2013\u2014-])+"
)
_KEPT_FILLER = re.compile(
    r"(?:(?:that|in mind|please|for me|dass|bitte|que|che|dat)\b|[\s,:\u2013\u2014-])*"
)
_WE = (
    r"(?:i|my|we|our|you|your|he|she|they|ich|mein\w*|wir|unser\w*|du|je|j|mon|ma|nous|notre|yo|mi|"
    r"io|mio|ik|mijn|я|мы)"
)
_OWN = re.compile(
    r"(?:i|my|we|our|ich|mein\w*|wir|unsere?|je|j|mon|ma|mes|nous|notre|yo|mi|mis|soy|io|mio|mia|"
    r"sono|ik|mijn|я|мой|моя|мне|мы)\b"
)
_ASKING_WORD = (
    r"(?:what|who|whom|whose|which|why|how|when|where|whether|if|was|wer|wen|wem|welche\w*|warum|"
    r"wieso|wie|wann|wo|ob|que|qui|quoi|quel\w*|pourquoi|comment|quand|où|combien|si|qué|quién|"
    r"cuál|cómo|cuándo|dónde|chi|che|come|quando|dove|perché|wat|wie|hoe|waar|waarom|что|кто|как|"
    r"где|когда|почему|ли)"
)
_ASKING = re.compile(
    rf"(?:what|who|which|why|how|when|where|was|wer|welche\w*|warum|wie|wann|wo|qué|quién|cómo|"
    rf"pourquoi|comment|wat|hoe|waar|что|как|где)\b(?:['’]s)?(?!\s+{_WE}\b)"
    rf"|(?:whether|ob|est-ce|qu['’]est-ce)\b"
    rf"|(?:do|does|did|am|is|are|have|has|can|could|should|would|will|habe|hast|bin|bist|ist|"
    rf"kann|kannst|soll|weißt)\s+(?:it|there|this|the|ihr|es|{_WE})\b"
    r"|(?:tell|show|give|remind|ask) me\b|(?:sag|zeig|nenn|gib|erkläre?|erzähle?) mir\b"
    r"|(?:write|draft|compose|create|make|generate|imagine|translate|summari[sz]e|schreibe?|"
    r"übersetze?|écris|traduis|escribe|traduce|scrivi|traduci)\b:?\s+(?:me |mir |-moi )?"
    r"(?:an?|the|this|some|ein\w*|de[nmr]|das|une?|una|le|la|el|il|>)\s"
    r"|(?:dis|montre|donne|explique)-moi\b|(?:dime|muéstrame|explícame|dimmi)\b"
    rf"|(?:explain|describe|list|find|find out|look up|search)\b(?=.*\b{_ASKING_WORD}\b)"
)
_INDIRECT = re.compile(
    r"\b(?:wonder(?:ing)?|to know|know|asks?|asking|asked|find out|curious|tell me|wissen|frage|"
    rf"savoir|demande|saber|sapere|weten|знать),?\s+(?={_ASKING_WORD}\b)"
)
_ASKING_END = re.compile(r"[?？]|(?:[吗嗎呢]|か)\s*$")


def stated_in(text: str) -> str:
    """Return the statements of `text`, one a line, case folded."""
    own = _NAMING.sub(r"\g<0>name ", _QUOTATION.sub(_unless_kept, text)).casefold()
    return "\n".join(part for part in _statements(own) if part.strip())


def _unless_kept(quotation: re.Match[str]) -> str:
    before = quotation.string[max(0, quotation.start() - _BEFORE_CHARS) : quotation.start()]
    is_own = len(surface_words_of(quotation[0])) < _QUOTED_WORDS or _KEEPING.search(
        before.casefold()
    )
    return quotation[0] if is_own else "\n"


def _statements(text: str) -> Iterator[str]:
    pieces = SENTENCE_END.split(text)
    for sentence, end in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        rest = sentence[filler.end() :] if (filler := _FILLER.match(sentence)) else sentence
        if polite := _POLITELY_KEEPING.match(rest):
            kept = _KEPT_FILLER.sub("", polite["kept"], count=1)
            yield "" if re.match(_ASKING_WORD + r"\b", kept) else kept
        elif _ASKING_END.search(sentence + end):
            *parts, _ = _PART_END.split(rest)
            yield from (part for part in parts if _OWN.match(part))
        elif not _ASKING.match(rest):
            yield _INDIRECT.split(sentence)[0]

"""How a text is worded: the number of its words, the share of them in questions, its script."""

import re

_LATIN_END = "\u0250"
_MOSTLY = 0.5  # share of the words
_QUESTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    what what's who who's whom whose which when where where's why how is are was were do does did can could
    would should will has have was wer wen wem wie wo woher wohin wann warum wieso weshalb welche welcher
    welches ist sind hat haben kann que quoi qui quand où comment pourquoi quel quelle quels quelles combien
    est-ce qué quién cómo dónde cuándo cuál cuánto cuánta che cosa chi come dove quando perché quale quanto
    quem onde qual por wat hoe waar wanneer waarom welke что кто как где куда когда почему зачем какой какая
    какие сколько
""",
    )
)
_UNSPACED_QUESTION = re.compile(
    "[吗嗎呢]$|什么|什麼|怎么|怎麼|为什|為什|哪[里裡个個些]|多少|[谁誰]|何|いつ|どこ|どう|なぜ|か$"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ASCII_WORDS = {
    code: None if chr(code) == "'" else " " for code in range(128) if not chr(code).isalnum()
}
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")


def question_share(said: str) -> float:
    """Return the share (0-1) of the words in sentences that end with a question mark."""
    if "?" not in said and "？" not in said:
        return 0.0
    asked = sum(
        count_words(each) for each in _SENTENCE.findall(said) if each.rstrip().endswith(("?", "？"))
    )
    return asked / count_words(said) if asked else 0.0


def is_question(said: str) -> bool:
    """Return whether most of a text asks, also without a question mark where it begins as questions do."""
    if question_share(said) >= _MOSTLY:
        return True
    text = said.strip()
    if text.endswith((".", "!", "。", "！")):
        return False
    first = text.split(maxsplit=1)[0].strip("¿¡,").casefold() if text else ""
    return first in _QUESTION_WORDS or _UNSPACED_QUESTION.search(text) is not None


def count_words(text: str) -> int:
    """Return the number of words; in unspaced scripts two characters count as a word."""
    if text.isascii():  # six times as fast as the pattern
        return len(text.replace("''", " ").translate(_ASCII_WORDS).split())
    count = 0
    for match in _WORD.finditer(text):
        word = match[0]
        count += 1 if word.isascii() or word[0] < "\u2e80" else max(1, len(word) // 2)
    return count


def is_mostly_latin(text: str) -> bool:
    """Return whether at least half of the letters are Latin; also without any letter."""
    if text.isascii():
        return True
    letters = [each for each in text if each.isalpha()]
    return 2 * sum(each < _LATIN_END or "\u1e00" <= each <= "\u1eff" for each in letters) >= len(
        letters
    )

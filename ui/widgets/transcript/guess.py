"""How high a turn will be, guessed from the lengths of its texts alone."""

from ui.theme import Theme
from ui.widgets.transcript.values import TurnHead

_CHARS_IN_EM = 1.95  # of running text in common interface fonts, measured on Latin prose
_LINE_EM = 1.45
_QUESTION_SHARE = 0.8
_ANSWER_AIR = 1.3  # gaps between paragraphs, lists and code, measured on replies of models
_FIXED_EM = 7.2
_DIVIDER_EM = 2.5
_MOST_CHARS = 100_000  # a page; what is longer is not drawn at once


def guess_height(head: TurnHead, theme: Theme, width: int, dividers: int) -> int:
    """Return the likely height in pixels of a turn that is `width` wide."""
    chars_a_line = max(10.0, width / theme.em(1) * _CHARS_IN_EM)
    question = min(head.question_chars, _MOST_CHARS) / (chars_a_line * _QUESTION_SHARE) + 0.5
    answer = min(head.answer_chars, _MOST_CHARS) / chars_a_line * _ANSWER_AIR + 0.5
    ems = _FIXED_EM + (question + answer) * _LINE_EM + dividers * _DIVIDER_EM
    return round(theme.em(ems))

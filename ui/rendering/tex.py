r"""Formulas as readable Unicode text: `\frac{a}{b}` as a/b, `x^2` as x². Characters only, no layout.

Commands without a Unicode form stay as their source, which is also copied with a selection.
"""

import re
from dataclasses import dataclass

from ui.rendering import tex_symbols as symbols

_TOKEN = re.compile(r"\\(?:[A-Za-z]+\*?|.)|[{}^_&~$]|\s+|.", re.DOTALL)
_MAX_CHARS = 4000
_MAX_DEPTH = 24
_UPRIGHT, _SLANTED = "\x0e", "\x0f"
_ROW_BREAK = "\x1e"
_SIMPLE = re.compile(r"√?[\w.′\u0300-\u036f\u20d7]+$")
_NEGATED = {"=": "≠", "∈": "∉", "∃": "∄", "≡": "≢", "⊂": "⊄", "<": "≮", ">": "≯"}
_ROOTS = {"3": "∛", "4": "∜"}
_BRACKETS = {"pmatrix": "()", "bmatrix": "[]", "Bmatrix": "{}", "vmatrix": "||", "Vmatrix": "‖‖"}
_SPACED = frozenset("=≤≥≠≈≡∼≃≅∝∈∉⊂⊃⊆⊇→←↔⇒⇐⇔⟹⟺↦⟶∣≪≫≔≜⊨⊢")


@dataclass(frozen=True, slots=True)
class MathRun:
    """Characters in italics (variables) or upright (functions, text and digits)."""

    text: str
    italic: bool


def tex_to_runs(source: str) -> list[list[MathRun]]:
    """Return the rows of `source`, each a list of runs; over 4,000 characters it stays TeX."""
    return [_runs(row) for row in _converted(source).split(_ROW_BREAK)]


def _converted(source: str) -> str:
    if len(source) > _MAX_CHARS:
        return source
    reader = _Reader(_TOKEN.findall(re.sub("[\x0e\x0f\x1e]", "", source)))
    rows = (_tidy(row) for row in reader.read_until(None).split(_ROW_BREAK))
    return _ROW_BREAK.join(row for row in rows if row) or source


def _tidy(row: str) -> str:
    """Put spaces around relations and collapse other white space."""
    spaced = "".join(f" {char} " if char in _SPACED else char for char in row)
    return re.sub(r" {2,}", " ", spaced).strip()


def _runs(row: str) -> list[MathRun]:
    runs: list[MathRun] = []
    for number, part in enumerate(re.split(f"[{_UPRIGHT}{_SLANTED}]", row)):
        for piece in re.split(r"([A-Za-zα-ωϑϕϵ]+)", part) if number % 2 == 0 else [part]:
            if piece:
                italic = number % 2 == 0 and piece[0].isalpha()
                runs.append(MathRun(piece, italic))
    return runs


class _Reader:
    """Reads TeX tokens in order; each method returns the text of what it has consumed."""

    def __init__(self, words: list[str]) -> None:
        self._tokens = words
        self._at = 0
        self._depth = 0

    def read_until(self, closing: str | None) -> str:
        """Return the text up to `closing`, which is consumed too, or to the end."""
        parts: list[str] = []
        while self._at < len(self._tokens):
            word = self._take()
            if word == closing:
                break
            parts.append(self._one(word))
        return "".join(parts)

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _one(self, word: str) -> str:
        if word == "{":
            return self._nested("}")
        if word in "^_":
            return self._script(word)
        if word == "\\\\":
            return _ROW_BREAK
        if word == "&" or word.isspace():
            return " "
        if word == "~":
            return "\u00a0"
        if word == "-":
            return "−"
        if word == "'":
            return "′"
        if word.startswith("\\"):
            return self._command(word[1:].rstrip("*") or "\\")
        return "" if word in "}$" else word

    def _nested(self, closing: str) -> str:
        if self._depth >= _MAX_DEPTH:
            return ""
        self._depth += 1
        inner = self.read_until(closing)
        self._depth -= 1
        return inner

    def _argument(self) -> str:
        """Return the next group or token."""
        while self._at < len(self._tokens) and self._tokens[self._at].isspace():
            self._at += 1
        if self._at >= len(self._tokens) or self._depth >= _MAX_DEPTH:
            return ""
        self._depth += 1
        found = self._one(self._take())
        self._depth -= 1
        return found

    def _source_argument(self) -> str:
        """Return the next group as written, for text and names."""
        if self._at >= len(self._tokens) or self._tokens[self._at] != "{":
            return self._argument()
        start, depth = self._at + 1, 0
        while self._at < len(self._tokens):
            depth += {"{": 1, "}": -1}.get(self._take(), 0)
            if depth == 0:
                return "".join(self._tokens[start : self._at - 1])
        return "".join(self._tokens[start:])

    def _script(self, sign: str) -> str:
        text = _without_slant(self._argument()).strip()
        table = symbols.SUPERSCRIPTS if sign == "^" else symbols.SUBSCRIPTS
        if text and all(char in table or char == "−" for char in text):
            return "".join(table["-" if char == "−" else char] for char in text)
        if text in ("∘", "°"):
            return "°"
        if len(text) == 1:
            return sign + text
        return f"{sign}({text})" if text else ""

    def _command(self, name: str) -> str:
        if name in symbols.SYMBOLS:
            return symbols.SYMBOLS[name]
        if name in symbols.SPACES:
            return symbols.SPACES[name]
        if name in symbols.WORDS:
            return f"{_UPRIGHT}{name}{_SLANTED}" + self._gap()
        if name in symbols.IGNORED:
            return self._skip_dot() if name in ("left", "right") else ""
        return self._structure(name)

    def _gap(self) -> str:
        """Return a thin space where a name would otherwise touch a letter or digit."""
        following = self._tokens[self._at] if self._at < len(self._tokens) else ""
        return "\u2009" if following[:1].isalnum() or following.startswith("\\") else ""

    def _skip_dot(self) -> str:
        if self._at < len(self._tokens) and self._tokens[self._at] == ".":
            self._at += 1
        return ""

    def _structure(self, name: str) -> str:
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            return f"{_grouped(self._argument())}/{_grouped(self._argument())}"
        if name in ("binom", "dbinom", "tbinom"):
            return f"C({self._argument()}, {self._argument()})"
        if name == "sqrt":
            return self._root()
        if name in symbols.UPRIGHT:
            return f"{_UPRIGHT}{self._source_argument()}{_SLANTED}"
        if name in symbols.ACCENTS:
            return "".join(
                char + symbols.ACCENTS[name] if char.isalnum() else char
                for char in self._argument()
            )
        if name in symbols.PLAIN_GROUPS:
            return self._argument()
        return self._letters(name)

    def _letters(self, name: str) -> str:
        forms = {"mathbb": symbols.double_struck, "mathcal": symbols.script,
                 "mathscr": symbols.script, "mathfrak": symbols.fraktur}  # fmt: skip
        if name in forms:
            return "".join(map(forms[name], self._argument()))
        if name in ("begin", "end"):
            return self._environment(self._source_argument(), begins=name == "begin")
        if name == "not":
            negated = self._argument()
            return _NEGATED.get(negated, negated + "\u0338")
        if name in ("overset", "underset", "stackrel"):
            over, base = self._argument(), self._argument()
            return f"{base}{'_' if name == 'underset' else '^'}({over})"
        return name if len(name) == 1 and not name.isalnum() else f"\\{name} "

    def _environment(self, name: str, *, begins: bool) -> str:
        name = name.rstrip("*")
        if name in ("array", "tabular") and begins:
            self._source_argument()
        if name == "cases":
            return "{ " if begins else ""
        if name in _BRACKETS:
            return _BRACKETS[name][0 if begins else 1]
        return ""

    def _root(self) -> str:
        index = ""
        if self._at < len(self._tokens) and self._tokens[self._at] == "[":
            self._at += 1
            index = self._nested("]")
        sign = _ROOTS.get(index, "√")
        prefix = "".join(symbols.SUPERSCRIPTS.get(char, char) for char in index)
        return (sign if index in _ROOTS else prefix + sign) + _grouped(self._argument())


def _without_slant(text: str) -> str:
    return text.replace(_UPRIGHT, "").replace(_SLANTED, "")


def _grouped(text: str) -> str:
    """Return `text`, in parentheses unless it is a single name or number."""
    bare = text.strip()
    return bare if _SIMPLE.match(_without_slant(bare)) or not bare else f"({bare})"

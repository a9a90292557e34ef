"""Unigram tokenization (Kudo 2018, SentencePiece) with little memory, for large vocabularies.

For the 250,000 pieces of XLM-R, the trie of the tokenizers package takes 295 MB and 0.7 s to load; the
table here takes 73 MB and 0.3 to 0.5 s. The same package still normalizes, finds the words and maps
positions back to the text. A text takes 0.1 to 1 ms more, at most a twentieth of embedding it.
"""

import json
from array import array
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Encoding, Token, Tokenizer

Piece = tuple[int, str, tuple[int, int]]  # id, text, (start, end) in bytes of the normalized word

_KEPT_WORDS, _KEPT_WORD_CHARS = 8192, 24  # longer runs, as in unspaced scripts, hardly come twice
_UNKNOWN_PENALTY = 10.0  # below the least score, as in SentencePiece


def is_plain_unigram(content: dict[str, Any]) -> bool:
    """Return whether a parsed tokenizer.json is one that `UnigramTokenizer` reads exactly."""
    model = content["model"]
    return model["type"] == "Unigram" and not model["byte_fallback"] and not content["added_tokens"]


class UnigramTokenizer:
    """The part of the interface of `tokenizers.Tokenizer` that embedders use. Thread-safe."""

    def __init__(self, content: dict[str, Any]) -> None:
        """`content` is that of a tokenizer.json; its vocabulary is taken out."""
        from tokenizers import Tokenizer

        model = content["model"]
        vocabulary, self._unknown = model["vocab"], model["unk_id"]
        self._ids = {piece: number for number, (piece, _) in enumerate(vocabulary)}
        self._scores = array("f", (score for _, score in vocabulary))
        self._longest = max(map(len, self._ids))
        self._unknown_score = min(self._scores) - _UNKNOWN_PENALTY
        model["vocab"] = vocabulary[: self._unknown + 1]
        self._library: Tokenizer = Tokenizer.from_str(json.dumps(content))
        self._known = lru_cache(_KEPT_WORDS)(self._pieces)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> "Encoding":
        """Return the tokens of a text, with or without the model's marks around them."""
        from tokenizers import PreTokenizedString

        words = PreTokenizedString(text)
        if (normalizer := self._library.normalizer) is not None:
            words.normalize(normalizer.normalize)
        if (splitter := self._library.pre_tokenizer) is not None:
            splitter.pre_tokenize(words)
        words.tokenize(self._tokens)
        bare = words.to_encoding()
        return self.post_process(bare) if add_special_tokens else bare

    def encode_batch(
        self, texts: Sequence[str], *, add_special_tokens: bool = True
    ) -> "list[Encoding]":
        return [self.encode(text, add_special_tokens=add_special_tokens) for text in texts]

    def post_process(self, encoding: "Encoding") -> "Encoding":
        """Return tokens with the model's marks around them."""
        return self._library.post_process(encoding)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Return the number of those marks."""
        return self._library.num_special_tokens_to_add(is_pair)

    def _tokens(self, word: str) -> "list[Token]":
        from tokenizers import Token

        pieces = self._known(word) if len(word) <= _KEPT_WORD_CHARS else self._pieces(word)
        return [Token(*piece) for piece in pieces]

    def _pieces(self, word: str) -> tuple[Piece, ...]:
        """Return the pieces of a word whose scores have the largest sum (Viterbi 1967)."""
        ids, scores, length = self._ids, self._scores, len(word)
        best = [0.0] + [float("-inf")] * length
        last = [(0, 0)] * (length + 1)  # start and id of the piece that ends here
        for start in range(length):
            before = best[start]
            for end in range(start + 1, min(start + self._longest, length) + 1):
                number = ids.get(word[start:end])
                if number is not None and before + scores[number] > best[end]:
                    best[end], last[end] = before + scores[number], (start, number)
            if before + self._unknown_score > best[start + 1]:
                best[start + 1] = before + self._unknown_score
                last[start + 1] = (start, self._unknown)
        found: list[Piece] = []
        end, end_byte = length, len(word.encode())
        while end:
            start, number = last[end]
            while number == self._unknown and start and last[start][1] == number:
                start, _ = last[start]  # a run of unknown characters is one piece
            start_byte = end_byte - len(word[start:end].encode())
            found.append((number, word[start:end], (start_byte, end_byte)))
            end, end_byte = start, start_byte
        return tuple(reversed(found))


def load_tokenizer(path: Path) -> "Tokenizer | UnigramTokenizer":
    """Return the tokenizer of a tokenizer.json, which neither pads nor truncates.

    Raises what the tokenizers package and `json` raise for an invalid file.
    """
    from tokenizers import Tokenizer

    text = path.read_text(encoding="utf-8")
    if '"Unigram"' in text and is_plain_unigram(content := json.loads(text)):
        return UnigramTokenizer(content)
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()  # `chunks` needs every token
    return tokenizer

"""The embedder on this machine: the included model, folders of the user, chunks and batches."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from app.domain.errors import Cancelled, EmbedderUnavailable
from app.domain.passages import Space
from app.providers.embedders import local
from app.providers.embedders.chunks import SLICE_CHARS, chunk_spans, token_spans
from app.providers.embedders.local import BATCH_TOKENS, LocalEmbedder, in_batches
from app.providers.embedders.model_folder import EmbedderFolder, read_folder
from app.providers.embedders.unigram import UnigramTokenizer, load_tokenizer

SHIPPED = Path(__file__).resolve().parents[3] / "resources" / "models" / "all-MiniLM-L6-v2"
MULTILINGUAL = SHIPPED.parent / "multilingual-e5-small"
PIECES = (
    "Die Katze schläft", " ", "  ", "\n", "我昨天去了北京", "。", "café", "cafe\u0301", "ﬁ", "Ⅷ", "😺",
    "\u200b", "unbelievably", "ΑΒΓ", "привет", "한국어", "123.45", "\u0e01\u0e33", "<s>", "\ue000",
)  # fmt: skip
TEXTS = (
    "The cat sleeps on the warm windowsill.", "", "A kitten is napping in the sun by the window.",
    "The quarterly budget must be approved by the finance committee. " * 60, "ok",
    "Die Katze schläft. 猫が寝ている。 😺",
)  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder(SHIPPED)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The shipped folder, to be damaged."""
    return Path(shutil.copytree(SHIPPED, tmp_path / "model"))


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """The same model as a folder of the user's: no card, so names and sizes are read from it."""
    folder = tmp_path / "My Model v2"
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(SHIPPED / name, folder)
    (folder / "config.json").write_text('{"hidden_size": 384, "max_position_embeddings": 512}')
    return folder


def test_vectors_are_unit_rows_in_the_order_of_the_texts(embedder: LocalEmbedder) -> None:
    together = embedder.embed(TEXTS)
    assert together.dtype == np.float32
    assert together.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, row in zip(TEXTS, together, strict=True):
        assert embedder.embed([text])[0] @ row > 0.98
    cat, _, kitten, budget, *_ = together
    assert cat @ kitten > 0.5 > 0.3 > cat @ budget
    assert embedder.embed([]).shape == (0, 384)


def test_the_included_model_has_a_card_and_a_license(embedder: LocalEmbedder) -> None:
    assert embedder.space == Space("all_minilm_l6_v2", 384, 256)
    assert json.loads((SHIPPED / "embedder.json").read_text())["cosine_to_source"]["mean"] >= 0.99
    assert (SHIPPED / "LICENSE").is_file()


def test_only_the_first_256_tokens_of_any_text_count(embedder: LocalEmbedder) -> None:
    words = [f"word{number % 7}" for number in range(600)]
    longer, shorter = embedder.embed([" ".join(words), " ".join(words[:300])])
    np.testing.assert_allclose(longer, shorter, atol=1e-5)
    vectors = embedder.embed(["a" * 1_000_000, "\ud800 broken \udfff", "nul \x00 inside"])
    assert np.isfinite(vectors).all()


def test_threads_change_the_time_and_not_the_result(embedder: LocalEmbedder) -> None:
    texts = [f"Text number {number} " + "about rivers " * number for number in range(20)]
    both = LocalEmbedder(SHIPPED, threads=2)
    np.testing.assert_allclose(both.embed(texts), embedder.embed(texts), atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_it_is_cancelled_between_batches(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    asked, ran = [], []
    run = LocalEmbedder._run

    def counted(*given: Any, **named: Any) -> Any:
        ran.append(True)
        return run(*given, **named)

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) > 2

    monkeypatch.setattr(LocalEmbedder, "_run", counted)
    embedder = LocalEmbedder(SHIPPED, threads=threads)
    with pytest.raises(Cancelled):
        embedder.embed(["many words of text " * 50] * 40, cancelled)
    assert len(ran) == 2


def test_concurrent_callers_load_it_once_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    load, loads = local._load, []

    def counted(folder: EmbedderFolder) -> object:
        loads.append(folder)
        return load(folder)

    monkeypatch.setattr(local, "_load", counted)
    embedder = LocalEmbedder(SHIPPED)
    with ThreadPoolExecutor(4) as pool:
        found = {row.tobytes() for row in pool.map(embedder.embed, [["tea"]] * 4)}
    assert (len(found), len(loads)) == (1, 1)


# -- the multilingual model
@pytest.fixture(scope="module")
def multilingual() -> LocalEmbedder:
    return LocalEmbedder(MULTILINGUAL)


def test_the_multilingual_model_has_a_card_and_a_license(multilingual: LocalEmbedder) -> None:
    assert multilingual.space == Space("multilingual_e5_small", 384, 512)
    card = json.loads((MULTILINGUAL / "embedder.json").read_text())
    assert card["cosine_to_source"]["mean"] >= 0.99
    assert card["sha256"].keys() == {
        "model.onnx", "words.bin", "tokenizer.json", "token_projection.npy",
    }  # fmt: skip
    assert (MULTILINGUAL / "LICENSE").is_file()
    assert 0.95 < multilingual.same_cosine < 1


@pytest.mark.parametrize(
    "question", ["Where does the cat sleep?", "猫在哪里睡觉？", "Где спит кошка?"]
)
def test_a_question_finds_its_answer_translated(multilingual: LocalEmbedder, question: str) -> None:
    (asked,) = multilingual.embed([question], as_queries=True)
    answers = multilingual.embed(["Die Katze schläft auf dem Fensterbrett.", "Die Miete steigt."])
    assert asked @ answers[0] > asked @ answers[1] + 0.03


def test_questions_and_passages_get_their_prefixes(
    multilingual: LocalEmbedder, embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    encode = LocalEmbedder._encode

    def noted(self: LocalEmbedder, tokenizer: Any, texts: list[str]) -> Any:
        seen.extend(texts)
        return encode(self, tokenizer, texts)

    monkeypatch.setattr(LocalEmbedder, "_encode", noted)
    for each in (multilingual, embedder):
        each.embed(["tea"])
        each.embed(["tea"], as_queries=True)
    assert seen == ["passage: tea", "query: tea", "tea", "tea"]


def test_chunks_leave_prefixes_room_and_blank_texts_have_none(multilingual: LocalEmbedder) -> None:
    text = "Eine Wanderung durch die Berge. 我们去爬山。 " * 100
    pieces = multilingual.chunks(text, 10_000, 0)
    tokenizer = multilingual._model().tokenizer
    lengths = [len(tokenizer.encode(f"passage: {text[start:end]}").ids) for start, end in pieces]
    assert len(pieces) > 1
    assert max(lengths) <= 512
    assert multilingual.chunks(" \n\t ", 100, 10) == []


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_pieces_and_positions_are_those_of_the_library(text: str) -> None:
    ours, library = multilingual_tokenizers()
    one, other = ours.encode(text), library.encode(text)
    assert one.ids == other.ids
    assert one.offsets == other.offsets


@cache
def multilingual_tokenizers() -> tuple[Any, Tokenizer]:
    path = MULTILINGUAL / "tokenizer.json"
    ours = load_tokenizer(path)
    assert isinstance(ours, UnigramTokenizer)
    return ours, Tokenizer.from_file(str(path))


# -- folders
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_or_missing_file_is_named(copied: Path, name: str) -> None:
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)
    with pytest.raises(EmbedderUnavailable, match=f"{name} is damaged"):
        LocalEmbedder(copied).load()
    (copied / name).unlink()
    with pytest.raises(EmbedderUnavailable, match=f"{name} cannot be read"):
        LocalEmbedder(copied).load()


UNUSABLE = {
    "embedder.json": ["", "[]", "{}", '{"space": {"name": "x"}, "sha256": {}}'],
    "config.json": ["", "[]", "{}", '{"hidden_size": "many"}'],
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_metadata_is_named(foreign: Path, name: str) -> None:
    for content in UNUSABLE[name]:
        (foreign / name).write_text(content)
        with pytest.raises(EmbedderUnavailable, match=name.replace(".", r"\.")):
            LocalEmbedder(foreign)


def test_an_empty_folder_is_refused_with_the_names_of_its_files(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"there is no model\.onnx") as caught:
        LocalEmbedder(tmp_path)
    assert "tokenizer.json" in caught.value.hint


def test_a_folder_of_the_user_is_its_own_space(foreign: Path, embedder: LocalEmbedder) -> None:
    own = LocalEmbedder(foreign)
    assert own.space.name.startswith("my_model_v2_")
    assert own.space.name != embedder.space.name
    assert (own.space.dimension, own.space.max_tokens) == (384, 512)
    np.testing.assert_allclose(own.embed(TEXTS[:1]), embedder.embed(TEXTS[:1]), atol=1e-6)


def test_the_files_of_a_users_folder_make_its_space(foreign: Path) -> None:
    (foreign / "sentence_bert_config.json").write_text('{"max_seq_length": 77}')
    (foreign / "1_Pooling").mkdir()
    (foreign / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    folder = read_folder(foreign)
    assert (folder.space.max_tokens, folder.pooling) == (77, "first")
    before = read_folder(foreign).space.name
    with (foreign / "model.onnx").open("r+b") as model:
        model.seek(-1, 2)
        model.write(b"?")
    assert read_folder(foreign).space.name != before


def test_a_model_that_does_not_fit_its_config_or_is_none_is_refused(foreign: Path) -> None:
    (foreign / "config.json").write_text('{"hidden_size": 768}')
    with pytest.raises(EmbedderUnavailable, match="not of 768 numbers"):
        LocalEmbedder(foreign).embed(["tea"])
    (foreign / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        LocalEmbedder(foreign).load()


# -- chunks and batches
def test_short_blank_and_very_long_texts_keep_their_offsets(embedder: LocalEmbedder) -> None:
    assert embedder.chunks("  A short text. ", 200, 20) == [(2, 15)]
    assert embedder.chunks(" \n ", 200, 20) == []
    text = "Grüße \ud800 " * 3 + "filler words " * (SLICE_CHARS // 8) + "the end"
    pieces = embedder.chunks(text, 254, 0)
    assert text[pieces[-1][0] : pieces[-1][1]].endswith("the end")
    joined = "".join(text[start:end] for start, end in pieces)
    assert joined.replace(" ", "") == text.replace(" ", "")


def test_a_long_text_is_cut_at_sentences_with_overlap_and_no_gaps(embedder: LocalEmbedder) -> None:
    text = "The river rises in the hills and falls to the sea. " * 200
    pieces = embedder.chunks(text, 6000, 500)
    assert len(pieces) > 5
    assert pieces[0][0] == 0
    assert pieces[-1][1] == len(text.rstrip())
    for (_, end), (start, _) in pairwise(pieces):
        assert start < end
        assert text[end - 1] == "."
        assert text[start - 1] == " "
    tokenizer = embedder._model().tokenizer
    assert max(len(token_spans(tokenizer, text[start:end])) for start, end in pieces) <= 254


@given(
    st.lists(st.sampled_from(["word", "end.", "para\n\n", "line\n", "x" * 30]), max_size=80),
    st.integers(1, 20),
    st.integers(0, 19),
)
def test_chunks_cover_all_tokens_in_the_limit(words: list[str], limit: int, overlap: int) -> None:
    overlap = min(overlap, limit - 1)
    text = " ".join(words)
    ends = list(accumulate(len(word) + 1 for word in words))
    tokens = [
        (end - 1 - len(word), end - 1 - len(word) + len(word.rstrip()))
        for word, end in zip(words, ends, strict=True)
    ]
    pieces = chunk_spans(text, tokens, limit, overlap)
    for start, end in tokens:
        assert any(first <= start and end <= last for first, last in pieces)
    for first, last in pieces:
        assert sum(first <= start and end <= last for start, end in tokens) <= limit
    assert pieces == sorted(set(pieces))


def test_an_overlap_as_long_as_a_chunk_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="overlap_tokens"):
        chunk_spans("a b", [(0, 1), (2, 3)], 5, 5)


@given(st.lists(st.integers(2, 256), max_size=200))
def test_batches_hold_every_row_once_and_few_tokens(lengths: list[int]) -> None:
    batches = list(in_batches(lengths))
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    for rows in batches:
        assert max(lengths[row] for row in rows) * len(rows) <= BATCH_TOKENS


def test_tokens_come_from_the_same_pass_in_the_order_of_the_texts(embedder: LocalEmbedder) -> None:
    texts = ["The Wörld is round", "", "rivers " * 400, "A cat"]
    vectors, tokens = embedder.embed_with_tokens(texts)
    np.testing.assert_array_equal(vectors, embedder.embed(texts))
    words = [[text[a:b] for a, b in one.spans] for text, one in zip(texts, tokens, strict=True)]
    assert words[0] == ["The", "Wörld", "is", "round"]
    assert (words[1], words[3]) == ([], ["A", "cat"])
    assert len(words[2]) == embedder.space.max_tokens - 2  # without the special tokens
    for one in tokens:
        assert one.vectors.shape == (len(one.spans), 32)
        np.testing.assert_allclose(np.linalg.norm(one.vectors, axis=1), 1, atol=1e-5)
    alone = embedder.embed_with_tokens(texts[3:])[1][0]
    assert (np.sum(alone.vectors * tokens[3].vectors, axis=1) > 0.98).all()

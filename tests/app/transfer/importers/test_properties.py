"""Property tests of the importers: any data gives valid conversations or ImportRefused."""

import contextlib
import copy
import io
import json
import random
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.errors import ImportRefused
from app.domain.transfer import Skipped
from app.transfer.importers import read_export
from app.transfer.importers.chatgpt import read_chatgpt
from app.transfer.importers.claude import read_claude
from app.transfer.importers.commonplace import read_commonplace
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.scanner import Readable
from tests.app.transfer.importers.test_own_format import document
from tests.fakes.damaged_exports import check_imported, damage
from tests.fakes.export_files import FILES, write
from tests.fakes.exports import chatgpt_message, chatgpt_node, chatgpt_row

_DATA = Path(__file__).parents[3] / "data" / "imports"
_WHOLE_FILE = (_DATA / "chatgpt_kinds.json").read_bytes()
_ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["", "a", "\ud800", "2025-01-01T00:00:00Z", "2025-02-01T00:00:00+02:00", "yesterday",
         "user", "text", "image", "sonic_webpage", "user_editable_context", "sediment://x",
         "\ue200cite\ue201", "all"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "name", "parts"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)  # fmt: skip
_READERS = [
    pytest.param(read_chatgpt, json.loads(_WHOLE_FILE), id="chatgpt"),
    pytest.param(read_claude, json.loads((_DATA / "claude_kinds.json").read_text()), id="claude"),
    pytest.param(read_commonplace, document()["conversations"], id="commonplace"),
]


@st.composite
def damaged(draw: st.DrawFn, whole: list[Any]) -> list[Any]:
    """Return a copy in which some members, at any depth, are missing or something else."""
    made = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 12))):
        container: Any = made
        while container:
            keys = list(container) if isinstance(container, dict) else range(len(container))
            key = draw(st.sampled_from(keys))
            inner = container[key]
            if not isinstance(inner, dict | list) or draw(st.integers(0, 5)) == 0:
                if draw(st.booleans()):
                    container[key] = draw(_ODD)
                else:
                    del container[key]
                break
            container = inner
    return made


def _read_all(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file, contextlib.suppress(ImportRefused):
        file.write(content)
        file.flush()
        for found in read_export(Path(file.name)):
            check_imported(found)


@pytest.mark.parametrize(("read", "whole"), _READERS)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_document_gives_valid_conversations(
    read: Callable[[Readable, str], Imported], whole: list[Any], data: st.DataObject
) -> None:
    text = json.dumps(data.draw(damaged(whole))).encode()
    for found in read(io.BytesIO(text), "file"):
        check_imported(found)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_gives_valid_conversations_or_reports(name: str, tmp_path: Path) -> None:
    for seed in range(settings().max_examples // 4):  # 500 in the profile for a night
        drawn = random.Random(f"{name} {seed}")
        folder = tmp_path / str(seed)
        folder.mkdir()
        file = write(name, folder)
        damage(file, drawn)
        with contextlib.suppress(ImportRefused):
            for found in read_export(file):
                check_imported(found)


def test_a_number_in_place_of_a_list_leaves_the_rest(tmp_path: Path) -> None:
    file = write("cherry_studio", tmp_path)
    found = file.read_text()
    changed = found.replace('["b1"]', "7")
    assert changed != found
    file.write_text(changed)
    talk = next(each for each in read_export(file) if not isinstance(each, Skipped))
    check_imported(talk)
    assert len(talk.messages) > 1


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("abcdefghz"), min_size=1),
    st.sets(st.sampled_from("abcdefgh")),
    st.permutations("abcdefgh"),
)
def test_cycles_orphans_and_any_order_lose_no_message(
    parents: dict[str, str], hidden: set[str], order: list[str]
) -> None:
    row = chatgpt_row()
    for name in order:
        message = chatgpt_message(
            name, "user", name, is_visually_hidden_from_conversation=name in hidden
        )
        if name in parents:
            row["mapping"][name] = chatgpt_node(name, parents[name], message)
    (found,) = read_chatgpt(io.BytesIO(json.dumps([row]).encode()), "file")
    check_imported(found)
    kept = set() if isinstance(found, Skipped) else {each.source_id for each in found.messages}
    assert kept == set(parents) - hidden


@given(st.data())
def test_a_damaged_file_gives_valid_conversations_or_is_refused(data: st.DataObject) -> None:
    whole = bytearray(_WHOLE_FILE)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] = data.draw(st.sampled_from(b'{}[]",:\\0\xff\xe2a\x00'))
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(1, len(whole) - 1)) :]
    _read_all(bytes(whole))


@given(st.data())
def test_a_damaged_zip_gives_valid_conversations_or_is_refused(data: st.DataObject) -> None:
    small = json.dumps([chatgpt_row(chatgpt_message("a", "user", "Hello " * 200))])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("conversations.json", "inner.zip", "chat.html"):
            made.writestr(name, out.getvalue() if name == "inner.zip" else small)
    whole = bytearray(out.getvalue())
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        whole += data.draw(st.binary(max_size=40))
    _read_all(bytes(whole))

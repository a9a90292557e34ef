"""Whatever an export holds: nothing but ImportRefused is raised, parents come first, nothing twice."""

import contextlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.errors import ImportRefused
from app.domain.text import clean
from app.domain.transfer import ImportedConversation, ImportedMessage, Skipped
from app.transfer.importers import read_export
from app.transfer.importers.building import Imported
from app.transfer.importers.chatgpt import read_chatgpt
from app.transfer.importers.claude import read_claude
from app.transfer.importers.commonplace import read_commonplace
from app.transfer.importers.scanner import Readable

_NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f", "", "\ud800"])
_ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | _NAMES
    | st.sampled_from(
        ["2025-01-01T00:00:00Z", "user", "assistant", "text", "\ue200cite\ue201", "all"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "name", "parts"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)


def _mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(usual, usual, usual, usual, _ODD)


def _object(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with any of these members, mostly of the right type."""
    return st.fixed_dictionaries({}, optional={key: _mostly(each) for key, each in members.items()})


_TIMES = st.floats(0, 4e9) | st.none()
_PARTS = st.lists(
    _mostly(
        st.text(max_size=8)
        | _object(
            content_type=st.sampled_from(["image_asset_pointer", "audio_transcription"]),
            asset_pointer=st.just("sediment://x"),
            text=st.text(max_size=5),
        )
    ),
    max_size=3,
)
_CONTENT_TYPES = st.sampled_from(
    ["text", "multimodal_text", "code", "execution_output", "thoughts", "reasoning_recap",
     "tether_quote", "tether_browsing_display", "sonic_webpage", "system_error",
     "user_editable_context", "new_thing"]
)  # fmt: skip
_CHATGPT_MESSAGE = _object(
    id=_NAMES,
    author=_object(role=st.sampled_from(["user", "assistant", "tool", "system"]), name=_NAMES),
    create_time=_TIMES,
    content=_object(
        content_type=_CONTENT_TYPES,
        parts=_PARTS,
        text=st.text(max_size=8),
        language=_NAMES,
        thoughts=st.lists(_object(summary=_NAMES, content=_NAMES), max_size=2),
        content=_NAMES,
    ),
    recipient=st.sampled_from(["all", "python"]),
    metadata=_object(
        model_slug=_NAMES,
        is_visually_hidden_from_conversation=st.booleans(),
        attachments=st.lists(_object(id=_NAMES, name=_NAMES, size=st.integers()), max_size=2),
        content_references=st.lists(_object(matched_text=st.text(), alt=_NAMES), max_size=2),
        citations=st.lists(
            _object(start_ix=st.integers(-2, 9), end_ix=st.integers(-2, 9)), max_size=2
        ),
        aggregate_result=_object(status=_NAMES, messages=st.lists(_ODD, max_size=2)),
    ),
)
_CHATGPT = _object(
    id=_NAMES,
    title=_NAMES,
    create_time=_TIMES,
    update_time=_TIMES,
    current_node=_NAMES,
    mapping=st.dictionaries(
        _NAMES,
        _mostly(
            _object(
                id=_NAMES,
                parent=_NAMES | st.none(),
                children=st.lists(_NAMES),
                message=_CHATGPT_MESSAGE,
            )
        ),
        max_size=6,
    ),
)
_CLAUDE = _object(
    uuid=_NAMES,
    name=_NAMES,
    summary=_NAMES,
    created_at=st.sampled_from(["2025-01-01T00:00:00Z", "yesterday"]),
    chat_messages=st.lists(
        _object(
            uuid=_NAMES,
            sender=st.sampled_from(["human", "assistant"]),
            text=st.text(max_size=8),
            parent_message_uuid=_NAMES,
            created_at=st.sampled_from(["2025-01-01T00:00:00Z", "2025-02-01T00:00:00+02:00"]),
            content=st.lists(
                _object(
                    type=st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image"]),
                    text=_NAMES,
                    thinking=_NAMES,
                    content=_ODD,
                    input=_ODD,
                ),
                max_size=3,
            ),
            attachments=st.lists(_object(file_name=_NAMES, extracted_content=_NAMES), max_size=2),
        ),
        max_size=6,
    ),
)
_OURS = _object(
    uid=_NAMES,
    title=_NAMES,
    title_origin=st.sampled_from(["user", "import"]),
    visible_leaf=_NAMES,
    tags=st.lists(_NAMES),
    summaries=st.lists(_object(text=_NAMES, made_at=st.just("2025-01-01")), max_size=2),
    messages=st.lists(
        _object(
            uid=_NAMES,
            parent=_NAMES | st.none(),
            role=st.sampled_from(["user", "assistant"]),
            raw=_ODD,
            blocks=st.lists(
                _object(type=st.sampled_from(["text", "image", "tool_call"]), text=_NAMES),
                max_size=2,
            ),
        ),
        max_size=6,
    ),
)
_KINDS = [
    pytest.param(read_chatgpt, _CHATGPT, id="chatgpt"),
    pytest.param(read_claude, _CLAUDE, id="claude"),
    pytest.param(read_commonplace, _OURS, id="commonplace"),
]
_SETTINGS = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _check(found: ImportedConversation | Skipped) -> None:
    if isinstance(found, Skipped):
        assert found.where
        assert found.why
        return
    seen: set[str] = set()
    for message in found.messages:
        assert message.source_id not in seen
        assert message.parent is None or message.parent in seen
        seen.add(message.source_id)
        _check_text(message)
    assert found.visible_leaf in seen if found.messages else found.visible_leaf is None
    assert clean(found.title) == found.title
    assert found.source_id


def _check_text(message: ImportedMessage) -> None:
    assert message.created_at is None or message.created_at.tzinfo is not None
    for block in message.blocks:
        for name in ("text", "name", "arguments", "call_id", "media_type"):
            text = getattr(block, name, "")
            assert clean(text) == text


@pytest.mark.parametrize(("read", "kind"), _KINDS)
def test_any_tree_of_anything_gives_sound_conversations(
    read: Callable[[Readable, str], Imported], kind: st.SearchStrategy[dict[str, Any]]
) -> None:
    @_SETTINGS
    @given(st.lists(_mostly(kind), max_size=3))
    def check(conversations: list[Any]) -> None:
        text = json.dumps(conversations).encode()
        for found in read(io.BytesIO(text), "file"):
            _check(found)

    check()


@settings(max_examples=120, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("abcdefghz"), min_size=1),
    st.sets(st.sampled_from("abcdefgh")),
    st.permutations("abcdefgh"),
)
def test_circles_orphans_and_any_order_lose_no_message(
    parents: dict[str, str], hidden: set[str], order: list[str]
) -> None:
    mapping = {
        name: {
            "id": name,
            "parent": parents[name],
            "message": {
                "author": {"role": "user"},
                "content": {"content_type": "text", "parts": [name]},
                "metadata": {"is_visually_hidden_from_conversation": name in hidden},
            },
        }
        for name in order
        if name in parents
    }
    text = json.dumps([{"id": "c", "mapping": mapping}]).encode()
    (found,) = read_chatgpt(io.BytesIO(text), "file")
    _check(found)
    kept = set() if isinstance(found, Skipped) else {each.source_id for each in found.messages}
    assert kept == set(parents) - hidden


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_file_gives_sound_conversations_or_is_refused(data: st.DataObject) -> None:
    whole = bytearray(
        (Path(__file__).parents[1] / "data" / "imports" / "chatgpt_kinds.json").read_bytes()
    )
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] = data.draw(st.sampled_from(b'{}[]",:\\0\xff\xe2a\x00'))
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(1, len(whole) - 1)) :]
    _read_all(bytes(whole))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_zip_gives_sound_conversations_or_is_refused(data: st.DataObject) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("conversations.json", "inner.zip", "chat.html"):
            made.writestr(name, out.getvalue() if name == "inner.zip" else _SMALL)
    whole = bytearray(out.getvalue())
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        whole += data.draw(st.binary(max_size=40))
    _read_all(bytes(whole))


_SMALL = json.dumps(
    [{"id": "c", "mapping": {"a": {"message": {"author": {"role": "user"}, "content": {
        "content_type": "text", "parts": ["Hello " * 200]}}}}}]
)  # fmt: skip


def _read_all(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with contextlib.suppress(ImportRefused):
            for found in read_export(Path(file.name)):
                _check(found)

"""Parts that the importers of coding agents' session logs share: blocks, replies in pieces, project names."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from app.domain.conversations import Attachment, Block, Image, Text, Thinking, ToolCall, ToolResult
from app.domain.text import one_line
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.parsing.formats import KeyedFile, NotKept, Part
from app.transfer.importers.parsing.values import an_object, identity, media_type, objects, text_of

RESULT_MAX_CHARS = 20_000
"""The limit of a tool result; agents read whole files, of which the middle is left out."""

_PICTURES = ("image", "input_image", "image_url", "inputImage")
_TAG_CHARS = 40
_ELSEWHERE = re.compile(r"/|(?!data:)\w+:")  # an address that is not in the export
_SILENT = frozenset(
    (
        "redacted_thinking",
        # OpenCode's
        "agent", "compaction", "patch", "retry", "snapshot", "step-finish", "step-start",
        # Goose's
        "contextLengthExceeded", "redactedThinking", "summarizationRequested", "systemNotification",
        "toolConfirmationRequest", "actionRequired", "conversationCompacted",
    )
)  # fmt: skip


def blocks_of(content: object) -> list[Part]:
    """Return the parts of a message as the vendors' protocols write them."""
    if isinstance(content, str):
        return text_block(content)
    return [block for part in objects(content) for block in _block(part)]


def file_part(name: object, kind: object, address: object = "", text: str = "") -> Part:
    """Return a file of a message as a part; `address` is its `data:` URL or its id in the export.

    `kind` is its media type, or "image".
    """
    shown = one_line(text_of(name), 200)
    known = media_type(shown) or text_of(kind)[:100]
    key = address if isinstance(address, str) and not _ELSEWHERE.match(address) else ""
    if known.startswith("image/") or kind == "image":
        known = known if "/" in known else "image/*"
        file: Image | Attachment = Image(shown or "image", known)
    else:
        file = Attachment(shown or "file", known if "/" in known else "text/plain", None, text)
    return KeyedFile(file, key) if key else file


def text_block(value: object) -> list[Part]:
    """Return a text as a block, none for a blank one."""
    text = text_of(value)
    return [Text(text)] if text.strip() else []


def thinking_block(value: object) -> list[Part]:
    """Return a model's reasoning as a block, none for a blank one."""
    text = text_of(value)
    return [Thinking(text)] if text.strip() else []


def unknown_part(kind: str) -> NotKept:
    """Return a part of a kind that has no place here."""
    return NotKept(f"it contains a part of the unknown kind '{kind[:60]}'")


def counts_of(record: Mapping[str, Any], *members: str) -> str:
    """Return the names of the lists among these members with their lengths, "" for none."""
    found = ((each.replace("_", " "), record.get(each)) for each in members)
    return ", ".join(f"{name} ({len(v):,})" for name, v in found if isinstance(v, list) and v)


def error_part(error: object) -> list[Part]:
    """Return an error of a message, a text or an object with one, as a part; none for no error."""
    said = one_line(_error_text(error), 200)
    return [NotKept(f"it has an error: {said}" if said else "it is an error message")] * bool(error)


def rating_part(rating: object) -> list[Part]:
    """Return how the user rated a reply, an object, as a part; none for no rating."""
    given = ((key, value) for key, value in an_object(rating).items() if value)
    said = ", ".join(f"{key} {value}" for key, value in given if isinstance(value, str | int))
    return [NotKept(f"it has a rating of yours: {one_line(said, 200)}")] if said else []


def call_block(call_id: object, name: object, arguments: object) -> ToolCall:
    """Return a tool call; `arguments` is JSON text or a value."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(identity(call_id), one_line(text_of(name), 200) or "tool", text_of(text))


def result_block(
    call_id: object, name: object, result: object, *, is_error: bool = False
) -> ToolResult:
    """Return a tool result; of a long one its beginning and end."""
    text = _plain(result)
    if len(text) > RESULT_MAX_CHARS:
        half = RESULT_MAX_CHARS // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
    return ToolResult(identity(call_id), one_line(text_of(name), 200), text, is_error=is_error)


def result_parts(
    call_id: object, name: object, result: object, *, is_error: bool = False
) -> list[Part]:
    """Return a tool result, and the pictures in it as files."""
    listed = result.get("content") if isinstance(result, dict) else result
    entries = listed if isinstance(listed, list) else []  # texts stand for themselves
    pictures = [each for each in entries if an_object(each).get("type") in _PICTURES]
    if pictures:
        result = [each for each in entries if each not in pictures]
    return [result_block(call_id, name, result, is_error=is_error), *map(_file, pictures)]


def merged(known: Sequence[Block], new: Iterable[Block]) -> tuple[Block, ...]:
    """Return the blocks of a reply that is logged in pieces, each cumulative or additional."""
    blocks = list(known)
    for block in new:
        at = next((i for i, each in enumerate(blocks) if _continues(each, block)), None)
        if at is None:
            blocks.append(block)
        elif _size(block) >= _size(blocks[at]):
            blocks[at] = block
    return tuple(blocks)


def project_tag(folder: object) -> tuple[str, ...]:
    """Return the name of a project's folder as a tag, none when it is unknown."""
    text = text_of(folder).strip().rstrip("/\\")
    kind = PureWindowsPath if re.match(r"[A-Za-z]:", text) or "\\" in text else PurePosixPath
    return named_tags(kind(text).name)


def named_tags(*names: object) -> tuple[str, ...]:
    """Return names as tags, which are short and have no commas; what is no name is left out."""
    tags = (one_line(text_of(each).replace(",", " "), _TAG_CHARS) for each in names)
    return tuple(filter(None, tags))


def user_turns(found: ImportedConversation) -> int:
    """Return the number of the user's messages with text or files."""
    return sum(
        message.role == "user"
        and any(isinstance(block, Text | Image | Attachment) for block in message.blocks)
        for message in found.messages
    )


def without_automatic(
    found: ImportedConversation | Skipped, where: str, *, by_program: bool
) -> ImportedConversation | Skipped:
    """Return a run by a program of at most one turn as skipped, anything else as it is."""
    if by_program and isinstance(found, ImportedConversation) and user_turns(found) <= 1:
        return Skipped(where, "it is a run of one turn that a program started")
    return found


def _block(part: dict[str, Any]) -> list[Part]:
    kind = text_of(part.get("type"))
    if kind in ("", "text", "input_text", "output_text", "summary_text"):
        return text_block(part.get("text"))
    if kind in ("thinking", "reasoning"):
        return thinking_block(part.get("thinking") or part.get("text"))
    if kind in ("tool_use", "tool-use"):
        return [call_block(part.get("id"), part.get("name"), part.get("input"))]
    if kind == "tool_result":
        is_error = part.get("is_error") is True
        called, name = part.get("tool_use_id"), part.get("name")
        return result_parts(called, name, part.get("content"), is_error=is_error)
    if kind in (*_PICTURES, "document", "input_file"):
        return [_file(part)]
    if kind == "error":
        return error_part(part.get("error") or part.get("text") or kind)
    return [] if kind in _SILENT else [unknown_part(kind)]


def _file(part: dict[str, Any]) -> Part:
    """Return an image or a document; the protocols have its content in three places."""
    source = an_object(part.get("source")) or part
    name = source.get("file_name") or part.get("file_name") or part.get("title")
    kind = text_of(source.get("media_type") or source.get("mimeType"))
    data = source.get("data")
    given = ("image_url", "imageUrl", "file_data", "url")
    url = next(filter(None, (part.get(each) for each in given)), None)
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(data, str) and source.get("type") != "text":
        url = f"data:{kind};base64,{data}"
    is_image = text_of(part.get("type")) not in ("document", "input_file")
    text = text_of(data) if source.get("type") == "text" else ""
    return file_part(name, kind or ("image" if is_image else "text/plain"), url, text)


def _error_text(error: object) -> str:
    if not isinstance(error, dict):
        return text_of(error)
    members = ("message", "content", "detail", "error", "data", "name")
    return next(filter(None, (_error_text(error.get(each)) for each in members)), "")


def _plain(result: object) -> str:
    if isinstance(result, str):
        return text_of(result)
    if isinstance(result, list):
        texts = (each if isinstance(each, str) else _plain(each) for each in result)
        return "\n\n".join(filter(None, map(text_of, texts)))
    if isinstance(result, dict):
        for member in ("text", "output", "content"):
            if isinstance(result.get(member), str | list):
                return _plain(result[member])
    return "" if result is None else text_of(json.dumps(result, ensure_ascii=False))


def _continues(known: Block, new: Block) -> bool:
    if isinstance(known, Text) and isinstance(new, Text):
        return new.text.startswith(known.text) or known.text.startswith(new.text)
    if isinstance(known, Thinking) and isinstance(new, Thinking):
        return new.text.startswith(known.text) or known.text.startswith(new.text)
    return (
        isinstance(known, ToolCall) and isinstance(new, ToolCall) and known.call_id == new.call_id
    )


def _size(block: Block) -> int:
    return len(block.arguments) if isinstance(block, ToolCall) else len(getattr(block, "text", ""))

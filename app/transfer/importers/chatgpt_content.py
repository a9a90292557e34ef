"""Content blocks of ChatGPT messages, and which messages are hidden.

Tool results have the call id "" here; `chatgpt` finds the call in the tree.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.domain.conversations import (
    Attachment,
    Block,
    Image,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.transfer.importers.citations import replace_citations
from app.transfer.importers.parsing.values import (
    UnreadableValue,
    an_object,
    count,
    identity,
    link_list,
    media_type,
    objects,
    strings,
    text_of,
)

_ROLES = {
    "user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL,
    "system": Role.SYSTEM, "developer": Role.SYSTEM,
}  # fmt: skip
_HIDDEN_TYPES = frozenset(
    ("computer_initialize_state", "developer_content", "model_editable_context", "system_content")
)
_INSTRUCTIONS = "user_editable_context"
_POINTER_PREFIXES = ("sediment://", "file-service://")


@dataclass(frozen=True, slots=True)
class Content:
    """The role and blocks of a message, reasons for what was left out, and the ids of its files."""

    role: Role
    blocks: tuple[Block, ...]
    left_out: tuple[str, ...] = ()
    file_keys: tuple[str, ...] = ()


def content_of(message: dict[str, Any]) -> Content | None:
    """Return the content of a message; None when it is hidden or empty. Raises UnreadableValue."""
    metadata = an_object(message.get("metadata"))
    content = message.get("content")
    is_instructions = an_object(content).get("content_type") == _INSTRUCTIONS
    if metadata.get("is_visually_hidden_from_conversation") is True and not is_instructions:
        return None
    role = _role(message)
    if not isinstance(content, dict):
        raise UnreadableValue("it has no content")
    if is_instructions:
        blocks = tuple(_instructions(content))
        return Content(Role.SYSTEM, blocks) if blocks else None
    kind = text_of(content.get("content_type"))
    is_own = metadata.get("is_user_system_message") is True
    if kind in _HIDDEN_TYPES or (role is Role.SYSTEM and not is_own):
        return None
    recipient = text_of(message.get("recipient"))
    if role is Role.ASSISTANT and recipient not in ("", "all"):
        call = ToolCall(identity(message.get("id")), recipient, _arguments(content))
        return Content(role, (call,))
    reader = _MessageReader(role, metadata, text_of(an_object(message.get("author")).get("name")))
    blocks = tuple(reader.blocks(kind, content))
    left_out = tuple(reader.left_out)
    file_keys = tuple(reader.file_keys)
    return Content(role, blocks, left_out, file_keys) if blocks or left_out else None


def _role(message: dict[str, Any]) -> Role:
    name = text_of(an_object(message.get("author")).get("role"))
    if name not in _ROLES:
        raise UnreadableValue(f"its author is '{name[:40]}'" if name else "it has no author")
    return _ROLES[name]


def _arguments(content: dict[str, Any]) -> str:
    """Return the arguments of a call as a JSON object; plain code is put under "code"."""
    text = text_of(content.get("text")) or "\n".join(strings(content.get("parts")))
    try:
        if isinstance(json.loads(text), dict):
            return text
    except (ValueError, RecursionError):
        pass  # plain code
    return json.dumps({"code": text}, ensure_ascii=False)


class _MessageReader:
    """A message that is read block by block."""

    def __init__(self, role: Role, metadata: dict[str, Any], author: str) -> None:
        self.left_out: list[str] = []
        self.file_keys: list[str] = []
        self._prompts: list[str] = []
        self._role = role
        self._metadata = metadata
        self._author = author
        self._files = {
            identity(file.get("id")): file for file in objects(metadata.get("attachments"))
        }

    def blocks(self, kind: str, content: dict[str, Any]) -> list[Block]:
        """Return the blocks of content of this kind in order, files last."""
        reader = _READERS.get(kind)
        found = reader(self, content) if reader else self._unknown(kind, content)
        if not found and reader and not self.left_out and _has_text(content):
            self.left_out.append(f"its content of the kind '{kind[:60]}' has an unknown shape")
        return found + self._remaining_files()

    def parts(self, content: dict[str, Any]) -> list[Block]:
        found: list[Block] = []
        texts: list[str] = []
        parts = content.get("parts")
        for part in parts if isinstance(parts, list) else [content.get("text")]:
            text = self._part_text(part)
            if text.strip():
                texts.append(text)
            elif isinstance(part, dict):
                found += self._text_blocks(texts) + self._assets(part)
                texts = []
        found += self._text_blocks(texts)
        return [made for prompt in self._prompts for made in self._text_blocks([prompt])] + found

    def _part_text(self, part: object) -> str:
        if isinstance(part, dict):
            return text_of(part.get("text"))
        if part is not None and not isinstance(part, str):
            self.left_out.append("a part of it is neither text nor an image")
        return text_of(part)

    def _text_blocks(self, texts: list[str]) -> list[Block]:
        text = "\n\n".join(texts)
        if not text:
            return []
        if self._role is Role.USER:
            return [Text(text)]
        text = replace_citations(text, self._metadata)
        if self._role is Role.TOOL:
            return [ToolResult("", self._author, text)]
        return [Text(text)] if text.strip() else []

    def _assets(self, part: dict[str, Any]) -> list[Block]:
        """Return the images and audio files that a part refers to."""
        kind = text_of(part.get("content_type"))
        if kind == "real_time_user_audio_video_asset_pointer":
            audio = objects([part.get("audio_asset_pointer")])
            frames = objects(part.get("frames_asset_pointers"))
            return [self._file(each, "audio") for each in audio] + [
                self._file(each, "image") for each in frames
            ]
        if kind.endswith("asset_pointer"):
            return [self._file(part, kind.partition("_")[0])]
        if kind != "audio_transcription":
            self.left_out.append(f"it contains a part of the unknown kind '{kind[:60]}'")
        return []

    def _file(self, part: dict[str, Any], kind: str) -> Block:
        name = text_of(part.get("asset_pointer"))[:500]
        for prefix in _POINTER_PREFIXES:
            name = name.removeprefix(prefix)
        self.file_keys.append(name)
        known = self._files.pop(identity(name), {})
        name = text_of(known.get("name")) or name
        if prompt := text_of(an_object(an_object(part.get("metadata")).get("dalle")).get("prompt")):
            self._prompts.append(prompt)
        kind_of_file = _media_type(known, name) or f"{kind}/*"
        if kind == "image":
            return Image(name, kind_of_file)
        return Attachment(name, kind_of_file, count(part.get("size_bytes")))

    def _remaining_files(self) -> list[Block]:
        found: list[Block] = []
        for file in self._files.values():
            name = text_of(file.get("name")) or identity(file.get("id"))
            self.file_keys.append(identity(file.get("id")) or name)
            kind = _media_type(file, name)
            if kind.startswith("image/"):
                found.append(Image(name, kind))
            else:
                found.append(Attachment(name, kind, count(file.get("size"))))
        return found

    def code(self, content: dict[str, Any]) -> list[Block]:
        code = text_of(content.get("text"))
        language = text_of(content.get("language"))
        fence = "```" if "```" not in code else "~~~~~"
        known = language if language.isalnum() and language != "unknown" else ""
        if self._role is Role.TOOL:
            return self._result(code)
        return [Text(f"{fence}{known}\n{code}\n{fence}")] if code.strip() else []

    def output(self, content: dict[str, Any]) -> list[Block]:
        run = an_object(self._metadata.get("aggregate_result"))
        failed = text_of(run.get("status")).startswith("failed")
        images: list[Block] = [
            self._file({"asset_pointer": each.get("image_url")}, "image")
            for each in objects(run.get("messages"))
            if each.get("message_type") == "image" and isinstance(each.get("image_url"), str)
        ]
        text = text_of(content.get("text"))
        return [ToolResult("", self._author, text, is_error=failed), *images]

    def recap(self, content: dict[str, Any]) -> list[Block]:
        return _thinking(text_of(content.get("content")) or _joined_parts(content))

    def thoughts(self, content: dict[str, Any]) -> list[Block]:
        thoughts = objects(content.get("thoughts"))
        texts = (
            "\n\n".join(filter(None, (text_of(each.get("summary")), text_of(each.get("content")))))
            for each in thoughts
        )
        return _thinking("\n\n".join(filter(None, texts)) or _joined_parts(content))

    def quote(self, content: dict[str, Any]) -> list[Block]:
        text = text_of(content.get("text")) or text_of(content.get("snippet"))
        head = [text_of(content.get(each)) for each in ("title", "url")]
        return self._result("\n\n".join(filter(None, ("\n".join(filter(None, head)), text))))

    def code_output(self, content: dict[str, Any]) -> list[Block]:
        return self._result(text_of(content.get("output_str")))

    def computer(self, content: dict[str, Any]) -> list[Block]:
        state = an_object(content.get("state"))
        shown = objects([content.get("screenshot")])
        found = self._result(
            "\n".join(filter(None, (text_of(state.get(k)) for k in ("title", "url"))))
        )
        return found + [self._file(each, "image") for each in shown]

    def widget(self, content: dict[str, Any]) -> list[Block]:
        links = objects(an_object(content.get("widgets")).get("navlinks"))
        return self._result(link_list((each.get("title"), each.get("url")) for each in links))

    def browsing(self, content: dict[str, Any]) -> list[Block]:
        texts = (text_of(content.get("summary")), text_of(content.get("result")))
        return self._result("\n\n".join(filter(None, texts)))

    def _result(self, text: str) -> list[Block]:
        text = replace_citations(text, self._metadata)
        return [ToolResult("", self._author, text)] if text.strip() else []

    def error(self, content: dict[str, Any]) -> list[Block]:
        message = ": ".join(
            filter(None, (text_of(content.get("name")), text_of(content.get("text"))))
        )
        if self._role is Role.TOOL:
            return [ToolResult("", self._author, message, is_error=True)]
        return [Text(message)] if message else []

    def _unknown(self, kind: str, content: dict[str, Any]) -> list[Block]:
        if found := self.parts(content):
            return found
        raise UnreadableValue(f"its content is of the unknown kind '{kind[:60]}'")


_READERS: dict[str, Callable[[_MessageReader, dict[str, Any]], list[Block]]] = {
    "text": _MessageReader.parts,
    "multimodal_text": _MessageReader.parts,
    "code": _MessageReader.code,
    "citable_code_output": _MessageReader.code_output,
    "computer_output": _MessageReader.computer,
    "execution_output": _MessageReader.output,
    "thoughts": _MessageReader.thoughts,
    "reasoning_recap": _MessageReader.recap,
    "tether_quote": _MessageReader.quote,
    "sonic_webpage": _MessageReader.quote,
    "super_widget": _MessageReader.widget,
    "tether_browsing_display": _MessageReader.browsing,
    "system_error": _MessageReader.error,
}


def _instructions(content: dict[str, Any]) -> list[Block]:
    """Return the user's custom instructions."""
    parts = (text_of(content.get(each)).strip() for each in ("user_profile", "user_instructions"))
    text = "\n\n".join(filter(None, parts))
    return [Text(text)] if text else []


def _joined_parts(content: dict[str, Any]) -> str:
    return "\n\n".join(strings(content.get("parts")))


def _has_text(value: object) -> bool:
    """Return whether there is any text in a content that nothing was read from."""
    if isinstance(value, dict):
        return any(_has_text(v) for k, v in value.items() if k not in ("content_type", "language"))
    if isinstance(value, list):
        return any(map(_has_text, value))
    return isinstance(value, str) and bool(value.strip())


def _thinking(text: str) -> list[Block]:
    return [Thinking(text)] if text.strip() else []


def _media_type(file: dict[str, Any], name: str) -> str:
    given = text_of(file.get("mime_type")) or text_of(file.get("mimeType"))
    return given[:100] or media_type(name)

"""The importer of Gemini's app: Google Takeout's activity, Workspace's conversations and AI Studio's prompts."""

import html
import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import PurePath
from typing import Any

from app.domain.conversations import Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.parsing.blocks import (
    call_block,
    error_part,
    file_part,
    result_block,
    text_block,
    thinking_block,
)
from app.transfer.importers.parsing.formats import (
    Format,
    NotKept,
    Part,
    Thread,
    documents,
    text_name,
)
from app.transfer.importers.parsing.values import (
    an_object,
    link_list,
    moment,
    objects,
    strings,
    text_of,
    title,
)

SOURCE = "gemini"
SILENCE = timedelta(minutes=30)
"""Takeout has no conversations: after so long a pause a new one begins."""

_PROMPT = re.compile(
    r"\A(?:Prompted with:|Asked Gemini:|Asked Bard:|Prompted|Asked|Said|Branched|Answered)(?:\s+(?P<text>.*))?\Z",
    re.DOTALL,
)
_PRODUCT = re.compile("Gemini|Bard")
_FILES = re.compile(r"\s*Attached \d+ files?\.?\s*\Z")
_TAGS = re.compile(r"<(?P<tag>/?\w+)[^>]*>")
_MARKDOWN = {
    **dict.fromkeys(("br", "/p", "/div", "/tr", "/h1", "/h2", "/h3", "/h4", "/ul", "/ol"), "\n"),
    **{f"h{level}": f"\n{'#' * level} " for level in range(1, 5)},
    **dict.fromkeys(("b", "/b", "strong", "/strong"), "**"),
    **dict.fromkeys(("pre", "/pre"), "\n```\n"),
    "li": "\n- ",
}
"""What stands for an element in Markdown; others leave their text only."""


def _activity(value: Any, where: str) -> Iterable[ImportedConversation | Skipped]:
    """Yield the conversations of `MyActivity.json`, which lists single prompts, newest first."""
    ours = [each for each in objects(value) if _PRODUCT.search(text_of(each.get("header")))]
    entries = [each for each in ours if _prompt(each) is not None]
    dated = [(at, each) for each in entries if (at := moment(each.get("time"))) is not None]
    dated.sort(key=lambda pair: pair[0])
    thread, began, before = Thread(SOURCE, where), None, None
    noted: set[str] = set()  # most entries have the same
    skipped = len(ours) - len(dated)
    for at, entry in dated:
        if before is not None and at - before > SILENCE:
            yield thread.finished(_group_id(thread), "", began, before)
            thread, began = Thread(SOURCE, where), None
        began, before = began or at, at
        prompt = _prompt(entry) or ""  # of pictures alone
        name = text_name(f"{at.isoformat()}\0{prompt}")
        if name in thread.nodes:
            continue
        blocks = text_block(prompt)
        pictures = entry.get("imageFile")
        pictures = pictures if isinstance(pictures, list) else [pictures]
        blocks += [file_part(each, "image", "") for each in strings(pictures)]
        blocks += [file_part(each, "", "") for each in strings(entry.get("attachedFiles"))]
        thread.append(name, Role.USER, blocks, at)
        answer = "\n\n".join(_text(each.get("html")) for each in objects(entry.get("safeHtmlItem")))
        details = objects(entry.get("details"))
        cited = ((e.get("name"), e.get("url")) for e in objects(entry.get("subtitles")) + details)
        said = [*text_block(answer), *text_block(link_list(cited))]
        notes = {title(each.get("name")) for each in details if not each.get("url")} - noted
        noted |= notes
        said += [NotKept(f"it has a note of the program: {each}") for each in sorted(notes)]
        thread.append(f"{name}/answer", Role.ASSISTANT, said, at)
    if thread.nodes:
        yield thread.finished(_group_id(thread), "", began, before)
    if skipped:
        what = "entries that are no prompts (settings, feedback, deletions)"
        yield Skipped(where, f"{what} were left out: {skipped:,}")


def _prompt(entry: dict[str, Any]) -> str | None:
    """Return what was asked, "" with pictures alone; None if nothing was."""
    shown = text_of(entry.get("title"))
    found = _PROMPT.match(shown)
    if found is None:  # a verb in another language, kept when there is an answer
        return (_FILES.sub("", shown) or None) if entry.get("safeHtmlItem") else None
    return _FILES.sub("", found["text"] or "").strip()


def _group_id(thread: Thread) -> str:
    return f"of-{next(iter(thread.nodes))}"


def _text(value: object) -> str:
    """Return the text of HTML as Markdown."""
    marked = _TAGS.sub(lambda tag: _MARKDOWN.get(tag["tag"].lower(), ""), text_of(value))
    return re.sub(r"\n{3,}", "\n\n", html.unescape(marked)).strip()


def _workspace(value: Any, where: str) -> Iterable[ImportedConversation | Skipped]:
    """Yield the conversation of a `conversation_N.txt`."""
    record = an_object(value)
    thread = Thread(SOURCE, where)
    for number, turn in enumerate(objects(record.get("conversation_turns"))):
        asked, answered = an_object(turn.get("user_turn")), an_object(turn.get("system_turn"))
        if asked and not asked.get("turn_deleted_time"):
            at = moment(asked.get("turn_last_modified"))
            thread.append(f"{number}", Role.USER, text_block(asked.get("prompt")), at)
        if answered:
            blocks: list[Part] = []
            for thought in objects(answered.get("model_thoughts")):
                said = map(text_of, map(thought.get, ("headline", "description")))
                blocks += thinking_block("\n\n".join(filter(None, said)))
            for part in objects(answered.get("text")):
                blocks += text_block(part.get("data"))
                for card in objects(part.get("cards")):
                    blocks += text_block(card.get("content"))
            pictures = answered.get("images")
            for each in pictures if isinstance(pictures, list) else ():
                name = each if isinstance(each, str) else an_object(each).get("name")
                blocks.append(file_part(name, "image"))
            thread.append(f"{number}/answer", Role.ASSISTANT, blocks)
    created = text_of(record.get("creation_time"))
    heading = text_of(record.get("title"))
    name = text_name(f"{created}\0{heading}")
    ended = moment(record.get("last_modification_time"))
    yield thread.finished(name, heading, created, ended)


def _studio(value: Any, where: str) -> Iterable[ImportedConversation | Skipped]:
    """Yield the conversation of a prompt of AI Studio, whose older files have no times."""
    record = an_object(value)
    model = text_of(an_object(record.get("runSettings")).get("model")).removeprefix("models/")
    thread = Thread(SOURCE, where)
    instruction = an_object(record.get("systemInstruction"))
    thread.append("system", Role.SYSTEM, list(_chunk(instruction)))
    thinking: list[Part] = []
    prompt = an_object(record.get("chunkedPrompt"))
    chunks = objects(prompt.get("chunks"))
    if any(text_of(each.get("text")).strip() for each in objects(prompt.get("pendingInputs"))):
        thread.left_out.append(("not sent", "it is a draft"))
    began = next(filter(None, (moment(each.get("createTime")) for each in chunks)), None)
    for number, chunk in enumerate(chunks):
        is_user = text_of(chunk.get("role")) == "user"
        blocks = [*_chunk(chunk), *error_part(chunk.get("errorMessage"))]
        if chunk.get("isThought") is True:
            thinking += [
                each for block in blocks for each in thinking_block(getattr(block, "text", ""))
            ]
            continue
        if is_user:
            thread.append(str(number), Role.USER, blocks, chunk.get("createTime"))
        else:
            at = chunk.get("createTime")
            thread.append(str(number), Role.ASSISTANT, thinking + blocks, at, model)
            thinking = []
    name = PurePath(where).stem
    asked = next(
        (n.message for n in thread.nodes.values() if n.message and n.message.role is Role.USER),
        None,
    )
    identity = text_name(f"{name}\0{asked.blocks if asked else ''}")
    yield thread.finished(identity, name, began, is_undated=True)


def _chunk(chunk: dict[str, Any]) -> Iterator[Part]:
    if parts := objects(chunk.get("parts")):
        yield from (block for each in parts for block in _chunk(each))
    else:
        yield from text_block(chunk.get("text"))
    for kind in ("driveImage", "driveDocument", "driveAudio", "driveVideo"):
        if file := an_object(chunk.get(kind)):
            yield file_part(file.get("id"), "image" if kind == "driveImage" else "", "")
    for kind in ("inlineImage", "inlineFile", "inlineData", "inlineAudio"):
        if file := an_object(chunk.get(kind)):
            mime = text_of(file.get("mimeType"))
            yield file_part("", mime, f"data:{mime};base64,{text_of(file.get('data'))}")
    if code := an_object(chunk.get("executableCode")):
        yield call_block("", "code_execution", text_of(code.get("code")))
    if result := an_object(chunk.get("codeExecutionResult")):
        yield result_block("", "code_execution", result.get("output"))
    if video := text_of(an_object(chunk.get("youtubeVideo")).get("id")):
        yield from text_block(f"https://www.youtube.com/watch?v={video}")


TAKEOUT_FORMAT = Format(
    SOURCE, "Gemini (Google Takeout)", documents(_activity), members=("header title time products",)
)
WORKSPACE_FORMAT = Format(
    SOURCE,
    "Gemini (Google Workspace)",
    documents(_workspace),
    members=("conversation_turns user_turn",),
)
STUDIO_FORMAT = Format(
    SOURCE, "Google AI Studio", documents(_studio), members=("runSettings chunkedPrompt",)
)

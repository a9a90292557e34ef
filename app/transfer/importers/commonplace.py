"""The Commonplace importer: JSON and JSONL exports of this program, with uids as the source's ids."""

from contextlib import suppress
from typing import Any, TypeVar

from app.domain import codec
from app.domain.changes import CoreMemoryPut
from app.domain.chat import StoredProvider
from app.domain.conversations import RawReply, Role, TitleOrigin
from app.domain.records.facts import FactCategory
from app.domain.records.named import one_line_name
from app.domain.records.presets import Effort, Preset, preset_problem
from app.domain.records.profile import LINE_LIMIT_CHARS
from app.domain.records.projects import Project
from app.domain.records.routines import Routine
from app.domain.text import one_line
from app.domain.transfer import (
    ImportedConversation,
    ImportedMessage,
    PortableFact,
    PortableFactVersion,
    PortableLibrary,
    PortableMemory,
    PortableOrigin,
    PortableProfileLine,
    PortableSpend,
    PortableSummary,
    PortableTopic,
    PortableTurn,
    Skipped,
)
from app.transfer.importers.parsing.building import Builder, Imported, conversations
from app.transfer.importers.parsing.scanner import Readable
from app.transfer.importers.parsing.values import (
    an_object,
    count,
    identity,
    moment,
    objects,
    strings,
    text_of,
    title,
)
from app.transfer.json_format import FORMAT, block_from_plain, turn_from_plain

SOURCE = FORMAT
T = TypeVar("T")
_OWN_FACTS_ID = "facts"


def read_commonplace(stream: Readable, where: str) -> Imported:
    """Yield the conversations of an export of this program; `where` names it in reports."""
    return conversations(stream, where, _OwnConversation)


class _OwnConversation(Builder):
    MEMBER, ID_KEY, PARENT_KEY = "messages", "uid", "parent"

    def add(self, key: str, value: Any) -> str:  # noqa: ARG002 - only objects have keys
        message = an_object(value)
        name = identity(message.get("uid")) or self.generated_id()
        parent = identity(message.get("parent")) or None
        try:
            shown = _shown(name, parent, message)
        except ValueError as error:
            self.left_out.append((name, str(error)))
            shown = None
        self.add_node(name, parent, shown)
        return name

    def loose(self, header: dict[str, Any]) -> ImportedConversation | None:
        facts = _facts(header.get("facts"))
        presets = tuple(filter(None, map(_preset, objects(header.get("presets")))))
        profile = tuple(filter(None, map(_profile_line, objects(header.get("profile")))))
        library = _library(an_object(header.get("library")))
        if not facts and not presets and not profile and library is None:
            return None
        return ImportedConversation(
            SOURCE, _OWN_FACTS_ID, "", (), facts=facts, presets=presets, profile=profile,
            library=library,
        )  # fmt: skip

    def finish(self, header: dict[str, Any]) -> ImportedConversation | Skipped:
        uid, source = identity(header.get("uid")), text_of(header.get("source"))
        return self.conversation(
            SOURCE,
            uid,
            title(header.get("title")),
            header.get("visible_leaf"),
            moment(header.get("created_at")),
            moment(header.get("updated_at")),
            keep_order=True,
            may_be_empty=bool(uid),
            archived=header.get("archived") is True,
            pinned=header.get("pinned") is True,
            private=header.get("private") is True,
            model=text_of(header.get("model")) or None,
            tags=tuple(strings(header.get("tags"))),
            uid=uid,
            summaries=tuple(filter(None, map(_summary, objects(header.get("summaries"))))),
            title_origin=_title_origin(header.get("title_origin")),
            first_source="" if source == SOURCE else source,
            facts=_facts(header.get("facts")),
            recalls=header.get("recalls") is not False,
            preset=identity(header.get("preset")),
            project=identity(header.get("project")),
            origins=_decoded(PortableOrigin, header.get("origins")),
            turns=_turns(header.get("turns")),
        )


def _shown(name: str, parent: str | None, message: dict[str, Any]) -> ImportedMessage:
    """Return the message; raise ValueError with a reason for the user when it cannot be read."""
    role = text_of(message.get("role"))
    if role not in list(Role):
        raise ValueError(f"its role is '{role[:40]}'" if role else "it has no role")
    return ImportedMessage(
        source_id=name,
        parent=parent,
        role=Role(role),
        blocks=tuple(block_from_plain(each) for each in _cleaned(objects(message.get("blocks")))),
        created_at=moment(message.get("created_at")),
        model=text_of(message.get("model")) or None,
        raw=_raw(an_object(message.get("raw"))),
    )


def _cleaned(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: text_of(value) if isinstance(value, str) else value for key, value in block.items()}
        for block in blocks
    ]


def _raw(plain: dict[str, Any]) -> RawReply | None:
    if not isinstance(plain.get("items_json"), str):
        return None
    return RawReply(
        text_of(plain.get("wire")), text_of(plain.get("model")), text_of(plain["items_json"])
    )


def _summary(plain: dict[str, Any]) -> PortableSummary | None:
    text, made_at = text_of(plain.get("text")), moment(plain.get("made_at"))
    if not text or made_at is None:
        return None
    last_message = identity(plain.get("last_message")) or None
    return PortableSummary(text, text_of(plain.get("model")), made_at, last_message)


def _preset(plain: dict[str, Any]) -> Preset | None:
    effort, tools = plain.get("reasoning_effort"), plain.get("tools")
    temperature = plain.get("temperature")
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    preset = Preset(
        uid=identity(plain.get("uid")),
        name=one_line_name(text_of(plain.get("name"))),
        system_prompt=text_of(plain.get("system_prompt")),
        model=text_of(plain.get("model")) or None,
        temperature=float(temperature) if is_number else None,  # type: ignore[arg-type]
        reasoning_effort=Effort(effort) if effort in list(Effort) else None,
        max_output_tokens=count(plain.get("max_output_tokens")),
        tools=tuple(strings(tools)) if isinstance(tools, list) else None,
    )
    return None if preset_problem(preset) else preset


def _profile_line(plain: dict[str, Any]) -> PortableProfileLine | None:
    text = one_line(text_of(plain.get("text")), LINE_LIMIT_CHARS)
    versions = (
        (identity(each.get("uid")), moment(each.get("made_at")))
        for each in objects(plain.get("facts"))
    )
    sources = tuple((uid, at) for uid, at in versions if at is not None)
    return PortableProfileLine(text, sources) if text else None


def _turns(value: object) -> tuple[PortableTurn, ...]:
    """Return the records of turns; none if one cannot be read, so that turns are calculated."""
    try:
        return tuple(turn_from_plain(_cleaned_value(each)) for each in objects(value))
    except (ValueError, TypeError):
        return ()


def _library(plain: dict[str, Any]) -> PortableLibrary | None:
    """Return what belongs to the library as a whole; records that cannot be read are left out."""
    given = plain.get("settings")
    settings: list[Any] = given if isinstance(given, list) else []
    library = PortableLibrary(
        _decoded(CoreMemoryPut, plain.get("core_memory")),
        _decoded(PortableMemory, plain.get("memories")),
        _decoded(PortableSpend, plain.get("spend")),
        tuple(
            (row[0], row[1])
            for each in settings
            if isinstance(row := _cleaned_value(each), list)
            and len(row) == 2
            and all(isinstance(text, str) for text in row)
        ),
        _decoded(StoredProvider, plain.get("providers")),
        _decoded(Project, plain.get("projects")),
        _decoded(Routine, plain.get("routines")),
        _decoded(PortableTopic, plain.get("topics")),
    )
    return None if library == PortableLibrary() else library


def _decoded(cls: type[T], value: object) -> tuple[T, ...]:
    found = []
    for each in objects(value):
        with suppress(ValueError, TypeError):
            found.append(codec.from_json_value(cls, _cleaned_value(each)))
    return tuple(found)


def _cleaned_value(value: Any) -> Any:
    """Return a JSON value with every text sanitized."""
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, list):
        return [_cleaned_value(each) for each in value]
    if isinstance(value, dict):
        return {name: _cleaned_value(each) for name, each in value.items()}
    return value


def _title_origin(value: object) -> TitleOrigin:
    known = isinstance(value, str) and value in list(TitleOrigin)
    return TitleOrigin(str(value)) if known else TitleOrigin.USER


def _facts(value: object) -> tuple[PortableFact, ...]:
    """Return the facts in an array; those without uid, text or times are ignored."""
    return tuple(fact for each in objects(value) if (fact := _fact(each)) is not None)


def _fact(plain: dict[str, object]) -> PortableFact | None:
    uid, version = identity(plain.get("uid")), _version(plain)
    if not uid or version is None:
        return None
    earlier = filter(None, map(_version, objects(plain.get("earlier"))))
    return PortableFact(
        uid=uid,
        version=version,
        subject=text_of(plain.get("subject")),
        valid_until=moment(plain.get("valid_until")),
        superseded_by=identity(plain.get("superseded_by")),
        pinned=plain.get("pinned") is True,
        earlier=tuple(sorted(earlier, key=lambda each: each.made_at)),
    )


def _version(plain: dict[str, object]) -> PortableFactVersion | None:
    text = text_of(plain.get("text")).strip()
    said_at, made_at = moment(plain.get("said_at")), moment(plain.get("made_at"))
    if not text or said_at is None or made_at is None:
        return None
    category = text_of(plain.get("category"))
    return PortableFactVersion(
        text=text,
        category=FactCategory(category) if category in list(FactCategory) else FactCategory.OTHER,
        model=text_of(plain.get("model")),
        said_at=said_at,
        made_at=made_at,
        conversation=identity(plain.get("conversation")),
        message=identity(plain.get("message")),
    )

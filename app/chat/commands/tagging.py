"""`/tag`: the tags of the open conversation."""

from app.chat.commands.values import Command, CommandOutput, Form, Given, wrong_form
from app.chat.library import Library
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId
from app.domain.text import as_markdown
from app.storage.conversations import Conversations

_FORMS = (
    Form("/tag", help="Those it has"),
    Form("/tag list", help="The same"),
    Form("/tag add", "NAME", "Several with commas between"),
    Form("/tag remove", "NAME", "Several with commas between"),
)


def tag_command(library: Library, conversations: Conversations) -> Command:
    """Return `/tag`; alone it lists."""

    def run(given: Given) -> CommandOutput:
        deed = given.words[0] if given.words else "list"
        names = [name.strip() for name in given.after(1).split(",") if name.strip()]
        if deed not in ("list", "add", "remove") or bool(names) == (deed == "list"):
            raise wrong_form(given, _FORMS)
        conversation_id = _opened(given)
        if deed == "add":
            library.tag(conversation_id, names)
        elif deed == "remove":
            library.tag(conversation_id, (), _there(tags_of(conversation_id), names))
        tags = tags_of(conversation_id)
        words = ", ".join(as_markdown(name) for name in tags)
        return CommandOutput(f"Tags: {words}" if tags else "This conversation has no tags.")

    def tags_of(conversation_id: ConversationId) -> tuple[str, ...]:
        return conversations.tags_of([conversation_id]).get(conversation_id, ())

    return Command("tag", "Tags of this conversation", _FORMS, run)


def _there(tags: tuple[str, ...], names: list[str]) -> list[str]:
    """Return tags as they are spelled; raise NotFound for one that is not there."""
    spelled = {tag.casefold(): tag for tag in tags}
    for name in names:
        if name.casefold() not in spelled:
            has = ", ".join(tags) or "none"
            raise NotFound(f"This conversation has no tag '{name[:60]}'", f"Its tags: {has}.")
    return [spelled[name.casefold()] for name in names]


def _opened(given: Given) -> ConversationId:
    if given.place.conversation_id is None:
        raise InvalidInput("There is no conversation here yet", "Write a message first.")
    return given.place.conversation_id

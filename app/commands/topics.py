"""`/topics`: the subjects of the conversations, and the conversations of one."""

from collections.abc import Sequence

from app.commands.command import Command, CommandCall, Form, Outcome
from app.domain.formatting import format_day
from app.domain.links import link_to
from app.domain.text import escape_markdown
from app.domain.topics import Topic, TopicConversation
from app.domain.translation import tr, trn
from app.memory.topics.service import TopicService

_MOST = 30
_FORMS = (
    Form("/topics", help="List the topics of your conversations"),
    Form("/topics", "NAME", "List the conversations of a topic"),
)


def topics_command(topics: TopicService) -> Command:
    """Return `/topics`."""

    def run(call: CommandCall) -> Outcome:
        if call.rest:
            topic = topics.topic(call.rest)
            return Outcome("\n".join((_line(topic), "", *_rows(topics.conversations(topic.id)))))
        lines = [
            f"{'  ' * (each.parent_id is not None)}- {_line(each)}" for each in topics.topics()
        ]
        if len(lines) > _MOST:
            lines[_MOST:] = ["", tr("All of them are in Find \N{RIGHTWARDS ARROW} Topics.")]
        none = tr("There are no topics yet. They are found from eight conversations on.")
        return Outcome("\n".join(lines) or none)

    return Command("topics", tr("The subjects of your conversations"), _FORMS, run)


def _line(topic: Topic) -> str:
    count = trn("{count} conversation", "{count} conversations", topic.conversations)
    line = f"**{escape_markdown(topic.name)}**, {count}, {format_day(topic.last_at)}"
    if topic.decision:
        line += ". " + tr("Decided: {text}").format(text=escape_markdown(topic.decision))
    return line


def _rows(conversations: Sequence[TopicConversation]) -> list[str]:
    newest = sorted(conversations, key=lambda each: each.updated_at, reverse=True)[:_MOST]
    titles = (escape_markdown(each.title or tr("Untitled")) for each in newest)
    return [
        f"- [{title}]({link_to(each.id, 0)}), {format_day(each.updated_at)}"
        for title, each in zip(titles, newest, strict=True)
    ]

"""`/project`: list and add projects, move the conversation to one, and choose what it recalls."""

from dataclasses import replace

from app.chat.library import Library
from app.chat.projects import Projects
from app.commands.command import ChooseProject, Command, CommandCall, Form, Outcome, wrong_form
from app.domain.errors import InvalidInput
from app.domain.projects import NO_PROJECT, Project, RecallRule
from app.domain.text import escape_markdown
from app.domain.translation import tr

_FORMS = (
    Form("/project", help="List the projects"),
    Form("/project", "NAME", "Move this conversation to a project"),
    Form("/project none", help="Take this conversation out of its project"),
    Form("/project add", "NAME", "Add a project and move this conversation to it"),
    Form("/project recall", "only|first|all", "What the conversations of its project recall"),
)
_RULES = {
    RecallRule.ONLY: tr("recalls only its own conversations"),
    RecallRule.FIRST: tr("recalls its own conversations first"),
    RecallRule.ALL: tr("recalls everything"),
}


def project_command(projects: Projects, library: Library) -> Command:
    """Return `/project`."""

    def run(call: CommandCall) -> Outcome:
        here = call.context.conversation_id
        own = call.context.project if here is None else library.project_of(here)

        def put(uid: str | None, done: str) -> Outcome:
            if here is None:
                return Outcome(done, ChooseProject(uid))
            projects.move([here], uid)
            return Outcome(done)

        if not call.rest:
            lines = [
                f"- {_line(each)}{tr(' *(used here)*') if each.uid == own else ''}"
                for each in projects.listed()
            ]
            return Outcome(
                "\n".join(lines) or tr("There are no projects. `/project add NAME` adds one.")
            )
        word, _, name = call.rest.partition(" ")
        if word == "recall":
            found = next((each for each in projects.listed() if each.uid == own), None)
            if found is None:
                raise InvalidInput(
                    "This conversation has no project", "Move it with /project NAME."
                )
            if name.strip() not in list(RecallRule):
                raise wrong_form(call, _FORMS)
            return Outcome(_line(projects.save(replace(found, recall=RecallRule(name.strip())))))
        if word == NO_PROJECT and not name:
            return put(None, tr("This conversation is in no project."))
        is_new = word == "add" and bool(name.strip())
        chosen = projects.save(Project("", name)) if is_new else projects.named(call.rest)
        return put(
            chosen.uid, tr("This conversation is in {project}").format(project=_line(chosen))
        )

    return Command("project", tr("The project of this conversation"), _FORMS, run)


def _line(project: Project) -> str:
    return f"**{escape_markdown(project.name)}** ({_RULES[project.recall]})"

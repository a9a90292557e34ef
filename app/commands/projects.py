"""`/project` and `/preset`: list them, add projects, and choose those of the conversation."""

from dataclasses import replace

from app.chat.library import Library
from app.chat.presets import Presets
from app.chat.projects import Projects
from app.commands.command import (
    ChoosePreset,
    ChooseProject,
    Command,
    CommandCall,
    Form,
    Outcome,
    wrong_form,
)
from app.domain.errors import InvalidInput
from app.domain.records.presets import Preset, options_text
from app.domain.records.projects import NO_PROJECT, Project, RecallRule
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
_PRESET_FORMS = (
    Form("/preset", help="List the presets"),
    Form("/preset", "NAME", "Answer this conversation with a preset"),
)


def project_command(projects: Projects, library: Library) -> Command:
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


def preset_command(presets: Presets, library: Library) -> Command:
    def run(call: CommandCall) -> Outcome:
        conversation_id = call.context.conversation_id
        if call.rest:
            chosen = presets.named(call.rest)
            if conversation_id is None:
                return Outcome(action=ChoosePreset(chosen.uid))
            library.choose_preset(conversation_id, chosen)
            return Outcome(
                tr("This conversation uses {preset}").format(preset=_preset_line(chosen))
            )
        current = presets.default()
        if conversation_id is not None:
            current = presets.of(library.open(conversation_id).conversation)
        lines = (
            f"- {_preset_line(preset)}{tr(' *(used here)*') if preset.uid == current.uid else ''}"
            for preset in presets.listed()
        )
        return Outcome("\n".join(lines))

    return Command(
        "preset", tr("The instructions and options of this conversation"), _PRESET_FORMS, run
    )


def _preset_line(preset: Preset) -> str:
    return f"**{escape_markdown(preset.name)}** {escape_markdown(options_text(preset))}".strip()

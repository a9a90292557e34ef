"""`/preset`: list the presets, and choose one for the conversation."""

from app.chat.library import Library
from app.chat.presets import Presets
from app.commands.command import ChoosePreset, Command, CommandCall, Form, Outcome
from app.domain.presets import Preset, options_text
from app.domain.text import escape_markdown
from app.domain.translation import tr

_FORMS = (
    Form("/preset", help="List the presets"),
    Form("/preset", "NAME", "Answer this conversation with a preset"),
)


def preset_command(presets: Presets, library: Library) -> Command:
    """Return `/preset`."""

    def run(call: CommandCall) -> Outcome:
        conversation_id = call.context.conversation_id
        if call.rest:
            chosen = presets.named(call.rest)
            if conversation_id is None:
                return Outcome(action=ChoosePreset(chosen.uid))
            library.choose_preset(conversation_id, chosen)
            return Outcome(tr("This conversation uses {preset}").format(preset=_line(chosen)))
        current = presets.default()
        if conversation_id is not None:
            current = presets.of(library.open(conversation_id).conversation)
        lines = (
            f"- {_line(preset)}{tr(' *(used here)*') if preset.uid == current.uid else ''}"
            for preset in presets.listed()
        )
        return Outcome("\n".join(lines))

    return Command("preset", tr("The instructions and options of this conversation"), _FORMS, run)


def _line(preset: Preset) -> str:
    return f"**{escape_markdown(preset.name)}** {escape_markdown(options_text(preset))}".strip()

"""Presets: written in the settings, chosen for a conversation, sent on each wire, kept, carried over."""

from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QComboBox, QListWidget, QMessageBox

from app.bootstrap import Services
from app.domain.ids import ConversationId
from app.providers.configuration import ProviderConfig
from app.transfer.exporting import ExportFormat, export
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text
from tests.fakes.user import User
from ui.views.settings.presets_page import PresetForm

PROMPT = "Quote the line that you mean."
EFFORT = {
    "loop:test-model": ("reasoning_effort", "high"),
    "vendor:gpt-5.1": ("reasoning", {"summary": "auto", "effort": "high"}),
    "claude:claude-sonnet-5-5": ("output_config", {"effort": "high"}),
}
MAXIMA = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def check_sent(body: dict[str, Any], model: str) -> None:
    """Verify what a request took from the preset."""
    name, value = EFFORT[model]
    assert body[name] == value
    assert [body[each] for each in MAXIMA if each in body] == [700]
    assert ("temperature" in body) == (model == "loop:test-model")
    assert ("thinking" in body) == (model.startswith("claude:"))
    assert "tools" not in body
    assert PROMPT in str(body)


def preset_box(user: User) -> QComboBox:
    """Return the choice, which is hidden while there is one preset."""
    return user.window.chat.composer.preset


async def add_vendors(user: User, server: Loopback) -> None:
    """Add servers that speak the wires of both vendors."""

    def add(services: Services) -> None:
        for name, kind in (("vendor", "openai"), ("claude", "anthropic")):
            services.models.add_provider(ProviderConfig(name, kind, server.v1))
            services.models.registry.save_key(name, "sk-1")

    await user.ask(add)


async def write_preset(user: User) -> None:
    """Write the preset "Careful" in the settings, with keys and clicks."""
    user.action("presets").trigger()
    await user.sees("Presets", "Commonplace (default)", "Add")
    user.click("Add")
    form = user.presenters.settings.open().presets.form
    await user.until(lambda: form.name.selectedText() == "New preset", "the new preset")
    user.type("Careful")
    form.prompt.setFocus()
    user.type(PROMPT)
    fill_options(user, form)
    await user.until_so(
        lambda services: (
            [each.tools for each in services.presets.listed() if each.name == "Careful"] == [()]
        )
    )
    await user.dismiss()


def fill_options(user: User, form: PresetForm) -> None:
    form.temperature.setFocus()
    user.press("Ctrl+A")
    user.type("0.3")
    user.choose(form.effort, "High")
    form.max_output.setFocus()
    user.press("Ctrl+A")
    user.type("700")
    user.click("All tools", form)
    for name in form.tools:
        user.click(name, form)


async def say_with(user: User, server: Loopback, model: str, turn: int) -> None:
    """Send a message to a model, and verify the request."""
    if turn:
        here = ConversationId(1)
        await user.ask(lambda services: services.library.choose_model(here, model))
        await user.until(lambda: user.window.chat.model.model == model)
    await user.say(f"Question {turn}")
    await user.answered(turn, "Answered.")
    check_sent(server.posts[-1].body, model)


async def test_a_preset_is_written_chosen_sent_kept_and_carried_over(
    user: User, server: Loopback, tmp_path: Path
) -> None:
    server.always(text("Answered."))
    await user.start_with_model(server.v1)
    await user.ask(lambda services: services.settings.set("summarizer_exchange_enabled", False))
    await add_vendors(user, server)
    await write_preset(user)
    await user.until(lambda: preset_box(user).findText("Careful") > 0)
    user.choose(preset_box(user), "Careful")
    for turn, model in enumerate(EFFORT):
        await say_with(user, server, model, turn)

    await user.restart()
    await user.until(lambda: preset_box(user).currentText() == "Careful", "the same preset")
    await say_with(user, server, "vendor:gpt-5.1", 3)

    path = tmp_path / "all.json"
    await user.ask(lambda services: export(services.store, path, ExportFormat.JSON))
    user.action("presets").trigger()
    await user.sees("Commonplace (default)")
    user.click_row(user.find(QListWidget, "Presets"), "Careful")
    user.click("Remove\u2026")
    await user.sees("Remove the preset")
    user.press("Return")  # the default is to cancel
    await user.sees_no_more("Remove the preset")
    user.click("Remove\u2026")
    await user.until(lambda: user.window.findChildren(QMessageBox), "the question")
    user.click("Remove", user.window.findChildren(QMessageBox)[-1])
    await user.until(lambda: preset_box(user).currentText() == "Commonplace", "the default")
    await user.dismiss()
    await user.bring(path)
    await user.until(lambda: preset_box(user).currentText() == "Careful", "it is back")
    await say_with(user, server, "claude:claude-sonnet-5-5", 4)

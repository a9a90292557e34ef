"""`profile`: the lines about the user in every prompt, and what is proposed for them.

The document: {"enabled", "profile": [LINE], "tokens", "max_tokens", "proposal": null or {"added": [LINE],
"removed": [LINE], "author", "made_at"}}; a LINE is {"text", "facts": [ID]}.
"""

from argparse import Namespace
from collections.abc import Iterable

from app.cli.arguments import wrong_arguments
from app.cli.terminal import Terminal
from app.domain.profile import ProfileLine
from app.memory.profile import ProfileService, ProfileState


def profile(service: ProfileService, given: Namespace, terminal: Terminal) -> int:
    """Run an action on the profile."""
    if (given.text is None) is (given.action == "edit"):
        raise wrong_arguments(
            given, "TEXT, or - for standard input" if given.text is None else "nothing more"
        )
    match given.action:
        case "accept":
            service.accept()
        case "reject":
            service.reject()
        case "edit":
            waiting = service.state().proposal
            text = terminal.read_input() if given.text == "-" else given.text
            service.set(text, None if waiting is None else waiting.made_at)
        case "on" | "off":
            service.turn(given.action == "on")
    _show(service.state(), terminal)
    return 0


def _show(state: ProfileState, terminal: Terminal) -> None:
    proposal = state.proposal
    document = {
        "enabled": state.is_on,
        "profile": _plain(state.lines),
        "tokens": state.tokens,
        "max_tokens": state.max_tokens,
        "proposal": None
        if proposal is None
        else {
            "added": _plain(state.diff.added),
            "removed": _plain(state.diff.removed),
            "author": proposal.author,
            "made_at": proposal.made_at,
        },
    }
    terminal.show(document, *(line.text for line in state.lines))
    if terminal.as_json:
        return
    terminal.err(f"Profile: about {state.tokens:,} of {state.max_tokens:,} tokens.")
    if not state.is_on:
        terminal.err("It is off: prompts do not contain it, and nothing is proposed for it.")
    if proposal is not None:
        terminal.err("Proposed; 'profile accept', 'profile reject' or 'profile edit' decides:")
        for sign, lines in (("-", state.diff.removed), ("+", state.diff.added)):
            for line in lines:
                facts = ", ".join(str(each.fact_id) for each in line.sources)
                terminal.err(f"{sign} {line.text}{f'  (facts {facts})' if facts else ''}")


def _plain(lines: Iterable[ProfileLine]) -> list[dict[str, object]]:
    return [{"text": line.text, "facts": [each.fact_id for each in line.sources]} for line in lines]

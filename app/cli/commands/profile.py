"""`profile`: the lines about the user in every prompt, and what is proposed for them."""

from argparse import Namespace
from collections.abc import Iterable

from app.cli.terminal import Terminal, members
from app.domain.profile import ProfileLine
from app.memory.profile import ProfileService, ProfileState


def profile(service: ProfileService, given: Namespace, terminal: Terminal) -> None:
    """Run an action on the profile."""
    match given.action:
        case "accept":
            service.accept()
        case "reject":
            service.reject()
        case "edit":
            waiting = service.state().proposal
            (word,) = given.words
            text = terminal.read_input() if word == "-" else word
            service.set(text, None if waiting is None else waiting.made_at)
        case "on" | "off":
            service.turn(given.action == "on")
    _show(service.state(), terminal)


def _show(state: ProfileState, terminal: Terminal) -> None:
    proposal = state.proposal
    document = {
        "enabled": state.is_on,
        "profile": _plain(state.lines),
        **members(state, "tokens", "max_tokens"),
        "proposal": proposal
        and {
            "added": _plain(state.diff.added),
            "removed": _plain(state.diff.removed),
            **members(proposal, "author", "made_at"),
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

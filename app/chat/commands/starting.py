"""`/new`: a clean slate in the same conversation."""

from app.chat.commands.values import Command, CommandOutput, Form, Given, wrong_form
from app.chat.slates import CleanSlates

_FORMS = (Form("/new", help="What stands above is kept and searchable, and not sent any more"),)


def new_command(slates: CleanSlates) -> Command:
    """Return `/new`, which shows by itself where the slate begins."""

    def run(given: Given) -> CommandOutput:
        if given.rest:
            raise wrong_form(given, _FORMS)
        last = given.place.last_exchange_id
        if last is None:
            return CommandOutput("Nothing has been said here yet: the slate is clean.")
        if slates.is_after(last):
            return CommandOutput("The slate is clean already: the next message begins a segment.")
        slates.begin_after(last)
        return CommandOutput()

    return Command("new", "Begin a clean slate in this conversation", _FORMS, run)

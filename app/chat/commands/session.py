"""What one window types: commands, and the yes that one of them may wait for."""

from collections.abc import Callable
from dataclasses import replace

from app.chat.commands.book import CommandBook
from app.chat.commands.parser import is_command, parse
from app.chat.commands.values import CommandOutput, Completion, Place

_REFUSED = "Nothing was changed: that was not a yes."
_ASKS = "Type **yes** to agree; anything else leaves all as it is."
_NO = ("no", "n", "cancel")


class CommandSession:
    """Takes texts that are no messages. One call of `run` at a time."""

    def __init__(self, book: CommandBook) -> None:
        self._book = book
        self._after_yes: Callable[[], CommandOutput] | None = None

    @property
    def waits_for_yes(self) -> bool:
        """Whether the next text is the answer to a question."""
        return self._after_yes is not None

    def takes(self, text: str) -> bool:
        """Return whether a text is for the program and not for a model; never blocks."""
        return self.waits_for_yes or is_command(text)

    def complete(self, text: str) -> Completion:
        """Return what could be meant by what is typed so far; never blocks."""
        return Completion() if self.waits_for_yes else self._book.complete(text)

    def give_up(self) -> None:
        """Take the next text for what it is: nobody agrees to anything any more."""
        self._after_yes = None

    def run(self, text: str, place: Place) -> CommandOutput:
        """Carry out a text that `takes` holds for. May block; raises KnownError."""
        agreed, self._after_yes = self._after_yes, None
        if agreed is not None:
            answer = text.strip().casefold()
            if answer == "yes":
                return self._kept(agreed())
            if not is_command(text):
                return CommandOutput(_REFUSED, keeps_text=answer not in _NO)
        return self._kept(self._book.run(parse(text, place)))

    def _kept(self, output: CommandOutput) -> CommandOutput:
        """Note what waits for a yes, and ask for it."""
        self._after_yes = output.after_yes
        if output.after_yes is None:
            return output
        return replace(output, markdown=f"{output.markdown}\n\n{_ASKS}")

"""Whom a request went to, in the words that errors use; and the key, so that they never do."""

from dataclasses import dataclass, field

from app.domain.text import clean, one_line

_SAID_CHARS = 200


@dataclass(frozen=True, slots=True)
class Subject:
    """The other side of a request.

    `provider` is the name the user gave it, `base_url` where it is, `model` is "" when no model
    was asked. `key` is only held to be taken out of what the server says, `key_place` is where
    it came from ("OPENAI_API_KEY", "the keyring"), `key_remedy` what to do if it is refused.
    """

    provider: str
    base_url: str
    model: str = ""
    is_loopback: bool = False
    key: str = field(default="", repr=False)
    key_place: str = ""
    key_remedy: str = "Enter one in Settings, Models"

    def redact(self, text: str) -> str:
        """Return `text` without the key."""
        return text.replace(self.key, "[key]") if self.key else text

    def quote(self, text: str) -> str:
        """Return what a server said as one clean line without the key; "" for a web page."""
        if text.lstrip()[:1] == "<":
            return ""
        return self.redact(one_line(clean(self.redact(text)), _SAID_CHARS)).rstrip(".")

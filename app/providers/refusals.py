"""What our own HTTP client refuses to go on with, before it is known what that means to the user.

Refusal
├── Redirected        the server sends us elsewhere
├── Encoded           a compressed reply, which we did not ask for
├── Oversized         more than we take
├── Silent            nothing came in time
└── NotAStream        something else where a stream of events should be

`app.providers.faults` turns each into a `ProviderError` with the provider's name in it.
"""


class Refusal(Exception):
    """A reply we do not take; never holds more of it than a line."""


class Redirected(Refusal):
    """The server answered with a redirect; following it would hand over key and conversation."""

    def __init__(self, status: int, target: str) -> None:
        super().__init__(f"{status} redirect to {target}")
        self.target = target


class Encoded(Refusal):
    """The reply is compressed although we asked for identity."""

    def __init__(self, encoding: str) -> None:
        super().__init__(f"content encoding {encoding}")
        self.encoding = encoding


class Oversized(Refusal):
    """An event or a reply is larger than its limit; `what` is "event" or "reply"."""

    def __init__(self, what: str, limit_bytes: int) -> None:
        super().__init__(f"{what} larger than {limit_bytes} bytes")
        self.what = what
        self.limit_bytes = limit_bytes


class Silent(Refusal):
    """Nothing came for `limit_s` seconds."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"nothing for {limit_s:g} s")
        self.limit_s = limit_s


class NotAStream(Refusal):
    """A success whose body is `content_type` instead of events; `body` is its beginning."""

    def __init__(self, content_type: str, body: str) -> None:
        super().__init__(f"{content_type} instead of an event stream")
        self.content_type = content_type
        self.body = body

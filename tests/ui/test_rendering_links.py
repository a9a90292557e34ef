"""Only http, https, mailto and our own links lead anywhere, and only after their true target was shown."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.links import Link
from ui.rendering.links import LinkGate, LinkQuestion, Verdict, examine

WEB = {
    "https://example.com": "https://example.com/",
    "http://example.com/a/b?c=d&e=%20#f": "http://example.com/a/b?c=d&e=%20#f",
    "HTTPS://EXAMPLE.COM/Path": "https://example.com/Path",
    "https://example.com:8443/x": "https://example.com:8443/x",
    "https://sub.example.co.uk./": "https://sub.example.co.uk./",
    "https://example.com/é ü": "https://example.com/%C3%A9%20%C3%BC",
    "https://example.com/<script>": "https://example.com/%3Cscript%3E",
    "  https://example.com/a": "https://example.com/a",
    "https://[2001:db8::1]/x": "https://[2001:db8::1]/x",
    "https://a_b.example.com/": "https://a_b.example.com/",
}
DECEIVING = {
    "https://paypal.com@evil.example/": "paypal.com",
    "https://paypal.com:x@evil.example/": "paypal.com",
    "https://paypal.com%2Flogin@evil.example/": "paypal.com",
    "https://аpple.com/": "xn--",
    "https://xn--pple-43d.com/": "punycode",
    "https://ex。ample.com@evil.example/": "evil.example",
    "http://2130706433/": "number",
    "http://127.0.0.1/": "number",
    "http://0x7f.0.0.1/": "number",
    "https://faß.de/": "xn--",
    "https://ｅvil.example/": "evil.example",
}
REFUSED = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "java\tscript:alert(1)",
    "\x01javascript:alert(1)",
    "vbscript:x",
    "data:text/html;base64,PHNjcmlwdD4=",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "file:\\\\evil\\share",
    "\\\\evil\\share\\a.exe",
    "//evil.example/x",
    "/etc/passwd",
    "../x",
    "relative.md",
    "C:\\Windows\\System32\\calc.exe",
    "c:/windows",
    "ftp://example.com",
    "smb://evil/share",
    "ssh://x",
    "tel:+4930123",
    "ms-settings:x",
    "search-ms:query=x",
    "view-source:https://example.com",
    "blob:https://example.com/x",
    "about:blank",
    "qrc:/x",
    "attachment:abc",
    "http:evil.example",
    "http:/evil.example",
    "http:///evil.example",
    "https://",
    "https://?x",
    "https:\\\\evil.example",
    "https://good.example\\@evil.example/",
    "https://good.example%00.evil.example/",
    "https://good.example%2eevil.example/",
    "https://a@b@evil.example/",
    "https://a%40b@evil.example/",
    "https://exa\u202empl.example/",
    "https://exam\u200bple.com/",
    "https://exam\u00adple.com/",
    "https://example.com/\u202egpj.exe",
    "https://example.com:80:80/",
    "https://example.com:x/",
    "https://exa mple.com/",
    "https://..example.com/",
    "https://-/",
    "https://[::1/",
    "https://[evil]/",
    "mailto:",
    "mailto:nobody",
    "mailto:a@b,c@d",
    "mailto:a@b%0abcc:c@d",
    "commonplace://",
    "commonplace://x/1",
    "commonplace://1/2/3",
    "commonplace://1/2?exchange=x",
    "https://example.com/" + "a" * 9000,
    "",
]


@dataclass
class Outside:
    """Stands for the dialog, the browser and the transcript; notes what reaches them."""

    answer: bool | None = True
    asked: list[LinkQuestion] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    turns: list[Link] = field(default_factory=list)
    refused: list[LinkQuestion] = field(default_factory=list)

    def gate(self) -> LinkGate:
        return LinkGate(self._ask, self.opened.append, self._turn, self.refused.append)

    def _ask(self, question: LinkQuestion, answer: Callable[[bool], None]) -> None:
        self.asked.append(question)
        if self.answer is not None:
            answer(self.answer)

    def _turn(self, link: Link) -> None:
        self.turns.append(link)


@pytest.mark.parametrize(("target", "address"), WEB.items())
def test_web_addresses_are_shown_and_opened_in_one_form(target: str, address: str) -> None:
    outside = Outside()
    outside.gate().follow(target)
    assert [question.address for question in outside.asked] == [address]
    assert outside.opened == [address]


@pytest.mark.parametrize(("target", "hint"), DECEIVING.items())
def test_what_deceives_is_named_and_asked_about_every_time(target: str, hint: str) -> None:
    outside = Outside()
    gate = outside.gate()
    gate.follow(target)
    gate.follow(target)
    assert len(outside.asked) == 2
    question = outside.asked[0]
    assert question.address.isascii()
    assert hint in " ".join((question.address, *question.warnings))
    assert question.warnings


@pytest.mark.parametrize("target", REFUSED)
def test_everything_else_is_refused_in_plain_words(target: str) -> None:
    outside = Outside()
    outside.gate().follow(target)
    assert (outside.asked, outside.opened, outside.turns) == ([], [], [])
    assert outside.refused[0].reason.endswith(".")
    assert not set(outside.refused[0].address) & set("\n\u202e\u200b\x01")


def test_a_site_is_asked_about_once() -> None:
    outside = Outside()
    gate = outside.gate()
    for target in ("https://a.example/1", "https://a.example/2", "https://b.example/"):
        gate.follow(target)
    assert [question.site for question in outside.asked] == [
        "https://a.example",
        "https://b.example",
    ]
    assert len(outside.opened) == 3


def test_a_deceiving_link_to_a_known_site_is_asked_about_all_the_same() -> None:
    outside = Outside()
    gate = outside.gate()
    gate.follow("https://a.example/")
    gate.follow("https://mybank.com@a.example/")
    gate.follow("https://a.example/login", "mybank.com")
    assert len(outside.asked) == 3


def test_another_port_or_scheme_is_another_site() -> None:
    outside = Outside()
    gate = outside.gate()
    for target in ("https://a.example/", "http://a.example/", "https://a.example:444/"):
        gate.follow(target)
    assert len(outside.asked) == 3


def test_a_no_opens_nothing_and_is_not_remembered() -> None:
    outside = Outside(answer=False)
    gate = outside.gate()
    gate.follow("https://a.example/")
    gate.follow("https://a.example/")
    assert len(outside.asked) == 2
    assert outside.opened == []


def test_nothing_opens_before_the_answer() -> None:
    outside = Outside(answer=None)
    outside.gate().follow("https://a.example/")
    assert outside.opened == []


def test_our_own_links_go_to_the_turn() -> None:
    outside = Outside()
    gate = outside.gate()
    gate.follow("commonplace://12/3")
    gate.follow("commonplace://12")
    gate.follow("commonplace://12/3?exchange=73")
    assert outside.turns == [(12, 3, None), (12, None, None), (12, 3, 73)]
    assert outside.asked == []


def test_mail_opens_without_what_could_carry_files_away() -> None:
    outside = Outside()
    outside.gate().follow("mailto:a@b.example?subject=hi%20there&attach=/etc/passwd&bcc=evil@x.y")
    assert outside.opened == ["mailto:a@b.example?subject=hi%20there"]
    assert outside.asked[0].warnings


def test_words_that_name_another_site_are_a_warning() -> None:
    assert examine("https://evil.example/", "https://mybank.com/login").warnings
    assert examine("https://evil.example/", "www.mybank.de").warnings
    assert not examine("https://docs.mybank.com/x", "mybank.com").warnings
    assert not examine("https://nodejs.org/", "Node.js").warnings
    assert not examine("https://evil.example/", "click here").warnings


@given(
    st.text(max_size=60), st.sampled_from(["", "http://", "https://", "mailto:", "https://a.b/"])
)
def test_what_may_open_is_always_plain_ascii(text: str, start: str) -> None:
    question = examine(start + text, text)
    if question.verdict in (Verdict.WEB, Verdict.MAIL):
        assert question.address.isascii()
        assert question.address.isprintable()
        assert " " not in question.address
        assert question.address.startswith(("http://", "https://", "mailto:"))

"""Link checks: only http, https, mailto and our own links open, after their true target was shown."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.links import Link
from ui.rendering.links import LinkCheck, LinkKind, LinkOpener, check_link

WEB = {
    "https://example.com": "https://example.com/",
    "http://example.com/a/b?c=d&e=%20#f": "http://example.com/a/b?c=d&e=%20#f",
    "  HTTPS://EXAMPLE.COM:8443/Path": "https://example.com:8443/Path",
    "https://sub.example.co.uk./": "https://sub.example.co.uk./",
    "https://example.com/é <ü>": "https://example.com/%C3%A9%20%3C%C3%BC%3E",
    "https://[2001:db8::1]:80/x": "https://[2001:db8::1]:80/x",
    "https://a_b.example.com/": "https://a_b.example.com/",
}
DECEIVING = {
    "https://paypal.com@evil.example/": "paypal.com",
    "https://paypal.com:x@evil.example/": "paypal.com",
    "https://paypal.com%2Flogin@evil.example/": "paypal.com", "https://аpple.com/": "xn--",
    "https://faß.de/": "xn--", "https://xn--pple-43d.com/": "punycode",
    "https://ex。ample.com@evil.example/": "evil.example", "https://ｅvil.example/": "evil.example",
    "http://2130706433/": "number", "http://127.0.0.1/": "number", "http://0x7f.0.0.1/": "number",
}  # fmt: skip
REFUSED = (
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)",
    "\x01javascript:alert(1)", "data:text/html;base64,PHNjcmlwdD4=", "file:///etc/passwd",
    "FILE:///etc/passwd", "file:\\\\evil\\share", "\\\\evil\\share\\a.exe", "//evil.example/x",
    "/etc/passwd", "../x", "relative.md", "C:\\Windows\\calc.exe", "c:/windows", "ms-settings:x",
    "view-source:https://example.com", "qrc:/x", "attachment:abc", "http:evil.example",
    "http:/evil.example", "http:///evil.example", "https://", "https://?x", "https:\\\\evil.example",
    "https://good.example\\@evil.example/", "https://good.example%00.evil.example/",
    "https://good.example%2eevil.example/", "https://a@b@evil.example/", "https://a%40b@evil.example/",
    "https://exa\u202empl.example/", "https://exam\u200bple.com/", "https://exam\u00adple.com/",
    "https://example.com/\u202egpj.exe", "https://example.com:80:80/", "https://example.com:x/",
    "https://exa mple.com/", "https://..example.com/", "https://-/", "https://[::1/", "https://[evil]/",
    "https://[::1]x/", "mailto:", "mailto:nobody", "mailto:a@b,c@d", "mailto:a@b%0abcc:c@d",
    "commonplace://", "commonplace://x/1", "commonplace://1/2/3", "commonplace://1/2?exchange=x",
    "https://example.com/" + "a" * 9000, "",
)  # fmt: skip


class Outside:
    """The dialog, the browser and the transcript; `answer` None leaves a question unanswered."""

    def __init__(self, answer: bool | None = True) -> None:
        self._answer = answer
        self.asked: list[LinkCheck] = []
        self.opened: list[str] = []
        self.turns: list[Link] = []
        self.refused: list[LinkCheck] = []
        self._links = LinkOpener(
            self._ask, self.opened.append, self.turns.append, self.refused.append
        )

    def follow(self, *targets: str, label: str = "") -> None:
        for target in targets:
            self._links.follow(target, label)

    def _ask(self, check: LinkCheck, answer: Callable[[bool], None]) -> None:
        self.asked.append(check)
        if self._answer is not None:
            answer(self._answer)


@pytest.mark.parametrize(("target", "address"), WEB.items())
def test_a_web_address_is_shown_and_opened_in_one_form(target: str, address: str) -> None:
    outside = Outside()
    outside.follow(target)
    assert [check.address for check in outside.asked] == outside.opened == [address]


@pytest.mark.parametrize(("target", "hint"), DECEIVING.items())
def test_a_deceptive_address_is_warned_and_asked_about_always(target: str, hint: str) -> None:
    outside = Outside()
    outside.follow(target, target)
    assert len(outside.asked) == len(outside.opened) == 2
    assert outside.asked[0].address.isascii()
    assert outside.asked[0].warnings
    assert hint in " ".join((outside.asked[0].address, *outside.asked[0].warnings))


@pytest.mark.parametrize("target", REFUSED)
def test_everything_else_is_refused_with_a_reason(target: str) -> None:
    outside = Outside()
    outside.follow(target)
    assert (outside.asked, outside.opened, outside.turns) == ([], [], [])
    assert outside.refused[0].reason.endswith(".")
    assert not set(outside.refused[0].address) & set("\n\u202e\u200b\x01")


@pytest.mark.parametrize(
    ("targets", "answer", "asked", "opened"),
    [(["https://a.example/1", "https://a.example/2", "https://b.example/"], True, 2, 3),
     (["https://a.example/", "https://mybank.com@a.example/"], True, 2, 2),
     (["https://a.example/", "http://a.example/", "https://a.example:444/"], True, 3, 3),
     (["https://a.example/", "https://a.example/"], False, 2, 0),
     (["https://a.example/"], None, 1, 0)],
    ids=["once per site", "deceptive", "scheme and port", "no is not remembered", "unanswered"],
)  # fmt: skip
def test_consent_is_asked_for_and_remembered_by_site(
    targets: list[str], answer: bool | None, asked: int, opened: int
) -> None:
    outside = Outside(answer)
    outside.follow(*targets)
    assert (len(outside.asked), len(outside.opened)) == (asked, opened)
    assert outside.asked[0].site == "https://a.example"


def test_our_own_links_open_a_turn() -> None:
    outside = Outside()
    outside.follow("commonplace://12/3", "commonplace://12", "commonplace://12/3?exchange=73")
    assert outside.turns == [(12, 3, None), (12, None, None), (12, 3, 73)]
    assert outside.asked == []


def test_a_mail_link_keeps_subject_and_body_alone() -> None:
    outside = Outside()
    outside.follow("mailto:a@b.example?subject=hi%20there&attach=/etc/passwd&bcc=evil@x.y")
    outside.follow("mailto:a@b.example?body=x", "mailto:a@b.example")
    assert outside.opened == [
        "mailto:a@b.example?subject=hi%20there", "mailto:a@b.example?body=x", "mailto:a@b.example"
    ]  # fmt: skip
    assert [bool(check.warnings) for check in outside.asked] == [True, False]


@pytest.mark.parametrize(
    ("target", "label", "warns"),
    [("https://evil.example/", "https://mybank.com/login", True),
     ("https://evil.example/", "www.mybank.de", True),
     ("https://docs.mybank.com/x", "mybank.com", False),
     ("https://www.mybank.com./x", "mybank.com", False), ("https://nodejs.org/", "Node.js", False),
     ("https://evil.example/", "click here", False)],
)  # fmt: skip
def test_a_label_that_names_another_site_is_a_warning(target: str, label: str, warns: bool) -> None:
    outside = Outside()
    outside.follow(target, label=label)
    assert bool(outside.asked[0].warnings) is warns


@given(
    st.text(max_size=60), st.sampled_from(["", "http://", "https://", "mailto:", "https://a.b/"])
)
def test_what_may_open_is_always_plain_ascii(text: str, start: str) -> None:
    check = check_link(start + text, text)
    if check.kind in (LinkKind.WEB, LinkKind.MAIL):
        assert check.address.isascii()
        assert check.address.isprintable()
        assert " " not in check.address
        assert check.address.startswith(("http://", "https://", "mailto:"))

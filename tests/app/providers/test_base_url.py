"""Base URLs: one spelling each, and nothing that two readers could understand in two ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidInput
from app.providers.http.base_url import check_base_url, with_scheme


@pytest.mark.parametrize(
    ("typed", "text", "origin", "is_loopback"),
    [("https://api.openai.com/v1", "https://api.openai.com/v1", "https://api.openai.com", False),
     (" https://API.OpenAI.com/v1/ \n", "https://api.openai.com/v1", "https://api.openai.com", False),
     ("https://api.example.com:443", "https://api.example.com", "https://api.example.com", False),
     ("HTTPS://x.example:8443/a/b", "https://x.example:8443/a/b", "https://x.example:8443", False),
     ("http://localhost:11434/v1", "http://localhost:11434/v1", "http://localhost:11434", True),
     ("http://127.0.0.1:80/v1", "http://127.0.0.1/v1", "http://127.0.0.1", True),
     ("http://127.9.9.9", "http://127.9.9.9", "http://127.9.9.9", True),
     ("http://[::1]:8080/v1", "http://[::1]:8080/v1", "http://[::1]:8080", True),
     ("http://ollama.localhost/v1", "http://ollama.localhost/v1", "http://ollama.localhost", True),
     ("https://xn--pi-8kc.example", "https://xn--pi-8kc.example", "https://xn--pi-8kc.example", False),
     ("https://model_server/v1", "https://model_server/v1", "https://model_server", False)],
)  # fmt: skip
def test_a_base_url_has_one_spelling(typed: str, text: str, origin: str, is_loopback: bool) -> None:
    checked = check_base_url(typed)
    assert (checked.text, checked.origin, checked.is_loopback) == (text, origin, is_loopback)


@pytest.mark.parametrize(
    "typed",
    [
        "", " ", "api.openai.com", "localhost:11434/v1", "//api.example.com", "https:/x.example",
        "https://", "https:///v1", "ftp://x.example", "file:///etc/passwd", "javascript:alert(1)",
        "https://user:pw@api.example.com", "https://api.example.com@evil.example",
        "https://api.example.com%40evil.example", "https://api.example.com\\@evil.example",
        "https://api.example.com?x=1", "https://api.example.com#x", "https://api.example.com/v1?k",
        "http://0x7f.1", "http://0x7f000001", "http://2130706433", "http://127.1", "http://0177.0.0.1",
        "http://127.0.0.1.", "http://127.0.0.01", "http://1.2.3.4.5", "http://256.0.0.1",
        "https://0x7f.0.0.1", "https://example.0x1",
        "http://[::0:1]", "http://[0:0:0:0:0:0:0:1]", "http://[::1", "http://[fe80::1%25eth0]",
        "https://аpi.openai.com", "https://１２７.0.0.1", "https://api。example.com", "https://ex\u200bample.com",
        "https://a b.example", "https://a\tb.example", "https://a\nb.example", "https://x.example/a b",
        "https://-x.example", "https://x..example", "https://.example", f"https://{'a' * 64}.example",
        "https://x.example:0", "https://x.example:65536", "https://x.example:80a", "https://x.example:-1",
        "https://x.example:８０", "https://x.example:",
        "https://x.example/../y", "https://x.example/./y", "https://x.example//y", "https://x.example/%2e%2e",
    ],
)  # fmt: skip
def test_other_spellings_are_refused(typed: str) -> None:
    with pytest.raises(InvalidInput):
        check_base_url(typed, allow_plain_http=True)


@pytest.mark.parametrize(
    "typed",
    ["http://api.example.com", "http://192.168.1.5:11434/v1", "http://0.0.0.0:11434",
     "http://localhost.evil.example", "http://notlocalhost", "http://[2001:db8::1]", "http://127.0.0.1.nip.io"],
)  # fmt: skip
def test_plain_http_is_for_this_machine_unless_the_user_insists(typed: str) -> None:
    with pytest.raises(InvalidInput, match="unencrypted"):
        check_base_url(typed)
    assert not check_base_url(typed, allow_plain_http=True).is_loopback


def test_a_lookalike_is_shown_by_its_true_name() -> None:
    with pytest.raises(InvalidInput, match=r"xn--"):
        check_base_url("https://аpi.openai.com")


def test_credentials_are_not_quoted_in_the_refusal() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_base_url("https://user:hunter2@api.example.com")
    assert "hunter2" not in str(caught.value)


@given(st.text(max_size=60).map(lambda tail: f"https://{tail}") | st.text(max_size=60))
def test_anything_typed_is_refused_or_becomes_its_own_spelling(typed: str) -> None:
    try:
        checked = check_base_url(typed)
    except InvalidInput:
        return
    assert check_base_url(checked.text) == checked
    assert checked.text.startswith(checked.origin)


@pytest.mark.parametrize(
    ("typed", "text"),
    [("localhost:11434/v1", "http://localhost:11434/v1"),
     ("127.0.0.1:8080", "http://127.0.0.1:8080"),
     ("api.example.com/v1", "https://api.example.com/v1"),
     ("http://api.example.com", "http://api.example.com"),
     ("192.168.1.20:11434/v1", "http://192.168.1.20:11434/v1"),
     ("[fd00::5]:8080", "http://[fd00::5]:8080"), ("8.8.8.8", "https://8.8.8.8"),
     ("nas:8080/v1", "http://nas:8080/v1"), ("box.local/v1", "http://box.local/v1"),
     ("nonsense", "nonsense"), ("", "")],
)  # fmt: skip
def test_an_address_without_a_scheme_gets_the_one_that_is_safe(typed: str, text: str) -> None:
    assert with_scheme(typed) == text

"""Secrets in texts: what is found and what is not, and that quotations of memory hide them."""

import io
import json
import random
import string
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.domain.changes import SummaryPut
from app.domain.ids import ConversationId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import MatchScore, RetrievedConversation
from app.language.secrets import entropy, find_secrets, masked
from app.memory.context.text import conversation_piece
from app.memory.secrets import secret_places
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.transfer.exporting import ExportFormat, write_export
from app.transfer.importing import import_files
from tests.fakes.stored import add_conversation

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_SEEDS = range(12)
_LEAST_FOUND = 0.95


def _planted(seed: int) -> list[str]:
    """Return made-up secrets in the shapes of vendors, each in the sentence of a conversation."""
    drawn = random.Random(seed)

    def draw(count: int, characters: str = _LETTERS) -> str:
        return "".join(drawn.choices(characters, k=count))

    def password() -> str:
        return (
            draw(4, string.ascii_lowercase)
            + draw(4, string.ascii_uppercase)
            + draw(4, "0123456789")
        )

    upper = string.ascii_uppercase + "234567"
    values = [
        f"sk-proj-{draw(74)}T3BlbkFJ{draw(74)}", f"sk-ant-api03-{draw(93)}AA",
        f"AKIA{draw(16, upper)}", f"ghp_{draw(36)}", f"github_pat_{draw(22)}_{draw(59)}",
        f"glpat-{draw(20)}", f"xoxb-{draw(12, string.digits)}-{draw(12, string.digits)}-{draw(24)}",
        f"sk_live_{draw(24)}", f"AIza{draw(35)}", f"hf_{draw(34)}", f"gsk_{draw(52)}",
        f"npm_{draw(36)}", f"pypi-AgEIcHlwaS5vcmc{draw(70)}",
        f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{draw(43)}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{draw(64)}\n{draw(64)}\n-----END RSA PRIVATE KEY-----",
        f"{draw(9, string.digits)}:AA{draw(33)}", f"SG.{draw(22)}.{draw(43)}",
        f"dop_v1_{draw(64, _HEX)}", f"AccountKey={draw(86)}==",
        f"https://deploy:{password()}@example.org/x", f"DB_PASSWORD={password()}{draw(6)}",
        f'password = "{password()}"', f"Mein Passwort ist {password()}",
        f"my password is {password()}", f"Authorization: Bearer {draw(40)}",
    ]  # fmt: skip
    return [f"Here it is: {value} and that was all." for value in values]


def test_planted_secrets_are_found() -> None:
    texts = [text for seed in _SEEDS for text in _planted(seed)]
    assert len(texts) == 300
    missed = [text for text in texts if not find_secrets(text)]
    assert len(missed) <= (1 - _LEAST_FOUND) * len(texts), missed[:5]


@pytest.mark.parametrize(
    "text",
    [
        "password: {}", "my wifi password: {}, bye", "Das WLAN-Passwort: {}.", "**Password:** {}", "pw={}",
        "the password for the router is `{}`", "| password | {} |", "Mot de passe : {}", "user: ada\npass: {}\nhost: db",
        "password:\n  {}", "**Password:**\n\n`{}`", "Netflix pass: {}", "password：{}", "WiFi 密码：{}", "パスワード: {}",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "password", ["hunter2hunter2", "sunflower88", "qwertz123!", "7gardenias", "Pa$$w0rd1", "p@ssword1", "blue_horse42"]
)  # fmt: skip
def test_a_weak_password_after_its_label_is_found(text: str, password: str) -> None:
    assert masked(text.format(password)) == text.format("[hidden: password]")


@pytest.mark.parametrize(
    "text",
    [
        "https://discord.com/api/webhooks/699214286312551671/{0}{0}", "redis://:{0}@cache.internal:6379/0",
        "machine ftp.example.org login ana password {0}", "curl -s -u admin:{0} https://api.example.org",
        "aws_secret_access_key = /{0}Yz+/", "the password of the router is {0}", "DB_PASSWORD={0}",
        "mysql://root:{0}@10.0.0.42/shop",
    ],
)  # fmt: skip
def test_a_secret_with_signs_is_hidden_where_its_place_names_it(text: str) -> None:
    value = "Velvet%Rj7PIM262" if "aws" not in text else "PIf3AyueDmq6ZpAFjbHIRhmlaAHiRoGk96bj"
    value = "NBRfc_uwExNmMflE16R6_FWOmeTpK3B2D2simZA4" if "discord" in text else value
    assert value not in masked(text.format(value))


_WORDS_IN_PASSWORDS = st.lists(
    st.sampled_from(["sha", "2", "md5", "base", "7", "utf8", "p12", "pkcs", "bit", "bytes", "/", "&#x", "_", "-", ".", "::", "Natasha", "Dog", "horse", "!", "#", "42"]),
    min_size=2,
).map("".join)  # fmt: skip


@given(_WORDS_IN_PASSWORDS, st.sampled_from(["password: {}", "My passwort ist {} now", "pwd={}"]))
def test_a_strong_password_is_hidden_whatever_it_contains(password: str, text: str) -> None:
    kinds = (str.islower, str.isupper, str.isdecimal, lambda each: not each.isalnum())
    assume(8 <= len(password) <= 64 and password[-1] not in ".:")
    assume(sum(any(map(kind, password)) for kind in kinds) >= 3 and entropy(password) > 2.9)
    assume(any(map(str.isdecimal, password)) and not password.startswith("sha2:"))
    whole, at = text.format(password), text.index("{")
    assert any(each.start <= at and each.end >= at + len(password) for each in find_secrets(whole))


@pytest.mark.parametrize(
    "text",
    ["Your password is wrong, try another one.", "The password must have 12 characters.",
     'password = "your_password_here"', "The password is not-trivial.", "OPENAI_API_KEY=<your key>",
     "export API_KEY=${API_KEY}", 'user.set_password("secret")',
     "password = db.Column(db.String(128))", "Authorization: Bearer {token}",
     "postgres://user:password@localhost/db", "The key of C major is easy to play on the piano.",
     "Token counts: input_tokens=1200, output_tokens=350",
     "Commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b fixed it.",
     "The id is 550e8400-e29b-41d4-a716-446655440000.", "password hash - sha256-hashed",
     "pass: sha256hashed", "Plugin sha256_password reported: ''sha256_password' is old",
     "wifi password | 12digits", "The password is base64encoded.", "Password manager: 1Password7",
     "Reset password: step1done", "boarding pass: gate12b4x", "The pass: iphone13pro was fine",
     "API_TOKEN_URL=https://x.example/v1/tokens", "password=%(password)s", "redis://:${REDIS_PASSWORD}@h",
     "pass: $DB_PASS1word", "password: user_password2", "pass --with-http2 to configure",
     "The build will pass - release24 is next.",
     "See https://example.org/a/b/c?page=2&sort=name for more."],
)  # fmt: skip
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert masked(text) == text


def test_of_two_secrets_that_overlap_nothing_is_shown() -> None:
    assert masked("password=Ab1;pwd=Xyz12345$abcdefghijk") == "password=[hidden: password]"


def test_a_masked_text_says_the_kind_and_keeps_the_rest() -> None:
    text = f"Use AKIA{'Z2Y3X4W5' * 2} for the bucket."
    assert masked(text) == "Use [hidden: aws-access-token] for the bucket."
    assert masked(masked(text)) == masked(text)


def test_secrets_are_listed_by_place_and_never_by_value(store: Store) -> None:
    secret = "ghp_" + "".join(random.Random(1).choices(_LETTERS, k=36))
    add_conversation(store, "How do I brew tea?")
    talk = add_conversation(store, f"My token is {secret}", title=f"Token {secret}")
    places = list(secret_places(store))
    assert {(each.conversation_id, each.turn_number, each.kinds) for each in places} == {
        (talk.conversation.id, 0, ("github-pat",))
    }
    assert secret not in repr(places)
    out = io.StringIO()
    write_export(store, out, ExportFormat.MARKDOWN)
    assert "My token is [hidden: github-pat]" in out.getvalue()


def test_an_export_hides_secrets_in_titles_and_summaries(store: Store) -> None:
    secret = "ghp_" + "".join(random.Random(1).choices(_LETTERS, k=36))
    talk = add_conversation(store, "How do I brew tea?", title=f"Token {secret}")
    here = talk.conversation.id
    store.save(SummaryPut("conversation", here, here, f"It is {secret}.", "m", "h", now()))
    out = io.StringIO()
    write_export(store, out, ExportFormat.MARKDOWN)
    assert out.getvalue().count("[hidden: github-pat]") == 2
    assert secret not in out.getvalue()


def test_secrets_in_pasted_texts_and_reasoning_are_listed(store: Store, tmp_path: Path) -> None:
    pasted = {"file_name": "prod.env", "extracted_content": "TOKEN=glpat-abcDEF1234567890wxyz"}
    thought = {"type": "thinking", "thinking": f"It is AKIA{'Z2Y3X4W5' * 2}."}
    messages = [
        {"uuid": "m1", "sender": "human", "text": "See", "attachments": [pasted]},
        {"uuid": "m2", "sender": "assistant", "content": [thought]},
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "c1", "name": "Keys", "chat_messages": messages}]))
    import_files(store, [path])
    kinds = [each.kinds for each in secret_places(store)]
    assert [len(each) for each in kinds] == [1, 1]
    assert kinds[1] == ("aws-access-token",)


def test_a_title_in_recall_hides_its_secret() -> None:
    match = MatchScore(PassageKind.CONVERSATION_SUMMARY, PassageId(1), 0.9, None, 0.9)
    title = f"Key AKIA{'Z2Y3X4W5' * 2}"
    found = RetrievedConversation(match, ConversationId(1), title, now(), (), 1)
    assert "[hidden: aws-access-token]" in conversation_piece(found).text

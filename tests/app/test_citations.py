"""What an answer cites of what it was given: by link and by name, and nothing by accident."""

import pytest

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.recalls import RecalledItem, RecallLayer
from app.memory.citations import cited


def item(
    layer: RecallLayer, passage: int, conversation: int, exchange: int | None = None,
    message: int | None = None, *, injected: bool = True,
) -> RecalledItem:  # fmt: skip
    kind = PassageKind.FACT if layer is RecallLayer.FACT else PassageKind.TURN
    return RecalledItem(
        layer, kind, PassageId(passage), ConversationId(conversation),
        None if exchange is None else ExchangeId(exchange),
        None if message is None else MessageId(message), 0.9, None, 1.0, 9, injected,
    )  # fmt: skip


FACT = item(RecallLayer.FACT, 871, 50, 500)
TALK = item(RecallLayer.CONVERSATION, 2060, 60)
TURN = item(RecallLayer.EXCHANGE, 1600, 60, 600)
OTHER = item(RecallLayer.HISTORY, 1700, 70, 700)
EARLIER = item(RecallLayer.EARLIER, 3001, 1, 11, 12)
DROPPED = item(RecallLayer.HISTORY, 1800, 80, 800, injected=False)
ITEMS = (FACT, TALK, TURN, OTHER, EARLIER, DROPPED)
NUMBERS = {ExchangeId(each): number for each, number in ((500, 4), (600, 3), (700, 0), (11, 2))}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Tea, as [you said](commonplace://50/4).", [FACT]),
        ("[There](commonplace://60/3) and [there](COMMONPLACE://70/0).", [TURN, OTHER]),
        ("See commonplace://60.", [TALK, TURN]),
        ("In [that talk](commonplace://60/9) you said so.", [TALK]),
        ("As fact 871 says, and exchange #700.", [FACT, OTHER]),
        ("You said so in conversation 60.", [TALK]),
        ("Message 12 tells.", [EARLIER]),
        ("See commonplace://1/2.", [EARLIER]),
        ("It was 871 or 700 in all; commonplace://80/0.", []),
        ("As [you said](commonplace://60/3?exchange=600).", [TURN]),
        ("As [you said](commonplace://60/3?exchange=601).", [TALK]),
        ("", []),
    ],
)
def test_links_and_names_cite(answer: str, expected: list[RecalledItem]) -> None:
    assert list(cited(answer, ITEMS, NUMBERS)) == expected

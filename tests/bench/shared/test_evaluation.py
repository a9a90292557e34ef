"""The figures of the retrieval benchmarks, by hand on small cases."""

from math import log2

import pytest

from app.domain.ids import ConversationId, ExchangeId, MessageId
from tests.bench.evaluation import Asked, Question, StoredEvaluation, StoredTalk, report, scores


@pytest.mark.parametrize(
    ("ranking", "evidence", "expected"),
    [
        ("abcd", "c", {"any@1": 0, "any@3": 1, "mrr": 1 / 3, "ndcg@10": 1 / log2(4)}),
        ("axb", "abn", {"any@1": 1, "all@1": 0, "any@3": 1, "all@3": 0, "frac@1": 1 / 3,
                        "frac@3": 2 / 3, "ndcg@10": (1 + 1 / 2) / (1 + 1 / log2(3) + 1 / 2)}),
        ("ba", "ab", {"ndcg@10": 1, "frac@1": 0.5, "all@3": 1}),
        ("", "a", {"any@20": 0, "mrr": 0, "ndcg@10": 0}),
        ("0123456789a", "a", {"ndcg@10": 0, "any@10": 0, "any@20": 1}),
        ("0123456789ab", "0123456789ab", {"ndcg@10": 1, "frac@10": 10 / 12}),
    ],
)  # fmt: skip
def test_scores(ranking: str, evidence: str, expected: dict[str, float]) -> None:
    found = scores([*ranking], {*evidence})
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_a_report_counts_turns_exchanges_and_sessions() -> None:
    one, two, three = map(MessageId, (1, 2, 3))
    stored = StoredEvaluation(
        {"t": StoredTalk(frozenset({ConversationId(7)}), {"a": one, "b": two, "c": three})},
        {one: ExchangeId(5), two: ExchangeId(5), three: ExchangeId(6)},
        {one: ConversationId(7), two: ConversationId(7), three: ConversationId(7)},
    )
    asked = [
        Asked("t", Question("hard", "?", frozenset({"a"})), [two, one], 1.0),
        Asked("t", Question("easy", "?", frozenset({"c"})), [three, one], 3.0),
        Asked("t", Question("none", "?", frozenset()), [one], 2.0),
    ]
    found = report(stored, asked)
    assert found["overall"]["questions"] == 2
    assert (found["overall"]["turn"]["any@1"], found["overall"]["turn"]["mrr"]) == (0.5, 0.75)
    assert found["overall"]["exchange"]["any@1"] == 1
    assert found["by_category"]["hard"]["turn"]["any@1"] == 0
    assert found["by_category"]["easy"]["session"]["all@1"] == 1
    assert "none" not in found["by_category"]
    assert found["latency_ms"]["p50"] == 2

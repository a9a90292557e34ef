"""The figures of the retrieval measurements, by hand on small cases."""

import json
from datetime import UTC, datetime
from math import log2
from pathlib import Path

import pytest

from app.domain.conversations import Role
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.storage.exchanges import Exchanges
from tests.bench.evaluation import (
    Asked,
    Question,
    StoredEvaluation,
    StoredTalk,
    first_places,
    latency,
    mean,
    percentile,
    read_evaluation,
    report,
    scores,
    store_evaluation,
)
from tests.bench.peer_stores.peer import fused
from tests.bench.peers import ratios
from tests.fakes.stored import opened


def test_a_found_turn_counts_from_its_place_on() -> None:
    found = scores(["a", "b", "c", "d"], {"c"})

    assert [found[f"any@{depth}"] for depth in (1, 3, 5)] == [0, 1, 1]
    assert found["mrr"] == pytest.approx(1 / 3)
    assert found["ndcg@10"] == pytest.approx(1 / log2(4))


def test_of_several_turns_any_all_and_the_share_are_told_apart() -> None:
    found = scores(["a", "x", "b"], {"a", "b", "not found"})

    assert (found["any@1"], found["all@1"]) == (1, 0)
    assert (found["any@3"], found["all@3"]) == (1, 0)
    assert found["frac@1"] == pytest.approx(1 / 3)
    assert found["frac@3"] == pytest.approx(2 / 3)
    assert found["ndcg@10"] == pytest.approx((1 + 1 / 2) / (1 + 1 / log2(3) + 1 / 2))


def test_all_turns_first_is_perfect() -> None:
    assert set(scores(["b", "a"], {"a", "b"}).values()) == {0.0, 0.5, 1.0}
    assert scores(["b", "a"], {"a", "b"})["ndcg@10"] == 1
    assert scores(["b", "a"], {"a", "b"})["frac@1"] == 0.5


def test_nothing_found_is_nought() -> None:
    assert set(scores([], {"a"}).values()) == {0.0}
    assert set(scores(["x"], {"a"}).values()) == {0.0}


def test_gain_ends_at_ten_and_the_ideal_with_it() -> None:
    late = scores([*range(10), "a"], {"a"})
    many = scores(list(range(12)), set(range(12)))

    assert (late["ndcg@10"], late["any@10"], late["any@20"]) == (0, 0, 1)
    assert many["ndcg@10"] == 1
    assert many["frac@10"] == pytest.approx(10 / 12)


def test_a_group_stands_where_its_best_message_stands() -> None:
    group_of = {MessageId(1): "x", MessageId(2): "y", MessageId(3): "x"}

    ranking = [MessageId(each) for each in (9, 2, 3, 1)]

    assert first_places(ranking, group_of) == ["y", "x"]


def test_means_and_percentiles() -> None:
    assert mean([{"a": 1.0}, {"a": 0.0}, {"a": 0.0}]) == {"a": 0.3333}
    assert mean([]) == {}
    assert percentile([4, 1, 2, 3], 0.5) == 2.5
    assert percentile([7], 0.95) == 7
    assert latency([float(each) for each in range(101)]) == {"p50": 50, "p95": 95}
    assert latency([]) == {}


def test_a_report_counts_turns_exchanges_and_sessions() -> None:
    one, two, three = map(MessageId, (1, 2, 3))
    stored = StoredEvaluation(
        {"t": StoredTalk({"s": ConversationId(7)}, {"a": one, "b": two, "c": three})},
        {one: ExchangeId(5), two: ExchangeId(5), three: ExchangeId(6)},
        {one: ConversationId(7), two: ConversationId(7), three: ConversationId(7)},
    )
    hard = Question("hard", "?", "", frozenset({"a"}))
    easy = Question("easy", "?", "", frozenset({"c"}))
    unanswerable = Question("none", "?", "", frozenset())

    found = report(
        stored,
        [
            Asked("t", hard, [two, one], 1.0),
            Asked("t", easy, [three, one], 3.0),
            Asked("t", unanswerable, [one], 2.0),
        ],
    )

    assert found["overall"]["questions"] == 2
    assert found["overall"]["turn"]["any@1"] == 0.5
    assert found["overall"]["turn"]["mrr"] == 0.75
    assert found["overall"]["exchange"]["any@1"] == 1
    assert found["by_category"]["hard"]["turn"]["any@1"] == 0
    assert found["by_category"]["easy"]["session"]["all@1"] == 1
    assert "none" not in found["by_category"]
    assert found["latency_ms"]["p50"] == 2


def test_what_two_lists_hold_stands_before_what_one_holds() -> None:
    assert fused([[1, 2, 3], [3, 4]]) == [3, 1, 2, 4]
    assert fused([[], [7]]) == [7]


def test_a_ratio_above_one_is_in_our_favour() -> None:
    ours = {"set": {"turn any@1": 0.6}, "latency_ms": {"p50": 20.0}}
    theirs = {"set": {"turn any@1": 0.3}, "latency_ms": {"p50": 10.0}}

    assert ratios(ours, theirs) == {"set": {"turn any@1": 2.0}, "latency_ms": {"p50": 0.5}}
    assert ratios(ours, {"set": {"turn any@1": 0.0}}) == {"set": {"turn any@1": None}}


def test_a_data_set_is_stored_as_conversations_of_its_sessions(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(_data_set()), encoding="utf-8")
    evaluation = read_evaluation(path)

    with opened(tmp_path / "book") as store:
        stored = store_evaluation(store, evaluation, with_summaries=True)
        talk = stored.talks["chat"]
        of_first = Exchanges(store).of(talk.conversations["s1"])
        messages = Exchanges(store).messages_in(talk.conversations["s1"])
        summaries = store.read(
            lambda cursor: cursor.execute(
                "SELECT source_id FROM passage WHERE kind = 'conversation_summary'"
            ).fetchall()
        )

    assert talk.conversation_ids == {talk.conversations["s1"], talk.conversations["s2"]}
    assert [each.text for each in messages] == ["Ann: Hi.", "Bo: A dog!", "Ann: Oh?", "Ann: Tell."]
    assert [each.role for each in messages][:2] == [Role.USER, Role.ASSISTANT]
    assert messages[1].created_at == datetime(2023, 5, 8, 12, 1, tzinfo=UTC)
    assert [len(each.message_ids) for each in of_first] == [2, 2]
    assert stored.exchange_of[talk.messages["3"]] == stored.exchange_of[talk.messages["4"]]
    assert stored.conversation_of[talk.messages["5"]] == talk.conversations["s2"]
    assert talk.evidence(evaluation.talks[0].questions[0]) == {talk.messages["2"]}
    assert summaries == [(talk.conversations["s1"],)]


def _data_set() -> dict[str, object]:
    said = [("1", "Ann", "Hi."), ("2", "Bo", "A dog!"), ("3", "Ann", "Oh?"), ("4", "Ann", "Tell.")]
    first = [
        {"id": name, "speaker": speaker, "at": f"2023-05-08T14:0{at}:00+02:00", "text": text}
        for at, (name, speaker, text) in enumerate(said)
    ]
    second = [{"id": "5", "role": "user", "speaker": "user", "at": None, "text": "Alone"}]
    return {
        "name": "small",
        "conversations": [
            {
                "id": "chat",
                "title": "Ann and Bo",
                "sessions": [
                    {
                        "id": "s1",
                        "started_at": "2023-05-08T14:00:00+02:00",
                        "summary": "Bo has a dog.",
                        "facts": [{"text": "Bo has a dog.", "speaker": "Bo", "turns": ["2"]}],
                        "turns": first,
                    },
                    {"id": "s2", "started_at": None, "turns": second},
                ],
                "questions": [
                    {"category": "c", "question": "Pet?", "answer": 1, "evidence": ["2", "99"]}
                ],
            }
        ],
    }

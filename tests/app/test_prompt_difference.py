"""How two prompts differ: parts that came, went, changed; lines with what stands around them."""

from app.chat.prompt_difference import LineMark, PartState, difference
from app.chat.sent import SentPart, SentPrompt
from app.domain.recalls import PlanPartKind


def sent(**texts: str) -> SentPrompt:
    parts = tuple(
        SentPart(PlanPartKind(kind), text, 1, 0.5, True, 0) for kind, text in texts.items()
    )
    return SentPrompt(parts, "", "", len(parts), 1.0)


def test_parts_that_came_went_stayed_and_changed_are_told_apart_in_order() -> None:
    before = sent(system_prompt="Be kind.", facts="tea", question="a")
    now = sent(system_prompt="Be kind.", related="milk", question="b")
    found = difference(before, now)
    assert [(each.kind.value, each.state) for each in found] == [
        ("system_prompt", PartState.SAME),
        ("facts", PartState.GONE),
        ("related", PartState.ADDED),
        ("question", PartState.CHANGED),
    ]
    assert found[0].lines == ()
    assert found[1].lines == ((LineMark.GONE, "tea"),)
    assert found[2].lines == ((LineMark.ADDED, "milk"),)


def test_a_changed_part_shows_its_lines_with_their_neighbours() -> None:
    lines = [f"line {number}" for number in range(20)]
    before = "\n".join(lines)
    now = "\n".join([*lines[:10], "+ new", *lines[11:], "-- last"])
    (part,) = difference(sent(window=before), sent(window=now))
    assert part.lines == (
        (LineMark.SKIPPED, ""),
        (LineMark.SAME, "line 9"),
        (LineMark.GONE, "line 10"),
        (LineMark.ADDED, "+ new"),
        (LineMark.SAME, "line 11"),
        (LineMark.SKIPPED, ""),
        (LineMark.SAME, "line 19"),
        (LineMark.ADDED, "-- last"),
    )


def test_a_part_too_long_to_compare_is_shown_twice() -> None:
    before, now = "a\n" * 4000, "b\n" * 4000
    (part,) = difference(sent(window=before), sent(window=now))
    marks = [mark for mark, _ in part.lines]
    assert marks == [LineMark.GONE] * 4000 + [LineMark.ADDED] * 4000

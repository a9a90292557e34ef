"""Rounds of a fault until something is lost, and their figures."""

from tests.bench.shared.measuring import Figures, timed
from tests.fakes.crash_rounds import Lost, Rounds


def run_rounds(rounds: Rounds, count: int) -> Figures:
    """Run until something is lost: what follows would be compared with a wrong account.

    Ctrl+C ends it earlier, with the figures until then.
    """

    def run() -> list[str]:
        try:
            for _ in range(count):
                rounds.one()
        except KeyboardInterrupt:
            rounds.figures.rounds -= 1
            return []
        except Lost as loss:
            return [f"round {rounds.figures.rounds}: {loss}"]
        return []

    took = timed(run)
    seen, lost = rounds.figures, took.result
    return {
        "rounds": seen.rounds, "ended_while_opening": seen.killed_while_opening,
        "restored": seen.restored, "slowest_open_ms": round(seen.slowest_open_ms),
        "acknowledged": seen.acknowledged, "in_doubt": seen.in_doubt,
        "rounds_that_lost_what_was_in_doubt": seen.in_doubt_lost, "lost": len(lost), "what": lost,
        "seconds": round(took.wall_s),
    }  # fmt: skip

"""What background work by a model takes, in words: the same in a dialog and in a terminal."""

from app.workers.background_choice import BackgroundPlan
from app.workers.wording import counted, estimate_words


def plan_words(plan: BackgroundPlan) -> str:
    """Return what a model would do now and what that takes."""
    if not plan.requests:
        return f"{plan.model} will do background work; nothing waits for it now."
    return (
        f"{plan.model} would read {counted(plan.turns, 'turn')} of your history now: "
        f"{counted(plan.requests, 'request')}, about {plan.tokens:,} tokens, "
        f"{estimate_words(plan.minutes, plan.cost_usd)}."
    )


def sending_words(plan: BackgroundPlan) -> str:
    """Return what leaves the machine, where something does."""
    return (
        f"What was said there, and in every later conversation that is not private, would be sent "
        f"to {plan.sent_to}."
    )

"""Problems of replies that ended early, as they are stored and shown."""

from app.domain.chat import FinishReason
from app.domain.conversations import Problem
from app.domain.translation import tr

STOPPED = Problem("stopped", "You stopped this reply")
CONNECTION_LOST = Problem(
    "connection_lost", "The reply ended before it was complete", "Continue or retry it."
)
EMPTY = Problem("empty", "The model sent an empty reply", "Retry it, or choose another model.")
CUT_SHORT = {
    FinishReason.LENGTH: Problem(
        "length", "The reply reached the model's limit", "Continue it, or raise the maximum output."
    ),
    FinishReason.FILTERED: Problem(
        "filtered",
        "The provider's filter stopped the reply",
        "Rephrase the question, or choose another model.",
    ),
    FinishReason.REFUSED: Problem(
        "refused", "The model refused to answer", "Rephrase the question."
    ),
    FinishReason.CONTEXT_EXCEEDED: Problem(
        "context_exceeded",
        "The conversation is longer than the model can read",
        "Start a new conversation, or choose a model with a larger context.",
    ),
    FinishReason.UNKNOWN: Problem(
        "unknown_end", "The model stopped for an unknown reason", "Continue or retry the reply."
    ),
}


def too_many_rounds(rounds: int) -> Problem:
    """Return the problem of a model that calls tools after so many rounds of them."""
    return Problem(
        "tool_rounds",
        tr("The model called tools {rounds} times and asked for more").format(rounds=rounds),
        tr("Continue the reply, or raise tool_rounds_max."),
    )

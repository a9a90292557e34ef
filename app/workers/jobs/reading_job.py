"""Jobs of the workers that read with a language model, and by themselves without one."""

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.workers.job_interface import PAID, IsCancelled, Job, Pace, Saved
from app.workers.jobs.part_reader import PartItem, PartRead

if TYPE_CHECKING:
    from app.workers.jobs import JobParts


class ReadingJob(Job[Any, Any]):
    """One of the three workers: parts while a model is chosen, otherwise its own items.

    The item of a part is its conversation for the conversation summarizer, and the first exchange
    that lacks its result for the others. `find_own`, `describe_own`, `make_own` and `save_own` are
    the methods of `Job` for the work without a model.
    """

    own_pace: Pace
    falls_back = True

    def __init__(self, parts: "JobParts") -> None:
        self._reader = parts.reader

    @property
    def limitation(self) -> str:
        """That the model was given up, where it was."""
        return self._reader.limitation if self._reader is not None else ""

    def retry_model(self) -> None:
        """Ask a model again that was given up."""
        if self._reader is not None:
            self._reader.retry_model()

    @property
    def pace(self) -> Pace:
        """One part at a time: it is paid for."""
        return PAID if self._reader is not None and self._reader.is_chosen else self.own_pace

    def find(self, at: datetime) -> Sequence[Any]:
        """Return one part, or own items."""
        if self._reader is not None and self._reader.is_chosen:
            return self._reader.find(self.name, at, lambda: self.tally().has_left)
        return self.find_own(at)

    def content(self, item: Any) -> Hashable:
        is_paid = isinstance(item, PartItem) and not isinstance(item.found, int)
        return item.found.turns if is_paid else None

    def describe(self, item: Any) -> str:
        return item.title if isinstance(item, PartItem) else self.describe_own(item)

    def make(self, items: Sequence[Any], is_cancelled: IsCancelled) -> Any:
        """Return what a part or own items give."""
        if self._reader is None or not isinstance(items[0], PartItem):
            return self.make_own(items, is_cancelled)
        (item,) = items
        if isinstance(item.found, int):
            return item.found
        return self._reader.read(self.name, item.found, is_cancelled)

    def save(self, results: Sequence[Any]) -> Saved:
        """Store the results; of parts, those of all three workers."""
        if isinstance(results[0], int):
            return Saved(sum(results))
        if self._reader is not None and isinstance(results[0], PartRead):
            return self._reader.save(self.name, results)
        return self.save_own(results)

    find_own, describe_own, make_own, save_own = Job.find, Job.describe, Job.make, Job.save

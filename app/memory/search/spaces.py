"""Embedding spaces: their state, and the effort and consent to switch the embedder."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from app.domain.errors import EmbedderUnavailable, InvalidInput
from app.domain.passages import EmbeddingEstimate, EmbeddingStatus, SpaceStatus, SpaceUse
from app.domain.translation import tr
from app.domain.workers import WorkerName, WorkerStatus
from app.memory.search.embedders import ONNX, EmbedderDirectory
from app.memory.search.vector_search import VectorSearch
from app.providers.embedders.local import LocalEmbedder
from app.storage.tables.passages.spaces import bytes_of
from app.storage.tables.passages.vectors import StoredSpace, Vectors
from app.storage.tables.settings import Settings

_TRIAL = "Is this a model that gives a text its place?"


@dataclass(frozen=True, slots=True)
class SpaceService:
    """Reads and changes the spaces. Blocking. `statuses` returns those of the workers."""

    settings: Settings
    embedders: EmbedderDirectory
    vectors: Vectors
    meaning: VectorSearch
    statuses: Callable[[], Collection[WorkerStatus]]

    def read(self) -> EmbeddingStatus:
        """Return the current state of search by meaning."""
        chosen, before = (self.settings.text(key) for key in ("embedder", "embedder_before"))
        total = self.vectors.tally(None, self._least).total
        rows = tuple(self._row(kept, total) for kept in self.vectors.spaces())
        share = next((row.share for row in rows if row.choice == chosen), 0.0 if total else 1.0)
        is_over = chosen == before
        return EmbeddingStatus(
            chosen=chosen,
            chosen_title=self.embedders.describe(chosen),
            previous_title="" if is_over else self.embedders.describe(before),
            share=share,
            total=total,
            rows=rows,
            problem=self._problem(is_over=is_over, is_whole=share >= 1),
        )

    def plan(self, choice: str) -> EmbeddingEstimate:
        """Return the effort of a switch; raises EmbedderUnavailable for an unusable choice.

        What is embedded already is not counted, except where consent is needed.
        """
        total = self.vectors.tally(None, self._least).total
        tokens = self.vectors.tokens(self._least)
        plan = self.embedders.estimate(total, tokens, choice)
        kept = next((k for k in self.vectors.spaces() if k.model == choice), None)
        if kept is None or plan.needs_consent:
            return plan
        missing = total - self.vectors.tally(kept.space.name, self._least).done
        tokens = round(tokens * missing / total) if total else 0
        return self.embedders.estimate(missing, tokens, choice)

    def folder_choice(self, folder: Path) -> str:
        """Return the choice for a folder with an ONNX model, after a trial.

        Raises EmbedderUnavailable with what is missing or wrong.
        """
        try:
            LocalEmbedder(folder).embed([_TRIAL])
        except OSError as error:
            raise EmbedderUnavailable(
                f"“{folder}” cannot be read ({error.strerror})", "Choose another folder."
            ) from error
        return f"{ONNX}{folder}"

    def switch(self, choice: str, *, agreed: bool) -> None:
        """Make a choice the embedder; raises as `EmbedderDirectory.choose`."""
        self.embedders.choose(choice, agreed=agreed)

    def drop(self, name: str) -> None:
        """Delete a space with its vectors; raises InvalidInput for one that is in use."""
        row = next((row for row in self.read().rows if row.name == name), None)
        if row is not None and row.use is not SpaceUse.KEPT:
            raise InvalidInput(
                f"“{name}” is in use", "Choose another embedder first, and wait until it answers."
            )
        self.vectors.drop(name)

    def _problem(self, *, is_over: bool, is_whole: bool) -> str:
        """Return why search by meaning does not answer or does not progress."""
        if (is_over or self.meaning.answering_space is None) and self.meaning.problem:
            return self.meaning.problem
        if is_whole:
            return ""
        if self.meaning.new_space_problem:
            return tr("Waiting for the new search model. {problem}").format(
                problem=self.meaning.new_space_problem
            )
        if not self.settings.flag("embedding_pipeline_enabled"):
            return tr(
                "Nothing new is being read because search by meaning is off. Turn it on in Settings, "
                "Background work."
            )
        name = WorkerName.EMBEDDING_PIPELINE
        return next((each.blocked_by for each in self.statuses() if each.name == name), "")

    @property
    def _least(self) -> int:
        return self.settings.number("min_message_tokens")

    def _row(self, kept: StoredSpace, total: int) -> SpaceStatus:
        done = self.vectors.tally(kept.space.name, self._least).done
        _, vectors = self.vectors.count(kept.space.name)
        answering = self.meaning.answering_space
        chosen, before = (self.settings.text(key) for key in ("embedder", "embedder_before"))
        use = SpaceUse.KEPT
        if answering is not None and answering.name == kept.space.name:
            use = SpaceUse.ANSWERS
        elif kept.model in (chosen, before):
            use = SpaceUse.FILLS if chosen != before and kept.model == chosen else SpaceUse.ANSWERS
        return SpaceStatus(
            name=kept.space.name,
            choice=kept.model,
            model=self.embedders.describe(kept.model),
            passages=done,
            share=done / total if total else 1.0,
            size_bytes=vectors * bytes_of(kept.space.dimension),
            use=use,
        )

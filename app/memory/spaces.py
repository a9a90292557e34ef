"""The spaces there are, and what changing the embedder takes: looking, trying out, switching."""

from collections.abc import Callable, Collection
from pathlib import Path

from app.domain.errors import EmbedderUnavailable, InvalidInput
from app.domain.spaces import SpaceRow, SpacesState, SpaceUse, SwitchPlan
from app.domain.workers import WorkerName, WorkerStatus
from app.memory.embedders import ONNX, EmbedderDirectory
from app.memory.meaning import Meaning
from app.providers.local_embedder import LocalEmbedder
from app.storage.settings import Settings
from app.storage.vector_rows import bytes_of
from app.storage.vectors import KeptSpace, Vectors

_TRIAL = "Is this a model that gives a text its place?"


class Spaces:
    """Reads and changes which spaces there are. Blocking."""

    def __init__(
        self,
        settings: Settings,
        embedders: EmbedderDirectory,
        vectors: Vectors,
        meaning: Meaning,
        statuses: Callable[[], Collection[WorkerStatus]],
    ) -> None:
        """Look at what these say; `statuses` are the workers'."""
        self._settings = settings
        self._embedders = embedders
        self._vectors = vectors
        self._meaning = meaning
        self._statuses = statuses

    def read(self) -> SpacesState:
        """Return how search by meaning stands now."""
        chosen, before = (self._settings.text(key) for key in ("embedder", "embedder_before"))
        total = self._vectors.tally(None, self._least).total
        rows = tuple(self._row(kept, total) for kept in self._vectors.spaces())
        share = next((row.share for row in rows if row.choice == chosen), 0.0 if total else 1.0)
        is_over = chosen == before
        return SpacesState(
            chosen=chosen,
            chosen_words=self._embedders.describe(chosen),
            before_words="" if is_over else self._embedders.describe(before),
            share=share,
            total=total,
            rows=rows,
            problem=self._problem(is_over=is_over, is_whole=share >= 1),
        )

    def plan(self, choice: str) -> SwitchPlan:
        """Return what switching to a choice takes; raises EmbedderUnavailable if it names nothing.

        What is embedded already is not counted, except where consent is to be asked for.
        """
        total, tokens = (
            self._vectors.tally(None, self._least).total,
            self._vectors.tokens(self._least),
        )
        estimate = self._embedders.estimate(total, tokens, choice)
        kept = next((k for k in self._vectors.spaces() if k.model == choice), None)
        missing = total
        if kept is not None and estimate.is_agreed:
            missing = total - self._vectors.tally(kept.space.name, self._least).done
            tokens = round(tokens * missing / total) if total else 0
            estimate = self._embedders.estimate(missing, tokens, choice)
        return SwitchPlan(
            choice=choice,
            words=self._embedders.describe(choice),
            passages=missing,
            tokens=tokens,
            minutes=estimate.minutes,
            cost_usd=estimate.cost_usd,
            sent_to=estimate.sent_to,
            needs_consent=not estimate.is_agreed,
        )

    def folder_choice(self, folder: Path) -> str:
        """Return the choice that a folder with an ONNX model is, having tried the model out.

        Raises EmbedderUnavailable saying what is missing or wrong.
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
        self._embedders.choose(choice, agreed=agreed)

    def drop(self, name: str) -> None:
        """Delete a kept space with its vectors; raises InvalidInput for one that is in use."""
        row = next((row for row in self.read().rows if row.name == name), None)
        if row is not None and row.use is not SpaceUse.KEPT:
            raise InvalidInput(
                f"“{name}” is in use", "Choose another embedder first, and wait until it answers."
            )
        self._vectors.drop(name)

    def _problem(self, *, is_over: bool, is_whole: bool) -> str:
        """Why search by meaning does not answer, or does not get on."""
        if (is_over or self._meaning.answering_space is None) and self._meaning.problem:
            return self._meaning.problem
        if is_whole:
            return ""
        if self._meaning.filling_problem:
            return f"The new embedder is waited for. {self._meaning.filling_problem}"
        if not self._settings.flag("embedding_pipeline_enabled"):
            return (
                "Nothing is being embedded: the embedding pipeline is off. "
                "Switch it on among the workers."
            )
        name = WorkerName.EMBEDDING_PIPELINE
        return next((each.blocked_by for each in self._statuses() if each.name == name), "")

    @property
    def _least(self) -> int:
        return self._settings.number("min_message_tokens")

    def _row(self, kept: KeptSpace, total: int) -> SpaceRow:
        done = self._vectors.tally(kept.space.name, self._least).done
        _, vectors = self._vectors.count(kept.space.name)
        answering = self._meaning.answering_space
        chosen, before = (self._settings.text(key) for key in ("embedder", "embedder_before"))
        use = SpaceUse.KEPT
        if answering is not None and answering.name == kept.space.name:
            use = SpaceUse.ANSWERS
        elif kept.model in (chosen, before):
            use = SpaceUse.FILLS if chosen != before and kept.model == chosen else SpaceUse.ANSWERS
        return SpaceRow(
            name=kept.space.name,
            choice=kept.model,
            model=self._embedders.describe(kept.model),
            passages=done,
            share=done / total if total else 1.0,
            size_bytes=vectors * bytes_of(kept.space.dimension),
            use=use,
        )

"""Documents: a generated folder of mixed files, read, searched and removed, printed as JSON.

    python -m tests.bench.documents [--files 1000] [--pages 10000] [--large-mb 2048] [--bomb-mb 4096]

Beside readable files of five kinds the folder has broken ones: damaged and encrypted PDFs, files of `--large-mb`, a
PDF of `--pages` pages, an Office file that unpacks to `--bomb-mb`, and more. Every file has to be counted with what
became of it. `slowest` are the files that took longest, in seconds. The peak of the programs that read is at least
what the process had when it started one.
"""

import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

from app.bootstrap import RunMode, build
from app.check import check
from app.domain.records.documents import DocumentText, ListedDocument
from app.domain.workers import WorkerName
from app.system.paths import DataPaths
from app.workers.job_interface import IsCancelled
from app.workers.jobs.document_indexer import DocumentIndexer
from tests.bench.shared.measuring import Figures, in_process, options, peak_mb, print_json, timed
from tests.fakes.document_folder import make_broken, make_document

_SLOWEST = 5


def main() -> None:
    given = options(__doc__, files=1_000, pages=10_000, large_mb=2_048, bomb_mb=4_096)
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, "papers")
        broken = make_broken(
            folder / "broken", large_bytes=given.large_mb << 20, pages=given.pages,
            bomb_bytes=given.bomb_mb << 20,
        )  # fmt: skip
        for number in range(given.files - len(broken)):
            make_document(folder, number)
        print_json(in_process(measured, root, broken))


def measured(root: str, broken: dict[str, str]) -> Figures:
    """Read the folder in a process of its own; return the figures."""
    took: dict[str, float] = {}
    whole = DocumentIndexer.text_of

    def text_of(
        job: DocumentIndexer, document: ListedDocument, is_cancelled: IsCancelled
    ) -> DocumentText:
        started = time.perf_counter()
        try:
            return whole(job, document, is_cancelled)
        finally:
            took[Path(document.name).name] = round(time.perf_counter() - started, 2)

    DocumentIndexer.text_of = text_of  # type: ignore[assignment,method-assign]
    services = build(DataPaths(Path(root, "data")), RunMode.COMMAND_LINE)
    folder = Path(root, "papers")
    services.documents.add(folder)
    (status,) = services.workers.run_until_idle([WorkerName.DOCUMENT_INDEXER])
    statuses = services.documents.statuses()
    why = {Path(each.name).name: each.why for each in statuses}
    services.index_sync.catch_up(lambda: False)
    found = timed(lambda: services.search.search("report 3 herons counted", by_meaning=False))
    removed = timed(lambda: services.documents.remove([folder]))
    figures: Figures = {
        "files": sum(each.is_file() and not each.is_symlink() for each in folder.rglob("*")),
        "counted": len(statuses),
        "states": dict(Counter(each.state.value for each in statuses)),
        "failed": status.failed + status.abandoned + status.waiting_retry,
        "not as expected": [
            each for each, part in broken.items() if part not in why.get(each, "-")
        ],
        "passages": sum(each.passages for each in statuses),
        "read_s": round(sum(took.values()), 1),
        "slowest": dict(sorted(took.items(), key=lambda each: -each[1])[:_SLOWEST]),
        "search_ms": round(found.ms, 1),
        "remove_s": round(removed.wall_s, 2),
        "problems": list(check(services.store).problems),
        "peak_mb": round(peak_mb()),
        "peak_of_readers_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10,
    }
    services.close()
    return figures


if __name__ == "__main__":
    main()

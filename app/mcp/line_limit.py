"""A program between this one and a tool server: it starts the server and ends when a line is too long.

Run by its path with the limit in bytes and the server's command. A line without an end would otherwise
be collected in the memory of the program that reads it. The end of the server's standard error is copied when
the server has ended. Only the standard library is imported.
"""

import os
import subprocess
import sys
import threading

TOO_LONG = 125
"""The exit status after a line that was too long."""
_ERROR_BYTES = 2_000


def main(limit: int, command: list[str]) -> int:
    """Copy lines of the server's output, and everything of its input; return its exit status."""
    server = subprocess.Popen(  # noqa: S603 - the user accepted this command
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    errors = bytearray()
    reader = threading.Thread(target=_keep_end, args=(server.stderr, errors), daemon=True)
    reader.start()
    threading.Thread(target=_copy_input, args=(server.stdin,), daemon=True).start()
    while line := server.stdout.readline(limit + 1):
        if len(line) > limit:
            server.kill()
            return TOO_LONG
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    status = server.wait()
    reader.join(1.0)  # its own children may still have it open
    sys.stderr.buffer.write(errors)
    sys.stderr.flush()
    return status


def _keep_end(source, kept) -> None:  # type: ignore[no-untyped-def]
    while piece := source.read1(_ERROR_BYTES):
        kept += piece
        del kept[:-_ERROR_BYTES]


def _copy_input(target) -> None:  # type: ignore[no-untyped-def]  # typing takes 10 ms to import
    try:
        while line := sys.stdin.buffer.readline():
            target.write(line)
            target.flush()
        target.close()
    except OSError:
        pass  # the server has ended


if __name__ == "__main__":
    try:
        # At once: the thread that reads standard input would make Python's own exit fail.
        os._exit(main(int(sys.argv[1]), sys.argv[2:]))
    except OSError as error:
        sys.exit(f"cannot start: {error.strerror}")

"""A program between this one and a tool server: it starts the server and ends when a line is too long.

Run by its path with the limit in bytes and the server's command. A line without an end would otherwise
be collected in the memory of the program that reads it. Only the standard library is imported.
"""

import subprocess
import sys
import threading

TOO_LONG = 125
"""The exit status after a line that was too long."""


def main(limit: int, command: list[str]) -> int:
    """Copy lines of the server's output, and everything of its input; return its exit status."""
    server = subprocess.Popen(  # noqa: S603 - the user accepted this command
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    threading.Thread(target=_copy_input, args=(server.stdin,), daemon=True).start()
    while line := server.stdout.readline(limit + 1):
        if len(line) > limit:
            server.kill()
            return TOO_LONG
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    return server.wait()


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
        sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
    except OSError as error:
        sys.exit(f"cannot start: {error.strerror}")

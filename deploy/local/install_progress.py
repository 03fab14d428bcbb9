"""Program `python install_progress.py COMMAND...`: runs pip with its progress in a few words.

pip is silent for most of a minute with `--quiet`, and prints two hundred lines without. It runs
before anything is installed: the standard library only.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

_FOUND = re.compile(
    r"\s*(?:Collecting|Processing|Requirement already satisfied:) (?:\S*/)?([\w.]+)"
)
_INSTALLING = "Installing collected packages: "
_INSTALLED = "Successfully installed "
_TICK_S = 0.5


class Progress:
    """Stage of an installation, told from the lines of pip."""

    def __init__(self) -> None:
        self.stage = "looking for packages"
        self.installed = 0
        self._found = set[str]()

    def take(self, line: str) -> None:
        """Take one line that pip printed."""
        if found := _FOUND.match(line):
            self._found.add(found[1])
            self.stage = f"fetching packages: {len(self._found)}, {found[1]}"
        elif line.startswith(_INSTALLING):
            self.stage = f"installing {line.count(',') + 1} packages"
        elif line.startswith(_INSTALLED):
            self.installed = len(line.removeprefix(_INSTALLED).split())


def main(command: Sequence[str]) -> int:
    """Run `command` and return its exit status; if it fails, print all that it printed."""
    begun, progress, said = time.monotonic(), Progress(), list[str]()
    on_terminal = sys.stdout.isatty()
    _print("installing what sitemapd needs ...")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for line in _lines(process):
            said.append(line)
            progress.take(line)
            if on_terminal:
                _redraw(f"{progress.stage} ... {time.monotonic() - begun:.0f} s")
    if on_terminal:
        _redraw("")
    if process.returncode:
        _print("".join(said).rstrip())
        return process.returncode
    _print(f"installed {progress.installed} packages in {time.monotonic() - begun:.0f} s")
    return 0


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield the lines that `process` prints; an empty one whenever there was none for a while."""
    assert process.stdout
    descriptor, rest = process.stdout.fileno(), b""
    while True:
        if not select.select([descriptor], [], [], _TICK_S)[0]:
            yield ""
            continue
        read = os.read(descriptor, 65_536)
        *whole, rest = (rest + read).split(b"\n")
        yield from (f"{each.decode(errors='replace')}\n" for each in whole)
        if not read:
            yield rest.decode(errors="replace")
            return


def _redraw(text: str) -> None:
    columns = os.get_terminal_size(sys.stdout.fileno()).columns
    sys.stdout.write(f"\r\x1b[K{text[: columns - 1]}")
    sys.stdout.flush()


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

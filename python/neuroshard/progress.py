"""The progress of long work on stderr, as the executable shows it: on a terminal one line that is
replaced, elsewhere a line every few seconds."""

from __future__ import annotations

import os
import shutil
import sys
import time
from types import TracebackType

#: Between two lines where there is no terminal [s].
_LEAST_BETWEEN_LINES = 5.0
_MOST_BETWEEN_LINES = 60.0
_SHARE_BETWEEN_LINES = 0.05  #: of the time that has passed

#: Between two states of the line on a terminal [s].
_BETWEEN_STATES = 0.1


class ProgressLine:
    """Taken away at the end of a `with`, however it ends."""

    def __init__(self) -> None:
        name = os.environ.get("TERM", "")
        self._takes_lines_back = sys.stderr.isatty() and name not in ("", "dumb")
        self._shown = False
        self._first = self._last = time.monotonic()

    def show(self, text: str) -> None:
        """Replaces the line, or is one of its own, if one is due."""
        now = time.monotonic()
        if self._takes_lines_back:
            if not self._shown or now - self._last >= _BETWEEN_STATES:
                room = shutil.get_terminal_size().columns - 1
                sys.stderr.write(f"\r{text[:room]}\x1b[K")
                self._shown = True
                self._last = now
        elif now - self._last >= self._between_lines(now):
            sys.stderr.write(f"{text}\n")
            self._last = now
        sys.stderr.flush()

    def _between_lines(self, now: float) -> float:
        share = _SHARE_BETWEEN_LINES * (now - self._first)
        return min(max(share, _LEAST_BETWEEN_LINES), _MOST_BETWEEN_LINES)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

"""Long work that a signal ends in order: what is measured is in its file, the line of progress is
taken away, and the exit code is the shell's for that signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

#: Ctrl-C, and what `kill`, `timeout` and torchrun send.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The work was ended by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        #: As shells say it: 130 of SIGINT, 143 of SIGTERM.
        self.exit_code = 128 + number


def stop_now(number: int) -> NoReturn:
    """For `signals_call`: ends what runs, where it is."""
    raise Stopped(number)


@contextmanager
def signals_call(stop: Callable[[int], object]) -> Iterator[None]:
    """Within it, these signals call `stop` with their number, each time. Those that the process
    ignores, as behind `nohup`, stay so."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python leaves signals to the main thread
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, lambda called, _: stop(called))
    try:
        yield
    finally:
        for number in taken:
            handler = before[number]
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

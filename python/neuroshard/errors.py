"""The exceptions of the package; their texts are those of the library and of the command line."""


class NeuroShardError(Exception):
    """Base of every error that is raised on purpose, in one line; `exit_code` is the command
    line's."""

    exit_code = 3

    def __init__(self, text: str = "") -> None:
        # Names in it may have any characters.
        super().__init__(printable(text))


def printable(text: str) -> str:
    """The text with escapes in the place of what ends a line, or a terminal obeys."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


class InputError(NeuroShardError, ValueError):
    """Bad input, in one line: the place, the expected and the actual value."""

    exit_code = 2


class InfeasibleError(NeuroShardError):
    """The question was understood and the answer is no, e.g. no plan fits into memory."""

    exit_code = 1


class MachineError(NeuroShardError, RuntimeError):
    """The machine failed: out of memory, full disk, device error."""

    exit_code = 3


class ExtrapolationWarning(UserWarning):
    """A cost model is used outside of the data that it was trained on."""

"""The exceptions of the package; their texts are those of the library and of the command line."""


class NeuroShardError(Exception):
    """Base of every error that is raised on purpose; `exit_code` is the command line's."""

    exit_code = 3


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

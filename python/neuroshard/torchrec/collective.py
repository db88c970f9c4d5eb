"""Errors that one rank sends to all others."""

from __future__ import annotations

import pickle


def transferable(error: Exception) -> Exception:
    """The error, or a substitute with its text that can be sent to other processes."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        substitute = RuntimeError(f"{type(error).__name__}: {error}")
        substitute.__cause__ = error
        return substitute
    return error

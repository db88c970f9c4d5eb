"""What one rank tells all others."""

from __future__ import annotations

import pickle


def transferable(error: Exception) -> Exception:
    """The error, or its text in one that other processes can read."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        substitute = RuntimeError(f"{type(error).__name__}: {error}")
        substitute.__cause__ = error
        return substitute
    return error

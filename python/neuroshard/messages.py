"""What the library says besides its answers: warnings and notes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence

from .errors import ExtrapolationWarning

#: What was chosen for the user that the user may want to choose.
_log = logging.getLogger("neuroshard")


def tell(reasons: Sequence[str], notes: Sequence[str]) -> None:
    """Warns of the reasons and logs the notes, for the caller of the function that calls this."""
    for note in notes:
        _log.warning(note)
    for reason in reasons:
        warnings.warn(reason, ExtrapolationWarning, stacklevel=3)

"""Where the package keeps the executable and the shipped models, and the `neuroshard` command."""

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).parent
_MODELS = "NEUROSHARD_MODELS"

#: The executable `neuroshard`; all of its subcommands work from here.
EXECUTABLE = _PACKAGE / "bin" / "neuroshard"

#: The folder of the shipped models.
MODEL_FOLDER = _PACKAGE / "share" / "neuroshard" / "models"


def use_shipped_models() -> None:
    """Appends the package's models to the folders in $NEUROSHARD_MODELS, for this process and its
    children."""
    folders = [folder for folder in os.environ.get(_MODELS, "").split(":") if folder]
    if str(MODEL_FOLDER) not in folders:
        os.environ[_MODELS] = ":".join([*folders, str(MODEL_FOLDER)])


def environment_elsewhere() -> dict[str, str]:
    """This process's environment for a command in another folder: with the folders of models by
    their absolute paths."""
    environment = dict(os.environ)
    if folders := environment.get(_MODELS):
        environment[_MODELS] = ":".join(
            os.path.abspath(folder) for folder in folders.split(":") if folder
        )
    return environment


def main() -> None:
    """Becomes the executable, with this process's arguments."""
    use_shipped_models()
    os.execv(EXECUTABLE, ["neuroshard", *sys.argv[1:]])

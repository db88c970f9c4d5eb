"""The options that a folder of results was made with (FOLDER/options.json), of which everything in
it is: fresh_tasks.py and replanning.py go on in no folder that was made with others. Not a script.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import NoReturn

NAME = "options.json"


def model_of(model: str) -> str:
    """As options.json has it: of a file its SHA-256 too, as another one may take its name."""
    path = Path(model)
    if not path.is_file():
        return model
    return f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def refuse(place: object, expected: str, actual: str) -> NoReturn:
    script = Path(sys.argv[0]).name
    print(f"{script}: {place}: expected {expected}, got {actual}", file=sys.stderr)
    raise SystemExit(2)


def keep_options(folder: Path, options: dict[str, object]) -> None:
    """Makes the folder and writes the options into it, or ends the script with exit code 2 where the
    folder has others, or has files and does not say with which options they were made."""
    path = folder / NAME
    new = folder / f"{NAME}.new"
    options = json.loads(json.dumps(options))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            if any(file != new for file in folder.iterdir()):
                refuse(folder, f"an empty folder or one with {NAME}", "other files")
            new.write_text(json.dumps(options, indent=1) + "\n")
            new.rename(path)
            return
        before = json.loads(path.read_text())
    except OSError as error:
        refuse(folder, "a folder to write to", error.strerror or str(error))
    except ValueError:
        before = None
    if not isinstance(before, dict):
        refuse(path, "an object of options", "something else")
    for name in {**before, **options}:
        was, given = (json.dumps(each.get(name)) for each in (before, options))
        if was != given:
            refuse(f"{path}: {name}", f"{was}, with which the folder was made", given)

"""`python -m neuroshard ...` is the command `neuroshard ...`."""

from .executable import main

main()

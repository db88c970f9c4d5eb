"""Generated Python objects for every function of the package, and the promise that it keeps: the
counterpart of fuzz/grammar and fuzz/torture for what comes from Python instead of files.

    PYTHONPATH=fuzz build/python/bin/python -m python_objects --runs 1000

`odd` has values that are hardly ever right, `grammar` objects that are, `damage` makes the one of
the other, `calls` is the table of functions, `promise` says what must hold of each call, and
`workers` runs them in processes of their own, where a crash and a hang can be seen.
"""

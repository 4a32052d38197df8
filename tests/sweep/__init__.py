"""Random cases beside an independent judge: ``python -m tests.sweep KIND [--only NAMES] [--cases N | --seconds S | --case N]``.

A kind has names (networks, operations, families, releases); the cases of a name are numbered, and the number is the seed of
the case. Each case that fails is printed with the words that run it again. The exit code is 1 if any fails.
``tests/sweep/__main__.py`` lists the kinds, ``--help`` of a kind its options.
"""

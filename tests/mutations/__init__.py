"""Mutations: deliberate faults in a copy of the source, each of which the tests must notice.

    python -m tests.mutations --workers 2
    python -m tests.mutations --only "arena frees too early"

- mutation.py: what a mutation is.
- table/: the mutations, by what they break.
- catching.py: the commands that must catch one, and what they say.
- workspace.py: the copy of the source in which a mutation is applied.
"""

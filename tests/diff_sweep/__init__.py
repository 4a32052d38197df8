"""Random edits of whole networks, each of which diff must list, and nothing else.

    python -m tests.sweep diff [--edits 1] [--renamed 0.1]

Every network of tests/data/networks is edited, then given new ids and another order of layers. What was edited is known from the edits
themselves, which use nothing of diff or of matching.
"""

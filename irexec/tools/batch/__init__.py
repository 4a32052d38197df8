"""Running a model over many items: what is read, what runs it, what is written, and what is remembered of it.

``items`` finds the items, ``predictor`` runs the model on a batch of them, ``part`` reads, runs and writes one part of the output,
``pool`` spreads the parts over processes, ``manifest`` remembers what is done, and ``run`` is the whole of it.
"""

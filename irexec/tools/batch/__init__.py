"""Running a model over many items.

``items`` finds the items, ``predictor`` runs the model on a batch, ``part`` reads, runs and writes one part of the
output, ``pool`` spreads the parts over processes, ``manifest`` records the progress, and ``run`` runs a whole job.
"""

"""The tensors of a model in a runtime or a recording: all of a run, of a single layer, and inside bodies."""

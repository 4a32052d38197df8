"""Models made in Python: tensors, a function for each operation, and the submodels of control flow."""

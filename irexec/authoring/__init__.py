"""Models made and changed in Python: tensors, a function for each operation, submodels of control flow, the editor."""

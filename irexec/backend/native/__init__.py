"""Kernels of the C library, behind the same contract as those of NumPy."""

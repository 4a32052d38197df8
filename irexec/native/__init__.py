"""The optional library of C kernels: its sources, how it is built, and how it is found. Nothing needs it."""

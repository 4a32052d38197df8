"""Plain NumPy algorithms that several families of operations share. They know nothing of IR."""

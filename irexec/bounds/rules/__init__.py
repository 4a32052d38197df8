"""Rules of the operations, a file for each family."""

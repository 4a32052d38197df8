"""Element types: one row each, with how it is packed and rounded."""

"""Translations of operators, a package for each domain and a file for each family."""

"""Random networks of IR versions 2 to 7, run by Inference Engine 2020.1 and 2020.4 and by irexec: docs/development/testing.md"""

"""Judgements of whole networks: faults planted in layers are named, and runs without a fault accuse nobody."""

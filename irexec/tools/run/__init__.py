"""One run of a model: its inputs, what is asked for, and what is reported of it."""

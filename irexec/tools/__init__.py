"""The work of the commands, as functions that return dataclasses. The functions print nothing."""

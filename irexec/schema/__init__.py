"""What an operation declares, and what shape rules share."""

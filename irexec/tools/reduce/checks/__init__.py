"""What decides whether a candidate still fails."""

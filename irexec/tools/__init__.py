"""What the commands do, as functions that return dataclasses. They print nothing."""

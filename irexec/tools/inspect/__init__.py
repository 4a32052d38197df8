"""What a model consists of and what it costs."""

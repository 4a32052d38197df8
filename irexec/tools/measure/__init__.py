"""Where the time of a model goes."""

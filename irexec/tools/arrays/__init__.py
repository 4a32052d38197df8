"""Arrays: files of them, statistics, and whether two agree."""

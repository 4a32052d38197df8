"""The checks of validate, one file per subject."""

"""Tests of converters.legacy_ir; rows are hand-made files of one or a few layers."""

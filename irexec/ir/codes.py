"""Codes of what the reader finds. They are stable: a code is never given another meaning."""

from __future__ import annotations

LAYER_ATTRIBUTE = "IR001"
DUPLICATE_LAYER = "IR002"
DUPLICATE_PORT = "IR003"
BAD_DIM = "IR004"
BAD_PRECISION = "IR005"
BAD_NUMBER = "IR006"
EDGE_FROM_NOTHING = "IR010"
EDGE_TO_NOTHING = "IR011"
DUPLICATE_EDGE = "IR012"
MISSING_EDGE = "IR013"
CONSTANT_ATTRIBUTE = "IR020"
CONSTANT_OUT_OF_FILE = "IR021"
NO_WEIGHTS_FILE = "IR022"
BAD_PORT_MAP = "IR030"
BAD_BACK_EDGE = "IR031"
MISSING_BODY = "IR032"

MEANINGS = {
    LAYER_ATTRIBUTE: "a layer lacks its id, name, type or version",
    DUPLICATE_LAYER: "two layers have the same id",
    DUPLICATE_PORT: "two ports of a layer have the same id",
    BAD_DIM: "a dim is not a size",
    BAD_PRECISION: "a precision is no element type",
    BAD_NUMBER: "an id is not a number",
    EDGE_FROM_NOTHING: "an edge comes from a layer or port that is not there",
    EDGE_TO_NOTHING: "an edge goes to a layer or port that is not there",
    DUPLICATE_EDGE: "two edges arrive at one input port",
    MISSING_EDGE: "no edge arrives at an input port",
    CONSTANT_ATTRIBUTE: "a constant lacks its element type, shape, offset or size, or has a wrong one",
    CONSTANT_OUT_OF_FILE: "the bytes of a constant are not all in the .bin",
    NO_WEIGHTS_FILE: "constants refer to a .bin that is not there",
    BAD_PORT_MAP: "an entry of a port map lacks a number, or has a wrong one",
    BAD_BACK_EDGE: "a back edge lacks a number, or has a wrong one",
    MISSING_BODY: "a port map belongs to a body that is not there",
}

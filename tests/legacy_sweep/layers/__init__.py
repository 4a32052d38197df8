"""One file for each family of layers; importing this package registers all of them."""

from tests.legacy_sweep.layers import (
    detection,
    elementwise,
    images,
    indices,
    networks,
    products,
    recurrent,
    shapes,
    windows,
)

__all__ = ["detection", "elementwise", "images", "indices", "networks", "products", "recurrent", "shapes", "windows"]

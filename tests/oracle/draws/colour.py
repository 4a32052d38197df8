"""Random models of images between RGB and the layouts of video."""

from __future__ import annotations

from tests.oracle.draw import Draw, Table, model
from tests.support.cases import Case, Typed

DRAWS = Table()


def _image(d: Draw, kind: str, *shape: int) -> Typed:
    return d.tensor(shape, kind, 0, 255)


@DRAWS.row(("NV12toRGB", 8), ("NV12toBGR", 8), ("I420toRGB", 8), ("I420toBGR", 8))
def from_video(d: Draw, type: str, since: int) -> Case:
    kind, batch, height, width = d.pick("u8", "u8", "f32", "f16"), d.size(1, 3), d.size(1, 5), d.size(1, 5)
    if d.chance():
        return model(type, since, _image(d, kind, batch, 3 * height, 2 * width, 1))
    parts = [2] if type.startswith("NV12") else [1, 1]
    chroma = [_image(d, kind, batch, height, width, channels) for channels in parts]
    return model(type, since, _image(d, kind, batch, 2 * height, 2 * width, 1), *chroma)


@DRAWS.row(("RGBtoNV12", 17), ("BGRtoNV12", 17))
def to_video(d: Draw, type: str, since: int) -> Case:
    shape = (d.size(1, 3), 2 * d.size(1, 5), 2 * d.size(1, 5), 3)
    return model(type, since, _image(d, d.pick("u8", "f32", "f16"), *shape), single_plane=d.pick(None, True, False))

"""Random models of images between RGB and the layouts of video."""

from __future__ import annotations

from irexec.testing import Case, Typed
from irexec.testing.case_generator import CaseGenerator, Table, model

RANDOM_CASES = Table()


def _image(gen: CaseGenerator, kind: str, *shape: int) -> Typed:
    return gen.tensor(shape, kind, 0, 255)


@RANDOM_CASES.row(("NV12toRGB", 8), ("NV12toBGR", 8), ("I420toRGB", 8), ("I420toBGR", 8))
def from_video(gen: CaseGenerator, type: str, since: int) -> Case:
    kind, batch, height, width = gen.pick("u8", "u8", "f32", "f16"), gen.size(1, 3), gen.size(1, 5), gen.size(1, 5)
    if gen.chance():
        return model(type, since, _image(gen, kind, batch, 3 * height, 2 * width, 1))
    parts = [2] if type.startswith("NV12") else [1, 1]
    chroma = [_image(gen, kind, batch, height, width, channels) for channels in parts]
    return model(type, since, _image(gen, kind, batch, 2 * height, 2 * width, 1), *chroma)


@RANDOM_CASES.row(("RGBtoNV12", 17), ("BGRtoNV12", 17))
def to_video(gen: CaseGenerator, type: str, since: int) -> Case:
    shape = (gen.size(1, 3), 2 * gen.size(1, 5), 2 * gen.size(1, 5), 3)
    return model(
        type, since, _image(gen, gen.pick("u8", "f32", "f16"), *shape), single_plane=gen.pick(None, True, False)
    )

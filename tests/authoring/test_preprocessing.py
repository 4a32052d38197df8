"""Preprocessing that is embedded gives what a model with OpenVINO's PrePostProcessor gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from tests.support.edited import IMAGES, Original, by_openvino, check_values, content, saved
from tests.support.tiers import some

ov = pytest.importorskip("openvino")
preprocess = pytest.importorskip("openvino.preprocess")
PrePostProcessor, ResizeAlgorithm = preprocess.PrePostProcessor, preprocess.ResizeAlgorithm

Setup = Callable[[PrePostProcessor], None]


@pytest.fixture(scope="module", params=some(IMAGES, ("mobilenet_v3",)))
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(request.param, tmp_path_factory.mktemp("network"))


def _u8_nhwc(p: PrePostProcessor) -> None:
    p.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
    p.input().model().set_layout(ov.Layout("NCHW"))
    p.input().preprocess().convert_element_type(ov.Type.f32).mean([1.5, 2, 3]).scale([57, 58, 59])


def _bgr(p: PrePostProcessor) -> None:
    p.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NCHW"))
    p.input().model().set_layout(ov.Layout("NCHW"))
    p.input().preprocess().convert_element_type(ov.Type.f32).reverse_channels().mean([1, 2, 3]).scale(255.0)


def _resized(algorithm: ResizeAlgorithm) -> Setup:
    def setup(p: PrePostProcessor) -> None:
        p.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC")).set_spatial_dynamic_shape()
        p.input().model().set_layout(ov.Layout("NCHW"))
        p.input().preprocess().convert_element_type(ov.Type.f32).resize(algorithm).mean(127.0).scale(128.0)

    return setup


ROWS: dict[str, tuple[dict[str, Any], Setup]] = {
    "u8 NHWC, mean and scale": ({"element": "u8", "layout": "NHWC", "mean": [1.5, 2, 3], "scale": [57, 58, 59]}, _u8_nhwc),
    "BGR": ({"element": "u8", "reverse_channels": True, "mean": [1, 2, 3], "scale": 255}, _bgr),
    "linear": ({"element": "u8", "layout": "NHWC", "resize": "linear", "mean": 127, "scale": 128}, _resized(ResizeAlgorithm.RESIZE_LINEAR)),
    "cubic": ({"element": "u8", "layout": "NHWC", "resize": "cubic", "mean": 127, "scale": 128}, _resized(ResizeAlgorithm.RESIZE_CUBIC)),
    "nearest": ({"element": "u8", "layout": "NHWC", "resize": "nearest", "mean": 127, "scale": 128}, _resized(ResizeAlgorithm.RESIZE_NEAREST)),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.sampled(4)
def test_values_are_those_of_openvino(row: str, original: Original, tmp_path: Path) -> None:
    options, setup = ROWS[row]
    shape = next(iter(original.feed.values())).shape
    model = original.model()
    with model.edit() as g:
        g.reshape(shape)
        g.embed_preprocessing(0, **options)
    theirs = ov.Core().read_model(original.path)
    theirs.reshape(list(shape))
    preprocessor = PrePostProcessor(theirs)
    setup(preprocessor)
    ov.save_model(preprocessor.build(), tmp_path / "theirs.xml", compress_to_fp16=False)
    image = np.random.default_rng(0).integers(0, 256, _image_shape(shape, options), np.uint8)
    found = by_openvino(saved(model, tmp_path), [image])
    # Sums in another order, over layers of many products.
    check_values(found, by_openvino(tmp_path / "theirs.xml", [image]), 1e-4)
    read = ov.Core().read_model(tmp_path / "edited.xml")
    layouts = [parameter.layout.to_string() for parameter in read.get_parameters()]
    assert layouts == [f"[{','.join(options.get('layout', 'NCHW'))}]"]


def _image_shape(shape: tuple[int, ...], options: dict[str, Any]) -> tuple[int, ...]:
    n, c, h, w = shape
    height, width = (h + 7, w - 3) if "resize" in options else (h, w)
    return (n, height, width, c) if options.get("layout") == "NHWC" else (n, c, height, width)


def test_a_layout_alone_is_a_transpose(original: Original, tmp_path: Path) -> None:
    model = original.model()
    with model.edit() as g:
        g.embed_preprocessing(0, layout="NHWC")
    (feed,) = original.feed.values()
    check_values(by_openvino(saved(model, tmp_path), [feed.transpose(0, 2, 3, 1)]), original.values())


def test_an_element_alone_is_a_convert(original: Original, tmp_path: Path) -> None:
    model = original.model()
    (name,) = original.feed
    with model.edit() as g:
        g.set_element(name, "f64")
        g.set_element(original.outputs[0], "f16")
    (feed,) = original.feed.values()
    found = by_openvino(saved(model, tmp_path), [feed.astype(np.float64)])
    expected = original.values()
    assert found[0].dtype == np.float16 or expected[0].dtype != np.float32
    check_values([found[0].astype(np.float32)], [expected[0].astype(np.float32)], 1e-3)
    check_values(found[1:], expected[1:])
    assert irexec.read_model(tmp_path / "edited.xml").outputs[0].name == original.outputs[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0}, "scale 0 divides .* by 0"),
        ({"mean": float("nan")}, "nan for .* is not finite as f32"),
        ({"resize": "linear", "size": (0, 5)}, "images of 0x5 cannot be resized"),
        ({"resize": "linear"}, "the size of axis H is not known"),
        ({"mean": [1, 2]}, "2 numbers are given for 3 channels"),
        ({"layout": "NHWX"}, "the layout of the model is not known for the layout NHWX of input .*: give the model layout"),
        ({"layout": "NHWC", "model_layout": "NCDHW"}, "which the layout NCDHW does not fit"),
        ({"layout": "NHHC"}, "'NHHC' is not a layout such as NHWC"),
        ({"element": "u7"}, "element type 'u7' is not known"),
    ],
)  # fmt: skip
@pytest.mark.sampled(2)
def test_what_does_not_fit_is_refused(options: dict[str, Any], message: str, original: Original) -> None:
    model = original.model()
    model.reshape([None, 3, None, None])
    before = content(model)
    with pytest.raises(irexec.IrexecError, match=message), model.edit() as g:
        g.embed_preprocessing(0, **options)
    assert content(model) == before

"""Blocks: layers that a transformation renamed, and shape arithmetic."""

from __future__ import annotations

import irexec
from irexec.analysis.builder import Builder
from irexec.tools.graph import Drawing, draw
from tests.tools.graph.models import chain


def block_of(drawing: Drawing, name: str) -> str:
    """The name of the block that a layer stands in; "" for the whole."""
    return next(
        frame.name
        for frame in drawing.frames
        for item in frame.items
        if item >= 0 and drawing.layers[item].line.name == name
    )


def test_a_renamed_layer_stands_beside_its_reader() -> None:
    """MobileNet as OpenVINO writes it: convolutions that a normalization was fused into have lost their names."""
    names = ["Multiply_1", "bn1.act/Clamp"]
    for block in range(3):
        scope = f"blocks.{block}.0"
        names += [
            f"Multiply_{block}2",
            f"{scope}.bn1.act/Clamp",
            f"Multiply_{block}3",
            f"{scope}.bn2.act/Clamp",
            f"Multiply_{block}4",
        ]
    drawing = draw(chain(names), cluster=True)
    assert block_of(drawing, "Multiply_1") == block_of(drawing, "bn1.act/Clamp") == ""
    for block in range(3):
        found = {block_of(drawing, f"Multiply_{block}{k}") for k in (2, 3, 4)}
        assert found == {f"blocks.{block}.0"}


def test_a_module_used_in_several_places_is_in_the_blocks_of_its_producers() -> None:
    """A YOLO of ultralytics has one object for all activations, under whose name the frontend writes each of them."""
    names = [
        name
        for block in range(4)
        for name in (
            f"model.{block}.cv/conv",
            f"model.{block}.cv/bias",
            "model.9.cv3.act/Swish",
            f"model.{block}.cv/pool",
        )
    ]
    drawing = draw(chain(names), cluster=True)
    inside = {frame.name: [drawing.layers[i].line.name for i in frame.items if i >= 0] for frame in drawing.frames}
    assert {name: layers for name, layers in inside.items() if name.endswith("cv")} == {
        f"model.{block}.cv": names[4 * block : 4 * block + 4] for block in range(4)
    }


def test_the_largest_block_is_unfolded_first_and_none_holds_most_of_the_layers() -> None:
    names = [f"model/head.{i % 3}/layer{i}" for i in range(30)] + [f"model/body/part{i}" for i in range(100)]
    drawing = draw(chain(sorted(names)), cluster=True)
    folded = {frame.name: frame.folded for frame in drawing.frames if frame.kind == "block"}
    assert folded == {"model": False, "body": False, "head": True, "head.0": True, "head.1": True, "head.2": True}


def shapes(has_name: bool = True) -> irexec.Model:
    """Two blocks, each of which reshapes its input by what it computes from the shape of that."""
    builder = Builder("shapes")
    value = builder.parameter("f32", ("?", "?", 4), "x")
    for i in range(2):
        scope = f"encoder/layer.{i}/" if has_name else ""
        shape = builder.emit("ShapeOf", value, name=f"{scope}shape", output_type="i64")
        first = builder.emit(
            "Gather", shape, builder.constant([0], "i64"), builder.constant(0, "i64"), name=f"{scope}gather"
        )
        target = builder.emit("Concat", first, builder.constant([-1], "i64"), axis=0, name=f"{scope}concat")
        flat = builder.emit(
            "Reshape",
            builder.emit("Relu", value, name=f"{scope}relu"),
            target,
            special_zero=False,
            name=f"{scope}reshape",
        )
        value = builder.emit(
            "Reshape", builder.emit("Tanh", flat, name=f"{scope}tanh"), shape, special_zero=False, name=f"{scope}back"
        )
    builder.result(value)
    return irexec.Model.of(builder.model())


def test_shape_arithmetic_is_a_block_in_each_block() -> None:
    drawing = draw(shapes(), cluster=True)
    for i in range(2):
        for name in ("shape", "gather", "concat"):
            assert block_of(drawing, f"encoder/layer.{i}/{name}") == "shape arithmetic"
        for name in ("relu", "reshape", "tanh", "back"):
            assert block_of(drawing, f"encoder/layer.{i}/{name}") == f"layer.{i}"
    dimmed = [frame for frame in drawing.frames if frame.is_dimmed]
    assert len(dimmed) == 2 and all(frame.folded for frame in dimmed)


def test_shape_arithmetic_of_later_tensors_is_a_block_of_its_own() -> None:
    """One block of both would be on a cycle with the layers between."""
    drawing = draw(shapes(has_name=False), cluster=True)
    dimmed = [frame for frame in drawing.frames if frame.is_dimmed]
    assert [len(frame.items) for frame in dimmed] == [3, 3]
    assert all(block_of(drawing, name) != "shape arithmetic" for name in ("relu", "reshape", "tanh"))


def test_graphs_of_many_boxes_fold_by_default() -> None:
    names = [f"block.{i // 10}/layer{i}" for i in range(70)]
    assert len(draw(chain(names), cluster=None).frames) > 1
    assert len(draw(chain(names[:50]), cluster=None).frames) == 1
    assert len(draw(chain(names), cluster=False).frames) == 1

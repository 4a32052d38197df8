"""Faults of the C kernels of quantised models; the library of the copy is built again."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SOURCE = "irexec/native/source"
_BACKEND = "irexec/backend/native"

_INTEGERS = ("tests/backend/test_native_integers.py -k random_networks",)

INTEGERS = (
    Mutation(
        "the zero of levels that are added stays",
        f"{_SOURCE}/levels.c",
        "(floats_of(addend) - n->addend_zero) * n->addend_factor",
        "floats_of(addend) * n->addend_factor",
        _INTEGERS,
    ),
    Mutation(
        "the zero of the data of integer products stays",
        f"{_BACKEND}/integer_products.py",
        "start[:, :columns] = -self.grid.zero * matrices",
        "start[:, :columns] = 0 * matrices",
        _INTEGERS,
    ),
    Mutation(
        "a factor behind the function of a product is left out",
        f"{_BACKEND}/integer_products.py",
        "unit_of_levels * a.factor, shift",
        "unit_of_levels, shift",
        ("tests/backend/test_native_integers.py -k constant_factors",),
    ),
    Mutation(
        "a factor before the bias of a product multiplies the bias alone",
        f"{_BACKEND}/integer_products.py",
        "self.grid.step * a.scale, a.bias",
        "self.grid.step, a.bias",
        ("tests/backend/test_native_integers.py -k constant_factors",),
    ),
    Mutation(
        "pixels of bytes behind the eighth of a strip are those of the first ones",
        f"{_SOURCE}/movement.c",
        "(quad)__builtin_shufflevector(high, high2, 0, 8, 1, 9, 2, 10, 3, 11)",
        "(quad)__builtin_shufflevector(low, high2, 0, 8, 1, 9, 2, 10, 3, 11)",
        ("tests/backend/test_native_integers.py -k part_of_a_word",),
    ),
    Mutation(
        "levels before a residual are not rounded",
        f"{_SOURCE}/levels.c",
        "(rounded(x + 12582912.0f) - 12582912.0f) * n->first_factor",
        "x * n->first_factor",
        _INTEGERS,
    ),
    Mutation(
        "a NaN becomes a level in NumPy",
        "irexec/backend/fake_quantize.py",
        "        refuse_nan(level)\n",
        "",
        ("tests/backend/test_native_integers.py -k nan",),
    ),
    Mutation(
        "a NaN becomes a level",
        f"{_SOURCE}/levels.h",
        "    if (has_nan_in(tile, at, pitch)) *unknown = 1;\n",
        "",
        ("tests/backend/test_native_integers.py -k nan",),
    ),
    Mutation(
        "rows of a depthwise kernel behind the fourth read the data of the first ones",
        f"{_SOURCE}/integer_depthwise.c",
        "row_at(w, at, smaller(first + i, rows - 1))",
        "row_at(w, at, smaller(i, rows - 1))",
        ("tests/backend/test_native_integers.py -k depthwise_kernels",),
        unit=4,
    ),
    Mutation(
        "the second row of a pair of a depthwise kernel reads the data of the first one",
        f"{_SOURCE}/integer_depthwise.c",
        "row_at(w, s, smaller(first + 1, rows - 1))",
        "row_at(w, s, first)",
        ("tests/backend/test_native_integers.py -k depthwise_kernels",),
        unit=2,
    ),
    Mutation(
        "a strip of a depthwise kernel reads the next row behind the end of its own",
        f"{_SOURCE}/integer_depthwise.c",
        "smaller(positions, steps_to(w->sizes[2] - s->x, far))",
        "positions",
        ("tests/backend/test_native_integers.py -k depthwise_kernels",),
        unit=2,
    ),
    Mutation(
        "all tiles of a product of integers are ended with the sums of the last",
        f"{_SOURCE}/integer_product.c",
        "sums + at.rows * width);",
        "sums);",
        ("tests/backend/test_native_integers.py",),
    ),
    Mutation(
        "the zero of the levels of queries stays",
        f"{_SOURCE}/attention.c",
        "m->starts[c] = (int32_t)(-p->query_zero * sum)",
        "m->starts[c] = (int32_t)(0 * sum)",
        ("tests/backend/test_native_integers.py -k attention_to_levels",),
        unit=4,
    ),
    Mutation(
        "the zero of the levels of keys stays, which a sink shows",
        f"{_SOURCE}/attention.c",
        "(int32_t)((128 - p->key_zero) * (sum",
        "(int32_t)(0 * (sum",
        ("tests/backend/test_native_integers.py -k attention_to_levels",),
        unit=4,
    ),
    Mutation(
        "all columns have the range of the first",
        f"{_SOURCE}/chain.c",
        "(range + i * plane + k)",
        "(range + i * plane)",
        ("tests/backend/test_native_chains.py",),
    ),
    Mutation(
        "a value between two levels is compared before it is rounded to f64",
        f"{_SOURCE}/chain.c",
        "(vd)((vl)x & INT64_MAX) + shift - shift",
        "x + shift - shift",
        ("tests/backend/test_native_chains.py", "tests/backend/test_blocks.py"),
    ),
    Mutation(
        "zero points of the first group are used for all",
        f"{_SOURCE}/compressed.c",
        "    if (g->zeros) g->zeros += WIDTH;\n",
        "",
        ("tests/backend/test_compressed.py",),
    ),
    Mutation(
        "parts of the depth are limited one by one",
        f"{_SOURCE}/compressed.c",
        "is_last ? p->high : __builtin_inf()",
        "p->high",
        ("tests/backend/test_compressed.py",),
    ),
    Mutation("the bias is added to each part of the depth", f"{_SOURCE}/compressed.c", "done ? zeros : bias", "bias", ("tests/backend/test_compressed.py",)),
    Mutation(
        "a part of a large group is as long as a small one",
        f"{_SOURCE}/compressed.c",
        "most * p->group - first)",
        "most * p->group)",
        ("tests/backend/test_compressed.py",),
    ),
    Mutation(
        "all groups of a row write the scale of the first",
        f"{_SOURCE}/integer_product.c",
        "at = block * groups + g;",
        "at = block * groups;",
        ("tests/backend/test_dynamic_quantization.py",),
    ),
    Mutation(
        "the zero points of a group are multiplied by the sum of the group of the first row",
        f"{_SOURCE}/integer_product.c",
        "p->row_sums[rows[i / V] * groups + g]",
        "p->row_sums[rows[0] * groups + g]",
        ("tests/backend/test_dynamic_quantization.py",),
    ),
    Mutation(
        "a group with a NaN is 0",
        f"{_SOURCE}/integer_product.c",
        '*scale = !is_finite ? __builtin_nanf("") : per_unit',
        "*scale = !is_finite ? 0.0f : per_unit",
        ("tests/backend/test_dynamic_quantization.py",),
    ),
    Mutation(
        "the first row of a tile of pixels of Winograd's algorithm begins at its border",
        f"{_SOURCE}/integer_winograd.c",
        "const int inside = y >= 0 &&",
        "const int inside = y >= 1 &&",
        ("tests/backend/test_native_integers.py",),
    ),
    Mutation(
        "the sums of a tile at the end of a row of tiles are those of the next row, too",
        f"{_SOURCE}/integer_winograd.c",
        "const i64 pixels = smaller(2 * run, w->counts[2] - x);",
        "const i64 pixels = 2 * run;",
        ("tests/backend/test_native_integers.py",),
    ),
    Mutation(
        "all matrices of a stack of compressed weights have the scales of the first",
        f"{_SOURCE}/compressed.c",
        "own.scales += image * p->scales_image;",
        "own.scales += 0 * p->scales_image;",
        ("tests/backend/test_compressed.py",),
    ),
)  # fmt: skip

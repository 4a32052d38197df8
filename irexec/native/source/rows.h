/* What kernels of rows share: sums, maxima and products of a row, incomplete vectors, and the copy that ends a tile. */
#ifndef ROWS_H
#define ROWS_H

#include "chain.h"

/* A tensor that a kernel writes. Strides as for an operand. */
typedef struct {
    float *base;
    i64 image, row, column;
} target;

/* Floats of a row that are added in f32; sums of so many are added in f64. */
enum { CHUNK = 128 * VECTOR };

INLINE i64 whole(i64 size) { return size / VECTOR * VECTOR; }
INLINE i64 padded(i64 size) { return (size + VECTOR - 1) / VECTOR * VECTOR; }

/* `count` floats, fewer than a vector, and `rest` in the lanes after them. */
INLINE vf load_part(const float *p, i64 count, float rest)
{
    const int n = (int)count;
    float x[VECTOR];
    for (int i = 0; i < VECTOR; i++) x[i] = i < n ? p[i] : rest;
    return load(x);
}

INLINE void store_part(float *p, i64 count, vf values)
{
    const int n = (int)count;
    float x[VECTOR];
    store(x, values);
    for (int i = 0; i < VECTOR; i++)
        if (i < n) p[i] = x[i];
}

#define HALVE(half, combined)                                                                                         \
    if (VECTOR > (half))                                                                                              \
        for (int i = 0; i < (half); i++) {                                                                            \
            const float a = t[i], b = t[i + (half)];                                                                  \
            t[i] = (combined);                                                                                        \
        }
/* A function that combines all lanes to one value, half by half. */
#define LANES(name, combined)                                                                                         \
    INLINE float name(vf x)                                                                                           \
    {                                                                                                                 \
        float t[VECTOR + 8];                                                                                          \
        store(t, x);                                                                                                  \
        HALVE(8, combined) HALVE(4, combined) HALVE(2, combined) HALVE(1, combined)                                   \
        return t[0];                                                                                                  \
    }

LANES(sum_of, a + b)
LANES(product_of, a * b)
LANES(maximum_of, a > b || a != a ? a : b)
LANES(minimum_of, a < b || a != a ? a : b)

/* Copies a tile to its place in the result. */
INLINE void write_tile(const place *at, i64 pitch, const float *tile, const target *to)
{
    float *out = to->base + at->image * to->image + at->row * to->row + at->column * to->column;
    for (i64 r = 0; r < at->rows; r++, out += to->row, tile += pitch) {
        if (to->column != 1) {
            for (i64 c = 0; c < at->columns; c++) out[c * to->column] = tile[c];
            continue;
        }
        const i64 most = whole(at->columns);
        for (i64 c = 0; c < most; c += VECTOR) store(out + c, load(tile + c));
        if (most < at->columns) store_part(out + most, at->columns - most, load(tile + most));
    }
}

#endif

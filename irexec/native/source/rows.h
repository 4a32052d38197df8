/* Shared parts of kernels of rows: sums, maxima and products of a row, incomplete vectors, and the copy that ends a tile. */
#ifndef ROWS_H
#define ROWS_H

#include "chain.h"

/* A tensor that a kernel writes. Strides as for an operand. */
typedef struct {
    float *base;
    i64 image, row, column;
} target;

/* Floats of a row that are added in f32; the sums of these parts are added in f64. */
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

typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef int32_t i4 __attribute__((vector_size(16)));

/* The functions that combine two vectors of a type, whose masks have the second type. */
#define SUM_OF(type, mask, a, b) ((a) + (b))
#define PRODUCT_OF(type, mask, a, b) ((a) * (b))
#define PICK(type, mask, first, a, b) (type)(((mask)(a) & (mask)(first)) | ((mask)(b) & ~(mask)(first)))
#define MAXIMUM_OF(type, mask, a, b) PICK(type, mask, ((a) > (b)) | ((a) != (a)), a, b)
#define GREATEST_OF(type, mask, a, b) PICK(type, mask, ((a) > (b)) | ((b) != (b)), a, b)
#define LEAST_OF(type, mask, a, b) PICK(type, mask, ((a) < (b)) | ((b) != (b)), a, b)

/* The halves are read from an array, so that the vector itself needs no memory where it is computed; nor does what it is
 * a copy of. */
#define HALVE(whole, half, mask, COMBINED)                                                                            \
    float whole##_array[sizeof(whole) / 4];                                                                           \
    half whole##_low, whole##_high;                                                                                   \
    memcpy(whole##_array, &whole##_value, sizeof(whole));                                                             \
    memcpy(&whole##_low, whole##_array, sizeof(half));                                                                \
    memcpy(&whole##_high, whole##_array + sizeof(half) / 4, sizeof(half));                                            \
    const half half##_value = COMBINED(half, mask, whole##_low, whole##_high);
#if VECTOR == 16
#define TO_FOUR(COMBINED) HALVE(vf, v8, i8, COMBINED) HALVE(v8, v4, i4, COMBINED)
#elif VECTOR == 8
#define TO_FOUR(COMBINED) HALVE(vf, v4, i4, COMBINED)
#else
#define TO_FOUR(COMBINED) const v4 v4_value = vf_value;
#endif
/* A function that combines all lanes to one value, half by half. */
#define LANES(name, COMBINED)                                                                                         \
    INLINE float name(vf given)                                                                                       \
    {                                                                                                                 \
        const vf vf_value = rounded(given);                                                                           \
        TO_FOUR(COMBINED)                                                                                             \
        const v4 swapped = {v4_value[2], v4_value[3], v4_value[0], v4_value[1]};                                      \
        const v4 pairs = COMBINED(v4, i4, v4_value, swapped), other = {pairs[1], pairs[0], pairs[3], pairs[2]};       \
        const v4 all = COMBINED(v4, i4, pairs, other);                                                                \
        return all[0];                                                                                                \
    }

LANES(sum_of, SUM_OF)
LANES(product_of, PRODUCT_OF)
LANES(maximum_of, MAXIMUM_OF)
LANES(greatest_of, GREATEST_OF)
LANES(least_of, LEAST_OF)

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

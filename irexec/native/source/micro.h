/* Sums of products in registers: several rows, to which a table points, by a panel of packed columns. */
#ifndef MICRO_H
#define MICRO_H

#include "elementary.h"

/* Floats of a row: `depth` of each tap; the range that the sums are clamped to; and what they begin with besides the
 * bias, rows `from_row` floats apart, or null.
 */
typedef struct {
    i64 taps, depth;
    double low, high;
    const float *from;
    i64 from_row;
} sums;

/* R rows of V vectors: the bias, what is at `from` and the sums over all taps, clamped, written to rows `to_row` apart.
 *
 * The sums are numbered by one loop each time: nested loops are unrolled too late for sums to stay in registers.
 */
#define EACH_SUM(R, V) _Pragma("GCC unroll 24") for (int i = 0; i < R * V; i++)
#define MICRO(R, V)                                                                                                   \
    static void micro_##R##_##V(const sums *p, const float *const *table, i64 pitch, const float *b,                  \
                                const float *bias, float *to, i64 to_row)                                             \
    {                                                                                                                 \
        const i64 depth = p->depth, taps = p->taps;                                                                   \
        const vf low = spread((float)p->low), high = spread((float)p->high);                                          \
        vf sum[R * V];                                                                                                \
        EACH_SUM(R, V) sum[i] = load(bias + i % V * VECTOR);                                                          \
        if (p->from) EACH_SUM(R, V) sum[i] += load(p->from + i / V * p->from_row + i % V * VECTOR);                   \
        for (i64 tap = 0; tap < taps; tap++, table += pitch) {                                                        \
            const float *row[R];                                                                                      \
            for (int r = 0; r < R; r++) row[r] = table[r];                                                            \
            for (i64 k = 0; k < depth; k++, b += V * VECTOR)                                                          \
                EACH_SUM(R, V) sum[i] += load(b + i % V * VECTOR) * row[i / V][k];                                    \
        }                                                                                                             \
        EACH_SUM(R, V) store(to + i / V * to_row + i % V * VECTOR, clamped(sum[i], low, high));                       \
    }

typedef void micro(const sums *, const float *const *, i64, const float *, const float *, float *, i64);

/* Tiles of one row and of several, by their vectors. */
MICRO(1, 1)
MICRO(1, 2)
MICRO(1, 3)
static micro *const one[] = {micro_1_1, micro_1_2, micro_1_3};
MICRO(8, 1)
#if VECTOR == 16
MICRO(8, 2)
MICRO(8, 3)
static micro *const several[] = {micro_8_1, micro_8_2, micro_8_3};
static const i64 rows_of_tile[] = {8, 8, 8};
#elif VECTOR == 8
MICRO(6, 2)
MICRO(4, 3)
static micro *const several[] = {micro_8_1, micro_6_2, micro_4_3};
static const i64 rows_of_tile[] = {8, 6, 4};
#else
MICRO(4, 2)
MICRO(4, 3)
static micro *const several[] = {micro_8_1, micro_4_2, micro_4_3};
static const i64 rows_of_tile[] = {8, 4, 4};
#endif

/* Panels that one row is multiplied by at once: the sums of one panel are so few that each would wait for the last. */
enum { PANELS = 4 };
#define MICRO_ROW(V)                                                                                                  \
    static void micro_row_##V(const sums *p, const float *const *table, i64 pitch, const float *b, i64 panel,         \
                              const float *bias, float *to)                                                           \
    {                                                                                                                 \
        const vf low = spread((float)p->low), high = spread((float)p->high);                                          \
        vf sum[PANELS * V];                                                                                           \
        EACH_SUM(PANELS, V) sum[i] = load(bias + i * VECTOR);                                                         \
        for (i64 tap = 0; tap < p->taps; tap++, table += pitch)                                                       \
            for (i64 k = 0; k < p->depth; k++, b += V * VECTOR)                                                       \
                EACH_SUM(PANELS, V) sum[i] += load(b + i / V * panel + i % V * VECTOR) * (*table)[k];                 \
        EACH_SUM(PANELS, V) store(to + i * VECTOR, clamped(sum[i], low, high));                                       \
    }
MICRO_ROW(1)
MICRO_ROW(2)
MICRO_ROW(3)
typedef void micro_row(const sums *, const float *const *, i64, const float *, i64, const float *, float *);
static micro_row *const rows_by_panels[] = {micro_row_1, micro_row_2, micro_row_3};

/* Packs a panel of a matrix (depth, columns) of any strides, padded with zeros to whole vectors. */
INLINE void pack_panel(const float *from, i64 row, i64 column, i64 depth, i64 columns, float *out)
{
    const i64 pitch = (columns + VECTOR - 1) / VECTOR * VECTOR;
    if (column == 1) {
        for (i64 k = 0; k < depth; k++, out += pitch) {
            memcpy(out, from + k * row, (size_t)columns * sizeof(float));
            for (i64 c = columns; c < pitch; c++) out[c] = 0.0f;
        }
        return;
    }
    if (columns < pitch) memset(out, 0, (size_t)(depth * pitch) * sizeof(float));
    for (i64 c = 0; c < columns; c++)
        for (i64 k = 0; k < depth; k++) out[k * pitch + c] = from[k * row + c * column];
}

#endif

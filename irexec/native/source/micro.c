/* Sums of products in registers, for every number of rows and vectors that products use. */
#include "micro.h"

INLINE vf products(vf sum, vf b, const float *x) { return sum + b * *x; }

/* R rows of V vectors: the bias, what is at `from` and the sums over all taps, clamped, written to rows `to_row` apart. */
#define MICRO(NAME, ADD, R, V)                                                                                        \
    static void NAME##_##R##_##V(const sums *p, const float *const *table, i64 pitch, const float *b,                 \
                                 const float *bias, float *to, i64 to_row)                                            \
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
                EACH_SUM(R, V) sum[i] = ADD(sum[i], load(b + i % V * VECTOR), row[i / V] + k);                        \
        }                                                                                                             \
        EACH_SUM(R, V) store(to + i / V * to_row + i % V * VECTOR, clamped(sum[i], low, high));                       \
    }

/* The tiles of one vector, two and three. */
#define TILES_OF(NAME, ADD, R1, R2, R3, TABLE)                                                                        \
    MICRO(NAME, ADD, R1, 1)                                                                                           \
    MICRO(NAME, ADD, R2, 2)                                                                                           \
    MICRO(NAME, ADD, R3, 3)                                                                                           \
    irx_micro *const TABLE[] = {NAME##_##R1##_1, NAME##_##R2##_2, NAME##_##R3##_3};
TILES_OF(micro, products, 1, 1, 1, irx_one)
#if VECTOR == 16
TILES_OF(micro, products, 8, 8, 8, irx_several)
const i64 irx_rows_of_tile[] = {8, 8, 8};

/* Sums of two products of bf16 for each lane, on processors that have AVX-512 BF16. */
INLINE vf pairs(vf sum, vf b, const float *x)
{
    int32_t word;
    memcpy(&word, x, sizeof(word));
    const vi words = word - (vi){0};
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(b), "v"(words));
    return sum;
}
TILES_OF(of_pairs, pairs, 8, 8, 8, irx_of_pairs)
#elif VECTOR == 8
TILES_OF(micro, products, 8, 6, 4, irx_several)
const i64 irx_rows_of_tile[] = {8, 6, 4};
#else
TILES_OF(micro, products, 8, 4, 4, irx_several)
const i64 irx_rows_of_tile[] = {8, 4, 4};
#endif

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
irx_micro_row *const irx_row_by_panels[] = {micro_row_1, micro_row_2, micro_row_3};

/* Products and convolutions of levels: bytes by small integers, summed exactly in 32 bits.
 *
 * As in product.c, a table points to the operands of each row, and weights are packed in panels. The sums of four bytes
 * by four signed bytes are one instruction with VNNI; else data and weights have 16 bits, and two products are one
 * instruction. Neither saturates. A sum begins with an integer for each column, which takes the zero of the levels off.
 */
#include "integers.h"
#include "levels.h"
#include "micro.h"
#include "windows.h"
#if defined(QUADS) && VECTOR == 8
#include <cpuid.h>
#endif

typedef struct {
    windows window;
    const char *weights;  /* for each group its panels */
    const int32_t *start; /* for each column of all groups, padded to whole vectors in each group */
    ending end;
    i64 depth;           /* elements of a tap, a multiple of `unit` */
    i64 unit;            /* 4: bytes; 2: 16 bits */
    i64 groups, columns; /* columns of one group */
    i64 panel, rows, row_parts, panel_parts;
} integer_product;

/* R rows of V vectors. A step is one word of each operand. */
#define MICRO(NAME, SUM, ITEM, R, V)                                                                                  \
    static void NAME##_##R##_##V(i64 taps, i64 depth, const char *const *table, i64 pitch, const char *b,            \
                                 const int32_t *start, int32_t *to)                                                   \
    {                                                                                                                 \
        vi sum[R * V];                                                                                                \
        EACH_SUM(R, V) sum[i] = load_words((const char *)(start + i % V * VECTOR));                                   \
        for (i64 tap = 0; tap < taps; tap++, table += pitch) {                                                        \
            const char *row[R];                                                                                       \
            for (int r = 0; r < R; r++) row[r] = table[r];                                                            \
            for (i64 k = 0; k < depth * ITEM; k += 4, b += V * VECTOR * 4)                                            \
                EACH_SUM(R, V) sum[i] = SUM(sum[i], spread_word(row[i / V] + k), load_words(b + i % V * VECTOR * 4)); \
        }                                                                                                             \
        EACH_SUM(R, V) memcpy(to + i * VECTOR, &sum[i], sizeof(vi));                                                  \
    }
#define MICROS(NAME, SUM, ITEM, R2, R3)                                                                               \
    MICRO(NAME, SUM, ITEM, 1, 1)                                                                                      \
    MICRO(NAME, SUM, ITEM, 1, 2)                                                                                      \
    MICRO(NAME, SUM, ITEM, 1, 3)                                                                                      \
    MICRO(NAME, SUM, ITEM, 8, 1)                                                                                      \
    MICRO(NAME, SUM, ITEM, R2, 2)                                                                                     \
    MICRO(NAME, SUM, ITEM, R3, 3)                                                                                     \
    static integer_micro *const NAME##_one[] = {NAME##_1_1, NAME##_1_2, NAME##_1_3};                                  \
    static integer_micro *const NAME##_several[] = {NAME##_8_1, NAME##_##R2##_2, NAME##_##R3##_3};

#if VECTOR == 16
MICROS(of_pairs, pairs, 2, 8, 8)
MICROS(of_quads, quads, 1, 8, 8)
#elif VECTOR == 8
MICROS(of_pairs, pairs, 2, 6, 4)
#ifdef QUADS
MICROS(of_quads, quads, 1, 6, 4)
#endif
#else
MICROS(of_pairs, pairs, 2, 4, 4)
#endif

/* The elements of a word: 4 bytes where the processor has VNNI, else 2. */
EXPORT i64 irx_integer_unit(void)
{
#if VECTOR == 16
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vnni")) return 4;
#elif defined(QUADS)
    /* AVX-VNNI. Not every compiler knows its name. */
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1)) return 4;
#endif
    return 2;
}

integer_micro *irx_integer_micro(i64 unit, i64 vectors, int several)
{
    (void)unit;
#ifdef QUADS
    if (unit == 4) return several ? of_quads_several[vectors - 1] : of_quads_one[vectors - 1];
#endif
    return several ? of_pairs_several[vectors - 1] : of_pairs_one[vectors - 1];
}

/* One panel for a block of rows. */
static void multiply_panel(const integer_product *p, place at, i64 vectors, const char *b, const int32_t *start,
                           const char *const *table, i64 pitch, i64 count)
{
    int32_t sums[8 * 3 * VECTOR] __attribute__((aligned(64)));
    const i64 rows = irx_rows_of_tile[vectors - 1], first = at.row, taps = taps_of(&p->window);
    for (i64 r = 0; r < count; r += at.rows) {
        const int several = count - r > rows / 4;
        at.row = first + r;
        at.rows = several ? smaller(rows, count - r) : 1;
        irx_integer_micro(p->unit, vectors, several)(taps, p->depth, table + r, pitch, b, start, sums);
        end_sums(&p->end, &at, vectors * VECTOR, sums);
    }
}

/* Block: image, group, rows, panels, the last one changing fastest. Scratch: the table of a block of rows. */
EXPORT void irx_integer_product(const void *parameters, i64 block, char *scratch)
{
    const integer_product *p = parameters;
    const i64 width = p->panel * VECTOR, panels = (p->columns + width - 1) / width, item = 4 / p->unit;
    const i64 tile = irx_rows_of_tile[p->panel - 1], tiles = (p->rows + tile - 1) / tile;
    const i64 panel_part = block % p->panel_parts, row_part = block / p->panel_parts % p->row_parts;
    block /= p->panel_parts * p->row_parts;
    const i64 group = block % p->groups, image = block / p->groups;
    const i64 row = start_of(row_part, p->row_parts, tiles) * tile;
    const i64 count = smaller(start_of(row_part + 1, p->row_parts, tiles) * tile, p->rows) - row, pitch = count + 8;
    const i64 all = taps_of(&p->window) * p->depth * item, padded = (p->columns + VECTOR - 1) / VECTOR * VECTOR;
    const char **table = (const char **)scratch;
    const float **floats = (const float **)scratch;
    if (item == 1) fill_table_of(&p->window, image, group * p->depth, row, count, pitch, floats, 1);
    else fill_table_of(&p->window, image, group * p->depth, row, count, pitch, floats, 2);
    const char *weights = p->weights + group * padded * all;
    const i64 last = start_of(panel_part + 1, p->panel_parts, panels);
    for (i64 i = start_of(panel_part, p->panel_parts, panels); i < last; i++) {
        const i64 start = i * width, columns = smaller(width, p->columns - start);
        const place at = {image, row, group * p->columns + start, 0, columns};
        multiply_panel(p, at, (columns + VECTOR - 1) / VECTOR, weights + start * all, p->start + group * padded + start,
                       table, pitch, count);
    }
}

typedef struct {
    const uint8_t *source;
    int16_t *to;
    i64 count, each;
} widening;

/* Bytes as 16 bits. Block: `each` of them. */
EXPORT void irx_widen(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const widening *p = parameters;
    const i64 last = smaller((block + 1) * p->each, p->count);
    for (i64 i = block * p->each; i < last; i++) p->to[i] = p->source[i];
}

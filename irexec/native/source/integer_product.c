/* Products and convolutions of levels: bytes by small integers, summed exactly in 32 bits.
 *
 * As in product.c, a table points to the operands of each row, and weights are packed in panels. The sums of four bytes
 * by four signed bytes are one instruction with VNNI; else data and weights have 16 bits, and two products are one
 * instruction. Neither saturates. A sum begins with an integer for each column, which takes the zero of the levels off.
 */
#include "amx.h"
#include "integers.h"
#include "levels.h"
#include "micro.h"
#include "windows.h"
#if defined(VNNI) && VECTOR == 8
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
    i64 step; /* of the depth in tiles of AMX, in bytes; 0 without them */
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
            for (i64 k = 0; k < depth * ITEM; k += 4, b += V * VECTOR * 4) {                                          \
                if (R == 1) EACH_SUM(R, V) __builtin_prefetch(b + 8192 + i * VECTOR * 4, 0, 2);                       \
                EACH_SUM(R, V) sum[i] = SUM(sum[i], spread_word(row[i / V] + k), load_words(b + i % V * VECTOR * 4)); \
            }                                                                                                         \
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
#ifdef VNNI
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
#elif defined(VNNI)
    /* AVX-VNNI. Not every compiler knows its name. */
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1)) return 4;
#endif
    return 2;
}

/* Whether they may be multiplied by tiles of AMX. */
EXPORT i64 irx_integer_tiles(void) { return irx_has_tiles(); }

integer_micro *irx_integer_micro(i64 unit, i64 vectors, int several)
{
    (void)unit;
#ifdef VNNI
    if (unit == 4) return several ? of_quads_several[vectors - 1] : of_quads_one[vectors - 1];
#endif
    return several ? of_pairs_several[vectors - 1] : of_pairs_one[vectors - 1];
}

/* Rows that are ended at once, fewer where they pass through a tile of floats: a call for a tile of a short product takes
 * as long as the product.
 */
enum { ENDED = 32 };

/* One panel for a block of rows. */
static void multiply_panel(const integer_product *p, place at, i64 vectors, const char *b, const int32_t *start,
                           const char *const *table, i64 pitch, i64 count)
{
    int32_t sums[(ENDED + 8) * 3 * VECTOR] __attribute__((aligned(64)));
    const i64 rows = irx_rows_of_tile[vectors - 1], first = at.row, taps = taps_of(&p->window), width = vectors * VECTOR;
    const i64 ended = p->end.unknown && !p->end.after ? ENDED : smaller(ENDED, TILE / width), most = ended / rows * rows;
    for (i64 r = 0; r < count; r += at.rows) {
        at.row = first + r;
        i64 left = at.rows = smaller(most, count - r);
        irx_fetch(p->end.after, &at);
        at.rows = 0;
        for (i64 done; left > 0; left -= done, at.rows += done) {
            const int several = left > rows / 4;
            done = several ? smaller(rows, left) : 1;
            irx_integer_micro(p->unit, vectors, several)(taps, p->depth, table + r + at.rows, pitch, b, start,
                                                         sums + at.rows * width);
        }
        irx_end_sums(&p->end, &at, width, sums);
    }
}

/* The elements of a tap as panels have them: whole steps. */
INLINE i64 packed_depth(const integer_product *p)
{
    return p->step ? (p->depth + p->step - 1) / p->step * p->step : p->depth;
}

#ifdef TILES
/* Ends the sums of tiles that begin with the row `first` of a block of `count` rows. */
static void end_tiles(const integer_product *p, place at, i64 first, i64 tiles, i64 width, const int32_t *sums, i64 count)
{
    const i64 row = at.row;
    for (i64 r = first; r < smaller(count, first + tiles * TILE_ROWS); r += at.rows, sums += TILE_ROWS * width) {
        at.row = row + r;
        at.rows = smaller(TILE_ROWS, count - r);
        irx_end_sums(&p->end, &at, width, sums + (r - first_row(r / TILE_ROWS, count)) * width);
    }
}

/* Passes of tiles over a panel while the next one is fetched; over more, what is not in cache takes little of the time. */
enum { FETCHING = 16 };

/* Panels from `at` to a last column, by tiles: `rows` are those that irx_find_tiles found. */
static void multiply_by_tiles(const integer_product *p, place at, i64 last, const char *weights, const int32_t *start,
                              const tile_rows *rows, i64 count)
{
    int32_t sums[2 * TILE_ROWS * 2 * VECTOR] __attribute__((aligned(64)));
    const i64 taps = taps_of(&p->window), pair = 2 * TILE_ROWS, passes = (count + pair - 1) / pair;
    const i64 steps = packed_depth(p) / p->step * taps;
    for (; at.column < last; at.column += at.columns) {
        at.columns = smaller(p->panel * VECTOR, last - at.column);
        const i64 vectors = (at.columns + VECTOR - 1) / VECTOR, size = steps * p->step * vectors * VECTOR;
        const i64 lines = passes < FETCHING ? (p->step / 4 * vectors + passes - 1) / passes : 0;
        tile_product one = {0, vectors, taps, p->depth, p->step, lines, rows, weights, weights + size, start};
        for (i64 r = 0; r < count; r += pair, one.rows += 2 * taps, one.later += steps * lines * 64) {
            one.tiles = count - r > TILE_ROWS ? 2 : 1;
            irx_multiply_tiles(&one, sums);
            end_tiles(p, at, r, one.tiles, vectors * VECTOR, sums, count);
        }
        weights += size;
        start += vectors * VECTOR;
    }
}
#endif

/* Block: image, group, rows, panels, the last one changing fastest. Scratch: the table of a block of rows; for tiles also
 * what irx_find_tiles finds, and room for it.
 */
EXPORT void irx_integer_product(const void *parameters, i64 block, char *scratch)
{
    const integer_product *p = parameters;
    const i64 width = p->panel * VECTOR, panels = (p->columns + width - 1) / width, item = 4 / p->unit;
    const i64 tile = p->step ? 2 * TILE_ROWS : irx_rows_of_tile[p->panel - 1], tiles = (p->rows + tile - 1) / tile;
    const i64 panel_part = block % p->panel_parts, row_part = block / p->panel_parts % p->row_parts;
    block /= p->panel_parts * p->row_parts;
    const i64 group = block % p->groups, image = block / p->groups;
    const i64 row = start_of(row_part, p->row_parts, tiles) * tile;
    const i64 count = smaller(start_of(row_part + 1, p->row_parts, tiles) * tile, p->rows) - row, pitch = count + 8;
    const i64 taps = taps_of(&p->window), all = taps * packed_depth(p) * item, padded = (p->columns + VECTOR - 1) / VECTOR * VECTOR;
    const char **table = (const char **)scratch;
    const float **floats = (const float **)scratch;
    if (item == 1) fill_table_of(&p->window, image, group * p->depth, row, count, pitch, floats, 1);
    else fill_table_of(&p->window, image, group * p->depth, row, count, pitch, floats, 2);
    const char *weights = p->weights + group * padded * all;
    const i64 begin = start_of(panel_part, p->panel_parts, panels), end = start_of(panel_part + 1, p->panel_parts, panels);
#ifdef TILES
    if (p->step) {
        tile_rows *found = (tile_rows *)(table + taps * pitch);
        char *room = (char *)(found + (count + TILE_ROWS - 1) / TILE_ROWS * taps);
        const place at = {image, row, group * p->columns + begin * width, 0, 0};
        irx_shape_tiles(p->step);
        irx_find_tiles((const char *const *)table, pitch, taps, p->depth, count, found, room);
        multiply_by_tiles(p, at, group * p->columns + smaller(end * width, p->columns), weights + begin * width * all,
                          p->start + group * padded + begin * width, found, count);
        irx_shape_tiles(0);
        return;
    }
#endif
    for (i64 i = begin; i < end; i++) {
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

/* Floats that become integers in each run: rows are cut into groups, of which each has a scale of its own, its largest
 * magnitude over 127. A group is `group` values, a multiple of 16; behind the last one zeros fill `pitch`, another one.
 */
typedef struct {
    const float *x;
    i64 x_image, x_row;
    void *to;      /* (rows of all images, pitch): integers plus 128, bytes or 16 bits */
    float *scales; /* (rows of all images, groups) */
    int32_t *sums; /* likewise, of the integers of a group */
    i64 depth, group, pitch, unit, rows, all;
} quantization;

typedef int16_t vs __attribute__((vector_size(VECTOR * 2)));

/* A vector of a row; behind its end zeros. */
INLINE vf part_of(const float *x, i64 count)
{
    if (count >= VECTOR) return load(x);
    float part[VECTOR] = {0.0f};
    memcpy(part, x, (size_t)larger(0, count) * sizeof(float));
    return load(part);
}

/* One group. One with a NaN or an infinity has the scale NaN, and one whose scale has no reciprocal is 0. */
INLINE int32_t quantize_group(const float *x, i64 count, i64 whole, float *scale, void *to, const i64 unit)
{
    vi most = {0}, sum = {0};
    for (i64 k = 0; k < count; k += VECTOR) {
        const vi bits = (vi)part_of(x + k, count - k) & 0x7fffffff;
        most = (vi)choose((vi)(bits > most), (vf)bits, (vf)most);
    }
    int32_t largest = 0;
    for (int i = 0; i < VECTOR; i++) largest = most[i] > largest ? most[i] : largest;
    float size;
    memcpy(&size, &largest, sizeof(size));
    const int is_finite = largest < 0x7f800000;
    const float step = is_finite ? size / 127.0f : 0.0f, per_unit = step >= 1.17549435e-38f ? 1.0f / step : 0.0f;
    *scale = !is_finite ? __builtin_nanf("") : per_unit == 0.0f ? 0.0f : step;
    for (i64 k = 0; k < whole; k += VECTOR) {
        /* 1.5 * 2**23: adding it rounds to an integer. */
        const vf x_k = is_finite ? part_of(x + k, count - k) : spread(0.0f);
        const vi level = (vi)rounded(rounded(x_k * per_unit) + 12582912.0f) - (vi)spread(12582912.0f);
        sum += level;
        if (unit == 4) {
            const vb bytes = __builtin_convertvector(level + 128, vb);
            memcpy((uint8_t *)to + k, &bytes, sizeof(bytes));
        } else {
            const vs words = __builtin_convertvector(level + 128, vs);
            memcpy((int16_t *)to + k, &words, sizeof(words));
        }
    }
    int32_t total = 0;
    for (int i = 0; i < VECTOR; i++) total += sum[i];
    return total;
}

/* Block: a row of an image. */
EXPORT void irx_quantize_rows(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const quantization *p = parameters;
    const i64 groups = (p->depth + p->group - 1) / p->group, item = 4 / p->unit;
    const float *x = p->x + block / p->rows * p->x_image + block % p->rows * p->x_row;
    for (i64 g = 0; g < groups; g++) {
        const i64 first = g * p->group, count = smaller(p->group, p->depth - first);
        const i64 whole = smaller(p->group, p->pitch - first), at = block * groups + g;
        char *to = (char *)p->to + (block * p->pitch + first) * item;
        if (p->unit == 4) p->sums[at] = quantize_group(x + first, count, whole, p->scales + at, to, 4);
        else p->sums[at] = quantize_group(x + first, count, whole, p->scales + at, to, 2);
    }
}

/* Products of such rows with small integers, which have a scale and a zero point for each group and column. */
typedef struct {
    const char *x; /* rows of all images */
    const float *row_scales;
    const int32_t *row_sums;
    const char *weights;   /* panels */
    const int32_t *start;  /* (panels, groups, columns of a panel): what takes the 128 of the rows off */
    const float *scales;   /* likewise */
    const int32_t *zeros;  /* likewise, or null */
    const float *bias;     /* for each column, or null */
    float *out;
    i64 out_image, out_row, out_column;
    const chain *after; /* or null */
    i64 group, pitch, unit, columns, panel, rows, row_parts, panel_parts;
    double low, high;
} dynamic_product;

/* R rows of V vectors from a row on, by the panel at a column: the integers of each group are added exactly, the scaled
 * sums one group after another.
 */
#define DYNAMIC(NAME, SUM, ITEM, R, V)                                                                                \
    static void NAME##_dynamic_##R##_##V(const dynamic_product *p, const i64 rows[], i64 column, float *to)           \
    {                                                                                                                 \
        const i64 groups = (p->pitch + p->group - 1) / p->group;                                                      \
        const char *b = p->weights + column * p->pitch * ITEM;                                                        \
        vf total[R * V];                                                                                              \
        EACH_SUM(R, V) total[i] = load(to + i % V * VECTOR);                                                          \
        for (i64 g = 0, done = 0; g < groups; g++, done += p->group) {                                                \
            const i64 lane = column * groups + g * V * VECTOR, depth = smaller(p->group, p->pitch - done);            \
            const char *row[R];                                                                                       \
            vi sum[R * V];                                                                                            \
            for (int r = 0; r < R; r++) row[r] = p->x + (rows[r] * p->pitch + done) * ITEM;                           \
            EACH_SUM(R, V) sum[i] = load_words((const char *)(p->start + lane + i % V * VECTOR));                     \
            if (p->zeros)                                                                                             \
                EACH_SUM(R, V)                                                                                        \
                sum[i] = less_product(sum[i], load_words((const char *)(p->zeros + lane + i % V * VECTOR)),           \
                                      p->row_sums[rows[i / V] * groups + g], p->group, ITEM);                         \
            for (i64 k = 0; k < depth * ITEM; k += 4, b += V * VECTOR * 4)                                            \
                EACH_SUM(R, V) sum[i] = SUM(sum[i], spread_word(row[i / V] + k), load_words(b + i % V * VECTOR * 4)); \
            EACH_SUM(R, V)                                                                                            \
            total[i] += rounded(rounded(floats(sum[i]) * load(p->scales + lane + i % V * VECTOR)) *                   \
                                p->row_scales[rows[i / V] * groups + g]);                                             \
        }                                                                                                             \
        EACH_SUM(R, V) store(to + i * VECTOR, clamped(total[i], spread((float)p->low), spread((float)p->high)));      \
    }
#define DYNAMICS(NAME, SUM, ITEM, R1, R2, R3)                                                                         \
    DYNAMIC(NAME, SUM, ITEM, 1, 1)                                                                                    \
    DYNAMIC(NAME, SUM, ITEM, 1, 2)                                                                                    \
    DYNAMIC(NAME, SUM, ITEM, 1, 3)                                                                                    \
    DYNAMIC(NAME, SUM, ITEM, R1, 1)                                                                                   \
    DYNAMIC(NAME, SUM, ITEM, R2, 2)                                                                                   \
    DYNAMIC(NAME, SUM, ITEM, R3, 3)                                                                                   \
    static const dynamic_micros NAME##_dynamic = {                                                                    \
        {R1, R2, R3},                                                                                                 \
        {NAME##_dynamic_1_1, NAME##_dynamic_1_2, NAME##_dynamic_1_3},                                                 \
        {NAME##_dynamic_##R1##_1, NAME##_dynamic_##R2##_2, NAME##_dynamic_##R3##_3}};

#define floats(x) __builtin_convertvector(x, vf)
typedef void dynamic_micro(const dynamic_product *p, const i64 rows[], i64 column, float *to);
typedef struct {
    i64 rows[3];
    dynamic_micro *one[3], *several[3];
} dynamic_micros;

/* sum - a * b, for the sum b of a group whose values are at most 127. */
INLINE vi less_product(vi sum, vi a, int32_t b, i64 group, const i64 item)
{
#ifdef VNNI
    if (item == 1 && group <= 256) {
        __asm__(VNNI("vpdpwssd") : "+v"(sum) : "v"(a), "v"((-b & 0xffff) - (vi){0}));
        return sum;
    }
#endif
    (void)group, (void)item;
    return sum - a * b;
}

DYNAMICS(of_pairs, pairs, 2, 4, 2, 2)
#if VECTOR == 16
DYNAMICS(of_quads, quads, 1, 4, 4, 8)
#elif defined(VNNI)
DYNAMICS(of_quads, quads, 1, 4, 2, 2)
#endif

static const dynamic_micros *dynamic_micros_of(i64 unit)
{
    (void)unit;
#ifdef VNNI
    if (unit == 4) return &of_quads_dynamic;
#endif
    return &of_pairs_dynamic;
}

/* A tile of rows from `at` on. */
static void multiply_groups(const dynamic_product *p, place at, i64 vectors)
{
    float tile[8 * 3 * VECTOR] __attribute__((aligned(64))) = {0.0f};
    i64 rows[8];
    for (i64 r = 0; r < 8; r++) rows[r] = at.image * p->rows + at.row + smaller(r, at.rows - 1);
    if (p->bias) memcpy(tile, p->bias + at.column, (size_t)at.columns * sizeof(float));
    const dynamic_micros *micros = dynamic_micros_of(p->unit);
    irx_fetch(p->after, &at);
    (at.rows > 1 ? micros->several : micros->one)[vectors - 1](p, rows, at.column, tile);
    float *out = p->out + at.image * p->out_image + at.row * p->out_row + at.column * p->out_column;
    end_tile(p->after, &at, vectors * VECTOR, tile, out, p->out_row, p->out_column);
}

/* Block: image, rows, panels, the last one changing fastest. */
EXPORT void irx_dynamic_product(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const dynamic_product *p = parameters;
    const i64 width = p->panel * VECTOR, panels = (p->columns + width - 1) / width;
    const i64 tile = irx_rows_of_tile[p->panel - 1], tiles = (p->rows + tile - 1) / tile;
    const i64 panel_part = block % p->panel_parts, row_part = block / p->panel_parts % p->row_parts;
    const i64 image = block / (p->panel_parts * p->row_parts);
    const i64 end = smaller(start_of(row_part + 1, p->row_parts, tiles) * tile, p->rows);
    for (i64 i = start_of(panel_part, p->panel_parts, panels); i < start_of(panel_part + 1, p->panel_parts, panels); i++) {
        const i64 start = i * width, columns = smaller(width, p->columns - start);
        const i64 vectors = (columns + VECTOR - 1) / VECTOR, most = dynamic_micros_of(p->unit)->rows[vectors - 1];
        for (i64 row = start_of(row_part, p->row_parts, tiles) * tile; row < end; row += most)
            multiply_groups(p, (place){image, row, start, smaller(most, end - row), columns}, vectors);
    }
}

/* Products of rows with compressed weights: integers of 4 or 8 bits with scales by group.
 *
 * Weights are packed in panels of two vectors of columns. A word of 32 bits has 8 or 4 neighbours along the depth of
 * one column, the first one in the lowest bits; a group begins with a new word. Integers of 4 bits are unsigned, those
 * of 8 bits signed. Their group has a scale and a zero point for each column: a weight is (integer - zero point) * scale.
 *
 * Few rows are multiplied by the integers as they lie in their words, each times a power of two that the row is divided
 * by: fewer instructions unpack them so. The zero points are subtracted from the sums of few products, before these are
 * much larger than the result. For more rows a part of the depth is unpacked to floats, as product.c has them, which all
 * rows of a block use.
 */
#include "micro.h"
#include "tiles.h"

/* Columns of packed words, and rows that do not pay for unpacking. */
enum { WIDTH = 2 * VECTOR, FEW = 4 };

typedef struct {
    const float *x;
    i64 x_image, x_row;
    const int32_t *words; /* (panels, words of a column, WIDTH) */
    const float *scales;  /* (panels, groups, WIDTH) */
    const float *zeros;   /* likewise, or null if all are 8 (integers of 4 bits) or 0 */
    const float *bias;    /* for each column, or null */
    float *out;
    i64 out_image, out_row, out_column;
    const chain *after; /* or null */
    i64 words_image, scales_image; /* of the weights; 0 where all images have the same */
    i64 depth, group, columns, bits;
    i64 panel; /* vectors of a panel of unpacked weights, 1 to 3 */
    i64 most;  /* weights of a column that are unpacked at once, whole words */
    i64 rows, row_block, panel_block;
    double low, high;
} compressed_product;

/* The weights of two vectors of columns, or of one, from a group on. */
typedef struct {
    const int32_t *words;
    const float *scales, *zeros;
} group;

typedef int32_t vi_unaligned __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

typedef uint32_t vu __attribute__((vector_size(VECTOR * 4)));

INLINE vi word_of(const int32_t *p) { return *(const vi_unaligned *)p; }
INLINE i64 words_of(i64 count, int bits) { return (count * bits + 31) / 32; }

/* A weight as a float: position j of words. */
INLINE vf weight_of(vi words, int j, int bits)
{
    if (bits == 8) return __builtin_convertvector(words << (24 - 8 * j) >> 24, vf);
    return __builtin_convertvector((vi)((vu)words >> (4 * j)) & 15, vf);
}

/* The same times power_of(j, bits), in fewer instructions. */
INLINE vf scaled_weight_of(vi words, int j, int bits)
{
    if (bits == 8) return __builtin_convertvector(words << (24 - 8 * j) & (int32_t)0xff000000, vf);
    if (j < 7) return __builtin_convertvector(words & 15 << (4 * j), vf);
    return weight_of(words, j, bits);
}

INLINE float power_of(int j, int bits) { return bits == 8 ? 0x1p24f : j < 7 ? (float)(1 << (4 * j)) : 1.0f; }

INLINE void next_group(group *g, i64 words)
{
    g->words += words * WIDTH;
    g->scales += WIDTH;
    if (g->zeros) g->zeros += WIDTH;
}

/* The zero points and scales of a vector of columns. */
INLINE vf zero_of(group g, int v, int bits)
{
    return g.zeros ? load(g.zeros + v * VECTOR) : spread(bits == 4 ? 8.0f : 0.0f);
}
INLINE vf scale_of(group g, int v) { return load(g.scales + v * VECTOR); }

/* A row as multiply_row reads it, of whole words: what is behind a group is 0. */
typedef struct {
    float *values; /* (groups, words of a group, values of a word), divided by powers */
    float *sums;   /* (groups, runs of words, SUMS) of the values as they are, with the opposite sign */
} row;

/* Sums of products for each column, so that additions do not wait for each other. */
enum { SUMS = 4 };

/* Words of a column whose products are added before the zero points are subtracted. */
INLINE i64 run_of(int bits) { return bits == 4 ? 4 : 8; }

/* The sums are those of multiply_row for weights that are all 1: weights that equal their zero point give 0. */
INLINE int prepare_row(const compressed_product *p, const float *x, row to, int bits)
{
    const int each = 32 / bits;
    const i64 words = words_of(p->group, bits);
    float all = 0.0f;
    for (i64 k = 0; k < p->depth; k += p->group) {
        for (i64 first = 0; first < words; first += run_of(bits), to.sums += SUMS) {
            float sum[SUMS] = {0.0f};
            for (i64 word = first; word < smaller(words, first + run_of(bits)); word++, to.values += each)
#pragma GCC unroll 8
                for (int j = 0; j < each; j++) {
                    const float value = word * each + j < p->group ? x[k + word * each + j] : 0.0f;
                    to.values[j] = value * (1.0f / power_of(j, bits));
                    sum[j % SUMS] += value;
                }
            for (int j = 0; j < SUMS; j++) to.sums[j] = -sum[j], all += sum[j] * 0.0f;
        }
    }
    return all == 0.0f;
}

/* Adds one row's products with a panel to its sums. */
INLINE void multiply_row(const compressed_product *p, group g, row x, float *sums, int bits)
{
    vf total[2] = {load(sums), load(sums + VECTOR)};
    const int each = 32 / bits;
    const i64 words = words_of(p->group, bits);
    for (i64 k = 0; k < p->depth; k += p->group, next_group(&g, words)) {
        vf sum[SUMS][2] = {{{0}}};
        const vf zero[2] = {zero_of(g, 0, bits), zero_of(g, 1, bits)};
        const int32_t *word = g.words;
        for (i64 first = 0; first < words; first += run_of(bits), x.sums += SUMS) {
            const int32_t *const end = g.words + smaller(words, first + run_of(bits)) * WIDTH;
            for (; word < end; word += WIDTH, x.values += each)
#pragma GCC unroll 8
                for (int j = 0; j < each; j++)
                    for (int v = 0; v < 2; v++)
                        sum[j % SUMS][v] += scaled_weight_of(word_of(word + v * VECTOR), j, bits) * x.values[j];
#pragma GCC unroll 4
            for (int j = 0; j < SUMS && (bits == 4 || g.zeros); j++)
                for (int v = 0; v < 2; v++) sum[j][v] += zero[v] * x.sums[j];
        }
        for (int v = 0; v < 2; v++)
            total[v] += (sum[0][v] + sum[1][v] + sum[2][v] + sum[3][v]) * scale_of(g, v);
    }
    for (int v = 0; v < 2; v++) store(sums + v * VECTOR, total[v]);
}

/* Unpacks `count` weights of a vector of columns of a group, from the position `first` on, which begins a word. */
INLINE void unpack(group g, i64 first, i64 count, float *to, i64 pitch, int bits)
{
    const int each = 32 / bits;
    const vf scale = scale_of(g, 0), zero = zero_of(g, 0, bits);
    const int32_t *word = g.words + first / each * WIDTH;
    i64 i = 0;
    for (; i + each <= count; i += each, word += WIDTH)
#pragma GCC unroll 8
        for (int j = 0; j < each; j++, to += pitch) store(to, (weight_of(word_of(word), j, bits) - zero) * scale);
    for (int j = 0; i + j < count; j++, to += pitch) store(to, (weight_of(word_of(word), j, bits) - zero) * scale);
}

/* The functions for weights of a type. */
typedef struct {
    int (*prepare_row)(const compressed_product *, const float *, row);
    void (*multiply_row)(const compressed_product *, group, row, float *);
    void (*unpack)(group, i64, i64, float *, i64);
} kind;

#define KIND(BITS)                                                                                                    \
    static int prepare_row_##BITS(const compressed_product *p, const float *x, row to)                                \
    {                                                                                                                 \
        return prepare_row(p, x, to, BITS);                                                                           \
    }                                                                                                                 \
    static void multiply_row_##BITS(const compressed_product *p, group g, row x, float *sums)                         \
    {                                                                                                                 \
        multiply_row(p, g, x, sums, BITS);                                                                            \
    }                                                                                                                 \
    static void unpack_##BITS(group g, i64 first, i64 count, float *to, i64 pitch)                                    \
    {                                                                                                                 \
        unpack(g, first, count, to, pitch, BITS);                                                                     \
    }                                                                                                                 \
    static const kind kind_##BITS = {prepare_row_##BITS, multiply_row_##BITS, unpack_##BITS};

KIND(4)
KIND(8)

static kind kind_of(const compressed_product *p) { return p->bits == 4 ? kind_4 : kind_8; }

/* The weights of a vector of columns from a group on; of two, if it is an even one. */
static group group_at(const compressed_product *p, i64 vector, i64 index)
{
    const i64 words = words_of(p->group, (int)p->bits), groups = p->depth / p->group;
    const i64 at = vector / 2 * groups + index, lane = vector % 2 * VECTOR;
    return (group){p->words + at * words * WIDTH + lane, p->scales + at * WIDTH + lane,
                   p->zeros ? p->zeros + at * WIDTH + lane : 0};
}

/* Unpacks a part of the depth of a panel from the position `done` on: whole groups, or a part of one. Returns its size. */
static i64 unpack_panel(const compressed_product *p, i64 vector, i64 vectors, i64 done, float *to)
{
    const i64 first = done % p->group, words = words_of(p->group, (int)p->bits), most = larger(1, p->most / p->group);
    const i64 count = smaller(smaller(p->most, most * p->group - first), p->depth - done), part = smaller(p->group, count);
    for (i64 v = 0; v < vectors; v++) {
        group g = group_at(p, vector + v, done / p->group);
        for (i64 i = 0; i < count; i += part, next_group(&g, words))
            kind_of(p).unpack(g, first, part, to + (i * vectors + v) * VECTOR, vectors * VECTOR);
    }
    return count;
}

/* The scratch of a thread. */
typedef struct {
    float *weights;      /* `most` rows of a panel */
    float *sums;         /* of the rows of a block and the columns of a panel */
    const float **table; /* the rows of a block */
    row rows[FEW];
} room;

static room room_of(const compressed_product *p, char *scratch)
{
    const int bits = (int)p->bits;
    const i64 groups = p->depth / p->group, words = words_of(p->group, bits), pitch = p->row_block + 8;
    const i64 values = groups * words * (32 / bits), runs = groups * ((words + run_of(bits) - 1) / run_of(bits));
    room made = {(float *)scratch, 0, 0, {{0}}};
    made.sums = made.weights + p->most * p->panel * VECTOR;
    made.table = (const float **)(made.sums + pitch * p->panel * VECTOR);
    float *rows = (float *)(made.table + pitch);
    for (int r = 0; r < FEW; r++, rows += values + runs * SUMS) made.rows[r] = (row){rows, rows + values};
    return made;
}

/* Makes the rows of a product of few rows ready; not if the sums of one are not finite. */
static int prepare(const compressed_product *p, const float *x, const room *m)
{
    if (p->rows > FEW) return 0;
    for (i64 r = 0; r < p->rows; r++)
        if (!kind_of(p).prepare_row(p, x + r * p->x_row, m->rows[r])) return 0;
    return 1;
}

/* Several rows by a panel. The sums of a part of the depth are kept; those of the last one are ended tile by tile, while
 * they are in cache, or are written to `out` at once if nothing follows them.
 */
static void multiply_rows(const compressed_product *p, place at, i64 count, const float *bias, float *out, const room *m)
{
    const i64 vectors = (at.columns + VECTOR - 1) / VECTOR, width = vectors * VECTOR, tile = irx_rows_of_tile[vectors - 1];
    const float *x = p->x + at.image * p->x_image + at.row * p->x_row;
    const float zeros[3 * VECTOR] = {0};
    const i64 most = TILE / (width * tile) * tile;
    const int is_alone = !p->after && p->out_column == 1 && at.columns == width;
    for (i64 done = 0, depth; done < p->depth; done += depth) {
        depth = unpack_panel(p, at.column / VECTOR, vectors, done, m->weights);
        const int is_last = done + depth == p->depth;
        sums s = {1, depth, is_last ? p->low : -__builtin_inf(), is_last ? p->high : __builtin_inf(), NULL, width};
        for (i64 r = 0; r < count + 8; r++) m->table[r] = x + smaller(r, count - 1) * p->x_row + done;
        for (i64 r = 0, end, rows; r < count; r = end) {
            end = smaller(r + most, count);
            const place next = {at.image, at.row + r, at.column, end - r, at.columns};
            const int is_direct = is_last && is_alone && end - r == most;
            if (is_last) irx_fetch(p->after, &next);
            for (i64 i = r; i < end; i += rows) {
                const int several = end - i > tile / 4;
                irx_micro *run = several ? irx_several[vectors - 1] : irx_one[vectors - 1];
                rows = several ? tile : 1;
                s.from = done ? m->sums + i * width : NULL;
                run(&s, m->table + i, 1, m->weights, done ? zeros : bias,
                    is_direct ? out + i * p->out_row : m->sums + i * width, is_direct ? p->out_row : width);
            }
            if (is_last && !is_direct)
                end_tile(p->after, &next, width, m->sums + r * width, out + r * p->out_row, p->out_row, p->out_column);
        }
    }
}

/* One panel for a block of rows. */
static void multiply_panel(const compressed_product *p, place at, i64 rows, const room *m, int is_prepared)
{
    float bias[3 * VECTOR] = {0};
    float *out = p->out + at.image * p->out_image + at.row * p->out_row + at.column * p->out_column;
    if (p->bias) memcpy(bias, p->bias + at.column, (size_t)at.columns * sizeof(float));
    if (!is_prepared) {
        multiply_rows(p, at, rows, bias, out, m);
        return;
    }
    const vf low = spread((float)p->low), high = spread((float)p->high);
    for (i64 r = 0; r < rows; r++) {
        float *to = m->sums + r * WIDTH;
        memcpy(to, bias, WIDTH * sizeof(float));
        kind_of(p).multiply_row(p, group_at(p, at.column / VECTOR, 0), m->rows[r], to);
        for (int v = 0; v < 2; v++) store(to + v * VECTOR, clamped(load(to + v * VECTOR), low, high));
    }
    at.rows = rows;
    end_tile(p->after, &at, WIDTH, m->sums, out, p->out_row, p->out_column);
}

/* Block: image, rows, panels, the last one changing fastest. */
EXPORT void irx_compressed_product(const void *parameters, i64 block, char *scratch)
{
    const compressed_product *p = parameters;
    compressed_product own = *p;
    const i64 width = p->panel * VECTOR, panels = (p->columns + width - 1) / width;
    const i64 panel_blocks = (panels + p->panel_block - 1) / p->panel_block;
    const i64 row_blocks = (p->rows + p->row_block - 1) / p->row_block;
    const i64 first = block % panel_blocks * p->panel_block;
    block /= panel_blocks;
    const i64 row = block % row_blocks * p->row_block, rows = smaller(p->row_block, p->rows - row);
    const i64 image = block / row_blocks;
    own.words += image * p->words_image;
    own.scales += image * p->scales_image;
    if (own.zeros) own.zeros += image * p->scales_image;
    const room m = room_of(p, scratch);
    const int is_prepared = prepare(p, p->x + image * p->x_image, &m);
    for (i64 i = first; i < smaller(first + p->panel_block, panels); i++) {
        const place at = {image, row, i * width, 0, smaller(width, p->columns - i * width)};
        multiply_panel(&own, at, rows, &m, is_prepared);
    }
}

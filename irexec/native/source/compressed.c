/* Products of rows with compressed weights: integers of 4 or 8 bits with scales by group, or floats of 16 bits.
 *
 * Weights are packed in panels of two vectors of columns. A word of 32 bits has 8, 4 or 2 neighbours along the depth of
 * one column, the first one in the lowest bits; a group begins with a new word. Integers are signed. Their group has a
 * scale and may have a zero point for each column: a weight is (integer - zero point) * scale.
 *
 * One row is multiplied by the weights while they are unpacked, and the sum of each group is scaled: this takes about
 * as long as reading the words. For more rows a block of the depth is unpacked to floats, which all rows of a block use.
 */
#include "elementary.h"
#include "tiles.h"

/* Columns of a panel, weights of a column that are unpacked at once, and rows that do not pay for unpacking. */
enum { WIDTH = 2 * VECTOR, DEPTH = 256, FEW = 2 };

typedef struct {
    const float *x;
    i64 x_image, x_row;
    const int32_t *words; /* (panels, words of a column, WIDTH) */
    const float *scales;  /* (panels, groups, WIDTH) */
    const float *zeros;   /* likewise, or null */
    const float *bias;    /* for each column, or null */
    float *out;
    i64 out_image, out_row, out_column;
    const chain *after; /* or null */
    i64 depth, group, columns, bits;
    i64 rows, row_block, panel_block;
    double low, high;
} compressed_product;

/* The weights of one panel, from a group on. */
typedef struct {
    const int32_t *words;
    const float *scales, *zeros;
} group;

typedef int32_t vi_unaligned __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

/* The weight at position j of each word. The exponent of a float of 16 bits is that of one of 32 bits minus 112. */
INLINE vf weight_of(const int32_t *word, int j, int bits)
{
    const vi lanes = *(const vi_unaligned *)word;
    if (bits == 16) return (vf)(((j ? lanes : lanes << 16) >> 3) & (int32_t)0x8fffe000) * 0x1p112f;
    return __builtin_convertvector(lanes << (32 - bits * (j + 1)) >> (32 - bits), vf);
}

INLINE i64 words_of(i64 count, int bits) { return (count * bits + 31) / 32; }

INLINE void next_group(group *g, i64 words)
{
    g->words += words * WIDTH;
    g->scales += WIDTH;
    if (g->zeros) g->zeros += WIDTH;
}

/* Adds one row's products with a panel to its sums. Four sums for each column, so that additions do not wait. */
INLINE void multiply_row(const compressed_product *p, group g, const float *x, float *sums, int bits, int shifted)
{
    vf total[2] = {load(sums), load(sums + VECTOR)};
    const int each = 32 / bits;
    for (i64 k = 0; k < p->depth; k += p->group, x += p->group, next_group(&g, words_of(p->group, bits))) {
        vf zero[2] = {{0}}, sum[4][2] = {{{0}}};
        for (int v = 0; v < 2 && shifted; v++) zero[v] = load(g.zeros + v * VECTOR);
        const int32_t *word = g.words;
        i64 i = 0;
        for (; i + each <= p->group; i += each, word += WIDTH)
#pragma GCC unroll 8
            for (int j = 0; j < each; j++)
                for (int v = 0; v < 2; v++)
                    sum[j % 4][v] += (weight_of(word + v * VECTOR, j, bits) - zero[v]) * x[i + j];
        for (int j = 0; i + j < p->group; j++)
            for (int v = 0; v < 2; v++) sum[0][v] += (weight_of(word + v * VECTOR, j, bits) - zero[v]) * x[i + j];
        for (int v = 0; v < 2; v++)
            total[v] += (sum[0][v] + sum[1][v] + sum[2][v] + sum[3][v]) * load(g.scales + v * VECTOR);
    }
    for (int v = 0; v < 2; v++) store(sums + v * VECTOR, total[v]);
}

/* Unpacks `count` weights of each column of a group, from the position `first` on, which begins a word. */
INLINE void unpack(group g, i64 first, i64 count, float *to, int bits, int shifted)
{
    const int each = 32 / bits;
    const int32_t *word = g.words + first / each * WIDTH;
    for (int v = 0; v < 2; v++) {
        const vf scale = load(g.scales + v * VECTOR), zero = shifted ? load(g.zeros + v * VECTOR) : spread(0.0f);
        const int32_t *from = word + v * VECTOR;
        float *out = to + v * VECTOR;
        i64 i = 0;
        for (; i + each <= count; i += each, from += WIDTH)
#pragma GCC unroll 8
            for (int j = 0; j < each; j++, out += WIDTH) store(out, (weight_of(from, j, bits) - zero) * scale);
        for (int j = 0; i + j < count; j++, out += WIDTH) store(out, (weight_of(from, j, bits) - zero) * scale);
    }
}

/* One kind of weights: without zero points, and with them. */
#define KIND(BITS, SHIFTED)                                                                                           \
    static void multiply_row_##BITS##_##SHIFTED(const compressed_product *p, group g, const float *x, float *sums)            \
    {                                                                                                                 \
        multiply_row(p, g, x, sums, BITS, SHIFTED);                                                                   \
    }                                                                                                                 \
    static void unpack_##BITS##_##SHIFTED(group g, i64 first, i64 count, float *to)                                   \
    {                                                                                                                 \
        unpack(g, first, count, to, BITS, SHIFTED);                                                                   \
    }

KIND(4, 0)
KIND(4, 1)
KIND(8, 0)
KIND(8, 1)
KIND(16, 0)

typedef struct {
    void (*multiply_row)(const compressed_product *, group, const float *, float *);
    void (*unpack)(group, i64, i64, float *);
} kind;

static kind kind_of(const compressed_product *p)
{
    if (p->bits == 16) return (kind){multiply_row_16_0, unpack_16_0};
    if (p->bits == 8) return p->zeros ? (kind){multiply_row_8_1, unpack_8_1} : (kind){multiply_row_8_0, unpack_8_0};
    return p->zeros ? (kind){multiply_row_4_1, unpack_4_1} : (kind){multiply_row_4_0, unpack_4_0};
}

/* Adds the products of R rows with `depth` unpacked rows of weights to the sums. */
#define MICRO(R)                                                                                                      \
    static void micro_##R(const float *x, i64 x_row, const float *b, i64 depth, float *sums)                          \
    {                                                                                                                 \
        vf sum[R][2];                                                                                                 \
        for (int r = 0; r < R; r++)                                                                                   \
            for (int v = 0; v < 2; v++) sum[r][v] = load(sums + r * WIDTH + v * VECTOR);                              \
        for (i64 k = 0; k < depth; k++, b += WIDTH) {                                                                 \
            const vf weight[2] = {load(b), load(b + VECTOR)};                                                         \
            for (int r = 0; r < R; r++)                                                                               \
                for (int v = 0; v < 2; v++) sum[r][v] += weight[v] * x[r * x_row + k];                                \
        }                                                                                                             \
        for (int r = 0; r < R; r++)                                                                                   \
            for (int v = 0; v < 2; v++) store(sums + r * WIDTH + v * VECTOR, sum[r][v]);                              \
    }

MICRO(1)
MICRO(2)
MICRO(3)
MICRO(4)
#if VECTOR >= 8
MICRO(5)
MICRO(6)
#endif
#if VECTOR == 16
MICRO(7)
MICRO(8)
MICRO(9)
MICRO(10)
MICRO(11)
MICRO(12)
#endif

static void (*const micros[])(const float *, i64, const float *, i64, float *) = {
    micro_1, micro_2, micro_3, micro_4,
#if VECTOR >= 8
    micro_5, micro_6,
#endif
#if VECTOR == 16
    micro_7, micro_8, micro_9, micro_10, micro_11, micro_12,
#endif
};
enum { ROWS = sizeof micros / sizeof *micros };

/* The sums of several rows: as many weights as fit are unpacked, whole groups or a part of one. */
static void multiply_rows(const compressed_product *p, group g, const float *x, i64 rows, float *weights, float *sums)
{
    const kind k = kind_of(p);
    i64 done = 0, first = 0;
    while (done < p->depth) {
        i64 filled = 0;
        while (done + filled < p->depth) {
            const i64 count = smaller(p->group - first, DEPTH);
            if (filled + count > DEPTH) break;
            k.unpack(g, first, count, weights + filled * WIDTH);
            filled += count;
            first += count;
            if (first == p->group) {
                first = 0;
                next_group(&g, words_of(p->group, (int)p->bits));
            }
        }
        for (i64 r = 0; r < rows; r += ROWS)
            micros[smaller(ROWS, rows - r) - 1](x + r * p->x_row + done, p->x_row, weights, filled, sums + r * WIDTH);
        done += filled;
    }
}

/* One panel for a block of rows. */
static void multiply_panel(const compressed_product *p, place at, group g, i64 rows, char *scratch)
{
    float *weights = (float *)scratch, *sums = weights + DEPTH * WIDTH;
    float bias[WIDTH] = {0};
    const float *x = p->x + at.image * p->x_image + at.row * p->x_row;
    float *out = p->out + at.image * p->out_image + at.row * p->out_row + at.column * p->out_column;
    if (p->bias) memcpy(bias, p->bias + at.column, (size_t)at.columns * sizeof(float));
    for (i64 r = 0; r < rows; r++) memcpy(sums + r * WIDTH, bias, sizeof bias);
    if (rows > FEW) multiply_rows(p, g, x, rows, weights, sums);
    else
        for (i64 r = 0; r < rows; r++) kind_of(p).multiply_row(p, g, x + r * p->x_row, sums + r * WIDTH);
    const vf low = spread((float)p->low), high = spread((float)p->high);
    for (i64 c = 0; c < rows * WIDTH; c += VECTOR) store(sums + c, clamped(load(sums + c), low, high));
    const i64 first = at.row, most = TILE / WIDTH;
    for (i64 r = 0; r < rows; r += most) {
        at.row = first + r;
        at.rows = smaller(most, rows - r);
        end_tile(p->after, &at, WIDTH, sums + r * WIDTH, out + r * p->out_row, p->out_row, p->out_column);
    }
}

/* Block: image, rows, panels, the last one changing fastest. Scratch: unpacked weights, and the sums of the rows. */
EXPORT void irx_compressed_product(const void *parameters, i64 block, char *scratch)
{
    const compressed_product *p = parameters;
    const i64 panels = (p->columns + WIDTH - 1) / WIDTH;
    const i64 panel_blocks = (panels + p->panel_block - 1) / p->panel_block;
    const i64 row_blocks = (p->rows + p->row_block - 1) / p->row_block;
    const i64 first = block % panel_blocks * p->panel_block;
    block /= panel_blocks;
    const i64 row = block % row_blocks * p->row_block, rows = smaller(p->row_block, p->rows - row);
    const i64 groups = p->depth / p->group, words = groups * words_of(p->group, (int)p->bits);
    for (i64 i = first; i < smaller(first + p->panel_block, panels); i++) {
        const i64 parameter = i * groups * WIDTH;
        const group g = {p->words + i * words * WIDTH, p->scales + parameter, p->zeros ? p->zeros + parameter : 0};
        const place at = {block / row_blocks, row, i * WIDTH, 0, smaller(WIDTH, p->columns - i * WIDTH)};
        multiply_panel(p, at, g, rows, scratch);
    }
}

/* Attention: softmax(query * factor @ key.T + mask) @ value, by groups of rows whose scores stay in cache.
 *
 * A block packs the keys and values of its matrices. Then for each group of rows it computes the scores, masks them,
 * and takes their exponentials where they lie; the sums of these divide the products with the values at the end.
 */
#include "micro.h"
#include "softmax.h"

/* Matrices along two leading axes. */
typedef struct {
    const float *base;
    i64 outer, inner, row, column;
} matrices;

enum { NO_MASK, ADDED, BOOLEAN };

typedef struct {
    matrices query, key, value, mask, sink; /* a sink has one column; its base is null where there is none */
    matrices out;
    const float *scale; /* of the scores; null for `factor` */
    double factor;
    i64 outer, inner;
    i64 rows, columns, width, values;
    i64 row_block, group; /* rows of a block, and of a group */
    i64 key_panel, value_panel;
    i64 mask_kind, causal;
} attention;

INLINE const float *matrix_of(const matrices *m, i64 outer, i64 inner)
{
    return m->base + outer * m->outer + inner * m->inner;
}

/* Packs all columns of a matrix (depth, columns). */
static void pack_all(const float *from, i64 row, i64 column, i64 depth, i64 columns, i64 panel, float *out)
{
    for (i64 start = 0; start < columns; start += panel * VECTOR)
        pack_panel(from + start * column, row, column, depth, smaller(panel * VECTOR, columns - start),
                   out + start * depth);
}

/* Products of rows with packed columns, of which the first `depth` and `columns` are used. */
static void multiply(const float *const *table, i64 rows, const float *packed, i64 packed_depth, i64 depth,
                     i64 all_columns, i64 columns, i64 panel, float *out, i64 pitch)
{
    const sums s = {1, depth, -__builtin_inf(), __builtin_inf()};
    const float zeros[3 * VECTOR] = {0};
    for (i64 start = 0; start < columns; start += panel * VECTOR) {
        const i64 vectors = (smaller(panel * VECTOR, all_columns - start) + VECTOR - 1) / VECTOR;
        const i64 most = rows_of_tile[vectors - 1];
        for (i64 r = 0; r < rows;) {
            const i64 left = rows - r, together = left > most / 4 ? most : 1;
            micro *run = together == 1 ? one[vectors - 1] : several[vectors - 1];
            run(&s, table + r, 0, packed + start * packed_depth, zeros, out + r * pitch + start, pitch);
            r += together;
        }
    }
}

/* Masks the scores of a row, the first `columns` of them. */
static void mask_row(const attention *p, const float *mask, i64 row, i64 columns, float *scores)
{
    const i64 step = p->mask.column, first = row * p->mask.row;
    if (p->mask_kind == ADDED && step == 1) {
        const i64 most = whole(columns);
        for (i64 c = 0; c < most; c += VECTOR) store(scores + c, load(scores + c) + load(mask + first + c));
        for (i64 c = most; c < columns; c++) scores[c] += mask[first + c];
    } else if (p->mask_kind == ADDED) {
        for (i64 c = 0; c < columns; c++) scores[c] += mask[first + c * step];
    } else if (p->mask_kind == BOOLEAN) {
        const unsigned char *kept = (const unsigned char *)p->mask.base + (mask - p->mask.base);
        for (i64 c = 0; c < columns; c++) scores[c] = kept[first + c * step] ? scores[c] : -__builtin_inff();
    }
    if (p->causal)
        for (i64 c = row + 1; c < columns; c++) scores[c] = -__builtin_inff();
}

/* The exponentials of a row of scores, in place, and what their products are to be divided by. */
static float weigh_row(float *scores, i64 columns, const float *sink)
{
    float highest = row_maximum(scores, columns);
    if (sink && !(*sink < highest)) highest = *sink;
    const float sum = exponentials(scores, columns, highest, 0, scores);
    return sink ? sum + exponential(spread(*sink - highest))[0] : sum;
}

/* Whether no value is infinite or NaN: only then a weight of 0 leaves nothing of it. */
static int all_finite(const float *x, i64 size)
{
    vf sum = spread(0.0f);
    for (i64 k = 0; k < size; k += VECTOR) sum += load(x + k) * 0.0f;
    return sum_of(sum) == 0.0f;
}

/* The parts of a thread's scratch. */
typedef struct {
    float *keys, *values, *queries, *scores, *products;
    const float **table;
} room;

static room room_of(const attention *p, char *scratch)
{
    const i64 rows = p->group + 8;
    room made;
    made.table = (const float **)scratch;
    made.keys = (float *)(scratch + rows * 8);
    made.values = made.keys + padded(p->columns) * p->width;
    made.queries = made.values + padded(p->values) * p->columns;
    made.scores = made.queries + rows * p->width;
    made.products = made.scores + rows * padded(p->columns);
    return made;
}

/* Points to rows of a buffer; the last one is repeated, for tiles that are not full. */
static void point(const float **table, i64 rows, const float *from, i64 pitch)
{
    for (i64 r = 0; r < rows + 8; r++) table[r] = from + smaller(r, rows - 1) * pitch;
}

/* Some rows of one matrix, of which the first `columns` columns are kept. */
static void attend(const attention *p, const room *m, i64 outer, i64 inner, i64 row, i64 rows, i64 columns)
{
    const float *query = matrix_of(&p->query, outer, inner), *mask = matrix_of(&p->mask, outer, inner);
    const float factor = p->scale ? *p->scale : (float)p->factor;
    const i64 pitch = padded(p->columns), width = padded(p->values);
    for (i64 r = 0; r < rows; r++)
        for (i64 k = 0; k < p->width; k++)
            m->queries[r * p->width + k] = query[(row + r) * p->query.row + k * p->query.column] * factor;
    point(m->table, rows, m->queries, p->width);
    multiply(m->table, rows, m->keys, p->width, p->width, p->columns, columns, p->key_panel, m->scores, pitch);
    point(m->table, rows, m->scores, pitch);
    float sums_of_rows[64];
    for (i64 r = 0; r < rows; r++) {
        float *scores = m->scores + r * pitch;
        mask_row(p, mask, row + r, columns, scores);
        const float *sink = p->sink.base ? matrix_of(&p->sink, outer, inner) + (row + r) * p->sink.row : NULL;
        sums_of_rows[r] = weigh_row(scores, columns, sink);
    }
    multiply(m->table, rows, m->values, p->columns, columns, p->values, p->values, p->value_panel, m->products, width);
    float *out = (float *)matrix_of(&p->out, outer, inner) + row * p->out.row;
    for (i64 r = 0; r < rows; r++, out += p->out.row)
        for (i64 c = 0; c < p->values; c++) out[c * p->out.column] = m->products[r * width + c] / sums_of_rows[r];
}

/* Block: the matrix, and some of its rows, the latter changing fastest. */
EXPORT void irx_attention(const void *parameters, i64 block, char *scratch)
{
    const attention *p = parameters;
    const i64 parts = (p->rows + p->row_block - 1) / p->row_block;
    const i64 begin = block % parts * p->row_block, end = smaller(p->rows, begin + p->row_block);
    const i64 inner = block / parts % p->inner, outer = block / parts / p->inner;
    const room m = room_of(p, scratch);
    const matrices *k = &p->key, *v = &p->value;
    pack_all(matrix_of(k, outer, inner), k->column, k->row, p->width, p->columns, p->key_panel, m.keys);
    pack_all(matrix_of(v, outer, inner), v->row, v->column, p->columns, p->values, p->value_panel, m.values);
    const int skips = p->causal && all_finite(m.values, padded(p->values) * p->columns);
    for (i64 row = begin; row < end; row += p->group) {
        const i64 rows = smaller(p->group, end - row);
        attend(p, &m, outer, inner, row, rows, skips ? smaller(p->columns, row + rows) : p->columns);
    }
}

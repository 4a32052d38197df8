/* Attention: softmax(query * factor @ key.T + mask) @ value, by groups of rows and blocks of columns.
 *
 * The scores of a group of rows with a block of columns stay in cache. Each row has the largest score so far: a larger
 * one of a further block scales what was summed before (the softmax of Milakov and Gimelshein, 2018), and the sum of the
 * exponentials divides the products with the values at the end. The keys and values of a block of columns are packed,
 * except for few rows, which read them as they lie. Queries and keys that are levels are multiplied in integers.
 */
#include "integers.h"
#include "micro.h"
#include "softmax.h"

/* Matrices along two leading axes. */
typedef struct {
    const float *base;
    i64 outer, inner, row, column;
} matrices;

enum { NO_MASK, ADDED, BOOLEAN };

/* Rows that do not pay for packing. */
enum { FEW = 8 };

typedef struct {
    matrices query, key, value, mask, sink; /* a sink has one column; its base is null where there is none */
    matrices out;
    const float *scale; /* of the scores; null for `factor` */
    double factor;
    i64 outer, inner;
    i64 shared; /* neighbouring matrices of queries that have the same keys and values */
    i64 rows, columns, width, values;
    i64 row_block, group, column_block; /* rows of a block, and of a group */
    i64 key_panel, value_panel;
    i64 mask_kind, causal;
    i64 unit; /* of queries and keys that are bytes, which follow each other: elements of a word; else 0 */
    i64 query_zero, key_zero;
    double step; /* of a product of levels */
} attention;

INLINE const float *matrix_of(const matrices *m, i64 outer, i64 inner)
{
    return m->base + outer * m->outer + inner * m->inner;
}

/* The parts of a thread's scratch. The sums of a row are those of the blocks of columns so far. */
typedef struct {
    float *keys, *values, *queries, *scores, *products;
    float *sums, *highest, *totals; /* of the rows of a block */
    int32_t *starts, *shifts;       /* of levels: what the sums of columns begin with, and what is added for rows */
    const float **table;
} room;

static room room_of(const attention *p, char *scratch)
{
    const i64 rows = p->group + 8;
    room made;
    made.table = (const float **)scratch;
    made.keys = (float *)(scratch + rows * 8);
    made.values = made.keys + padded(p->column_block) * p->width;
    made.queries = made.values + padded(p->values) * p->column_block;
    made.scores = made.queries + rows * p->width;
    made.products = made.scores + rows * padded(p->column_block);
    made.highest = made.products + rows * padded(p->values);
    made.totals = made.highest + p->row_block;
    made.starts = (int32_t *)(made.totals + p->row_block);
    made.shifts = made.starts + padded(p->column_block);
    made.sums = (float *)(made.shifts + rows);
    return made;
}

/* Some rows and columns of one matrix; `first` is the first row of the block. */
typedef struct {
    i64 outer, inner, first, row, rows, column, columns;
    int is_few;
} part;

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
    const sums s = {1, depth, -__builtin_inf(), __builtin_inf(), NULL, 0};
    const float zeros[3 * VECTOR] = {0};
    for (i64 start = 0; start < columns; start += panel * VECTOR) {
        const i64 vectors = (smaller(panel * VECTOR, all_columns - start) + VECTOR - 1) / VECTOR;
        const i64 most = irx_rows_of_tile[vectors - 1];
        for (i64 r = 0; r < rows;) {
            const i64 left = rows - r, together = left > most / 4 ? most : 1;
            irx_micro *run = together == 1 ? irx_one[vectors - 1] : irx_several[vectors - 1];
            run(&s, table + r, 0, packed + start * packed_depth, zeros, out + r * pitch + start, pitch);
            r += together;
        }
    }
}

/* Points to rows of a buffer; the last one is repeated, for tiles that are not full. */
static void point(const float **table, i64 rows, const float *from, i64 pitch)
{
    for (i64 r = 0; r < rows + 8; r++) table[r] = from + smaller(r, rows - 1) * pitch;
}

/* Writes levels less an offset as words, the last one filled with zeros: bytes, or 16 bits. Returns their sum. */
static i64 write_words(const uint8_t *from, i64 count, i64 offset, char *to, i64 unit)
{
    int32_t sum = 0;
    memset(to + (count - 1) / unit * 4, 0, 4);
    if (unit == 4)
        for (i64 k = 0; k < count; k++) to[k] = (char)(from[k] - (uint8_t)offset);
    else
        for (i64 k = 0; k < count; k++) ((int16_t *)to)[k] = (int16_t)(from[k] - offset);
    for (i64 k = 0; k < count; k++) sum += from[k];
    return sum - count * offset;
}

INLINE const uint8_t *levels_of(const matrices *m, i64 outer, i64 inner)
{
    return (const uint8_t *)m->base + outer * m->outer + inner * m->inner;
}

/* Packs keys that are levels, a word of each column after the other. Bytes have a sign, so that 128 is taken off; what
 * sums begin with takes the zero of the queries off.
 */
static void pack_levels(const attention *p, const room *m, const part *at)
{
    const uint8_t *key = levels_of(&p->key, at->outer, at->inner / p->shared) + at->column * p->key.row;
    const i64 words = (p->width + p->unit - 1) / p->unit, width = p->key_panel * VECTOR, all = padded(at->columns);
    memset(m->keys, 0, (size_t)(all * words * 4));
    memset(m->starts, 0, (size_t)all * 4);
    for (i64 c = 0; c < at->columns; c++, key += p->key.row) {
        const i64 first = c / width * width, step = smaller(width, all - first);
        float *to = m->keys + first * words + c - first;
        const i64 sum = write_words(key, p->width, p->unit == 4 ? 128 : p->key_zero, (char *)m->queries, p->unit);
        if (p->unit == 4) m->starts[c] = (int32_t)(-p->query_zero * sum);
        for (i64 k = 0; k < words; k++) memcpy(to + k * step, m->queries + k, 4);
    }
}

/* Scores of rows of levels with packed columns. */
static void multiply_levels(const attention *p, const room *m, const part *at, i64 columns, float factor, i64 pitch)
{
    int32_t tile[8 * 3 * VECTOR] __attribute__((aligned(64)));
    const uint8_t *query = levels_of(&p->query, at->outer, at->inner) + at->row * p->query.row;
    const i64 words = (p->width + p->unit - 1) / p->unit, all = padded(at->columns);
    for (i64 r = 0; r < at->rows; r++, query += p->query.row) {
        const i64 offset = p->unit == 4 ? 0 : p->query_zero;
        const i64 sum = write_words(query, p->width, offset, (char *)(m->queries + r * words), p->unit);
        m->shifts[r] = p->unit == 4 ? (int32_t)((128 - p->key_zero) * (sum - p->query_zero * p->width)) : 0;
    }
    point(m->table, at->rows, m->queries, words);
    for (i64 start = 0, size; start < columns; start += size) {
        size = smaller(p->key_panel * VECTOR, all - start);
        const i64 vectors = size / VECTOR, most = irx_rows_of_tile[vectors - 1];
        for (i64 r = 0, together; r < at->rows; r += together) {
            together = at->rows - r > most / 4 ? most : 1;
            integer_micro *run = irx_integer_micro(p->unit, vectors, together > 1);
            run(1, words * p->unit, (const char *const *)m->table + r, 0, (char *)(m->keys + start * words),
                m->starts + start, tile);
            for (i64 i = 0; i < smaller(together, at->rows - r); i++)
                for (i64 c = 0; c < size; c += VECTOR) {
                    vi sum;
                    memcpy(&sum, tile + i * size + c, sizeof(sum));
                    store(m->scores + (r + i) * pitch + start + c,
                          __builtin_convertvector(sum + m->shifts[r + i], vf) * factor);
                }
        }
    }
}

/* The products of a row with rows of keys, four of them at once. */
static void multiply_keys(const float *query, i64 width, const float *key, i64 key_row, i64 count, float *scores)
{
    for (i64 c = 0; c < count; c += 4) {
        const float *from[4];
        vf sum[4] = {{0}};
        for (int i = 0; i < 4; i++) from[i] = key + smaller(c + i, count - 1) * key_row;
        for (i64 k = 0; k < width; k += VECTOR)
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) sum[i] += load(query + k) * load(from[i] + k);
        for (int i = 0; i < smaller(4, count - c); i++) scores[c + i] = sum_of(sum[i]);
    }
}

/* The sum of rows of values times their weights. */
static void add_values(const float *weights, i64 count, const float *value, i64 value_row, i64 values, float *out)
{
    i64 v = 0;
    for (; v + 4 * VECTOR <= values; v += 4 * VECTOR) {
        vf sum[4] = {{0}};
        for (i64 c = 0; c < count; c++)
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) sum[i] += load(value + c * value_row + v + i * VECTOR) * weights[c];
        for (int i = 0; i < 4; i++) store(out + v + i * VECTOR, sum[i]);
    }
    for (; v < values; v += VECTOR) {
        vf sum = {0};
        for (i64 c = 0; c < count; c++) sum += load(value + c * value_row + v) * weights[c];
        store(out + v, sum);
    }
}

/* Masks the scores of a row. */
static void mask_row(const attention *p, const part *at, const float *mask, i64 row, i64 columns, float *scores)
{
    const i64 step = p->mask.column, first = row * p->mask.row + at->column * step;
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
        for (i64 c = larger(0, row + 1 - at->column); c < columns; c++) scores[c] = -__builtin_inff();
}

/* Scores become exponentials, in place. Returns the factor of what was summed before. */
static float weigh_row(float *scores, i64 columns, float *highest, float *total)
{
    const float before = *highest, here = row_maximum(scores, columns), now = before >= here ? before : here;
    if (now == -__builtin_inff()) { /* no score is kept so far */
        for (i64 c = 0; c < columns; c++) {
            if (scores[c] != scores[c]) *total = scores[c];
            scores[c] = 0.0f;
        }
        return 1.0f;
    }
    const float factor = exponential(spread(before - now))[0];
    *total = *total * factor + exponentials(scores, columns, now, 0, scores);
    *highest = now;
    return factor;
}

/* Whether no value is infinite or NaN: only then a weight of 0 leaves nothing of it. */
static int all_finite(const float *x, i64 size)
{
    vf sum = spread(0.0f);
    for (i64 k = 0; k < size; k += VECTOR) sum += load(x + k) * 0.0f;
    return sum_of(sum) == 0.0f;
}

/* Scores of a group of rows, and of the columns of a block that it sees, and their products with the values. */
static void multiply_group(const attention *p, const room *m, const part *at, i64 columns, float *factors)
{
    const float *query = matrix_of(&p->query, at->outer, at->inner), *mask = matrix_of(&p->mask, at->outer, at->inner);
    const float factor = p->scale ? *p->scale : (float)p->factor;
    const float *key = matrix_of(&p->key, at->outer, at->inner / p->shared) + at->column * p->key.row;
    const float *value = matrix_of(&p->value, at->outer, at->inner / p->shared) + at->column * p->value.row;
    const i64 pitch = padded(p->column_block), width = padded(p->values), rows = at->rows;
    if (!p->unit) {
        for (i64 r = 0; r < rows; r++)
            for (i64 k = 0; k < p->width; k++)
                m->queries[r * p->width + k] = query[(at->row + r) * p->query.row + k * p->query.column] * factor;
        point(m->table, rows, m->queries, p->width);
    }
    if (p->unit)
        multiply_levels(p, m, at, columns, factor * (float)p->step, pitch);
    else if (at->is_few)
        for (i64 r = 0; r < rows; r++)
            multiply_keys(m->table[r], p->width, key, p->key.row, columns, m->scores + r * pitch);
    else
        multiply(m->table, rows, m->keys, p->width, p->width, at->columns, columns, p->key_panel, m->scores, pitch);
    point(m->table, rows, m->scores, pitch);
    for (i64 r = 0; r < rows; r++) {
        const i64 own = at->row - at->first + r;
        mask_row(p, at, mask, at->row + r, columns, m->scores + r * pitch);
        factors[r] = weigh_row(m->scores + r * pitch, columns, m->highest + own, m->totals + own);
    }
    if (at->is_few)
        for (i64 r = 0; r < rows; r++)
            add_values(m->table[r], columns, value, p->value.row, p->values, m->products + r * width);
    else
        multiply(m->table, rows, m->values, at->columns, columns, p->values, p->values, p->value_panel, m->products,
                 width);
}

/* Writes the rows of a group, divided by the sums of their weights. */
static void write_group(const attention *p, const part *at, const float *products, const float *totals)
{
    float *out = (float *)matrix_of(&p->out, at->outer, at->inner) + at->row * p->out.row;
    for (i64 r = 0; r < at->rows; r++, out += p->out.row, products += padded(p->values)) {
        i64 c = 0;
        if (p->out.column == 1)
            for (; c + VECTOR <= p->values; c += VECTOR) store(out + c, load(products + c) / totals[r]);
        for (; c < p->values; c++) out[c * p->out.column] = products[c] / totals[r];
    }
}

static void attend(const attention *p, const room *m, const part *at, i64 columns)
{
    float factors[64];
    const i64 width = padded(p->values), own = at->row - at->first;
    multiply_group(p, m, at, columns, factors);
    if (at->columns == p->columns) {
        write_group(p, at, m->products, m->totals + own);
        return;
    }
    for (i64 r = 0; r < at->rows; r++) {
        float *sum = m->sums + (own + r) * width;
        const float *products = m->products + r * width;
        const vf factor = spread(factors[r]);
        for (i64 c = 0; c < width; c += VECTOR)
            store(sum + c, at->column ? load(sum + c) * factor + load(products + c) : load(products + c));
    }
}

/* The sums of the rows of a block before any column: the sink is a score without a value. */
static void begin_rows(const attention *p, const room *m, const part *at, i64 rows)
{
    for (i64 r = 0; r < rows; r++) {
        m->highest[r] = -__builtin_inff(), m->totals[r] = 0.0f;
        if (!p->sink.base) continue;
        const float sink = matrix_of(&p->sink, at->outer, at->inner)[(at->first + r) * p->sink.row];
        if (sink == -__builtin_inff()) continue;
        m->highest[r] = sink, m->totals[r] = exponential(spread(sink - sink))[0];
    }
}

/* Whether rows are so few that they read keys and values as they lie, in whole vectors. */
static int is_few(const attention *p, i64 rows)
{
    const int follow = !p->unit && p->key.column == 1 && p->value.column == 1;
    return rows <= FEW && follow && p->width % VECTOR == 0 && p->values % VECTOR == 0;
}

/* Block: the matrix, and some of its rows, the latter changing fastest. */
EXPORT void irx_attention(const void *parameters, i64 block, char *scratch)
{
    const attention *p = parameters;
    const i64 parts = (p->rows + p->row_block - 1) / p->row_block;
    const i64 begin = block % parts * p->row_block, end = smaller(p->rows, begin + p->row_block);
    part at = {block / parts / p->inner, block / parts % p->inner, begin, 0, 0, 0, 0, is_few(p, end - begin)};
    const room m = room_of(p, scratch);
    const float *key = matrix_of(&p->key, at.outer, at.inner / p->shared);
    const float *value = matrix_of(&p->value, at.outer, at.inner / p->shared);
    begin_rows(p, &m, &at, end - begin);
    for (; at.column < p->columns; at.column += p->column_block) {
        at.columns = smaller(p->column_block, p->columns - at.column);
        if (!at.is_few) {
            const float *first = key + at.column * p->key.row;
            if (p->unit) pack_levels(p, &m, &at);
            else pack_all(first, p->key.column, p->key.row, p->width, at.columns, p->key_panel, m.keys);
            pack_all(value + at.column * p->value.row, p->value.row, p->value.column, at.columns, p->values,
                     p->value_panel, m.values);
        }
        const int skips = p->causal && !at.is_few && all_finite(m.values, padded(p->values) * at.columns);
        for (at.row = begin; at.row < end; at.row += p->group) {
            at.rows = smaller(p->group, end - at.row);
            const i64 seen = skips ? at.row + at.rows - at.column : at.columns;
            if (seen > 0) attend(p, &m, &at, smaller(seen, at.columns));
        }
    }
    if (p->columns <= p->column_block) return;
    at.row = begin, at.rows = end - begin;
    write_group(p, &at, m.sums, m.totals);
}

/* Rows that are appended to caches: of keys and values, each (outer, inner, rows, columns). */
typedef struct {
    matrices source[2], target[2];
    i64 inner, rows, columns[2];
} append;

/* Block: the matrix, keys and values changing fastest. */
EXPORT void irx_append(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const append *p = parameters;
    const i64 kind = block % 2, outer = block / 2 / p->inner, inner = block / 2 % p->inner;
    const float *from = matrix_of(&p->source[kind], outer, inner);
    float *to = (float *)matrix_of(&p->target[kind], outer, inner);
    for (i64 r = 0; r < p->rows; r++)
        for (i64 c = 0; c < p->columns[kind]; c++)
            to[r * p->target[kind].row + c * p->target[kind].column] = from[r * p->source[kind].row + c * p->source[kind].column];
}

/* Normalization by mean and variance, or by length: of rectangles of rows and columns, or of columns.
 *
 * The tensor is images of rows and columns. A rectangle is one row, or some rows that are normalized as one, or some
 * columns of all rows, whose runs are long. Otherwise a slab of columns is normalized at once, each column or few
 * neighbouring columns for themselves. The mean is corrected by that of the differences, so that it is right to more
 * digits than a float has: equal values are not divided by what rounding left of them.
 */
#include "levels.h"
#include "rows.h"

enum { CENTER, INSIDE_ROOT, OUTSIDE_ROOT, LENGTH_ADD, LENGTH_MAXIMUM };

typedef struct {
    operand data; /* columns follow each other */
    target out;
    const chain *after;        /* or null */
    const float *scale, *shift; /* or null */
    i64 affine_row, affine_column; /* strides of scale and shift */
    i64 images, rows, columns;
    i64 set_rows, set_columns; /* of what is normalized as one */
    i64 block;                 /* rows of a block of rectangles, columns of a slab */
    i64 mode;
    double eps;
    int32_t *unknown; /* for levels, at the end of a chain after rectangles: set to 1 by a NaN; else null */
} normalization;

/* The elements of a set become ((x - mean) - rest) * factor. */
typedef struct {
    float mean, rest, factor;
} moments;

typedef struct {
    double sum, squares;
} sums;

/* Adds the sum of differences from `mean`, and of their squares, of a run. */
static void add_run(const float *x, i64 size, float mean, int squares, sums *to)
{
    const vf m = spread(mean), zero = spread(0.0f);
    for (i64 first = 0; first < size; first += CHUNK, x += CHUNK) {
        const i64 count = smaller(CHUNK, size - first), most = whole(count);
        vf s0 = zero, s1 = zero, s2 = zero, s3 = zero, q0 = zero, q1 = zero, q2 = zero, q3 = zero;
        i64 k = 0;
        if (squares) {
            for (; k + 4 * VECTOR <= most; k += 4 * VECTOR) {
                const vf a = load(x + k) - m, b = load(x + k + VECTOR) - m;
                const vf c = load(x + k + 2 * VECTOR) - m, d = load(x + k + 3 * VECTOR) - m;
                s0 += a, s1 += b, s2 += c, s3 += d;
                q0 += a * a, q1 += b * b, q2 += c * c, q3 += d * d;
            }
            for (; k < most; k += VECTOR) {
                const vf a = load(x + k) - m;
                s0 += a, q0 += a * a;
            }
            if (most < count) {
                const vf a = load_part(x + most, count - most, mean) - m;
                s1 += a, q1 += a * a;
            }
            to->squares += sum_of((q0 + q1) + (q2 + q3));
        } else {
            for (; k + 4 * VECTOR <= most; k += 4 * VECTOR) {
                s0 += load(x + k), s1 += load(x + k + VECTOR);
                s2 += load(x + k + 2 * VECTOR), s3 += load(x + k + 3 * VECTOR);
            }
            for (; k < most; k += VECTOR) s0 += load(x + k);
            if (most < count) s1 += load_part(x + most, count - most, 0.0f);
        }
        to->sum += sum_of((s0 + s1) + (s2 + s3));
    }
}

INLINE int is_finite(double x) { return x - x == 0.0; }

/* The moments from the sums of differences from a mean, and of their squares. */
static moments moments_of(i64 mode, double eps, double size, float mean, sums s)
{
    moments made = {mean, 0.0f, 1.0f};
    const float e = (float)eps;
    if (mode == LENGTH_ADD || mode == LENGTH_MAXIMUM) {
        const float total = (float)s.squares;
        const float bounded = total > e || total != total ? total : e;
        made.factor = 1.0f / __builtin_sqrtf(mode == LENGTH_ADD ? total + e : bounded);
        return made;
    }
    const double rest = s.sum / size;
    if (is_finite(rest)) made.rest = (float)rest;
    if (mode == CENTER) return made;
    const double variance = s.squares / size - (is_finite(rest) ? rest * rest : 0.0);
    const float v = (float)(variance < 0.0 ? 0.0 : variance);
    made.factor = 1.0f / (mode == INSIDE_ROOT ? __builtin_sqrtf(v + e) : __builtin_sqrtf(v) + e);
    return made;
}

INLINE int centers(i64 mode) { return mode != LENGTH_ADD && mode != LENGTH_MAXIMUM; }

static moments moments_of_rectangle(const normalization *p, const float *x)
{
    const double size = (double)p->set_rows * (double)p->set_columns;
    float mean = 0.0f;
    if (centers(p->mode)) {
        sums s = {0.0, 0.0};
        for (i64 r = 0; r < p->set_rows; r++) add_run(x + r * p->data.row, p->set_columns, 0.0f, 0, &s);
        mean = (float)(s.sum / size);
    }
    sums s = {0.0, 0.0};
    for (i64 r = 0; r < p->set_rows; r++) add_run(x + r * p->data.row, p->set_columns, mean, 1, &s);
    return moments_of(p->mode, p->eps, size, mean, s);
}

/* One row of a tile, whose elements have the same moments. */
static void fill_row(const normalization *p, const float *x, i64 row, i64 column, i64 columns, moments m, float *tile)
{
    const i64 most = whole(columns);
    const float *scale = p->scale, *shift = p->shift;
    float factor = m.factor, begin = m.rest != 0.0f ? -m.rest * m.factor : 0.0f;
    if (scale && !p->affine_column) {
        const float own = scale[row * p->affine_row];
        factor *= own;
        begin = begin * own + shift[row * p->affine_row];
        scale = NULL;
    }
    const vf mean = spread(m.mean), f = spread(factor), b = spread(begin);
    for (i64 c = 0; c < most; c += VECTOR) store(tile + c, (load(x + c) - mean) * f + b);
    if (most < columns) store(tile + most, (load_part(x + most, columns - most, 0.0f) - mean) * f + b);
    if (!scale) return;
    scale += column, shift += column;
    for (i64 c = 0; c < most; c += VECTOR) store(tile + c, load(tile + c) * load(scale + c) + load(shift + c));
    for (i64 c = most; c < columns; c++) tile[c] = tile[c] * scale[c] + shift[c];
}

/* Normalizes some rows of some columns; row r has the moments number r * each. */
static void write_rectangle(const normalization *p, place at, const moments *m, i64 each)
{
    float tile[TILE] __attribute__((aligned(64)));
    const i64 first = at.row, left = at.column, rows = at.rows, columns = at.columns;
    const i64 width = smaller(columns, TILE), pitch = padded(width), height = larger(1, TILE / pitch);
    for (i64 r = 0; r < rows; r += height) {
        for (i64 c = 0; c < columns; c += width) {
            at = (place){at.image, first + r, left + c, smaller(height, rows - r), smaller(width, columns - c)};
            const float *x = p->data.base + at.image * p->data.image + at.row * p->data.row + at.column;
            for (i64 i = 0; i < at.rows; i++)
                fill_row(p, x + i * p->data.row, at.row + i, at.column, at.columns, m[(r + i) * each],
                         tile + i * pitch);
            if (p->unknown) {
                uint8_t *out = (uint8_t *)p->out.base + at.image * p->out.image + at.row * p->out.row + at.column;
                irx_chain_to_levels(p->after, &at, pitch, tile, out, p->out.row, p->unknown);
                continue;
            }
            if (p->after) irx_chain(p->after, &at, pitch, tile);
            write_tile(&at, pitch, tile, &p->out);
        }
    }
}

/* Block: some rows of an image, and the columns of a set, the latter changing fastest. */
EXPORT void irx_normalize_rectangles(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const normalization *p = parameters;
    const i64 across = p->columns / p->set_columns, down = (p->rows + p->block - 1) / p->block;
    const i64 image = block / across / down, column = block % across * p->set_columns;
    const i64 begin = block / across % down * p->block, end = smaller(p->rows, begin + p->block);
    const float *x = p->data.base + image * p->data.image + column;
    if (p->set_rows > 1) {
        for (i64 row = begin; row < end; row += p->set_rows) {
            const moments m = moments_of_rectangle(p, x + row * p->data.row);
            write_rectangle(p, (place){image, row, column, p->set_rows, p->set_columns}, &m, 0);
        }
        return;
    }
    moments m[16];
    for (i64 row = begin; row < end; row += 16) {
        const i64 rows = smaller(16, end - row);
        for (i64 r = 0; r < rows; r++) m[r] = moments_of_rectangle(p, x + (row + r) * p->data.row);
        write_rectangle(p, (place){image, row, column, rows, p->set_columns}, m, 1);
    }
}

/* For each of some columns the sum of differences from a mean, and of their squares. */
static void add_columns(const normalization *p, const float *x, i64 columns, const float *means, sums *to)
{
    for (i64 c = 0; c < columns; c += VECTOR) {
        const i64 count = smaller(VECTOR, columns - c);
        const vf m = load(means + c);
        for (i64 first = 0; first < p->rows; first += 64) {
            const i64 last = smaller(p->rows, first + 64);
            const float *row = x + first * p->data.row + c;
            vf s = spread(0.0f), q = s;
            for (i64 r = first; r < last; r++, row += p->data.row) {
                const vf d = (count == VECTOR ? load(row) : load_part(row, count, 0.0f)) - m;
                s += d, q += d * d;
            }
            for (i64 i = 0; i < count; i++) to[c + i].sum += s[i], to[c + i].squares += q[i];
        }
    }
}

/* Replaces the sums of single columns by those of the columns that are normalized as one. */
static void join_columns(i64 columns, i64 together, sums *s)
{
    for (i64 c = 0; c < columns && together > 1; c += together) {
        sums all = {0.0, 0.0};
        for (i64 i = 0; i < together; i++) all.sum += s[c + i].sum, all.squares += s[c + i].squares;
        for (i64 i = 0; i < together; i++) s[c + i] = all;
    }
}

/* Block: image and slab of columns, at most a tile wide. */
EXPORT void irx_normalize_columns(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const normalization *p = parameters;
    const i64 across = (p->columns + p->block - 1) / p->block, image = block / across;
    const i64 column = block % across * p->block, columns = smaller(p->block, p->columns - column);
    const float *x = p->data.base + image * p->data.image + column;
    const double size = (double)p->rows * (double)p->set_columns;
    sums s[TILE] = {{0.0, 0.0}};
    float mean[TILE] = {0.0f}, begin[TILE], factor[TILE];
    float tile[TILE] __attribute__((aligned(64)));
    if (centers(p->mode)) {
        add_columns(p, x, columns, mean, s);
        join_columns(columns, p->set_columns, s);
        for (i64 c = 0; c < columns; c++) mean[c] = (float)(s[c].sum / size), s[c] = (sums){0.0, 0.0};
    }
    add_columns(p, x, columns, mean, s);
    join_columns(columns, p->set_columns, s);
    for (i64 c = 0; c < columns; c++) {
        const moments m = moments_of(p->mode, p->eps, size, mean[c], s[c]);
        const float scale = p->scale ? p->scale[column + c] : 1.0f, shift = p->scale ? p->shift[column + c] : 0.0f;
        factor[c] = m.factor * scale;
        begin[c] = m.rest != 0.0f ? shift - m.rest * factor[c] : shift;
    }
    const i64 pitch = padded(columns), height = TILE / pitch, most = whole(columns);
    for (i64 r = 0; r < p->rows; r += height) {
        const place at = {image, r, column, smaller(height, p->rows - r), columns};
        for (i64 i = 0; i < at.rows; i++) {
            const float *row = x + (r + i) * p->data.row;
            float *to = tile + i * pitch;
            for (i64 c = 0; c < most; c += VECTOR)
                store(to + c, (load(row + c) - load(mean + c)) * load(factor + c) + load(begin + c));
            for (i64 c = most; c < columns; c++) to[c] = (row[c] - mean[c]) * factor[c] + begin[c];
        }
        if (p->after) irx_chain(p->after, &at, pitch, tile);
        write_tile(&at, pitch, tile, &p->out);
    }
}

/* Reductions of rows to one value each, or of columns for many of them at once.
 *
 * Sums of some hundred values are computed in f32, in several lanes, and these sums in f64.
 */
#include "elementary.h"
#include "rows.h"

enum { SUM, MEAN, MAXIMUM_VALUE, MINIMUM_VALUE, PRODUCT, LENGTH_1, LENGTH_2 };

typedef struct {
    operand data; /* columns follow each other */
    target out;   /* the column changes with the row that is reduced, or with the column */
    const chain *after; /* or null */
    i64 images, rows, columns;
    i64 block; /* rows of a block, or columns of a slab */
    i64 kind;
} reduction;

/* The greater one; NaN is left out, as NumPy's fmax has it. */
INLINE vf greater(vf a, vf b) { return choose((vi)(a > b) | (vi)(b != b), a, b); }
INLINE vf lesser(vf a, vf b) { return choose((vi)(a < b) | (vi)(b != b), a, b); }

INLINE vf combined(vf so_far, vf x, const i64 kind)
{
    switch (kind) {
    case SUM: return so_far + x;
    case LENGTH_1: return so_far + absolute(x);
    case LENGTH_2: return so_far + x * x;
    case PRODUCT: return so_far * x;
    case MAXIMUM_VALUE: return greater(so_far, x);
    default: return lesser(so_far, x);
    }
}

/* Combining this with a value changes nothing. */
INLINE float neutral(const i64 kind)
{
    return kind == PRODUCT ? 1.0f : kind == MAXIMUM_VALUE || kind == MINIMUM_VALUE ? __builtin_nanf("") : 0.0f;
}

INLINE int adds(const i64 kind) { return kind == SUM || kind == LENGTH_1 || kind == LENGTH_2; }

INLINE float lanes(vf x, const i64 kind)
{
    return adds(kind) ? sum_of(x) : kind == PRODUCT ? product_of(x) : kind == MAXIMUM_VALUE ? greatest_of(x) : least_of(x);
}

/* One row, for a kind that the compiler knows. */
INLINE double row_of(const float *x, i64 size, const i64 kind)
{
    const vf start = spread(neutral(kind));
    double all = neutral(kind);
    for (i64 first = 0; first < size; first += CHUNK, x += CHUNK) {
        const i64 count = smaller(CHUNK, size - first), most = whole(count);
        vf s0 = start, s1 = start, s2 = start, s3 = start;
        i64 k = 0;
        for (; k + 4 * VECTOR <= most; k += 4 * VECTOR) {
            s0 = combined(s0, load(x + k), kind), s1 = combined(s1, load(x + k + VECTOR), kind);
            s2 = combined(s2, load(x + k + 2 * VECTOR), kind), s3 = combined(s3, load(x + k + 3 * VECTOR), kind);
        }
        for (; k < most; k += VECTOR) s0 = combined(s0, load(x + k), kind);
        if (most < count) s1 = combined(s1, load_part(x + most, count - most, neutral(kind)), kind);
        const i64 between = adds(kind) ? SUM : kind;
        const float part = lanes(combined(combined(s0, s1, between), combined(s2, s3, between), between), kind);
        if (adds(kind)) all += part;
        else if (kind == PRODUCT) all = (float)all * part;
        else all = lanes(combined(spread((float)all), spread(part), kind), kind);
    }
    return all;
}

/* All rows of a vector of columns, of which `count` exist. */
INLINE void columns_of(const reduction *p, const float *x, i64 count, const i64 kind, double *all)
{
    for (i64 first = 0; first < p->rows; first += 128) {
        const i64 last = smaller(p->rows, first + 128);
        const float *row = x + first * p->data.row;
        vf s0 = spread(neutral(kind)), s1 = s0;
        i64 r = first;
        /* In the same order for an incomplete vector: columns of equal values have equal results. */
        if (count == VECTOR) {
            for (; r + 2 <= last; r += 2, row += 2 * p->data.row) {
                s0 = combined(s0, load(row), kind);
                s1 = combined(s1, load(row + p->data.row), kind);
            }
        } else {
            for (; r + 2 <= last; r += 2, row += 2 * p->data.row) {
                s0 = combined(s0, load_part(row, count, neutral(kind)), kind);
                s1 = combined(s1, load_part(row + p->data.row, count, neutral(kind)), kind);
            }
        }
        for (; r < last; r++, row += p->data.row) s0 = combined(s0, load_part(row, count, neutral(kind)), kind);
        s0 = combined(s0, s1, adds(kind) ? SUM : kind);
        for (i64 i = 0; i < VECTOR; i++) {
            if (adds(kind)) all[i] += s0[i];
            else if (kind == PRODUCT) all[i] = (float)all[i] * s0[i];
            else all[i] = lanes(combined(spread((float)all[i]), spread(s0[i]), kind), kind);
        }
    }
}

#define EACH_KIND(kind, ...)                                                                                          \
    switch (kind) {                                                                                                   \
    case SUM: case MEAN: { enum { KIND = SUM }; __VA_ARGS__; } break;                                                 \
    case MAXIMUM_VALUE: { enum { KIND = MAXIMUM_VALUE }; __VA_ARGS__; } break;                                        \
    case MINIMUM_VALUE: { enum { KIND = MINIMUM_VALUE }; __VA_ARGS__; } break;                                        \
    case PRODUCT: { enum { KIND = PRODUCT }; __VA_ARGS__; } break;                                                    \
    case LENGTH_1: { enum { KIND = LENGTH_1 }; __VA_ARGS__; } break;                                                  \
    default: { enum { KIND = LENGTH_2 }; __VA_ARGS__; } break;                                                        \
    }

INLINE float finished(double all, i64 size, i64 kind)
{
    return kind == MEAN ? (float)(all / (double)size) : kind == LENGTH_2 ? __builtin_sqrtf((float)all) : (float)all;
}

/* Block: some rows of an image, at most a tile of results. */
EXPORT void irx_reduce_rows(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const reduction *p = parameters;
    const i64 down = (p->rows + p->block - 1) / p->block, image = block / down;
    const i64 begin = block % down * p->block, rows = smaller(p->block, p->rows - begin);
    const float *x = p->data.base + image * p->data.image + begin * p->data.row;
    float tile[TILE] __attribute__((aligned(64)));
    EACH_KIND(p->kind, for (i64 r = 0; r < rows; r++) tile[r] = finished(
                           row_of(x + r * p->data.row, p->columns, KIND), p->columns, p->kind))
    const place at = {image, 0, begin, 1, rows};
    if (p->after) irx_chain(p->after, &at, padded(rows), tile);
    write_tile(&at, padded(rows), tile, &p->out);
}

/* Block: image and slab of columns, at most a tile wide. */
EXPORT void irx_reduce_columns(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const reduction *p = parameters;
    const i64 across = (p->columns + p->block - 1) / p->block, image = block / across;
    const i64 column = block % across * p->block, columns = smaller(p->block, p->columns - column);
    const float *x = p->data.base + image * p->data.image + column;
    float tile[TILE] __attribute__((aligned(64)));
    for (i64 c = 0; c < columns; c += VECTOR) {
        double all[VECTOR];
        EACH_KIND(p->kind, for (i64 i = 0; i < VECTOR; i++) all[i] = neutral(KIND);
                  columns_of(p, x + c, smaller(VECTOR, columns - c), KIND, all))
        for (i64 i = 0; i < VECTOR; i++) tile[c + i] = finished(all[i], p->rows, p->kind);
    }
    const place at = {image, 0, column, 1, columns};
    if (p->after) irx_chain(p->after, &at, padded(columns), tile);
    write_tile(&at, padded(columns), tile, &p->out);
}

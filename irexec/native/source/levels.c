/* The end of a tile of sums of levels: floats, or the levels of what follows. */
#include "levels.h"

/* The numbers of an ending, each in all lanes: stores of bytes could change the structure itself, so that a compiler reads
 * it again after each. */
typedef struct {
    vf low, high, first_low, first_high, first_factor, addend_zero, addend_factor;
    float zero;
} numbers;

INLINE numbers numbers_of(const ending *e)
{
    return (numbers){spread((float)e->low), spread((float)e->high), spread((float)e->first_low),
                     spread((float)e->first_high), spread((float)e->first_factor), spread((float)e->addend_zero),
                     spread((float)e->addend_factor), (float)e->zero};
}

/* What a tile is ended with: of integers or floats, sums that become levels of their own, limits, and whether it ends in levels. */
enum { FLOATS = 1, ROUNDED = 2, LIMITED = 4, LEVELS = 8 };

/* A vector of sums, or of floats, as floats within their limits; count levels are added. */
INLINE vf ended(const numbers *n, const int32_t *from, vf scale, vf bias, const uint8_t *addend, i64 count, const int kind)
{
    vi sum;
    memcpy(&sum, from, sizeof(sum));
    vf x = rounded((kind & FLOATS ? (vf)sum : __builtin_convertvector(sum, vf)) * scale) + bias;
    if (kind & ROUNDED) {
        x = clamped(x, n->first_low, n->first_high);
        /* A zero has either sign; in levels that is the same. */
        const vf whole = kind & LEVELS && VECTOR > 4 ? nearest(x) : rounded(x + 12582912.0f) - 12582912.0f;
        x = rounded(whole * n->first_factor);
    }
    if (addend) x += rounded(floats_of(addend, count, n->addend_zero) * n->addend_factor);
    return kind & LIMITED ? clamped(x, n->low, n->high) : x;
}

/* Rows of sums, or of floats, as floats in a tile or as levels. */
INLINE void end_rows(const ending *e, const place *at, i64 width, const int32_t *from, float *tile, uint8_t *out,
                     const uint8_t *more, const int kind)
{
    const numbers n = numbers_of(e);
    const i64 rows = at->rows, columns = at->columns, out_row = e->out_row, addend_row = e->addend_row;
    const float *scales = kind & FLOATS ? e->factors : e->scale, *biases = kind & FLOATS ? e->shifts : e->bias;
#define ROWS_OF(count)                                                                                                \
    for (i64 r = 0; r < rows; r++) {                                                                                  \
        const uint8_t *addend = more ? more + r * addend_row + c : 0;                                                 \
        const vf x = ended(&n, from + r * width + c, scale, bias, addend, count, kind);                               \
        if (kind & LEVELS) store_levels(out + r * out_row + c, x, n.zero, count);                                     \
        else store(tile + r * width + c, x);                                                                          \
    }
    for (i64 c = 0; c < columns; c += VECTOR) {
        const vf scale = load(scales + at->column + c), bias = load(biases + at->column + c);
        if (columns - c >= VECTOR) ROWS_OF(VECTOR)
        else ROWS_OF(columns - c)
    }
}

/* The same, with a choice of what is done. */
INLINE void end_tile_of(const ending *e, const place *at, i64 width, const int32_t *from, float *tile, uint8_t *out,
                        const uint8_t *more, const int kind)
{
    if (e->is_rounded) end_rows(e, at, width, from, tile, out, more, kind | ROUNDED);
    else if (more) end_rows(e, at, width, from, tile, out, more, kind);
    else end_rows(e, at, width, from, tile, out, 0, kind);
}

void irx_end_sums(const ending *e, const place *at, i64 width, const int32_t *sums)
{
    float tile[TILE] __attribute__((aligned(64)));
    const i64 out = at->image * e->out_image + at->row * e->out_row + at->column * e->out_column;
    const uint8_t *more = e->addend ? e->addend + at->image * e->addend_image + at->row * e->addend_row + at->column : 0;
    uint8_t *levels = e->unknown ? (uint8_t *)e->out + out : 0;
    if (e->after) {
        end_rows(e, at, width, sums, tile, 0, 0, 0);
        irx_chain(e->after, at, width, tile);
        if (levels && has_nan_in(tile, at, width)) *e->unknown = 1;
        const int32_t *from = (const int32_t *)tile;
        if (levels) end_tile_of(e, at, width, from, 0, levels, more, FLOATS | LIMITED | LEVELS);
        else if (e->factors) end_tile_of(e, at, width, from, tile, 0, more, FLOATS | LIMITED);
    } else if (levels) {
        end_tile_of(e, at, width, sums, 0, levels, more, LIMITED | LEVELS);
    } else {
        end_tile_of(e, at, width, sums, tile, 0, more, LIMITED);
    }
    if (!levels) end_tile(0, at, width, tile, (float *)e->out + out, e->out_row, e->out_column);
}

/* Softmax and its logarithm along rows, or along columns for many of them at once.
 *
 * The exponentials of a row, or of all rows of some columns, stay in the thread's scratch until their sum is known.
 */
#include "softmax.h"

typedef struct {
    operand data; /* columns follow each other */
    target out;
    const chain *after; /* or null */
    i64 images, rows, columns;
    i64 block; /* rows of a block, or columns of a slab */
    i64 logarithm;
} softmax;

INLINE vf finished(vf x, vf by, i64 is_logarithm) { return is_logarithm ? x - by : x * by; }

/* The factor of the elements of a row, or for the logarithm the number that is subtracted from them. */
INLINE vf divisor(vf sum, i64 is_logarithm) { return is_logarithm ? logarithm(sum) : 1.0f / sum; }

/* Block: some rows of an image. Scratch: a tile of rows, or one longer row. */
EXPORT void irx_softmax_rows(const void *parameters, i64 block, char *scratch)
{
    const softmax *p = parameters;
    const i64 size = p->columns, is_logarithm = p->logarithm;
    const i64 down = (p->rows + p->block - 1) / p->block, image = block / down;
    const i64 begin = block % down * p->block, end = smaller(p->rows, begin + p->block);
    const i64 width = smaller(p->columns, TILE), pitch = padded(width), height = larger(1, TILE / pitch);
    const float *x = p->data.base + image * p->data.image;
    float *buffer = (float *)scratch;
    for (i64 row = begin; row < end; row += height) {
        const i64 rows = smaller(height, end - row);
        for (i64 r = 0; r < rows; r++) {
            float *out = buffer + r * pitch;
            const float *from = x + (row + r) * p->data.row;
            const float sum = exponentials(from, size, row_maximum(from, size), is_logarithm, out);
            const vf by = divisor(spread(sum), is_logarithm);
            for (i64 c = 0; c < size; c += VECTOR) store(out + c, finished(load(out + c), by, is_logarithm));
        }
        for (i64 c = 0; c < p->columns; c += width) {
            const place at = {image, row, c, rows, smaller(width, p->columns - c)};
            if (p->after) irx_chain(p->after, &at, pitch, buffer + c);
            write_tile(&at, pitch, buffer + c, &p->out);
        }
    }
}

/* The maxima and then the exponentials and sums of a vector of columns. */
static vf column_exponentials(const softmax *p, const float *x, i64 count, i64 pitch, float *out)
{
    const i64 step = p->data.row;
    const int is_whole = count == VECTOR;
    vf highest = spread(-__builtin_inff()), all = spread(0.0f);
    for (i64 r = 0; r < p->rows; r++)
        highest = larger_of(is_whole ? load(x + r * step) : load_part(x + r * step, count, 0.0f), highest);
    for (i64 first = 0; first < p->rows; first += 128) {
        const i64 last = smaller(p->rows, first + 128);
        vf sum = spread(0.0f);
        for (i64 r = first; r < last; r++) {
            const vf d = (is_whole ? load(x + r * step) : load_part(x + r * step, count, 0.0f)) - highest;
            const vf e = exponential(d);
            store(out + r * pitch, p->logarithm ? d : e);
            sum += e;
        }
        all += sum;
    }
    return divisor(all, p->logarithm);
}

/* Block: image and slab of columns, at most a tile wide. Scratch: all rows of the slab. */
EXPORT void irx_softmax_columns(const void *parameters, i64 block, char *scratch)
{
    const softmax *p = parameters;
    const i64 across = (p->columns + p->block - 1) / p->block, image = block / across;
    const i64 column = block % across * p->block, columns = smaller(p->block, p->columns - column);
    const i64 pitch = padded(columns), height = TILE / pitch;
    const float *x = p->data.base + image * p->data.image + column;
    float *buffer = (float *)scratch;
    for (i64 c = 0; c < columns; c += VECTOR) {
        const vf by = column_exponentials(p, x + c, smaller(VECTOR, columns - c), pitch, buffer + c);
        for (i64 r = 0; r < p->rows; r++) {
            float *value = buffer + r * pitch + c;
            store(value, finished(load(value), by, p->logarithm));
        }
    }
    for (i64 r = 0; r < p->rows; r += height) {
        const place at = {image, r, column, smaller(height, p->rows - r), columns};
        if (p->after) irx_chain(p->after, &at, pitch, buffer + r * pitch);
        write_tile(&at, pitch, buffer + r * pitch, &p->out);
    }
}

/* Weighted sums of neighbouring positions along two axes: linear and cubic resizing, and adaptive means.
 *
 * The data is seen as (outer, rows, columns, inner), of which the inner axis is contiguous: channels, or nothing. For
 * a row of the result the rows of the data are summed first, whole, and then the columns of this sum.
 */
#include "irx.h"

typedef struct {
    const i64 *index;     /* for each position its taps in the data */
    const float *weights; /* for each of these its factor */
    i64 taps;
} table;

typedef struct {
    const float *data;
    i64 data_outer, data_row, data_column;
    float *out;
    i64 out_outer, out_row, out_column;
    i64 data_columns, inner, rows, columns, rows_each;
    table down, across;
} resize;

/* sum = the weighted sum of the taps of a row. */
static void sum_rows(const resize *p, const float *data, i64 row, float *sum)
{
    const i64 taps = p->down.taps, whole = p->data_column == p->inner;
    const i64 runs = whole ? 1 : p->data_columns, size = whole ? p->data_columns * p->inner : p->inner;
    const i64 *index = p->down.index + row * taps;
    const float *weights = p->down.weights + row * taps;
    for (i64 run = 0; run < runs; run++, sum += size) {
        const float *from = data + run * p->data_column;
        i64 k = 0;
        for (; k + VECTOR <= size; k += VECTOR) {
            vf all = load(from + index[0] * p->data_row + k) * weights[0];
            for (i64 tap = 1; tap < taps; tap++) all += load(from + index[tap] * p->data_row + k) * weights[tap];
            store(sum + k, all);
        }
        for (; k < size; k++) {
            float all = from[index[0] * p->data_row + k] * weights[0];
            for (i64 tap = 1; tap < taps; tap++) all += from[index[tap] * p->data_row + k] * weights[tap];
            sum[k] = all;
        }
    }
}

/* The columns of a row whose taps are summed. */
static void sum_columns(const resize *p, const float *sum, float *out)
{
    const i64 taps = p->across.taps, inner = p->inner;
    const i64 *index = p->across.index;
    const float *weights = p->across.weights;
    for (i64 x = 0; x < p->columns; x++, index += taps, weights += taps, out += p->out_column) {
        i64 c = 0;
        for (; c + VECTOR <= inner; c += VECTOR) {
            vf all = load(sum + index[0] * inner + c) * weights[0];
            for (i64 tap = 1; tap < taps; tap++) all += load(sum + index[tap] * inner + c) * weights[tap];
            store(out + c, all);
        }
        for (; c < inner; c++) {
            float all = sum[index[0] * inner + c] * weights[0];
            for (i64 tap = 1; tap < taps; tap++) all += sum[index[tap] * inner + c] * weights[tap];
            out[c] = all;
        }
    }
}

/* Block: one outer position and some rows, the rows changing fastest. Scratch: a row of the data. */
EXPORT void irx_resize(const void *parameters, i64 block, char *scratch)
{
    const resize *p = parameters;
    const i64 blocks = (p->rows + p->rows_each - 1) / p->rows_each;
    const i64 first = block % blocks * p->rows_each, outer = block / blocks;
    const float *data = p->data + outer * p->data_outer;
    float *sum = (float *)scratch;
    for (i64 row = first; row < smaller(first + p->rows_each, p->rows); row++) {
        sum_rows(p, data, row, sum);
        sum_columns(p, sum, p->out + outer * p->out_outer + row * p->out_row);
    }
}

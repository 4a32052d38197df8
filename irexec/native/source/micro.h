/* Sums of products in registers: several rows, to which a table points, by a panel of packed columns. */
#ifndef MICRO_H
#define MICRO_H

#include "elementary.h"

/* Floats of a row: `depth` of each tap; the range that the sums are clamped to; and what they begin with besides the
 * bias, rows `from_row` floats apart, or null.
 */
typedef struct {
    i64 taps, depth;
    double low, high;
    const float *from;
    i64 from_row;
} sums;

/* Rows, to which the table points, by one panel; the bias, what is at `from` and the sums over all taps are clamped and
 * written to rows `to_row` apart. `pitch` is the number of table entries of a tap.
 */
typedef void irx_micro(const sums *, const float *const *table, i64 pitch, const float *b, const float *bias, float *to,
                       i64 to_row);

/* One row by PANELS panels, `panel` floats apart: the sums of one panel are so few that each would wait for the last. */
enum { PANELS = 4 };
typedef void irx_micro_row(const sums *, const float *const *table, i64 pitch, const float *b, i64 panel,
                           const float *bias, float *to);

/* Tiles of one row and of several, by their vectors less 1, and the rows of the latter. */
extern irx_micro *const irx_one[3], *const irx_several[3];
#if VECTOR == 16
/* Tiles of several rows whose elements are two of bf16. */
extern irx_micro *const irx_of_pairs[3];
#endif
extern irx_micro_row *const irx_row_by_panels[3];
extern const i64 irx_rows_of_tile[3];

/* Packs a panel of a matrix (depth, columns) of any strides, padded with zeros to whole vectors. */
INLINE void pack_panel(const float *from, i64 row, i64 column, i64 depth, i64 columns, float *out)
{
    const i64 pitch = (columns + VECTOR - 1) / VECTOR * VECTOR;
    if (column == 1) {
        for (i64 k = 0; k < depth; k++, out += pitch) {
            memcpy(out, from + k * row, (size_t)columns * sizeof(float));
            for (i64 c = columns; c < pitch; c++) out[c] = 0.0f;
        }
        return;
    }
    if (columns < pitch) memset(out, 0, (size_t)(depth * pitch) * sizeof(float));
    for (i64 c = 0; c < columns; c++)
        for (i64 k = 0; k < depth; k++) out[k * pitch + c] = from[k * row + c * column];
}

#endif

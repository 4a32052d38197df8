/* Sums of products of small integers in registers: several rows, to which a table points, by a panel of packed columns. */
#ifndef INTEGERS_H
#define INTEGERS_H

#include "irx.h"

/* Rows of `depth` elements for each tap, by one panel of words; the sums begin with `start`, one for each column, and are
 * written row after row. `pitch` is the number of table entries of a tap. The rows are those of irx_rows_of_tile.
 */
typedef void integer_micro(i64 taps, i64 depth, const char *const *table, i64 pitch, const char *b,
                           const int32_t *start, int32_t *to);

/* The tile of one row or of several. A word has `unit` elements: 4 bytes by signed bytes, or 2 times 16 bits. */
integer_micro *irx_integer_micro(i64 unit, i64 vectors, int several);

#endif

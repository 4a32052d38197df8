/* Tiles of AMX: 16 rows of up to 64 bytes, of which one instruction multiplies two.
 *
 * The panels of products are its other operand as they lie: words of four neighbours along the depth.
 */
#ifndef AMX_H
#define AMX_H

#include "irx.h"

#if VECTOR == 16 && defined(__linux__)
#define TILES
#endif

enum { TILE_ROWS = 16 };

/* Sixteen rows of bytes, `step` bytes apart. */
typedef struct {
    const char *from;
    i64 step;
} tile_rows;

/* Whether the processor has tiles, and the system lets this process use them. */
int irx_has_tiles(void);

/* Sets the shape of the thread's tiles: a step of the depth has `bytes` of each row. Without any they are released. */
void irx_shape_tiles(i64 bytes);

/* Finds the rows of each tile and tap, at [tile * taps + tap], where a table has `count` rows; the last tile ends with the
 * last row. Rows of `depth` bytes that are not evenly spaced are copied to `room`.
 */
void irx_find_tiles(const char *const *table, i64 pitch, i64 taps, i64 depth, i64 count, tile_rows *found, char *room);

/* The first row of a tile. */
INLINE i64 first_row(i64 tile, i64 count) { return larger(0, smaller(tile * TILE_ROWS, count - TILE_ROWS)); }

/* One or two tiles of rows, of unsigned bytes, by a panel of one or two vectors of columns, of signed bytes. Each tap has
 * `depth` bytes, in steps of `bytes`, of which the last one ends with the depth: weights of what it has in common with the
 * one before are 0. Each step fetches `lines` of 64 bytes of what is multiplied later.
 */
typedef struct {
    i64 tiles, vectors, taps, depth, bytes, lines;
    const tile_rows *rows;
    const char *b, *later;
    const int32_t *start;
} tile_product;

/* Writes the sums of all rows, one after another. */
void irx_multiply_tiles(const tile_product *p, int32_t *to);

#endif

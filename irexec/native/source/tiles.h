/* The end of a tile of a product: the chain, and writing to the result. */
#ifndef TILES_H
#define TILES_H

#include "chain.h"

/* Runs the chain on a tile and writes it; out points to the tile's first element in the result. */
static void end_tile(const chain *after, const place *at, i64 pitch, float *tile, float *out, i64 row, i64 column)
{
    if (after) irx_chain(after, at, pitch, tile);
    if (column != 1) {
        for (i64 c = 0; c < at->columns; c++)
            for (i64 r = 0; r < at->rows; r++) out[r * row + c * column] = tile[r * pitch + c];
    } else if (at->columns == pitch) {
        for (i64 r = 0; r < at->rows; r++)
            for (i64 c = 0; c < pitch; c += VECTOR) store(out + r * row + c, load(tile + r * pitch + c));
    } else {
        for (i64 r = 0; r < at->rows; r++)
            for (i64 c = 0; c < at->columns; c++) out[r * row + c] = tile[r * pitch + c];
    }
}

#endif

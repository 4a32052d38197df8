/* Chains that stand alone: tile by tile over a tensor of images, rows and columns. */
#include "chain.h"

typedef struct {
    void *out;              /* floats, or bytes where the chain leaves levels */
    i64 out_image, out_row; /* columns follow each other */
    int32_t *unknown;       /* for levels: set to 1 by a NaN; else null */
    const chain *chain;     /* loads its operands, and leaves the result in the tile */
    i64 images, rows, columns;
    i64 height, tiles; /* rows of a tile, whose columns are all or TILE; tiles of a block */
} elementwise;

/* Block: some tiles. The rows of a tile follow each other without a gap. */
EXPORT void irx_elementwise(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const elementwise *p = parameters;
    float tile[TILE + VECTOR] __attribute__((aligned(64)));
    const i64 width = smaller(p->columns, TILE);
    const i64 across = (p->columns + width - 1) / width, down = (p->rows + p->height - 1) / p->height;
    const i64 last = smaller((block + 1) * p->tiles, across * down * p->images);
    for (i64 t = block * p->tiles; t < last; t++) {
        const i64 column = t % across * width, row = t / across % down * p->height, image = t / across / down;
        const place at = {image, row, column, smaller(p->height, p->rows - row), smaller(width, p->columns - column)};
        const i64 first = image * p->out_image + row * p->out_row + column;
        if (p->unknown) {
            irx_chain_to_levels(p->chain, &at, at.columns, tile, (uint8_t *)p->out + first, p->out_row, p->unknown);
            continue;
        }
        irx_chain(p->chain, &at, at.columns, tile);
        float *out = (float *)p->out + first;
        for (i64 r = 0; r < at.rows; r++, out += p->out_row)
            memcpy(out, tile + r * at.columns, (size_t)at.columns * sizeof(float));
    }
}

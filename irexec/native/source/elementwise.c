/* Chains that stand alone: tile by tile over a tensor of images, rows and columns. */
#include "levels.h"

typedef struct {
    void *out;              /* floats, or bytes where the chain leaves levels */
    i64 out_image, out_row; /* columns follow each other */
    int32_t *unknown;       /* for levels: set to 1 by a NaN; else null */
    const chain *chain;     /* loads its operands, and leaves the result in the tile */
    i64 images, rows, columns;
    i64 tiles; /* of a block */
} elementwise;

/* Block: some tiles; a tile is a part of a row, or several rows. */
EXPORT void irx_elementwise(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const elementwise *p = parameters;
    float tile[TILE] __attribute__((aligned(64)));
    const i64 width = smaller(p->columns, TILE), pitch = (width + VECTOR - 1) / VECTOR * VECTOR;
    const i64 height = larger(1, TILE / pitch);
    const i64 across = (p->columns + width - 1) / width, down = (p->rows + height - 1) / height;
    const i64 last = smaller((block + 1) * p->tiles, across * down * p->images);
    for (i64 t = block * p->tiles; t < last; t++) {
        const i64 column = t % across * width, row = t / across % down * height, image = t / across / down;
        const place at = {image, row, column, smaller(height, p->rows - row), smaller(width, p->columns - column)};
        irx_chain(p->chain, &at, pitch, tile);
        const i64 first = image * p->out_image + row * p->out_row + column;
        if (p->unknown) {
            write_levels(&at, pitch, tile, (uint8_t *)p->out + first, p->out_row, p->unknown);
            continue;
        }
        float *out = (float *)p->out + first;
        for (i64 r = 0; r < at.rows; r++, out += p->out_row)
            memcpy(out, tile + r * pitch, (size_t)at.columns * sizeof(float));
    }
}

/* Products of rows with packed weights: MatMul, and convolution of any rank, stride and dilation as one.
 *
 * A row is a pixel of the result. Its operand is not one run of memory but one for each tap of the kernel, to which a
 * table points (windows.h); a plain product has one tap. Weights are packed in panels, (taps * depth) rows of 1 to 3
 * vectors, so that the inner loop reads them in order, and a tile of several rows by one panel stays in registers over
 * the whole depth. Bias and addend are what the sums begin with; clamping and the chain follow while the tile is in
 * cache.
 */
#include "micro.h"
#include "tiles.h"
#include "windows.h"
#if VECTOR == 16
#include <immintrin.h>
#endif

typedef struct {
    windows window;
    const float *weights; /* for each group its panels */
    i64 weights_image;    /* 0 where all images have the same */
    const float *bias;    /* for each column, or null */
    const operand *addend; /* what is added to the sums, or null */
    float *out;
    i64 out_image, out_row, out_column;
    const chain *after; /* or null */
    i64 depth;          /* floats of a tap */
    i64 groups, columns; /* columns of one group */
    i64 panel;           /* vectors of every panel but the last, 1 to 3 */
    i64 rows, row_parts, panel_parts; /* rows of an image, and the parts that a block is one of */
    double low, high;
    i64 pairs; /* whether an element of data and weights is two of bf16 */
} product;

/* One panel for a block of rows. Tiles that the chain or a copy follows are collected, as many as a chain works on. */
static void multiply_panel(const product *p, place at, i64 vectors, const float *b, const float **table, i64 pitch,
                           i64 count)
{
    float tiles[TILE] __attribute__((aligned(64))), bias[3 * VECTOR] = {0};
    const i64 width = vectors * VECTOR, first = at.row, rows = irx_rows_of_tile[vectors - 1];
    const i64 most = TILE / (width * rows) * rows;
    const operand *addend = p->addend;
    sums s = {taps_of(&p->window), p->depth, p->low, p->high, NULL, addend ? addend->row : 0};
    float *out = p->out + at.image * p->out_image + first * p->out_row + at.column * p->out_column;
    if (p->bias) memcpy(bias, p->bias + at.column, (size_t)at.columns * sizeof(float));
    irx_micro *one = irx_one[vectors - 1], *several = irx_several[vectors - 1];
#if VECTOR == 16
    /* A tile may compute more rows than the block has: the table repeats the last one. */
    if (p->pairs) one = several = irx_of_pairs[vectors - 1];
#endif
    i64 r = 0;
    if (!p->after && p->out_column == 1 && at.columns == width && (!addend || addend->column == 1)) {
        for (; count - r >= rows; r += rows) {
            if (addend) s.from = addend->base + at.image * addend->image + (first + r) * addend->row + at.column;
            several(&s, table + r, pitch, b, bias, out + r * p->out_row, p->out_row);
        }
    }
    s.from_row = width;
    for (; r < count; r += at.rows) {
        at.row = first + r;
        at.rows = smaller(most, count - r);
        if (addend) irx_load(addend, &at, width, tiles);
        for (i64 i = 0, done; i < at.rows; i += done) {
            irx_micro *run = at.rows - i > rows / 4 ? several : one;
            done = run == several ? rows : 1;
            if (addend) s.from = tiles + i * width;
            run(&s, table + r + i, pitch, b, bias, tiles + i * width, width);
        }
        end_tile(p->after, &at, width, tiles, out + r * p->out_row, p->out_row, p->out_column);
    }
}

/* One row by PANELS whole panels. */
static void multiply_row(const product *p, place at, const float *b, const float **table, i64 pitch)
{
    float tile[PANELS * 3 * VECTOR] __attribute__((aligned(64))), start[PANELS * 3 * VECTOR] = {0};
    const sums s = {taps_of(&p->window), p->depth, p->low, p->high, NULL, 0};
    const i64 width = p->panel * VECTOR;
    at.rows = 1;
    at.columns = PANELS * width;
    if (p->addend) irx_load(p->addend, &at, at.columns, start);
    if (p->bias)
        for (i64 c = 0; c < at.columns; c++) start[c] += p->bias[at.column + c];
    irx_row_by_panels[p->panel - 1](&s, table, pitch, b, s.taps * s.depth * width, start, tile);
    float *out = p->out + at.image * p->out_image + at.row * p->out_row + at.column * p->out_column;
    end_tile(p->after, &at, at.columns, tile, out, p->out_row, p->out_column);
}

/* Block: image, group, rows, panels, the last one changing fastest. Scratch: the table of a block of rows. */
EXPORT void irx_product(const void *parameters, i64 block, char *scratch)
{
    const product *p = parameters;
    const i64 width = p->panel * VECTOR, panels = (p->columns + width - 1) / width, whole = p->columns / width;
    const i64 tile = irx_rows_of_tile[p->panel - 1], tiles = (p->rows + tile - 1) / tile;
    const i64 panel_part = block % p->panel_parts, row_part = block / p->panel_parts % p->row_parts;
    block /= p->panel_parts * p->row_parts;
    const i64 group = block % p->groups, image = block / p->groups;
    const i64 row = start_of(row_part, p->row_parts, tiles) * tile;
    const i64 count = smaller(start_of(row_part + 1, p->row_parts, tiles) * tile, p->rows) - row, pitch = count + 8;
    const i64 all = taps_of(&p->window) * p->depth, padded = (p->columns + VECTOR - 1) / VECTOR * VECTOR;
    const float *weights = p->weights + image * p->weights_image + group * padded * all;
    const float **table = (const float **)scratch;
    fill_table(&p->window, image, group * p->depth, row, count, pitch, table);
    const i64 last = start_of(panel_part + 1, p->panel_parts, panels);
    for (i64 i = start_of(panel_part, p->panel_parts, panels), together; i < last; i += together) {
        together = count % tile == 1 && !p->pairs && i + PANELS <= smaller(last, whole) ? PANELS : 1;
        const i64 rows = together == 1 ? count : count - 1;
        for (i64 start = i * width; rows && start < smaller(p->columns, (i + together) * width); start += width) {
            const i64 columns = smaller(width, p->columns - start);
            const place at = {image, row, group * p->columns + start, 0, columns};
            multiply_panel(p, at, (columns + VECTOR - 1) / VECTOR, weights + start * all, table, pitch, rows);
        }
        const place end = {image, row + rows, group * p->columns + i * width, 0, 0};
        if (together > 1) multiply_row(p, end, weights + i * width * all, table + rows, pitch);
    }
}

typedef struct {
    const float *matrix; /* (images, depth, columns), of any strides */
    i64 image, row, column;
    float *out; /* panels of each image */
    i64 depth, columns, panel, panels_each;
} packing;

/* Packs matrices that are not constants. Block: image and panel, the panel changing fastest. */
EXPORT void irx_pack(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const packing *p = parameters;
    const i64 image = block / p->panels_each, width = p->panel * VECTOR;
    const i64 start = block % p->panels_each * width, columns = smaller(width, p->columns - start);
    const i64 padded = (p->columns + VECTOR - 1) / VECTOR * VECTOR;
    const float *from = p->matrix + image * p->image + start * p->column;
    pack_panel(from, p->row, p->column, p->depth, columns, p->out + (image * padded + start) * p->depth);
}

/* Floats that become bf16, rounded to the nearest: `to` is (rows of all images, depth). */
typedef struct {
    const float *x;
    i64 x_image, x_row;
    uint16_t *to;
    i64 depth, rows, all, each;
} narrowing;

/* Block: `each` rows of all images. */
EXPORT void irx_narrow(const void *parameters, i64 block, char *scratch)
{
    (void)parameters, (void)block, (void)scratch;
#if VECTOR == 16
    const narrowing *p = parameters;
    for (i64 r = block * p->each; r < smaller(p->all, (block + 1) * p->each); r++)
        for (i64 k = 0; k < p->depth; k += VECTOR) {
            const __mmask16 part = (__mmask16)(0xffff >> larger(0, k + VECTOR - p->depth));
            const vf x = _mm512_maskz_loadu_ps(part, p->x + r / p->rows * p->x_image + r % p->rows * p->x_row + k);
            __m256i made;
            __asm__("vcvtneps2bf16 %1, %0" : "=v"(made) : "v"(x));
            _mm256_mask_storeu_epi16(p->to + r * p->depth + k, part, made);
        }
#endif
}

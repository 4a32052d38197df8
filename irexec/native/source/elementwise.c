/* Chains that stand alone, and conversions of layout that pad: tile by tile over a tensor of images, rows and columns. */
#include "chain.h"

typedef struct {
    float *out;
    i64 out_image, out_row; /* columns follow each other */
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
        float *out = p->out + image * p->out_image + row * p->out_row + column;
        for (i64 r = 0; r < at.rows; r++, out += p->out_row)
            memcpy(out, tile + r * pitch, (size_t)at.columns * sizeof(float));
    }
}

typedef struct {
    const float *data;
    i64 strides[5]; /* image, three spatial axes, channel */
    float *out;     /* images, padded spatial axes, channels */
    i64 sizes[3], padded[3], before[3];
    i64 images, channels;
} padded;

/* Block: one image and one position on the first two padded axes. */
EXPORT void irx_pad_channels_last(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const padded *p = parameters;
    const i64 y = block % p->padded[1], z = block / p->padded[1] % p->padded[0];
    const i64 image = block / p->padded[1] / p->padded[0], channels = p->channels;
    float *out = p->out + block * p->padded[2] * channels;
    const i64 zd = z - p->before[0], yd = y - p->before[1];
    if (zd < 0 || zd >= p->sizes[0] || yd < 0 || yd >= p->sizes[1]) {
        memset(out, 0, (size_t)(p->padded[2] * channels) * sizeof(float));
        return;
    }
    const float *row = p->data + image * p->strides[0] + zd * p->strides[1] + yd * p->strides[2];
    const i64 left = p->before[2] * channels, size = p->sizes[2];
    memset(out, 0, (size_t)left * sizeof(float));
    out += left;
    if (p->strides[4] == 1) {
        for (i64 x = 0; x < size; x++)
            memcpy(out + x * channels, row + x * p->strides[3], (size_t)channels * sizeof(float));
    } else {
        /* In squares, so that what is read and what is written both stay in cache. */
        for (i64 x0 = 0; x0 < size; x0 += 16)
            for (i64 c = 0; c < channels; c++)
                for (i64 x = x0; x < smaller(x0 + 16, size); x++)
                    out[x * channels + c] = row[x * p->strides[3] + c * p->strides[4]];
    }
    out += size * channels;
    memset(out, 0, (size_t)((p->padded[2] - size - p->before[2]) * channels) * sizeof(float));
}

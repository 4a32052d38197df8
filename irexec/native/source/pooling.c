/* Maxima and means of windows, channels last.
 *
 * A table points to the taps of each pixel (windows.h), where padding is an array of one value. So each output is read
 * once from each tap, in vectors of channels, and the chain follows while a tile is in cache.
 */
#include "chain.h"
#include "windows.h"

typedef struct {
    windows window; /* `zeros` has the value of padding */
    float *out;
    i64 out_image, out_strides[3], out_channel;
    const chain *after;
    const float *factors; /* of sums, for each pixel; null for maxima */
    i64 factor_step;      /* 0 where all pixels have the same */
    i64 channels, rows, row_block;
} pooling;

/* Floats of a row of a tile. */
enum { WIDE = 64 };

/* The greater of two; the other one where one is NaN. */
INLINE vf greater(vf a, vf b) { return choose((vi)((b > a) | (a != a)), b, a); }

/* One pixel, V vectors of channels from `channel` on. */
#define REDUCE(name, V, combine)                                                                                      \
    INLINE void name##_##V(const float *const *table, i64 pitch, i64 taps, i64 channel, vf factor, float *tile)       \
    {                                                                                                                 \
        vf all[V];                                                                                                    \
        for (int v = 0; v < V; v++) all[v] = load(table[0] + channel + v * VECTOR);                                   \
        for (i64 tap = 1; tap < taps; tap++) {                                                                        \
            const float *from = table[tap * pitch] + channel;                                                         \
            for (int v = 0; v < V; v++) all[v] = combine(all[v], load(from + v * VECTOR));                            \
        }                                                                                                             \
        for (int v = 0; v < V; v++) store(tile + v * VECTOR, all[v] * factor);                                        \
    }
#define SUM(a, b) ((a) + (b))
REDUCE(sum, 4, SUM)
REDUCE(sum, 1, SUM)
REDUCE(maximum, 4, greater)
REDUCE(maximum, 1, greater)

/* One channel of one pixel. */
INLINE float single(const pooling *p, const float *const *table, i64 pitch, i64 taps, i64 channel, float factor)
{
    float all = table[0][channel];
    for (i64 tap = 1; tap < taps; tap++) {
        const float x = table[tap * pitch][channel];
        all = p->factors ? all + x : x > all || all != all ? x : all;
    }
    return all * factor;
}

static void reduce_pixel(const pooling *p, const float *const *table, i64 pitch, i64 taps, const place *at, float factor,
                         float *tile)
{
    const vf all = spread(factor);
    i64 c = 0;
    for (; c + 4 * VECTOR <= at->columns; c += 4 * VECTOR)
        if (p->factors) sum_4(table, pitch, taps, at->column + c, all, tile + c);
        else maximum_4(table, pitch, taps, at->column + c, all, tile + c);
    for (; c + VECTOR <= at->columns; c += VECTOR)
        if (p->factors) sum_1(table, pitch, taps, at->column + c, all, tile + c);
        else maximum_1(table, pitch, taps, at->column + c, all, tile + c);
    for (; c < at->columns; c++) tile[c] = single(p, table, pitch, taps, at->column + c, factor);
}

static void write_tile(const pooling *p, const place *at, i64 pitch, const float *tile)
{
    const i64 *counts = p->window.counts;
    for (i64 r = 0; r < at->rows; r++, tile += pitch) {
        const i64 pixel = at->row + r, x = pixel % counts[2], y = pixel / counts[2] % counts[1];
        float *out = p->out + at->image * p->out_image + at->column * p->out_channel + x * p->out_strides[2] +
                     y * p->out_strides[1] + pixel / counts[2] / counts[1] * p->out_strides[0];
        if (p->out_channel == 1) memcpy(out, tile, (size_t)at->columns * sizeof(float));
        else
            for (i64 c = 0; c < at->columns; c++) out[c * p->out_channel] = tile[c];
    }
}

/* Block: image and pixels, the pixels changing fastest. Scratch: the table of a block of pixels. */
EXPORT void irx_pool(const void *parameters, i64 block, char *scratch)
{
    const pooling *p = parameters;
    const i64 blocks = (p->rows + p->row_block - 1) / p->row_block;
    const i64 first = block % blocks * p->row_block, image = block / blocks;
    const i64 count = smaller(p->row_block, p->rows - first), pitch = p->row_block + 8, taps = taps_of(&p->window);
    const float **table = (const float **)scratch;
    float tile[TILE] __attribute__((aligned(64))) = {0};
    const i64 width = (smaller(p->channels, WIDE) + VECTOR - 1) / VECTOR * VECTOR, height = TILE / width;
    fill_table(&p->window, image, 0, first, count, pitch, table);
    for (i64 r = 0; r < count; r += height)
        for (i64 channel = 0; channel < p->channels; channel += width) {
            const place at = {image, first + r, channel, smaller(height, count - r),
                              smaller(width, p->channels - channel)};
            for (i64 i = 0; i < at.rows; i++) {
                const float factor = p->factors ? p->factors[(at.row + i) * p->factor_step] : 1.0f;
                reduce_pixel(p, table + r + i, pitch, taps, &at, factor, tile + i * width);
            }
            if (p->after) irx_chain(p->after, &at, width, tile);
            write_tile(p, &at, width, tile);
        }
}

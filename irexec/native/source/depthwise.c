/* Depthwise convolution, channels last: each channel has a kernel of its own.
 *
 * Four pixels by two vectors of channels are summed at once over all taps, which a table points to (windows.h), so that
 * each vector of weights is read once for four pixels.
 */
#include "chain.h"
#include "elementary.h"
#include "windows.h"

typedef struct {
    windows window;
    const float *weights; /* taps, channels padded to whole vectors */
    const float *bias;    /* padded too; zeros where there is none */
    float *out;
    i64 out_image, out_row; /* channels follow each other */
    const chain *after;
    i64 channels, rows, row_block;
    double low, high;
} depthwise;

enum { PIXELS = 4, WIDE = 2 * VECTOR };

/* tile = the sums of PIXELS pixels by V vectors of channels from `channel` on. */
#define SUMS(V)                                                                                                       \
    static void sums_##V(const depthwise *p, const float *const *table, i64 pitch, i64 taps, i64 channel, i64 each,   \
                         float *tile)                                                                                 \
    {                                                                                                                 \
        vf sum[PIXELS][V];                                                                                            \
        for (int v = 0; v < V; v++)                                                                                   \
            for (int i = 0; i < PIXELS; i++) sum[i][v] = load(p->bias + channel + v * VECTOR);                        \
        const float *weights = p->weights + channel;                                                                  \
        for (i64 tap = 0; tap < taps; tap++, table += pitch, weights += each) {                                       \
            const float *pixel[PIXELS];                                                                               \
            for (int i = 0; i < PIXELS; i++) pixel[i] = table[i] + channel;                                           \
            for (int v = 0; v < V; v++) {                                                                             \
                const vf weight = load(weights + v * VECTOR);                                                         \
                for (int i = 0; i < PIXELS; i++) sum[i][v] += weight * load(pixel[i] + v * VECTOR);                   \
            }                                                                                                         \
        }                                                                                                             \
        for (int i = 0; i < PIXELS; i++)                                                                              \
            for (int v = 0; v < V; v++) store(tile + i * WIDE + v * VECTOR, sum[i][v]);                               \
    }

SUMS(1)
SUMS(2)

/* The same for the channels that fill no vector: whole vectors would read beyond the last pixel. */
static void sums_of_rest(const depthwise *p, const float *const *table, i64 pitch, i64 taps, i64 channel, i64 each,
                         float *tile)
{
    for (int i = 0; i < PIXELS; i++)
        for (i64 c = channel; c < p->channels; c++) {
            float sum = p->bias[c];
            for (i64 tap = 0; tap < taps; tap++) sum += p->weights[tap * each + c] * table[tap * pitch + i][c];
            tile[i * WIDE + c - channel] = sum;
        }
}

static void finish(const depthwise *p, const place *at, float *tile)
{
    if (p->low > -__builtin_inf() || p->high < __builtin_inf()) {
        const vf low = spread((float)p->low), high = spread((float)p->high);
        for (i64 k = 0; k < at->rows * WIDE; k += VECTOR) store(tile + k, clamped(load(tile + k), low, high));
    }
    if (p->after) irx_chain(p->after, at, WIDE, tile);
    float *out = p->out + at->image * p->out_image + at->row * p->out_row + at->column;
    for (i64 i = 0; i < at->rows; i++, out += p->out_row, tile += WIDE) {
        if (at->columns == WIDE)
            for (int v = 0; v < WIDE; v += VECTOR) store(out + v, load(tile + v));
        else
            for (i64 c = 0; c < at->columns; c++) out[c] = tile[c];
    }
}

/* Block: image and rows (pixels), the rows changing fastest. Scratch: the table of a block of rows. */
EXPORT void irx_depthwise(const void *parameters, i64 block, char *scratch)
{
    const depthwise *p = parameters;
    const i64 blocks = (p->rows + p->row_block - 1) / p->row_block;
    const i64 first = block % blocks * p->row_block, image = block / blocks;
    const i64 count = smaller(p->row_block, p->rows - first), pitch = p->row_block + PIXELS;
    const i64 taps = taps_of(&p->window), each = (p->channels + VECTOR - 1) / VECTOR * VECTOR;
    const float **table = (const float **)scratch;
    float tile[PIXELS * WIDE] __attribute__((aligned(64))) = {0};
    fill_table(&p->window, image, 0, first, count, pitch, table);
    for (i64 channel = 0; channel < p->channels; channel += WIDE) {
        const i64 columns = smaller(WIDE, p->channels - channel), whole = columns / VECTOR;
        for (i64 r = 0; r < count; r += PIXELS) {
            const place at = {image, first + r, channel, smaller(PIXELS, count - r), columns};
            if (whole == 2)
                sums_2(p, table + r, pitch, taps, channel, each, tile);
            else {
                if (whole) sums_1(p, table + r, pitch, taps, channel, each, tile);
                if (columns % VECTOR)
                    sums_of_rest(p, table + r, pitch, taps, channel + whole * VECTOR, each, tile + whole * VECTOR);
            }
            finish(p, &at, tile);
        }
    }
}

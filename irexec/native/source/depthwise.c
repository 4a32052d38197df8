/* Depthwise convolution, channels last: each channel has a kernel of its own.
 *
 * Four pixels of a row are summed at once, so that each vector of weights is read once for four pixels, and with the
 * usual kernels each vector of data once for all taps that it belongs to. Rows of the kernel that lie in the padding are
 * left out. At the edges, and for other kernels, a table points to the data of each tap, or to zeros.
 */
#include "elementary.h"
#include "rows.h"
#include "tiles.h"
#include "windows.h"

typedef struct {
    windows window;
    const float *weights; /* taps, channels padded to whole vectors */
    const float *bias;    /* padded too; zeros where there is none */
    float *out;
    i64 out_image, out_row; /* channels follow each other */
    const chain *after;
    i64 channels;
    i64 row_parts, channel_parts; /* a block is one of each */
    double low, high;
} depthwise;

/* Pixels that are summed at once, and channels of cache lines, which parts consist of. */
enum { PIXELS = 4, LINE = 16 };

/* What PIXELS pixels of a row are sums of. */
typedef struct {
    i64 count, taps;             /* rows of the kernel that are inside, and taps of each */
    const float *const *rows;    /* the rows of the data */
    const float *const *weights; /* the first taps of these rows */
    i64 each;                    /* floats from the weights of a tap to those of the next */
    i64 first, tap;              /* floats from a row to the first tap, and from a tap to the next */
    const float *const *table;   /* for each row `entries` pointers */
    i64 entries;
    const float *bias;
    float low, high;
} strip;

typedef void sums(const strip *, i64, i64, float *, i64);

INLINE void store_sums(const strip *s, const vf *sum, float *out, i64 pitch)
{
#pragma GCC unroll 4
    for (int i = 0; i < PIXELS; i++) store(out + i * pitch, clamped(sum[i], spread(s->low), spread(s->high)));
}

/* Whole vectors of the channels from .. to - 1. The entry of tap k and pixel i is k * PIXELS + i. */
static void sums_of_any(const strip *s, i64 from, i64 to, float *out, i64 pitch)
{
    for (i64 c = from; c < to; c += VECTOR) {
        vf sum[PIXELS];
#pragma GCC unroll 4
        for (int i = 0; i < PIXELS; i++) sum[i] = load(s->bias + c);
        for (i64 r = 0; r < s->count; r++) {
            const float *const *x = s->table + r * s->entries, *w = s->weights[r] + c;
            for (i64 k = 0; k < s->taps; k++, x += PIXELS, w += s->each)
#pragma GCC unroll 4
                for (int i = 0; i < PIXELS; i++) sum[i] += load(w) * load(x[i] + c);
        }
        store_sums(s, sum, out + c - from, pitch);
    }
}

/* The same for `count` rows of K taps each, S taps apart. Tap k of pixel i is i * S + k, in the row or in the table. */
INLINE void slide(const strip *s, i64 from, i64 to, float *out, i64 pitch, i64 count, const int K, const int S,
                  const int is_inside)
{
    const i64 tap = s->tap, each = s->each;
    for (i64 c = from; c < to; c += VECTOR) {
        vf sum[PIXELS];
#pragma GCC unroll 4
        for (int i = 0; i < PIXELS; i++) sum[i] = load(s->bias + c);
#pragma GCC unroll 5
        for (i64 r = 0; r < count; r++) {
            const float *const *entry = s->table + r * s->entries;
            const float *x = is_inside ? s->rows[r] + s->first + c : 0, *w = s->weights[r] + c;
#pragma GCC unroll 16
            for (int j = 0; j < (PIXELS - 1) * S + K; j++) {
                const vf value = load(is_inside ? x + j * tap : entry[j] + c);
#pragma GCC unroll 4
                for (int i = 0; i < PIXELS; i++)
                    if (j >= i * S && j < i * S + K) sum[i] += load(w + (j - i * S) * each) * value;
            }
        }
        store_sums(s, sum, out + c - from, pitch);
    }
}

/* Most rows of the result have all rows of the kernel. */
#define SLIDING(K, S)                                                                                                 \
    static void inside_##K##_##S(const strip *s, i64 from, i64 to, float *out, i64 pitch)                             \
    {                                                                                                                 \
        if (s->count == K) slide(s, from, to, out, pitch, K, K, S, 1);                                                \
        else slide(s, from, to, out, pitch, s->count, K, S, 1);                                                       \
    }                                                                                                                 \
    static void edge_##K##_##S(const strip *s, i64 from, i64 to, float *out, i64 pitch)                               \
    {                                                                                                                 \
        slide(s, from, to, out, pitch, s->count, K, S, 0);                                                            \
    }
SLIDING(3, 1)
SLIDING(3, 2)
SLIDING(5, 1)
SLIDING(5, 2)

/* The functions for strips inside of the data, null if there is none, and for others. */
typedef struct {
    sums *inside, *edge;
} method;

static method method_of(const depthwise *p)
{
    static const method found[2][2] = {{{inside_3_1, edge_3_1}, {inside_3_2, edge_3_2}},
                                       {{inside_5_1, edge_5_1}, {inside_5_2, edge_5_2}}};
    const windows *w = &p->window;
    const int slides = (w->kernel[2] == 3 || w->kernel[2] == 5) && w->strides[2] <= 2 && w->dilations[2] == 1;
    if (!slides || p->channels < VECTOR) return (method){0, sums_of_any};
    return found[w->kernel[2] == 5][w->strides[2] == 2];
}

/* Entries of the table for a row. */
INLINE i64 entries_of(const windows *w, int slides)
{
    return slides ? (PIXELS - 1) * w->strides[2] + w->kernel[2] : PIXELS * w->kernel[2];
}

/* Fills the table for the pixels of a row from x on. */
static void point(const windows *w, const strip *s, i64 x, int slides, const float **table)
{
    for (i64 j = 0; j < s->entries; j++) {
        const i64 tap = j / PIXELS, pixel = x + j % PIXELS;
        const i64 from = slides ? x * w->strides[2] + j : pixel * w->strides[2] + tap * w->dilations[2];
        const i64 at = from - w->pads[2];
        const int inside = at >= 0 && at < w->sizes[2];
        for (i64 r = 0; r < s->count; r++)
            table[r * s->entries + j] = inside ? s->rows[r] + at * w->data_strides[2] : w->zeros;
    }
}

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
enum { QUAD = 4 };

INLINE float limited(const strip *s, float sum) { return sum < s->low ? s->low : sum > s->high ? s->high : sum; }

/* One channel, of fewer than a quad. */
static void sums_of_one(const strip *s, i64 c, float *out, i64 pitch)
{
    for (int i = 0; i < PIXELS; i++) {
        float sum = s->bias[c];
        for (i64 r = 0; r < s->count; r++)
            for (i64 k = 0; k < s->taps; k++)
                sum += s->weights[r][k * s->each + c] * s->table[r * s->entries + k * PIXELS + i][c];
        out[i * pitch] = limited(s, sum);
    }
}

/* Fewer channels than a vector has: whole vectors would read beyond the last pixel. The last quad ends where they do. */
static void sums_of_few(const strip *s, i64 channels, float *out, i64 pitch)
{
    i64 c = 0;
    for (; channels < QUAD && c < channels; c++) sums_of_one(s, c, out + c, pitch);
    for (; c < channels; c += QUAD) {
        quad sum[PIXELS];
        c = smaller(c, channels - QUAD);
#pragma GCC unroll 4
        for (int i = 0; i < PIXELS; i++) sum[i] = *(const quad *)(s->bias + c);
        for (i64 r = 0; r < s->count; r++) {
            const float *const *x = s->table + r * s->entries, *w = s->weights[r] + c;
            for (i64 k = 0; k < s->taps; k++, x += PIXELS, w += s->each)
#pragma GCC unroll 4
                for (int i = 0; i < PIXELS; i++) sum[i] += *(const quad *)w * *(const quad *)(x[i] + c);
        }
        for (int i = 0; i < PIXELS; i++)
            for (int j = 0; j < QUAD; j++) out[i * pitch + c + j] = limited(s, sum[i][j]);
    }
}

/* A strip and its chain. An incomplete last vector ends where the channels do, and begins before those of the tile. */
static void compute(const depthwise *p, const strip *s, sums *run, const place *at)
{
    float room[VECTOR + TILE] __attribute__((aligned(64))), *tile = room + VECTOR;
    float *out = p->out + at->image * p->out_image + at->row * p->out_row + at->column;
    const i64 most = whole(at->columns), pitch = padded(at->columns), end = at->column + at->columns;
    if (!p->after && most == pitch && at->rows == PIXELS) {
        run(s, at->column, end, out, p->out_row);
        return;
    }
    run(s, at->column, at->column + most, tile, pitch);
    if (end < VECTOR) sums_of_few(s, end, tile, pitch);
    else if (most < pitch) run(s, end - VECTOR, end, tile + at->columns - VECTOR, pitch);
    end_tile(p->after, at, pitch, tile, out, p->out_row, 1);
}

/* One row of the result for some channels; at.row is its first pixel. */
static void compute_row(const depthwise *p, strip s, place at, const float **table)
{
    const windows *w = &p->window;
    const method m = method_of(p);
    const i64 row = at.row, count = w->counts[2], reach = (PIXELS - 1) * w->strides[2] + w->kernel[2];
    for (i64 x = 0; x < count; x += PIXELS) {
        const i64 from = x * w->strides[2] - w->pads[2];
        const int is_inside = m.inside && from >= 0 && from + reach <= w->sizes[2];
        at.row = row + x;
        at.rows = smaller(PIXELS, count - x);
        s.first = from * w->data_strides[2];
        if (!is_inside) point(w, &s, x, m.inside != 0, table);
        compute(p, &s, is_inside ? m.inside : m.edge, &at);
    }
}

/* Finds the rows of the data and of the weights that a row of the result is made of. Returns how many there are. */
static i64 find_rows(const depthwise *p, i64 image, i64 z, i64 y, i64 each, const float **rows, const float **weights)
{
    const windows *w = &p->window;
    i64 count = 0;
    for (i64 a = 0; a < w->kernel[0]; a++)
        for (i64 b = 0; b < w->kernel[1]; b++) {
            const i64 from_z = z * w->strides[0] - w->pads[0] + a * w->dilations[0];
            const i64 from_y = y * w->strides[1] - w->pads[1] + b * w->dilations[1];
            if (from_z < 0 || from_z >= w->sizes[0] || from_y < 0 || from_y >= w->sizes[1]) continue;
            rows[count] = w->data + image * w->data_image + from_z * w->data_strides[0] + from_y * w->data_strides[1];
            weights[count++] = p->weights + (a * w->kernel[1] + b) * w->kernel[2] * each;
        }
    return count;
}

/* Block: image, rows, channels, the last one changing fastest. Scratch: for each row of the kernel two pointers and its
 * part of the table. */
EXPORT void irx_depthwise(const void *parameters, i64 block, char *scratch)
{
    const depthwise *p = parameters;
    const windows *w = &p->window;
    const i64 lines = (p->channels + LINE - 1) / LINE, rows = w->counts[0] * w->counts[1];
    const i64 part = block % p->channel_parts, row_part = block / p->channel_parts % p->row_parts;
    const i64 image = block / p->channel_parts / p->row_parts;
    const i64 begin = start_of(part, p->channel_parts, lines) * LINE;
    const i64 end = smaller(p->channels, start_of(part + 1, p->channel_parts, lines) * LINE);
    const i64 each = padded(p->channels), kernel_rows = w->kernel[0] * w->kernel[1];
    const float **found = (const float **)scratch, **weights = found + kernel_rows, **table = weights + kernel_rows;
    const i64 entries = entries_of(w, method_of(p).inside != 0), last = start_of(row_part + 1, p->row_parts, rows);
    for (i64 row = start_of(row_part, p->row_parts, rows); row < last; row++) {
        const i64 count = find_rows(p, image, row / w->counts[1], row % w->counts[1], each, found, weights);
        const strip s = {count, w->kernel[2], found, weights, each, 0, w->data_strides[2], table, entries,
                         p->bias, (float)p->low, (float)p->high};
        for (i64 c = begin; c < end; c += TILE / PIXELS) {
            const place at = {image, row * w->counts[2], c, 0, smaller(TILE / PIXELS, end - c)};
            compute_row(p, s, at, table);
        }
    }
}

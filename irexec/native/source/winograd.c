/* Convolutions of 3 by 3 by Winograd's F(m x m, 3 x 3): the transforms before and after products of points.
 *
 * A tile of m * m results needs (m + 2) * (m + 2) values of data. Its transform gives as many points, each of which is
 * multiplied by weights of its own: one product (tiles, channels) by (channels, outputs) for each point, by product.c.
 * The matrices come from irexec/backend/convolution/winograd.py, which explains them.
 */
#include "elementary.h"
#include "tiles.h"

/* Tiles of all images in order, of which a part is computed at once; m of the results of a tile. */
typedef struct {
    i64 size, down, across, first, count, blocks;
    const float *matrix;
} tiling;

typedef struct {
    i64 image, y, x; /* of the first result */
} corner;

INLINE corner corner_of(const tiling *t, i64 tile)
{
    const i64 number = t->first + tile, row = number / t->across;
    return (corner){row / t->down, row % t->down * t->size, number % t->across * t->size};
}

/* Up to a vector of values; zeros behind them. */
INLINE vf load_some(const float *from, i64 count)
{
    if (count >= VECTOR) return load(from);
    float some[VECTOR] = {0};
    memcpy(some, from, (size_t)count * sizeof(float));
    return load(some);
}

INLINE void store_some(float *to, vf x, i64 count)
{
    if (count >= VECTOR) {
        store(to, x);
        return;
    }
    memcpy(to, &x, (size_t)count * sizeof(float));
}

/* R * R values from N * N by a matrix (R, N) on both axes. */
#define ALL _Pragma("GCC unroll 8")
#define TRANSFORM(R, N)                                                                                               \
    INLINE void transform_##R##_##N(const float *matrix, const vf *from, vf *to)                                      \
    {                                                                                                                 \
        vf half[R * N];                                                                                               \
        for (int i = 0; i < R; i++) {                                                                                 \
            vf sum[N];                                                                                                \
            ALL for (int x = 0; x < N; x++) sum[x] = from[x] * matrix[i * N];                                         \
            ALL for (int k = 1; k < N; k++)                                                                           \
                ALL for (int x = 0; x < N; x++) sum[x] += from[k * N + x] * matrix[i * N + k];                        \
            ALL for (int x = 0; x < N; x++) half[i * N + x] = sum[x];                                                 \
        }                                                                                                             \
        for (int i = 0; i < R; i++) {                                                                                 \
            ALL for (int j = 0; j < R; j++) {                                                                         \
                vf sum = half[i * N] * matrix[j * N];                                                                 \
                ALL for (int k = 1; k < N; k++) sum += half[i * N + k] * matrix[j * N + k];                           \
                to[i * R + j] = sum;                                                                                  \
            }                                                                                                         \
        }                                                                                                             \
    }
TRANSFORM(4, 4)
TRANSFORM(6, 6)
TRANSFORM(8, 8)
TRANSFORM(2, 4)
TRANSFORM(4, 6)
TRANSFORM(6, 8)

typedef struct {
    tiling tiles;
    const float *data; /* channels last */
    i64 data_image, data_row, data_pixel;
    i64 height, width, top, left; /* of the data, and its padding */
    i64 channels;
    float *points; /* (points, tiles of the part, channels) */
} spreading;

/* The points of a tile. */
#define SPREAD(N)                                                                                                     \
    static void spread_##N(const spreading *p, i64 tile)                                                              \
    {                                                                                                                 \
        const corner at = corner_of(&p->tiles, tile);                                                                 \
        const i64 top = at.y - p->top, left = at.x - p->left, each = p->tiles.count * p->channels;                    \
        const float *base = p->data + at.image * p->data_image + top * p->data_row + left * p->data_pixel;            \
        float *to = p->points + tile * p->channels;                                                                   \
        for (i64 c = 0; c < p->channels; c += VECTOR) {                                                               \
            vf values[N * N], made[N * N];                                                                            \
            const i64 some = p->channels - c;                                                                         \
            for (i64 y = 0; y < N; y++)                                                                               \
                for (i64 x = 0; x < N; x++) {                                                                         \
                    const int inside = top + y >= 0 && top + y < p->height && left + x >= 0 && left + x < p->width;   \
                    values[y * N + x] =                                                                               \
                        inside ? load_some(base + y * p->data_row + x * p->data_pixel + c, some) : spread(0.0f);      \
                }                                                                                                     \
            transform_##N##_##N(p->tiles.matrix, values, made);                                                       \
            for (i64 i = 0; i < N * N; i++) store_some(to + i * each + c, made[i], some);                             \
        }                                                                                                             \
    }
SPREAD(4)
SPREAD(6)
SPREAD(8)

/* Block: a share of the tiles. */
EXPORT void irx_winograd_spread(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const spreading *p = parameters;
    const i64 end = start_of(block + 1, p->tiles.blocks, p->tiles.count);
    for (i64 tile = start_of(block, p->tiles.blocks, p->tiles.count); tile < end; tile++)
        if (p->tiles.size == 2) spread_4(p, tile);
        else if (p->tiles.size == 4) spread_6(p, tile);
        else spread_8(p, tile);
}

typedef struct {
    tiling tiles;
    const float *products; /* (points, tiles of the part, outputs) */
    i64 outputs, height, width; /* of the result */
    const float *bias; /* for each output, or null */
    float *out;
    i64 out_image, out_row, out_column;
    const chain *after; /* or null */
    double low, high;
} gathering;

/* Outputs of a tile at once: a row of its pixels is what a chain works on. */
enum { OUTPUTS = 64 };

/* The results of a tile from its products. */
#define GATHER(M, N)                                                                                                  \
    static void gather_##M(const gathering *p, i64 tile)                                                              \
    {                                                                                                                 \
        const corner at = corner_of(&p->tiles, tile);                                                                 \
        const i64 each = p->tiles.count * p->outputs;                                                                 \
        const vf low = spread((float)p->low), high = spread((float)p->high);                                          \
        for (i64 first = 0; first < p->outputs; first += OUTPUTS) {                                                   \
            float rows[M * M * OUTPUTS] __attribute__((aligned(64)));                                                 \
            const i64 columns = smaller(OUTPUTS, p->outputs - first);                                                 \
            const i64 pitch = (columns + VECTOR - 1) / VECTOR * VECTOR;                                               \
            const float *from = p->products + tile * p->outputs + first;                                              \
            for (i64 c = 0; c < columns; c += VECTOR) {                                                               \
                vf values[N * N], made[M * M];                                                                        \
                const i64 some = columns - c;                                                                         \
                const vf bias = p->bias ? load_some(p->bias + first + c, some) : spread(0.0f);                        \
                for (i64 i = 0; i < N * N; i++) values[i] = load_some(from + i * each + c, some);                     \
                transform_##M##_##N(p->tiles.matrix, values, made);                                                   \
                for (i64 i = 0; i < M * M; i++) store(rows + i * pitch + c, clamped(made[i] + bias, low, high));      \
            }                                                                                                         \
            for (i64 y = 0; y < smaller(M, p->height - at.y); y++) {                                                  \
                const i64 pixel = (at.y + y) * p->width + at.x;                                                       \
                const place row = {at.image, pixel, first, smaller(M, p->width - at.x), columns};                     \
                float *out = p->out + at.image * p->out_image + pixel * p->out_row + first * p->out_column;           \
                end_tile(p->after, &row, pitch, rows + y * M * pitch, out, p->out_row, p->out_column);                \
            }                                                                                                         \
        }                                                                                                             \
    }
GATHER(2, 4)
GATHER(4, 6)
GATHER(6, 8)

/* Block: a share of the tiles. */
EXPORT void irx_winograd_gather(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const gathering *p = parameters;
    const i64 end = start_of(block + 1, p->tiles.blocks, p->tiles.count);
    for (i64 tile = start_of(block, p->tiles.blocks, p->tiles.count); tile < end; tile++)
        if (p->tiles.size == 2) gather_2(p, tile);
        else if (p->tiles.size == 4) gather_4(p, tile);
        else gather_6(p, tile);
}

/* Convolutions of levels of 3 by 3 by Winograd's F(2 x 2, 3 x 3), in integers of 16 bits without rounding.
 *
 * The weights of the 16 points are four times those of the algorithm, whole numbers of at most 1,152, and the points of
 * the data are sums of at most four levels. Four times a result is what comes out. Sums on the way are taken modulo
 * 2**32, in which four times a result of at most 1,827 channels fits. winograd.c is the same for floats.
 */
#include "integers.h"
#include "levels.h"
#include "micro.h"
#include "windows.h"

typedef struct {
    windows window; /* of 16 bits; x and y are the last two of its axes */
    const char *weights;  /* for each point its panels */
    const int32_t *start; /* for each column, padded to whole vectors */
    ending end;
    i64 channels, columns, panel;
    i64 down, across, tiles, tile_parts, panel_parts; /* tiles of all images, and the parts that a block is one of */
} integer_winograd;

typedef int16_t words __attribute__((vector_size(VECTOR * 4)));
typedef uint32_t vu __attribute__((vector_size(VECTOR * 4)));

enum { POINTS = 16, SIDE = 4, TOGETHER = 24 };
#define ALL _Pragma("GCC unroll 4")

/* The points of a tile of 4 by 4 pixels, `pitch` elements apart. */
static void spread_tile(const integer_winograd *p, i64 tile, int16_t *to, i64 pitch)
{
    const windows *w = &p->window;
    const i64 row = tile / p->across, top = row % p->down * 2 - w->pads[1], left = tile % p->across * 2 - w->pads[2];
    const int16_t *base = (const int16_t *)w->data + row / p->down * w->data_image, *pixels[POINTS];
    for (i64 i = 0; i < POINTS; i++) {
        const i64 y = top + i / SIDE, x = left + i % SIDE;
        const int inside = y >= 0 && y < w->sizes[1] && x >= 0 && x < w->sizes[2];
        pixels[i] = inside ? base + y * w->data_strides[1] + x * w->data_strides[2] : (const int16_t *)w->zeros;
    }
    for (i64 c = 0; c < p->channels; c += 2 * VECTOR) {
        words half[POINTS];
        ALL for (int x = 0; x < SIDE; x++) {
            words of[SIDE];
            ALL for (int y = 0; y < SIDE; y++) memcpy(&of[y], pixels[y * SIDE + x] + c, sizeof(words));
            half[x] = of[0] - of[2];
            half[SIDE + x] = of[1] + of[2];
            half[2 * SIDE + x] = of[2] - of[1];
            half[3 * SIDE + x] = of[1] - of[3];
        }
        ALL for (int y = 0; y < SIDE; y++) {
            const words *of = half + y * SIDE;
            const words made[SIDE] = {of[0] - of[2], of[1] + of[2], of[2] - of[1], of[1] - of[3]};
            ALL for (int x = 0; x < SIDE; x++) memcpy(to + (y * SIDE + x) * pitch + c, &made[x], sizeof(words));
        }
    }
}

/* The 2 by 2 sums of a tile and a vector of columns, from those of its points. */
INLINE void gather_tile(const int32_t *from, i64 pitch, vi start, int32_t *const to[2], i64 width)
{
    vu half[2 * SIDE];
    ALL for (int x = 0; x < SIDE; x++) {
        vu of[SIDE];
        ALL for (int y = 0; y < SIDE; y++) memcpy(&of[y], from + (y * SIDE + x) * pitch, sizeof(vu));
        half[x] = of[0] + of[1] + of[2];
        half[SIDE + x] = of[1] - of[2] - of[3];
    }
    ALL for (int y = 0; y < 2; y++) {
        const vu *of = half + y * SIDE;
        const vi left = (vi)(of[0] + of[1] + of[2]), right = (vi)(of[1] - of[2] - of[3]);
        const vi sums[2] = {(left >> 2) + start, (right >> 2) + start};
        memcpy(to[y], &sums[0], sizeof(vi));
        memcpy(to[y] + width, &sums[1], sizeof(vi));
    }
}

/* Ends the sums of tiles that follow each other: for each of two rows of pixels those of all tiles. */
static void end_tiles(const integer_winograd *p, place at, i64 tile, i64 count, i64 width, int32_t *const sums[2])
{
    const windows *w = &p->window;
    const i64 most = TILE / width;
    for (i64 i = 0, run; i < count; i += run) {
        const i64 row = (tile + i) / p->across, x = (tile + i) % p->across * 2;
        run = smaller(count - i, p->across - x / 2);
        const i64 pixels = smaller(2 * run, w->counts[2] - x);
        at.image = row / p->down;
        for (i64 y = 0; y < smaller(2, w->counts[1] - row % p->down * 2); y++)
            for (i64 first = 0; first < pixels; first += most) {
                at.row = (row % p->down * 2 + y) * w->counts[2] + x + first;
                at.rows = smaller(most, pixels - first);
                irx_end_sums(&p->end, &at, width, sums[y] + (2 * i + first) * width);
            }
    }
}

/* Block: tiles, panels, the last one changing fastest. Scratch: the points of the tiles of a block, and pointers to them. */
EXPORT void irx_integer_winograd(const void *parameters, i64 block, char *scratch)
{
    const integer_winograd *p = parameters;
    const i64 begin = start_of(block / p->panel_parts, p->tile_parts, p->tiles), depth = p->channels;
    const i64 count = start_of(block / p->panel_parts + 1, p->tile_parts, p->tiles) - begin;
    const i64 most = p->panel * VECTOR, panels = (p->columns + most - 1) / most, part = block % p->panel_parts;
    const i64 each = (p->columns + VECTOR - 1) / VECTOR * VECTOR * depth * 2, pitch = count * depth;
    int16_t *points = (int16_t *)scratch;
    const char **table = (const char **)(scratch + POINTS * pitch * 2);
    int32_t sums[(POINTS * TOGETHER + 8) * 3 * VECTOR] __attribute__((aligned(64)));
    int32_t rows[2][2 * TOGETHER * 3 * VECTOR] __attribute__((aligned(64)));
    int32_t *const ends[2] = {rows[0], rows[1]};
    static const int32_t none[3 * VECTOR];
    for (i64 tile = 0; tile < count; tile++) spread_tile(p, begin + tile, points + tile * depth, pitch);
    for (i64 point = 0; point < POINTS; point++)
        for (i64 r = 0; r < count + 8; r++)
            table[point * (count + 8) + r] = (const char *)(points + point * pitch + smaller(r, count - 1) * depth);
    for (i64 i = start_of(part, p->panel_parts, panels); i < start_of(part + 1, p->panel_parts, panels); i++) {
        const i64 column = i * most, columns = smaller(most, p->columns - column);
        const i64 vectors = (columns + VECTOR - 1) / VECTOR, width = vectors * VECTOR, at_once = irx_rows_of_tile[vectors - 1];
        const char *weights = p->weights + column * depth * 2;
        const place at = {0, 0, column, 0, columns};
        for (i64 tile = 0; tile < count; tile += TOGETHER) {
            const i64 together = smaller(TOGETHER, count - tile);
            for (i64 point = 0; point < POINTS; point++)
                for (i64 r = 0; r < together; r += at_once)
                    irx_integer_micro(2, vectors, 1)(1, depth, table + point * (count + 8) + tile + r, 0,
                                                     weights + point * each, none, sums + (point * TOGETHER + r) * width);
            for (i64 t = 0; t < together; t++)
                for (i64 c = 0; c < width; c += VECTOR) {
                    int32_t *const to[2] = {rows[0] + 2 * t * width + c, rows[1] + 2 * t * width + c};
                    gather_tile(sums + t * width + c, TOGETHER * width, load_words((const char *)(p->start + column + c)),
                                to, width);
                }
            end_tiles(p, at, begin + tile, together, width, ends);
        }
    }
}

/* Copies of elements of 1, 2, 4 or 8 bytes between arrays of any strides.
 *
 * A step is a list of copies that do not meet: the parts of a Concat, the data of a Pad and its borders. The axes of a
 * copy are merged and sorted beforehand, so that its last two are the plane in which the work is done: columns follow
 * each other in the result wherever possible, and rows in the data where columns do not. An axis of the data may go by
 * a table of offsets, as for a Gather.
 */
#include "irx.h"

enum { AXES = 8, ROW = AXES - 2, COLUMN = AXES - 1, SIDE = 16 };

typedef struct {
    const char *data;
    char *out;
    i64 sizes[8], source[8], target[8]; /* strides in bytes */
    const i64 *tables[8];                /* offsets in bytes instead of multiples of `source`, or null */
    i64 item;
    i64 outers, outers_each, rows_each; /* all positions on the axes before the plane; those and the rows of a block */
    i64 last;                           /* blocks up to the end of this copy */
} copy;

typedef struct {
    const copy *copies;
} movement;

typedef uint8_t u1;
typedef uint16_t u2 __attribute__((may_alias, aligned(1)));
typedef uint32_t u4 __attribute__((may_alias, aligned(1)));
typedef uint64_t u8 __attribute__((may_alias, aligned(1)));
typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint32_t quad_unaligned __attribute__((vector_size(16), may_alias, aligned(1)));

INLINE i64 offset(const copy *c, int axis, i64 i) { return c->tables[axis] ? c->tables[axis][i] : i * c->source[axis]; }

/* A square of 4 by 4 elements of 4 bytes: rows of the result are columns of the data. */
INLINE void square_u4(const char *data, i64 from, char *out, i64 to)
{
    quad a = *(const quad_unaligned *)data, b = *(const quad_unaligned *)(data + from);
    quad c = *(const quad_unaligned *)(data + 2 * from), d = *(const quad_unaligned *)(data + 3 * from);
    quad e = __builtin_shufflevector(a, b, 0, 4, 1, 5), f = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    quad g = __builtin_shufflevector(a, b, 2, 6, 3, 7), h = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad_unaligned *)out = __builtin_shufflevector(e, f, 0, 1, 4, 5);
    *(quad_unaligned *)(out + to) = __builtin_shufflevector(e, f, 2, 3, 6, 7);
    *(quad_unaligned *)(out + 2 * to) = __builtin_shufflevector(g, h, 0, 1, 4, 5);
    *(quad_unaligned *)(out + 3 * to) = __builtin_shufflevector(g, h, 2, 3, 6, 7);
}

/* Four columns of 16 elements of 1 byte. */
typedef uint8_t bytes __attribute__((vector_size(16)));
typedef uint16_t pairs __attribute__((vector_size(16)));
INLINE void strip_u1(const char *const data[4], char *out, i64 to)
{
    bytes column[4];
    for (int i = 0; i < 4; i++) memcpy(&column[i], data[i], 16);
    const bytes a = column[0], b = column[1], c = column[2], d = column[3];
    const pairs low = (pairs)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const pairs high = (pairs)__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const pairs low2 = (pairs)__builtin_shufflevector(c, d, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const pairs high2 = (pairs)__builtin_shufflevector(c, d, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const quad words[4] = {(quad)__builtin_shufflevector(low, low2, 0, 8, 1, 9, 2, 10, 3, 11),
                           (quad)__builtin_shufflevector(low, low2, 4, 12, 5, 13, 6, 14, 7, 15),
                           (quad)__builtin_shufflevector(high, high2, 0, 8, 1, 9, 2, 10, 3, 11),
                           (quad)__builtin_shufflevector(high, high2, 4, 12, 5, 13, 6, 14, 7, 15)};
    if (to == 4) memcpy(out, words, sizeof(words));
    else
        for (int r = 0; r < 16; r++) memcpy(out + r * to, (const char *)words + r * 4, 4);
}

#define SQUARE(T)                                                                                                     \
    INLINE void square_##T(const char *data, i64 from, char *out, i64 to)                                             \
    {                                                                                                                 \
        for (int r = 0; r < 4; r++)                                                                                   \
            for (int c = 0; c < 4; c++) ((T *)(out + r * to))[c] = ((const T *)(data + c * from))[r];                 \
    }
SQUARE(u1)
SQUARE(u2)
SQUARE(u8)

/* Planes of elements of type T.
 *
 * move: by any strides and tables. turn: rows follow each other in the data, columns in the result; in squares of a
 * cache line of the data, so that both sides use what they load.
 */
#define PLANES(T)                                                                                                     \
    static void move_##T(const copy *c, const char *data, char *out, i64 rows)                                        \
    {                                                                                                                 \
        const i64 columns = c->sizes[COLUMN], from = c->source[COLUMN], to = c->target[COLUMN];                             \
        const i64 *table = c->tables[COLUMN];                                                                         \
        for (i64 r = 0; r < rows; r++) {                                                                              \
            const char *d = data + offset(c, ROW, r);                                                                 \
            char *o = out + r * c->target[ROW];                                                                           \
            if (table)                                                                                                \
                for (i64 k = 0; k < columns; k++) *(T *)(o + k * to) = *(const T *)(d + table[k]);                    \
            else if (!from && to == sizeof(T)) {                                                                      \
                const T value = *(const T *)d;                                                                        \
                for (i64 k = 0; k < columns; k++) ((T *)o)[k] = value;                                                \
            } else                                                                                                    \
                for (i64 k = 0; k < columns; k++) *(T *)(o + k * to) = *(const T *)(d + k * from);                    \
        }                                                                                                             \
    }                                                                                                                 \
    static void turn_##T(const char *data, i64 from, char *out, i64 to, i64 rows, i64 columns)                        \
    {                                                                                                                 \
        for (i64 r0 = 0; r0 < rows; r0 += SIDE) {                                                                     \
            const i64 height = smaller(SIDE, rows - r0), tall = height / 4 * 4, wide = columns / 4 * 4;               \
            const char *d = data + r0 * (i64)sizeof(T);                                                               \
            char *o = out + r0 * to;                                                                                  \
            for (i64 k = 0; k < wide; k += 4)                                                                         \
                for (i64 r = 0; r < tall; r += 4)                                                                     \
                    square_##T(d + k * from + r * (i64)sizeof(T), from, o + r * to + k * (i64)sizeof(T), to);         \
            for (i64 r = 0; r < height; r++)                                                                          \
                for (i64 k = r < tall ? wide : 0; k < columns; k++)                                                   \
                    ((T *)(o + r * to))[k] = ((const T *)(d + k * from))[r];                                          \
        }                                                                                                             \
    }
PLANES(u1)
PLANES(u2)
PLANES(u4)
PLANES(u8)

#define DISPATCH(function, ...)                                                                                       \
    switch (c->item) {                                                                                                \
    case 1: function##_u1(__VA_ARGS__); break;                                                                        \
    case 2: function##_u2(__VA_ARGS__); break;                                                                        \
    case 4: function##_u4(__VA_ARGS__); break;                                                                        \
    default: function##_u8(__VA_ARGS__); break;                                                                       \
    }

/* Four columns of bytes, which go by a table or by a stride: rows follow each other in the data, columns in the result. */
static void turn_four(const copy *c, const char *data, char *out, i64 rows)
{
    const char *column[4];
    for (int k = 0; k < 4; k++) column[k] = data + offset(c, COLUMN, k);
    i64 r = 0;
    for (; r + 16 <= rows; r += 16, out += 16 * c->target[ROW]) {
        strip_u1(column, out, c->target[ROW]);
        for (int k = 0; k < 4; k++) column[k] += 16;
    }
    for (; r < rows; r++, out += c->target[ROW])
        for (int k = 0; k < 4; k++) out[k] = *column[k]++;
}

/* Some rows of a plane; `data` is without the offset of the rows if they go by a table. */
static void move_plane(const copy *c, const char *data, char *out, i64 first, i64 rows)
{
    const i64 columns = c->sizes[COLUMN];
    const int by_table = c->tables[ROW] || c->tables[COLUMN];
    if (!c->tables[COLUMN] && c->source[COLUMN] == c->item && c->target[COLUMN] == c->item) {
        for (i64 r = first; r < first + rows; r++)
            memcpy(out + r * c->target[ROW], data + offset(c, ROW, r), (size_t)(columns * c->item));
        return;
    }
    out += first * c->target[ROW];
    if (c->item == 1 && columns == 4 && !c->tables[ROW] && c->source[ROW] == 1 && c->target[COLUMN] == 1) {
        turn_four(c, data + first, out, rows);
        return;
    }
    if (!by_table && c->source[ROW] == c->item && c->target[COLUMN] == c->item) {
        DISPATCH(turn, data + first * c->item, c->source[COLUMN], out, c->target[ROW], rows, columns)
        return;
    }
    copy some = *c;
    if (some.tables[ROW]) some.tables[ROW] += first;
    else data += first * c->source[ROW];
    DISPATCH(move, &some, data, out, rows)
}

/* Block: some positions on the axes before the plane, or some rows of one plane. */
EXPORT void irx_move(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const copy *c = ((const movement *)parameters)->copies;
    i64 before = 0;
    while (block >= c->last) before = c++->last;
    block -= before;
    const i64 parts = (c->sizes[ROW] + c->rows_each - 1) / c->rows_each;
    const i64 first = block % parts * c->rows_each, start = block / parts * c->outers_each;
    const i64 rows = smaller(c->rows_each, c->sizes[ROW] - first), stop = smaller(start + c->outers_each, c->outers);
    for (i64 outer = start; outer < stop; outer++) {
        const char *data = c->data;
        char *out = c->out;
        i64 rest = outer;
        for (int axis = ROW - 1; axis >= 0; axis--) {
            if (c->sizes[axis] == 1 && !c->tables[axis]) continue;
            const i64 i = rest % c->sizes[axis];
            rest /= c->sizes[axis];
            data += offset(c, axis, i);
            out += i * c->target[axis];
        }
        move_plane(c, data, out, first, rows);
    }
}

typedef struct {
    const char *data; /* (outer, size, bytes), the last one without gaps */
    char *out;        /* (outer, count, bytes), as well */
    const char *indices;
    i64 data_outer, data_row, out_outer, out_row; /* strides in bytes */
    i64 wide;                                     /* whether indices have 8 bytes, or 4 */
    i64 size, count, bytes, rows_each;
} gather;

/* Rows at indices that are known at run time: negative ones count from the end, others out of range give zeros.
 * Block: an outer position and some indices, the indices changing fastest. */
EXPORT void irx_gather(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const gather *g = parameters;
    const i64 blocks = (g->count + g->rows_each - 1) / g->rows_each;
    const i64 first = block % blocks * g->rows_each, outer = block / blocks;
    for (i64 i = first; i < smaller(first + g->rows_each, g->count); i++) {
        i64 index = g->wide ? ((const i64 *)g->indices)[i] : ((const int32_t *)g->indices)[i];
        if (index < 0) index += g->size;
        char *out = g->out + outer * g->out_outer + i * g->out_row;
        if (index >= 0 && index < g->size)
            memcpy(out, g->data + outer * g->data_outer + index * g->data_row, (size_t)g->bytes);
        else
            memset(out, 0, (size_t)g->bytes);
    }
}

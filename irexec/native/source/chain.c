/* The interpreter of chains: each instruction goes over the tile once, which stays in the first-level cache.
 *
 * irexec/backend/native/chains.py translates chains of operations to instructions; the codes are numbered there in the
 * order of this file, which a test compares.
 */
#include "levels.h"

enum {
    LOAD, ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, SQUARED_DIFFERENCE,
    MULTIPLY_P, DIVIDE_P_BY, MAXIMUM_P,
    CLAMP, SIGMOID, SWISH, HARD_SIGMOID, H_SWISH, TANH_OF, EXP_OF, LOG_OF, SQRT_OF, ABS_OF, NEGATIVE_OF,
    ERF_OF, GELU_OF, GELU_TANH_OF, ELU_OF, MISH_OF, SOFTPLUS_OF, SOFTSIGN_OF, PRELU_OF, FLOOR_OF,
    CEILING_OF, ROUND_OF, SQUARE_OF, COPY, CUBE_OF, ROOT_OF, INVERSE_ROOT_OF, QUANTIZE,
    LEVELS, LOAD_LEVELS
};

/* Where a tile begins in an operand, in elements. */
INLINE i64 begin_of(const operand *o, const place *at)
{
    return at->image * o->image + at->row * o->row + at->column * o->column;
}

void irx_load(const operand *o, const place *at, i64 pitch, float *out)
{
    const float *from = o->base + begin_of(o, at);
    for (i64 r = 0; r < at->rows; r++, from += o->row) {
        float *to = out + r * pitch;
        if (r && !o->row) {
            for (i64 c = 0; c < pitch; c += VECTOR) store(to + c, load(out + c));
        } else if (o->column == 1) {
            if (at->columns == pitch && pitch % VECTOR == 0)
                for (i64 c = 0; c < pitch; c += VECTOR) store(to + c, load(from + c));
            else
                for (i64 c = 0; c < at->columns; c++) to[c] = from[c];
        } else if (!o->column) {
            for (i64 c = 0; c < pitch; c += VECTOR) store(to + c, spread(*from));
        } else {
            for (i64 c = 0; c < at->columns; c++) to[c] = from[c * o->column];
        }
    }
}

/* Whether an operand is the tile as it lies in memory, whole vectors. */
INLINE int is_tile(const operand *o, const place *at, i64 pitch)
{
    const int is_run = o->column == 1 && at->columns == pitch && (o->row == pitch || at->rows == 1);
    return is_run && at->rows * pitch % VECTOR == 0;
}

/* Adds an operand to a tile, or multiplies it, without a copy of the operand: its columns follow each other. */
static void combine(const operand *o, const place *at, i64 pitch, float *t, const float *a, int multiplies)
{
    const float *from = o->base + begin_of(o, at);
    for (i64 r = 0; r < at->rows; r++, from += o->row, t += pitch, a += pitch)
        for (i64 c = 0; c < pitch; c += VECTOR)
            store(t + c, multiplies ? load(a + c) * load(from + c) : load(a + c) + load(from + c));
}

void irx_fetch(const chain *c, const place *at)
{
    if (!c) return;
    for (const instruction *i = c->instructions; i < c->instructions + c->count; i++) {
        const operand *o = c->operands + i->operand;
        if (i->code != LOAD || !o->row || o->column != 1) continue;
        const float *from = o->base + begin_of(o, at);
        for (i64 r = 0; r < at->rows; r++, from += o->row)
            for (i64 k = 0; k < at->columns + 15; k += 16) __builtin_prefetch(from + k); /* a row may begin inside a line */
    }
}

#define EACH(expression)                                                                                              \
    for (i64 k = 0; k < size; k += VECTOR) {                                                                          \
        vf x = load(a + k), y = load(b + k);                                                                          \
        (void)y;                                                                                                      \
        store(t + k, (expression));                                                                                   \
    }                                                                                                                 \
    break

/* The same for a function of `count` vectors x, which are computed together. A condition would make GCC compute each on its
 * own.
 */
#define SOME(call)                                                                                                    \
    {                                                                                                                 \
        vf x[AT_ONCE];                                                                                                \
        EACH_OF(count) x[i] = load(a + k + i * VECTOR);                                                               \
        call;                                                                                                         \
        EACH_OF(count) store(t + k + i * VECTOR, x[i]);                                                               \
    }
#define EACH_OF_SOME(call)                                                                                            \
    {                                                                                                                 \
        i64 k = 0;                                                                                                    \
        for (const int count = AT_ONCE; count > 1 && k + count * VECTOR <= size; k += count * VECTOR) SOME(call)      \
        for (const int count = 1; k < size; k += VECTOR) SOME(call)                                                   \
    }                                                                                                                 \
    break

static void apply(const instruction *i, i64 size, float *t, const float *a, const float *b)
{
    const vf p = spread((float)i->p), q = spread((float)i->q);
    const vf zero = spread(0.0f), one = spread(1.0f);
    switch (i->code) {
    case ADD: EACH(x + y);
    case SUBTRACT: EACH(x - y);
    case MULTIPLY: EACH(x * y);
    case DIVIDE: EACH(x / y);
    case MAXIMUM: EACH(maximum(x, y));
    case MINIMUM: EACH(minimum(x, y));
    case SQUARED_DIFFERENCE: EACH((x - y) * (x - y));
    case MULTIPLY_P: EACH(x * p);
    case DIVIDE_P_BY: EACH(p / x);
    case MAXIMUM_P: EACH(choose((vi)(x < p), p, x));
    case CLAMP: EACH(clamped(x, p, q));
    case SIGMOID: EACH(sigmoid(x));
    case SWISH: EACH_OF_SOME(swishes(x, p, count));
    case HARD_SIGMOID: EACH(clamped(x * p + q, zero, one));
    case H_SWISH: EACH(x * (clamped(x + 3.0f, zero, spread(6.0f)) * (1.0f / 6.0f)));
    case TANH_OF: EACH(hyperbolic_tangent(x));
    case EXP_OF: EACH(exponential(x));
    case LOG_OF: EACH(logarithm(x));
    case SQRT_OF: EACH(square_root(x));
    case ABS_OF: EACH(absolute(x));
    case NEGATIVE_OF: EACH(-x);
    case ERF_OF: EACH(error_function(x));
    case GELU_OF: EACH_OF_SOME(gelus(x, count));
    case GELU_TANH_OF: EACH(x / (one + exponential(x * (x * x * -0.0713548162726f - 1.5957691216057f))));
    case ELU_OF: EACH(choose((vi)(x < zero), p * exponential_minus_one(x), x));
    case MISH_OF: EACH(({
        vf e = exponential(choose((vi)(x > 20.0f), spread(20.0f), x)), n = e * (e + 2.0f);
        x * (n / (n + 2.0f));
    }));
    case SOFTPLUS_OF: EACH(({
        vf u = exponential(-absolute(x)), w = one + u;
        choose((vi)(x < zero), zero, x) + (logarithm(w) + (u - (w - one)) / w);
    }));
    case SOFTSIGN_OF: EACH(x / (one + absolute(x)));
    case PRELU_OF: EACH(choose((vi)(x < zero), x * y, x));
    case FLOOR_OF: EACH(floor_of(x));
    case CEILING_OF: EACH(ceiling_of(x));
    case ROUND_OF: EACH(nearest(x));
    case SQUARE_OF: EACH(x * x);
    case COPY: EACH(x);
    case CUBE_OF: EACH(x * x * x);
    /* Powers of 0.5 and -0.5 differ from the square root at -0 and at minus infinity. */
    case ROOT_OF: EACH(square_root(choose((vi)(x == -__builtin_inff()), -x, x + zero)));
    case INVERSE_ROOT_OF: EACH(one / square_root(choose((vi)(x == -__builtin_inff()), -x, x + zero)));
    default: break;
    }
}

typedef double vd __attribute__((vector_size(VECTOR * 4), aligned(8), may_alias));
typedef i64 vl __attribute__((vector_size(VECTOR * 4)));
typedef float vh __attribute__((vector_size(VECTOR * 2), aligned(4), may_alias));

INLINE vd picked(vl mask, vd yes, vd no) { return (vd)(((vl)yes & mask) | ((vl)no & ~mask)); }

/* GCC 12 converts a quarter of a vector at once. */
#if VECTOR == 16
INLINE vd widened(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
INLINE void store_half(float *p, vd x) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(x)); }
#else
INLINE vd widened(const float *p) { return __builtin_convertvector(*(const vh *)p, vd); }
INLINE void store_half(float *p, vd x) { *(vh *)p = __builtin_convertvector(x, vh); }
#endif

enum { LOW, HIGH, FACTOR, SCALE, STEP, OFFSET, ZERO, PARTS, LANES = VECTOR / 2 };

/* The values of levels. */
INLINE vd values_of(vd level, const vd *part)
{
    const vd scaled = (vd)rounded((vf)(level * part[STEP]));
    return picked(level == part[ZERO], (vd){0}, scaled + part[OFFSET]);
}

/* The index of the level nearest to a value. */
INLINE vd nearest_level(vd x, const vd *part)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2**52: adding it rounds to an integer */
    x = picked(x < part[LOW], part[LOW], x);
    x = picked(x > part[HIGH], part[HIGH], x);
    x = (x - part[LOW]) * part[FACTOR] * part[SCALE];
    /* The sign is cleared, though x is not negative, so that the product is rounded before the sum. */
    return (vd)((vl)x & INT64_MAX) + shift - shift;
}

/* Writes the values of the levels nearest to half a vector, or their indices. */
static void quantize_half(float *t, const float *a, const vd *part, const int is_index)
{
    const vd level = nearest_level(widened(a), part);
    store_half(t, is_index ? level : values_of(level, part));
}

/* A range that all of a row has, in f32. */
typedef struct {
    vf low, high, scale, near;
} single;

INLINE single single_of(const vd *part)
{
    const double per_unit = part[FACTOR][0] * part[SCALE][0], most = (part[HIGH][0] - part[LOW][0]) * per_unit;
    return (single){spread((float)part[LOW][0]), spread((float)part[HIGH][0]), spread((float)per_unit),
                    spread((float)(0.5 - most * 0x1p-21))};
}

/* Writes the indices that f32 gives, which has an error of three roundings. Returns whether all are those of f64: no value
 * is next to a threshold between two levels, and none is NaN.
 */
INLINE int nearest_in_floats(vf x, const single *s, vf *level)
{
    x = (clamped(x, s->low, s->high) - s->low) * s->scale;
    *level = (x + 12582912.0f) - 12582912.0f;
    return all_of((vi)(absolute(x - *level) < s->near));
}

/* A vector of a row of one range; in f64 only where f32 does not suffice. */
INLINE void quantize_vector(float *t, const float *a, const vd *part, const single *s, const int is_index)
{
    vf level;
    if (!nearest_in_floats(load(a), s, &level)) {
        for (int half = 0; half < VECTOR; half += LANES) quantize_half(t + half, a + half, part, is_index);
        return;
    }
    store(t, level);
    if (!is_index)
        for (int half = 0; half < VECTOR; half += LANES) store_half(t + half, values_of(widened(t + half), part));
}

INLINE void find_parts(const double *range, i64 plane, vd *part)
{
#pragma GCC unroll 7
    for (int i = 0; i < PARTS; i++) part[i] = range[i * plane] - (vd){0};
}

/* The values of the levels nearest to a tile, or their indices, as f64 has them. The ranges are an operand of doubles: one
 * plane for each part of a range, columns follow each other or repeat, and a vector may be read behind the last part.
 */
static void quantize(const operand *o, i64 plane, const place *at, i64 pitch, float *t, const float *a,
                     const int is_index)
{
    const double *range = (const double *)o->base + begin_of(o, at);
    float last[VECTOR] = {0.0f}; /* of a row: behind it may be the next one, or nothing */
    vd part[PARTS];
    single s;
    const i64 step = o->column ? LANES : VECTOR;
    for (i64 r = 0; r < at->rows; r++, range += o->row, t += pitch, a += pitch) {
        if (!o->column) {
            find_parts(range, plane, part);
            s = single_of(part);
        }
        for (i64 k = 0; k < at->columns; k += step) {
            const size_t size = (size_t)smaller(step, at->columns - k) * sizeof(float);
            const int is_last = at->columns - k < step;
            const float *from = is_last ? memcpy(last, a + k, size) : a + k;
            float *to = is_last ? last : t + k;
            if (o->column) {
#pragma GCC unroll 7
                for (int i = 0; i < PARTS; i++) part[i] = *(const vd *)(range + i * plane + k);
                quantize_half(to, from, part, is_index);
            } else {
                quantize_vector(to, from, part, &s, is_index);
            }
            if (is_last) memcpy(t + k, last, size);
        }
    }
}

/* The values of a tile of levels, from a table. */
static void load_levels(const operand *o, const float *values, const place *at, i64 pitch, float *t)
{
    const uint8_t *from = (const uint8_t *)o->base + begin_of(o, at);
    for (i64 r = 0; r < at->rows; r++, from += o->row, t += pitch)
        for (i64 k = 0; k < at->columns; k++) t[k] = values[from[k * o->column]];
}

/* Room for a tile; a vector may be written behind it. */
typedef float room[TILE + VECTOR];

/* Runs the instructions of a chain before `end`. A register is at held[i]: in its own room, or in an operand. */
static __attribute__((noinline)) void run(const chain *c, const instruction *end, const place *at, i64 pitch,
                                          room *rooms, float *tile, const float **held)
{
    const i64 size = at->rows * pitch;
    held[0] = tile;
    for (const instruction *i = c->instructions; i < end; i++) {
        const operand *o = c->operands + i->operand;
        float *t = i->target ? rooms[i->target - 1] : tile;
        if (i->code == LOAD && is_tile(o, at, pitch)) {
            held[i->target] = o->base + begin_of(o, at);
            continue;
        }
        if (i->code == LOAD && i->p != 0.0 && o->column == 1 && at->columns == pitch && pitch % VECTOR == 0) {
            const i64 loaded = i++->target, other = i->a == loaded ? i->b : i->a;
            t = i->target ? rooms[i->target - 1] : tile;
            combine(o, at, pitch, t, held[other], i->code == MULTIPLY);
            held[i->target] = t;
            continue;
        }
        switch (i->code) {
        case LOAD: irx_load(o, at, pitch, t); break;
        case QUANTIZE:
        case LEVELS: quantize(o, (i64)i->p, at, pitch, t, held[i->a], i->code == LEVELS); break;
        case LOAD_LEVELS: load_levels(o, c->operands[(i64)i->q].base, at, pitch, t); break;
        default: apply(i, size, t, held[i->a], held[i->b]);
        }
        held[i->target] = t;
    }
}

void irx_chain(const chain *c, const place *at, i64 pitch, float *tile)
{
    room rooms[REGISTERS - 1] __attribute__((aligned(64)));
    const float *held[REGISTERS];
    run(c, c->instructions + c->count, at, pitch, rooms, tile, held);
    if (held[0] != tile) memcpy(tile, held[0], (size_t)(at->rows * pitch) * sizeof(float));
}

/* Writes a tile of floats as levels, which follow each other in a row; *unknown becomes 1 if there is a NaN. */
static void write_levels(const place *at, i64 pitch, const float *tile, uint8_t *out, i64 row, int32_t *unknown)
{
    if (has_nan_in(tile, at, pitch)) *unknown = 1;
    for (i64 r = 0; r < at->rows; r++)
        for (i64 c = 0; c < at->columns; c += VECTOR) {
            const vf level = clamped(load(tile + r * pitch + c), spread(0.0f), spread(255.0f));
            store_levels(out + r * row + c, level, 0.0f, at->columns - c);
        }
}

/* Writes the levels nearest to `count` values of one range. */
static void write_nearest(const vd *part, i64 count, const float *a, uint8_t *out, int32_t *unknown)
{
    const single s = single_of(part);
    float last[VECTOR] = {0.0f}, exact[VECTOR];
    for (i64 k = 0; k < count; k += VECTOR) {
        const float *from = count - k < VECTOR ? memcpy(last, a + k, (size_t)(count - k) * sizeof(float)) : a + k;
        const place at = {0, 0, 0, 1, smaller(VECTOR, count - k)};
        vf level;
        if (nearest_in_floats(load(from), &s, &level)) {
            store_levels(out + k, level, 0.0f, at.columns);
            continue;
        }
        for (int half = 0; half < VECTOR; half += LANES) quantize_half(exact + half, from + half, part, 1);
        write_levels(&at, VECTOR, exact, out + k, VECTOR, unknown);
    }
}

void irx_chain_to_levels(const chain *c, const place *at, i64 pitch, float *tile, uint8_t *out, i64 row, int32_t *unknown)
{
    room rooms[REGISTERS - 1] __attribute__((aligned(64)));
    const float *held[REGISTERS];
    const instruction *last = c->instructions + c->count - 1;
    const operand *o = c->operands + last->operand;
    const int is_single = last->code == LEVELS && !o->row && !o->column;
    run(c, last + !is_single, at, pitch, rooms, tile, held);
    if (!is_single) {
        write_levels(at, pitch, held[0], out, row, unknown);
        return;
    }
    vd part[PARTS];
    find_parts((const double *)o->base + begin_of(o, at), (i64)last->p, part);
    const int is_run = at->columns == pitch && (row == pitch || at->rows == 1);
    const i64 count = is_run ? at->rows * pitch : at->columns;
    for (i64 r = 0; r < (is_run ? 1 : at->rows); r++)
        write_nearest(part, count, held[last->a] + r * pitch, out + r * row, unknown);
}

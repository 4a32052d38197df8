/* The interpreter of chains: each instruction goes over the tile once, which stays in the first-level cache.
 *
 * irexec/backend/native/chains.py translates chains of operations to instructions; the codes are numbered there in the
 * order of this file, which a test compares.
 */
#include "chain.h"
#include "elementary.h"

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
    for (i64 r = 0; r < (o->row ? at->rows : 1); r++, from += o->row) {
        float *to = out + r * pitch;
        if (o->column == 1) {
            if (at->columns == pitch)
                for (i64 c = 0; c < pitch; c += VECTOR) store(to + c, load(from + c));
            else
                for (i64 c = 0; c < at->columns; c++) to[c] = from[c];
        } else if (!o->column) {
            for (i64 c = 0; c < pitch; c += VECTOR) store(to + c, spread(*from));
        } else {
            for (i64 c = 0; c < at->columns; c++) to[c] = from[c * o->column];
        }
    }
    if (o->row) return;
    for (i64 c = 0; c < pitch; c += VECTOR) {
        const vf same = load(out + c);
        for (i64 r = 1; r < at->rows; r++) store(out + r * pitch + c, same);
    }
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
INLINE void quantize_half(float *t, const float *a, const vd *part, const int is_index)
{
    const vd level = nearest_level(widened(a), part);
    store_half(t, is_index ? level : values_of(level, part));
}

/* The same for a row of one range. The index is computed in f32, and in f64 for vectors with a value next to a threshold
 * between two levels: an index has an error of three roundings to f32.
 */
INLINE void quantize_row(float *t, const float *a, const vd *part, i64 columns, const int is_index)
{
    const double per_unit = part[FACTOR][0] * part[SCALE][0], most = (part[HIGH][0] - part[LOW][0]) * per_unit;
    const vf low = spread((float)part[LOW][0]), high = spread((float)part[HIGH][0]), scale = spread((float)per_unit);
    const vf near = spread((float)(0.5 - most * 0x1p-21));
    for (i64 k = 0; k < columns; k += VECTOR) {
        const vf x = (clamped(load(a + k), low, high) - low) * scale, level = (x + 12582912.0f) - 12582912.0f;
        if (!all_of((vi)(absolute(x - level) < near))) {
            for (int half = 0; half < VECTOR; half += LANES) quantize_half(t + k + half, a + k + half, part, is_index);
            continue;
        }
        store(t + k, level);
        if (!is_index)
            for (int half = 0; half < VECTOR; half += LANES)
                store_half(t + k + half, values_of(widened(t + k + half), part));
    }
}

/* The values of the levels nearest to a tile, or their indices, as f64 has them. The ranges are an operand of doubles: one
 * plane for each part of a range, columns follow each other or repeat, and a vector may be read behind the last part.
 */
INLINE void quantize(const operand *o, i64 plane, const place *at, i64 pitch, float *t, const float *a,
                     const int is_index)
{
    const double *range = (const double *)o->base + begin_of(o, at);
    vd part[PARTS];
    for (i64 r = 0; r < at->rows; r++, range += o->row, t += pitch, a += pitch) {
        if (!o->column) {
#pragma GCC unroll 7
            for (int i = 0; i < PARTS; i++) part[i] = range[i * plane] - (vd){0};
            quantize_row(t, a, part, at->columns, is_index);
            continue;
        }
        for (i64 k = 0; k < at->columns; k += LANES) {
#pragma GCC unroll 7
            for (int i = 0; i < PARTS; i++) part[i] = *(const vd *)(range + i * plane + k);
            quantize_half(t + k, a + k, part, is_index);
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

void irx_chain(const chain *c, const place *at, i64 pitch, float *tile)
{
    float registers[REGISTERS - 1][TILE] __attribute__((aligned(64)));
    const i64 size = at->rows * pitch;
    for (const instruction *i = c->instructions; i < c->instructions + c->count; i++) {
        float *t = i->target ? registers[i->target - 1] : tile;
        const float *a = i->a ? registers[i->a - 1] : tile, *b = i->b ? registers[i->b - 1] : tile;
        const operand *o = c->operands + i->operand;
        switch (i->code) {
        case LOAD:
            if (i->p != 0.0 && o->column == 1 && at->columns == pitch) {
                const i64 loaded = i++->target, other = i->a == loaded ? i->b : i->a;
                t = i->target ? registers[i->target - 1] : tile;
                combine(o, at, pitch, t, other ? registers[other - 1] : tile, i->code == MULTIPLY);
            } else irx_load(o, at, pitch, t);
            break;
        case QUANTIZE: quantize(o, (i64)i->p, at, pitch, t, a, 0); break;
        case LEVELS: quantize(o, (i64)i->p, at, pitch, t, a, 1); break;
        case LOAD_LEVELS: load_levels(o, c->operands[(i64)i->q].base, at, pitch, t); break;
        default: apply(i, size, t, a, b);
        }
    }
}

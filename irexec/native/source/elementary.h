/* Elementary functions on vectors of floats, within 2 units in the last place where the result is a normal number.
 *
 * tests/benchmarks/fit_polynomials.py fits the polynomials. NaN gives NaN, infinities give limits.
 */
#ifndef ELEMENTARY_H
#define ELEMENTARY_H

#include "irx.h"
#if defined(__SSE__)
#include <immintrin.h>
#endif

INLINE vf absolute(vf x) { return (vf)((vi)x & 0x7fffffff); }
INLINE vf with_sign(vf x, vf sign) { return (vf)((vi)x | ((vi)sign & (int32_t)0x80000000)); }

/* NaN of either operand is the result, as NumPy has it. */
INLINE vf maximum(vf a, vf b) { return choose((vi)((a > b) | (a != a)), a, b); }
INLINE vf minimum(vf a, vf b) { return choose((vi)((a < b) | (a != a)), a, b); }
INLINE vf clamped(vf x, vf low, vf high)
{
#if VECTOR == 16
    return _mm512_min_ps(high, _mm512_max_ps(low, x));
#elif VECTOR == 8
    return _mm256_min_ps(high, _mm256_max_ps(low, x));
#elif defined(__SSE__)
    return _mm_min_ps(high, _mm_max_ps(low, x));
#else
    x = choose((vi)(x < low), low, x);
    return choose((vi)(x > high), high, x);
#endif
}

/* Whether a mask, as comparisons give it, is set in all lanes. */
INLINE int all_of(vi mask)
{
#if VECTOR == 16
    return _mm512_movepi32_mask((__m512i)mask) == 0xffff;
#elif VECTOR == 8
    return _mm256_movemask_ps((__m256)mask) == 0xff;
#elif defined(__SSE__)
    return _mm_movemask_ps((__m128)mask) == 0xf;
#else
    return (mask[0] & mask[1] & mask[2] & mask[3]) != 0;
#endif
}

/* Some functions are computed for several vectors at once, step by step: each is a long chain of instructions that wait for
 * the one before, and a processor has those of few vectors in view. Registers bound their number.
 */
enum { AT_ONCE = VECTOR == 16 ? 4 : VECTOR == 8 ? 2 : 1 };

/* The polynomials of these coefficients, the constant first. */
#define POLYNOMIALS(x, sum, count, ...)                                                                               \
    polynomials(x, sum, count, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / 4)

INLINE void polynomials(const vf *x, vf *sum, const int count, const float *coefficients, int terms)
{
    EACH_OF(count) sum[i] = spread(coefficients[terms - 1]);
#pragma GCC unroll 16
    for (int k = terms - 2; k >= 0; k--) EACH_OF(count) sum[i] = sum[i] * x[i] + spread(coefficients[k]);
}
#define POLYNOMIAL(x, ...) polynomial(x, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / 4)
INLINE vf polynomial(vf x, const float *coefficients, int terms)
{
    vf sum;
    polynomials(&x, &sum, 1, coefficients, terms);
    return sum;
}

#define EXP 0.49999994f, 0.16666521f, 0.04166839f, 0.008368731f, 0.0013814571f

/* exp(x + rest) for a rest that is small beside x: what rounding x left out. */
INLINE void exponentials_of_sums(vf *x, const vf *rest, const int count)
{
    const float shift = 12582912.0f; /* 1.5 * 2**23: adding it rounds to an integer */
    vf moved[AT_ONCE], n[AT_ONCE], r[AT_ONCE], p[AT_ONCE];
    EACH_OF(count) x[i] = clamped(x[i], spread(-110.0f), spread(90.0f));
    EACH_OF(count) moved[i] = x[i] * 1.44269504f + shift;
    EACH_OF(count) n[i] = moved[i] - shift;
    EACH_OF(count) r[i] = x[i] - n[i] * 0.693359375f;
    EACH_OF(count) r[i] = r[i] - n[i] * -2.12194440e-4f;
    if (rest) EACH_OF(count) r[i] += rest[i];
    POLYNOMIALS(r, p, count, EXP);
    EACH_OF(count) p[i] = p[i] * (r[i] * r[i]) + r[i];
    EACH_OF(count) p[i] += 1.0f;
#if VECTOR == 16
    EACH_OF(count) x[i] = _mm512_scalef_ps(p[i], n[i]);
#else
    /* 2**power in two factors, since a single one would leave the range of exponents. */
    EACH_OF(count)
    {
        const vi power = (vi)moved[i] - (vi)spread(shift), half = power >> 1;
        x[i] = p[i] * (vf)((half + 127) << 23) * (vf)((power - half + 127) << 23);
    }
#endif
}

INLINE void exponentials_of(vf *x, const int count) { exponentials_of_sums(x, 0, count); }
INLINE vf exponential(vf x)
{
    exponentials_of(&x, 1);
    return x;
}

/* x / (1 + exp(-p * x)) */
INLINE void swishes(vf *x, vf p, const int count)
{
    vf e[AT_ONCE];
    EACH_OF(count) e[i] = x[i] * -p;
    exponentials_of(e, count);
    EACH_OF(count) x[i] = x[i] / (1.0f + e[i]);
}

/* 1 / (1 + exp(-x)) */
INLINE vf sigmoid(vf x) { return 1.0f / (1.0f + exponential(-x)); }

#define TANH -0.33333275f, 0.13331275f, -0.053725127f, 0.020589827f, -0.0056483163f

INLINE vf hyperbolic_tangent(vf x)
{
    vf a = absolute(x), s = x * x;
    vf small = x + x * s * POLYNOMIAL(s, TANH);
    vf large = with_sign(1.0f - 2.0f / (exponential(a + a) + 1.0f), x);
    return choose((vi)(a < 0.6f), small, large);
}

/* exp(x) - 1 for x <= 0: with x = n * ln(2) + r it is 2**n * (exp(r) - 1) + (2**n - 1). */
INLINE vf exponential_minus_one(vf x)
{
    const float shift = 12582912.0f; /* as above */
    const vf bounded = clamped(x, spread(-30.0f), spread(0.0f)), moved = bounded * 1.44269504f + shift, n = moved - shift;
    const vf r = bounded - n * 0.693359375f - n * -2.12194440e-4f, e = POLYNOMIAL(r, EXP) * (r * r) + r;
    const vf power = (vf)(((vi)moved - (vi)spread(shift) + 127) << 23);
    return power * e + (power - 1.0f);
}

#define ERF 0.12837917f, -0.3761258f, 0.11282838f, -0.026807904f, 0.0050606634f, -0.00063743576f
#define ERFC                                                                                                          \
    1.2329952f, -0.139621f, 0.015377327f, 0.06809116f, -0.100993246f, 0.09384226f, -0.0665882f, 0.03638383f,          \
        -0.016078966f, 0.0068437047f, 0.00082787796f

/* erfc(t) for t >= 0, where t is given as square = t * t in two parts, since exp(-t * t) multiplies their errors. The
 * squares and rests are overwritten.
 */
INLINE void complements(const vf *t, vf *square, vf *rest, vf *out, const int count)
{
    vf w[AT_ONCE], p[AT_ONCE];
    EACH_OF(count) w[i] = (t[i] - 4.0f) / (t[i] + 4.0f);
    EACH_OF(count) square[i] = -square[i], rest[i] = -rest[i];
    exponentials_of_sums(square, rest, count);
    POLYNOMIALS(w, p, count, ERFC);
    EACH_OF(count) out[i] = square[i] * p[i] / (1.0f + 2.0f * t[i]);
}

/* x * x in two parts: the upper half of the digits of x squared is exact. */
INLINE void squared(vf x, vf *square, vf *rest)
{
    vf high = (vf)((vi)x & (int32_t)0xfffff000);
    *square = high * high;
    *rest = (x - high) * (x + high);
}

INLINE vf error_function(vf x)
{
    vf a = absolute(x), s = x * x, square, rest;
    vf bounded = choose((vi)(a > 10.0f), spread(10.0f), a);
    squared(bounded, &square, &rest);
    vf tail;
    complements(&bounded, &square, &rest, &tail, 1);
    vf large = with_sign(1.0f - tail, x);
    return choose((vi)(a < 0.8f), x + x * POLYNOMIAL(s, ERF), large);
}

/* x * (1 + erf(x / sqrt(2))) / 2, without cancellation below zero. */
INLINE void gelus(vf *x, const int count)
{
    vf t[AT_ONCE], square[AT_ONCE], rest[AT_ONCE], tail[AT_ONCE];
    EACH_OF(count)
    {
        const vf a = absolute(x[i]), bounded = choose((vi)(a > 14.3f), spread(14.3f), a);
        squared(bounded, &square[i], &rest[i]);
        t[i] = bounded * 0.70710678f, square[i] *= 0.5f, rest[i] *= 0.5f;
    }
    complements(t, square, rest, tail, count);
    EACH_OF(count)
    {
        const vf half = 0.5f * tail[i], below = choose((vi)(absolute(x[i]) > 14.3f), x[i] * 0.0f, x[i] * half);
        x[i] = choose((vi)(x[i] < 0.0f), below, x[i] * (1.0f - half));
    }
}

#define LOG                                                                                                           \
    0.33333313f, -0.2500001f, 0.20002119f, -0.16667996f, 0.14219552f, -0.12405589f, 0.11888162f, -0.11675652f,        \
        0.0674664f

/* The natural logarithm: of 0 minus infinity, of negative numbers NaN. */
INLINE vf logarithm(vf x)
{
    vi subnormal = (vi)(x < 1.17549435e-38f);
    vf scaled = choose(subnormal, x * 8388608.0f, x);
    vi bits = (vi)scaled;
    vi exponent = ((bits - 0x3f3504f3) >> 23);
    vf f = (vf)(bits - (exponent << 23)) - 1.0f;
    vf n = __builtin_convertvector(exponent - (subnormal & 23), vf);
    vf s = f * f;
    vf p = POLYNOMIAL(f, LOG);
    vf result = (p * f * s + n * -2.12194440e-4f - 0.5f * s) + f + n * 0.693359375f;
    result = choose((vi)(x == 0.0f), spread(-__builtin_inff()), result);
    result = choose((vi)(x == __builtin_inff()), x, result);
    return choose((vi)(x < 0.0f) | (vi)(x != x), spread(__builtin_nanf("")), result);
}

INLINE vf square_root(vf x)
{
    vf result;
    for (int i = 0; i < VECTOR; i++) result[i] = __builtin_sqrtf(x[i]);
    return result;
}

/* To the nearest integer, of two that are as near to the even one. */
INLINE vf nearest(vf x)
{
#if VECTOR == 16
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif VECTOR == 8
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    const float shift = 8388608.0f; /* 2**23: from here on every float is an integer */
    vf a = absolute(x);
    vf rounded = with_sign((a + shift) - shift, x);
    return choose((vi)(a < shift), rounded, x);
#endif
}

INLINE vf floor_of(vf x)
{
    vf n = nearest(x);
    return choose((vi)(n > x), n - 1.0f, n);
}

INLINE vf ceiling_of(vf x)
{
    vf n = nearest(x);
    return with_sign(choose((vi)(n < x), n + 1.0f, n), x);
}

#endif

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

/* The polynomial of these coefficients, the constant first. */
#define POLYNOMIAL(x, ...) polynomial(x, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / 4)

INLINE vf polynomial(vf x, const float *coefficients, int count)
{
    vf sum = spread(coefficients[count - 1]);
#pragma GCC unroll 16
    for (int i = count - 2; i >= 0; i--) sum = sum * x + spread(coefficients[i]);
    return sum;
}

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

#define EXP 0.49999994f, 0.16666521f, 0.04166839f, 0.008368731f, 0.0013814571f

/* exp(x + rest) for a rest that is small beside x: what rounding x left out. */
INLINE vf exponential_of_sum(vf x, vf rest)
{
    const float shift = 12582912.0f; /* 1.5 * 2**23: adding it rounds to an integer */
    x = clamped(x, spread(-110.0f), spread(90.0f));
    vf rounded = x * 1.44269504f + shift;
    vf n = rounded - shift;
    vf r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f + rest;
    vf p = POLYNOMIAL(r, EXP);
    p = p * (r * r) + r + 1.0f;
#if VECTOR == 16
    return _mm512_scalef_ps(p, n);
#else
    /* 2**power in two factors, since a single one would leave the range of exponents. */
    vi power = (vi)rounded - (vi)spread(shift), half = power >> 1;
    return p * (vf)((half + 127) << 23) * (vf)((power - half + 127) << 23);
#endif
}

INLINE vf exponential(vf x) { return exponential_of_sum(x, spread(0.0f)); }

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

/* erfc(t) for t >= 0, where t is given as square = t * t in two parts, since exp(-t * t) multiplies their errors. */
INLINE vf complement(vf t, vf square, vf rest)
{
    vf w = (t - 4.0f) / (t + 4.0f);
    return exponential_of_sum(-square, -rest) * POLYNOMIAL(w, ERFC) / (1.0f + 2.0f * t);
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
    vf large = with_sign(1.0f - complement(bounded, square, rest), x);
    return choose((vi)(a < 0.8f), x + x * POLYNOMIAL(s, ERF), large);
}

/* x * (1 + erf(x / sqrt(2))) / 2, without cancellation below zero. */
INLINE vf gelu(vf x)
{
    vf a = absolute(x), square, rest;
    vf bounded = choose((vi)(a > 14.3f), spread(14.3f), a);
    squared(bounded, &square, &rest);
    vf tail = 0.5f * complement(bounded * 0.70710678f, square * 0.5f, rest * 0.5f);
    vf below = choose((vi)(a > 14.3f), x * 0.0f, x * tail);
    return choose((vi)(x < 0.0f), below, x * (1.0f - tail));
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
    const float shift = 8388608.0f; /* 2**23: from here on every float is an integer */
    vf a = absolute(x);
    vf rounded = with_sign((a + shift) - shift, x);
    return choose((vi)(a < shift), rounded, x);
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

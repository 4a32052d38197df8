/* The steps of softmax along a row, which attention has too. */
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include "elementary.h"
#include "rows.h"

INLINE vf larger_of(vf a, vf b) { return choose((vi)(a > b), a, b); }

/* The maximum of a row; NaN is left out, since the sum of exponentials has it anyway. */
static float row_maximum(const float *x, i64 size)
{
    const i64 most = whole(size);
    vf m0 = spread(-__builtin_inff()), m1 = m0, m2 = m0, m3 = m0;
    i64 k = 0;
    for (; k + 4 * VECTOR <= most; k += 4 * VECTOR) {
        m0 = larger_of(load(x + k), m0), m1 = larger_of(load(x + k + VECTOR), m1);
        m2 = larger_of(load(x + k + 2 * VECTOR), m2), m3 = larger_of(load(x + k + 3 * VECTOR), m3);
    }
    for (; k < most; k += VECTOR) m0 = larger_of(load(x + k), m0);
    if (most < size) m1 = larger_of(load_part(x + most, size - most, -__builtin_inff()), m1);
    return maximum_of(larger_of(larger_of(m0, m1), larger_of(m2, m3)));
}

/* The exponentials of a row minus its maximum, or for the logarithm these differences, and the sum of exponentials.
 * `out`, which may be the row, has room for whole vectors. */
static float exponentials(const float *x, i64 size, float maximum, i64 is_logarithm, float *out)
{
    const vf highest = spread(maximum);
    double all = 0.0;
    for (i64 first = 0; first < size; first += CHUNK) {
        const i64 last = smaller(size, first + CHUNK), end = first + whole(last - first);
        vf sum = spread(0.0f);
        i64 k = first;
        for (; k + AT_ONCE * VECTOR <= end; k += AT_ONCE * VECTOR) {
            vf d[AT_ONCE], e[AT_ONCE];
            EACH_OF(AT_ONCE) d[i] = e[i] = load(x + k + i * VECTOR) - highest;
            exponentials_of(e, AT_ONCE);
            EACH_OF(AT_ONCE) store(out + k + i * VECTOR, is_logarithm ? d[i] : e[i]);
            EACH_OF(AT_ONCE) sum += e[i];
        }
        for (; k < end; k += VECTOR) {
            const vf d = load(x + k) - highest, e = exponential(d);
            store(out + k, is_logarithm ? d : e);
            sum += e;
        }
        if (end < last) {
            const vf d = load_part(x + end, last - end, -__builtin_inff()) - highest, e = exponential(d);
            store(out + end, is_logarithm ? d : e);
            sum += e;
        }
        all += sum_of(sum);
    }
    return (float)all;
}

#endif

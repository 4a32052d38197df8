/* Types that every kernel shares: the vector of the instruction set, and the calls that a job consists of.
 *
 * One source is compiled for several instruction sets. VECTOR is the number of floats of a vector register: 16 with
 * AVX-512, 8 with AVX, 4 elsewhere. No kernel allocates memory, and none reads an array that its parameters do not
 * name: sizes and strides are checked before the library is called. Sizes have 64 bits, strides count elements.
 */
#ifndef IRX_H
#define IRX_H

#include <stdint.h>
#include <string.h>

typedef int64_t i64;

#if defined(__AVX512F__)
#define VECTOR 16
#elif defined(__AVX__)
#define VECTOR 8
#else
#define VECTOR 4
#endif

typedef float vf __attribute__((vector_size(VECTOR * 4)));
typedef int32_t vi __attribute__((vector_size(VECTOR * 4)));
typedef float vf_unaligned __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE vf load(const float *p) { return *(const vf_unaligned *)p; }
INLINE void store(float *p, vf x) { *(vf_unaligned *)p = x; }
INLINE vf spread(float x) { return x - (vf){0}; }
/* A value that the compiler rounds here: no multiplication before is joined with an addition behind. */
INLINE vf rounded(vf x)
{
#if defined(__AVX512F__)
    __asm__("" : "+v"(x));
#elif defined(__SSE__)
    __asm__("" : "+x"(x));
#elif defined(__ARM_NEON)
    __asm__("" : "+w"(x));
#else
    volatile vf kept = x;
    x = kept;
#endif
    return x;
}

INLINE i64 smaller(i64 a, i64 b) { return a < b ? a : b; }
INLINE i64 larger(i64 a, i64 b) { return a > b ? a : b; }

/* Where a part begins of units that are cut into parts as equal as possible. */
INLINE i64 start_of(i64 part, i64 parts, i64 units) { return units * part / parts; }

/* Lanes of `yes` where the mask (all ones or all zeros, as comparisons give it) is set, of `no` elsewhere. */
INLINE vf choose(vi mask, vf yes, vf no) { return (vf)(((vi)yes & mask) | ((vi)no & ~mask)); }

/* A kernel computes one block of its work; scratch is the thread's own. */
typedef void kernel(const void *parameters, i64 block, char *scratch);

/* Each of the sums of R rows of V vectors that are kept in registers. They are numbered by one loop, since nested loops
 * are unrolled too late for that. */
#define EACH_SUM(R, V) EACH_OF(R * V)
#define EACH_OF(count) _Pragma("GCC unroll 24") for (int i = 0; i < (count); i++)

#endif

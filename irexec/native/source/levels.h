/* Sums of levels: the end of a tile of integers, which become floats, or the levels of what follows.
 *
 * A level is the index of a value of FakeQuantize, a byte. A tensor of levels stands for (level - zero) * step, and a
 * product of two of them is a sum of integers, exact in 32 bits, that is scaled once. No function here may be compiled
 * to a multiplication and an addition that are rounded together: all instruction sets give the same bits.
 */
#ifndef LEVELS_H
#define LEVELS_H

#include "elementary.h"
#include "tiles.h"

/* What becomes of sums. Columns are those of all groups; scales and biases are padded by a vector. */
typedef struct {
    const float *scale, *bias;
    const uint8_t *addend; /* levels that are added, times a factor; or null */
    i64 addend_image, addend_row;
    double addend_zero, addend_factor;
    i64 is_rounded;   /* whether the sums become levels of their own before: nearest(clamped) * first_factor */
    double first_low, first_high, first_factor;
    const chain *after; /* or null */
    const float *factors, *shifts; /* what follows the chain as scale and bias do the sums; or null */
    double low, high;              /* limits of the result; of levels less `zero` */
    void *out;
    i64 out_image, out_row, out_column;
    double zero;      /* of the levels, where no chain computes them */
    int32_t *unknown; /* for levels: set to 1 by a NaN of the chain; null where the results are floats */
} ending;

typedef uint8_t vb __attribute__((vector_size(VECTOR)));

/* Four bytes, or two times 16 bits, in each lane. */
INLINE vi spread_word(const char *p)
{
    int32_t word;
    memcpy(&word, p, 4);
    return word - (vi){0};
}
INLINE vi load_words(const char *p)
{
    vi x;
    memcpy(&x, p, sizeof(x));
    return x;
}

/* sum + the products of the pairs of each lane. */
INLINE vi pairs(vi sum, vi a, vi b)
{
#if VECTOR == 16
    return sum + (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif VECTOR == 8 && defined(__AVX2__)
    return sum + (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif VECTOR == 4 && defined(__SSE2__)
    return sum + (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* sum + the products of the unsigned and signed bytes of each lane, with VNNI: of AVX-512, or on its own beside AVX2, which
 * older assemblers do not know. GCC 12 copies registers around the intrinsic.
 */
#if VECTOR == 16
#define VNNI(NAME) NAME " %2, %1, %0"
#elif VECTOR == 8 && defined(__AVX2__) && (__GNUC__ >= 11 || __clang_major__ >= 12)
#define VNNI(NAME) "%{vex%} " NAME " %2, %1, %0"
#endif
#ifdef VNNI
INLINE vi quads(vi sum, vi a, vi b)
{
    __asm__(VNNI("vpdpbusd") : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
#endif

#if VECTOR == 16
/* Up to 16 bytes, and a mask of as many lanes. */
INLINE __mmask16 first_lanes(i64 count) { return count >= 16 ? 0xffff : (__mmask16)((1u << count) - 1); }
INLINE __m128i bytes_of(const void *p, i64 count) { return _mm_maskz_loadu_epi8(first_lanes(count), p); }
#endif

/* Up to a vector of bytes, less an integer, as floats. GCC 12 takes vectors of bytes apart. */
INLINE vf floats_of(const uint8_t *p, i64 count, vf zero)
{
#if VECTOR == 16
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes_of(p, count)), _mm512_cvtps_epi32(zero)));
#else
    uint8_t copied[VECTOR] = {0};
    if (count < VECTOR) p = memcpy(copied, p, (size_t)count);
#if VECTOR == 8 && defined(__AVX2__)
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p))) - zero;
#elif defined(__SSE2__) && VECTOR == 4
    int32_t word;
    memcpy(&word, p, 4);
    const __m128i none = _mm_setzero_si128(), pairs_of = _mm_unpacklo_epi8(_mm_cvtsi32_si128(word), none);
    return _mm_cvtepi32_ps(_mm_unpacklo_epi16(pairs_of, none)) - zero;
#else
    vb x;
    memcpy(&x, p, VECTOR);
    return __builtin_convertvector(__builtin_convertvector(x, vi), vf) - zero;
#endif
#endif
}

/* The integers nearest to x, plus zero; all results are levels. */
INLINE void store_levels(uint8_t *out, vf x, float zero, i64 count)
{
#if VECTOR == 16
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32((int)zero)));
    if (count < 16) {
        _mm_mask_storeu_epi8(out, first_lanes(count), bytes);
        return;
    }
#elif VECTOR == 8 && defined(__AVX2__)
    const __m256i level = _mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32((int)zero));
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(level), _mm256_extracti128_si256(level, 1));
    const __m128i bytes = _mm_packus_epi16(words, words);
#elif defined(__SSE2__) && VECTOR == 4
    const __m128i level = _mm_add_epi32(_mm_cvtps_epi32(x), _mm_set1_epi32((int)zero));
    const __m128i words = _mm_packs_epi32(level, level), bytes = _mm_packus_epi16(words, words);
#else
    /* 1.5 * 2**23: adding it rounds to an integer. */
    const vi level = (vi)(x + 12582912.0f) - (vi)spread(12582912.0f) + (int32_t)zero;
    const vb bytes = __builtin_convertvector(level, vb);
#endif
    if (count >= VECTOR) memcpy(out, &bytes, VECTOR);
    else memcpy(out, &bytes, (size_t)count);
}

/* Whether a tile has a NaN. Columns behind those of the tile are anything. */
INLINE int has_nan_in(const float *tile, const place *at, i64 pitch)
{
    vi found = {0};
    for (i64 r = 0; r < at->rows; r++, tile += pitch) {
        const i64 whole = at->columns / VECTOR * VECTOR;
        for (i64 c = 0; c < whole; c += VECTOR) found |= (vi)(load(tile + c) != load(tile + c));
        for (i64 c = whole; c < at->columns; c++) found[0] |= -(tile[c] != tile[c]);
    }
    return !all_of(~found);
}

/* Ends a tile of rows of `width` sums, a multiple of VECTOR; at->column counts the columns of all groups. */
void irx_end_sums(const ending *e, const place *at, i64 width, const int32_t *sums);

#endif

/* Depthwise convolution and maxima of levels, channels last: each channel has a kernel of its own.
 *
 * As for products, sums are exact: four taps of a channel are one instruction with VNNI, elsewhere two of them. A table
 * points to the channels of each tap of some pixels.
 */
#include "levels.h"
#include "windows.h"

typedef struct {
    windows window;
    const char *weights;  /* for each chunk of channels the words of its taps */
    const int32_t *start; /* for each channel, padded by a vector */
    ending end;
    i64 channels;
    i64 unit; /* taps of a word: 4 or 2 */
    i64 rows, row_parts; /* pixels of an image, and the parts that a block is one of */
} integer_depthwise;

/* Pixels that are summed at once, and channels of a chunk. */
enum { PIXELS = 4, CHUNK = 64 };

/* Channels of a chunk without VNNI, and vectors of their sums. */
enum { PART = 16, VECTORS = PART / VECTOR };

/* Words of the bytes of two taps of a chunk: (a, b) in 16 bits each, channel after channel. */
INLINE void interleave(const char *a, const char *b, vi *words)
{
#if defined(__SSE2__)
    __m128i x, y;
    memcpy(&x, a, PART);
    memcpy(&y, b, PART);
    const __m128i low = _mm_unpacklo_epi8(x, y), high = _mm_unpackhi_epi8(x, y);
#if VECTOR == 16
    words[0] = (vi)_mm512_cvtepu8_epi16(_mm256_set_m128i(high, low));
#elif VECTOR == 8
    words[0] = (vi)_mm256_cvtepu8_epi16(low);
    words[1] = (vi)_mm256_cvtepu8_epi16(high);
#else
    const __m128i zero = _mm_setzero_si128();
    words[0] = (vi)_mm_unpacklo_epi8(low, zero);
    words[1] = (vi)_mm_unpackhi_epi8(low, zero);
    words[2] = (vi)_mm_unpacklo_epi8(high, zero);
    words[3] = (vi)_mm_unpackhi_epi8(high, zero);
#endif
#else
    for (int v = 0; v < VECTORS; v++) {
        vb x, y;
        memcpy(&x, a + v * VECTOR, VECTOR);
        memcpy(&y, b + v * VECTOR, VECTOR);
        words[v] = __builtin_convertvector(x, vi) | (__builtin_convertvector(y, vi) << 16);
    }
#endif
}

/* Sums of a chunk of PIXELS pixels. With few channels left, their bytes are copied first. */
INLINE void sums_of_pairs(const char *const *table, i64 pitch, i64 taps, i64 channel, i64 count, const char *weights,
                          const int32_t *start, int32_t *to, const int whole)
{
    vi sum[PIXELS * VECTORS];
    for (int i = 0; i < PIXELS * VECTORS; i++) memcpy(&sum[i], start + i % VECTORS * VECTOR, sizeof(vi));
    for (i64 t = 0; t < taps; t += 2, weights += PART * 4) {
        const char *const *first = table + t * pitch, *const *second = t + 1 < taps ? first + pitch : first;
        vi w[VECTORS];
        memcpy(w, weights, sizeof(w));
#pragma GCC unroll 4
        for (int i = 0; i < PIXELS; i++) {
            char a[PART] = {0}, b[PART] = {0};
            vi x[VECTORS];
            if (!whole) {
                memcpy(a, first[i] + channel, (size_t)count);
                memcpy(b, second[i] + channel, (size_t)count);
            }
            interleave(whole ? first[i] + channel : a, whole ? second[i] + channel : b, x);
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) sum[i * VECTORS + v] = pairs(sum[i * VECTORS + v], x[v], w[v]);
        }
    }
    memcpy(to, sum, sizeof(sum));
}

static void compute_pairs(const integer_depthwise *p, place at, i64 taps, const char *const *table, i64 pitch)
{
    int32_t sums[PIXELS * PART] __attribute__((aligned(64)));
    const i64 words = (taps + 1) / 2 * PART * 4;
    for (i64 c = 0; c < p->channels; c += PART) {
        at.column = c;
        at.columns = smaller(PART, p->channels - c);
        const char *weights = p->weights + c / PART * words;
        if (at.columns == PART) sums_of_pairs(table, pitch, taps, c, PART, weights, p->start + c, sums, 1);
        else sums_of_pairs(table, pitch, taps, c, at.columns, weights, p->start + c, sums, 0);
        end_sums(&p->end, &at, PART, sums);
    }
}

#if VECTOR == 16
typedef __m512i wide;

/* The bytes of 64 channels of one pixel, or of 32 of two; those behind `count` are 0. */
INLINE wide load_bytes(const char *a, const char *b, i64 count, const int two)
{
    if (two) {
        const __mmask32 mask = count >= 32 ? 0xffffffffu : (1u << count) - 1;
        const __m256i low = _mm256_maskz_loadu_epi8(mask, a), high = _mm256_maskz_loadu_epi8(mask, b);
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    const __mmask64 mask = count >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << count) - 1;
    return _mm512_maskz_loadu_epi8(mask, a);
}

/* Four vectors whose 128-bit lanes are rows, with rows and columns exchanged. */
INLINE void exchange(const vi *a, wide *n)
{
    const wide x = _mm512_shuffle_i32x4((wide)a[0], (wide)a[1], 0x44), y = _mm512_shuffle_i32x4((wide)a[0], (wide)a[1], 0xee);
    const wide z = _mm512_shuffle_i32x4((wide)a[2], (wide)a[3], 0x44), w = _mm512_shuffle_i32x4((wide)a[2], (wide)a[3], 0xee);
    n[0] = _mm512_shuffle_i32x4(x, z, 0x88);
    n[1] = _mm512_shuffle_i32x4(x, z, 0xdd);
    n[2] = _mm512_shuffle_i32x4(y, w, 0x88);
    n[3] = _mm512_shuffle_i32x4(y, w, 0xdd);
}

/* A chunk of channels of PIXELS pixels: 64 channels, or 32 of two pixels in each vector. */
INLINE void sums_of_quads(const char *const *table, i64 pitch, i64 taps, i64 channel, i64 count, const char *weights,
                          const int32_t *start, int32_t *to, const int two)
{
    enum { MOST = PIXELS };
    const int vectors = two ? PIXELS / 2 : PIXELS;
    vi sum[MOST * 4];
    for (int i = 0; i < vectors * 4; i++) sum[i] = (vi){0};
    for (i64 t = 0; t < taps; t += 4, weights += 4 * sizeof(wide)) {
        vi w[4];
        memcpy(w, weights, sizeof(w));
        const char *const *tap[4];
        for (int k = 0; k < 4; k++) tap[k] = table + smaller(t + k, taps - 1) * pitch;
#pragma GCC unroll 4
        for (int i = 0; i < vectors; i++) {
            const int a = two ? 2 * i : i, b = two ? 2 * i + 1 : i;
            wide x[4];
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) x[k] = load_bytes(tap[k][a] + channel, tap[k][b] + channel, count, two);
            const wide low = _mm512_unpacklo_epi8(x[0], x[1]), high = _mm512_unpackhi_epi8(x[0], x[1]);
            const wide low2 = _mm512_unpacklo_epi8(x[2], x[3]), high2 = _mm512_unpackhi_epi8(x[2], x[3]);
            sum[i * 4] = quads(sum[i * 4], (vi)_mm512_unpacklo_epi16(low, low2), w[0]);
            sum[i * 4 + 1] = quads(sum[i * 4 + 1], (vi)_mm512_unpackhi_epi16(low, low2), w[1]);
            sum[i * 4 + 2] = quads(sum[i * 4 + 2], (vi)_mm512_unpacklo_epi16(high, high2), w[2]);
            sum[i * 4 + 3] = quads(sum[i * 4 + 3], (vi)_mm512_unpackhi_epi16(high, high2), w[3]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++) {
        wide n[4];
        exchange(sum + i * 4, n);
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const wide first = _mm512_loadu_si512(start + (two ? k % 2 : k) * 16);
            _mm512_store_si512(to + (i * 4 + k) * 16, _mm512_add_epi32(n[k], first));
        }
    }
}

static void compute_quads(const integer_depthwise *p, place at, i64 taps, const char *const *table, i64 pitch)
{
    int32_t sums[PIXELS * CHUNK] __attribute__((aligned(64)));
    const i64 words = (taps + 3) / 4 * 4 * (i64)sizeof(wide);
    const char *weights = p->weights;
    for (i64 c = 0; c < p->channels; c += at.columns, weights += words) {
        const i64 left = p->channels - c;
        at.column = c;
        at.columns = left > CHUNK / 2 ? smaller(CHUNK, left) : left;
        const int32_t *start = p->start + c;
        if (left > CHUNK / 2) sums_of_quads(table, pitch, taps, c, at.columns, weights, start, sums, 0);
        else sums_of_quads(table, pitch, taps, c, at.columns, weights, start, sums, 1);
        end_sums(&p->end, &at, left > CHUNK / 2 ? CHUNK : CHUNK / 2, sums);
    }
}
#endif

/* Block: image and pixels. Scratch: the table of a block of pixels. */
EXPORT void irx_integer_depthwise(const void *parameters, i64 block, char *scratch)
{
    const integer_depthwise *p = parameters;
    const i64 part = block % p->row_parts, image = block / p->row_parts, taps = taps_of(&p->window);
    const i64 tiles = (p->rows + PIXELS - 1) / PIXELS, row = start_of(part, p->row_parts, tiles) * PIXELS;
    const i64 count = smaller(start_of(part + 1, p->row_parts, tiles) * PIXELS, p->rows) - row, pitch = count + 8;
    const char *const *table = (const char *const *)scratch;
    fill_table_of(&p->window, image, 0, row, count, pitch, (const float **)scratch, 1);
    for (i64 r = 0; r < count; r += PIXELS) {
        const place at = {image, row + r, 0, smaller(PIXELS, count - r), 0};
#if VECTOR == 16
        if (p->unit == 4) {
            compute_quads(p, at, taps, table + r, pitch);
            continue;
        }
#endif
        compute_pairs(p, at, taps, table + r, pitch);
    }
}

typedef struct {
    windows window;
    uint8_t *out;
    i64 out_image, out_row, channels, rows, row_parts;
} level_maxima;

/* The largest of all taps of `count` channels. */
INLINE void out_maxima(const uint8_t *const *table, i64 pitch, i64 taps, i64 channel, uint8_t *out, const i64 count)
{
    uint8_t found[CHUNK];
    for (i64 c = 0; c < count; c++) found[c] = table[0][channel + c];
    for (i64 t = 1; t < taps; t++) {
        const uint8_t *x = table[t * pitch] + channel;
        for (i64 c = 0; c < count; c++) found[c] = x[c] > found[c] ? x[c] : found[c];
    }
    for (i64 c = 0; c < count; c++) out[c] = found[c];
}

/* The largest level of each window. Block and scratch as above. */
EXPORT void irx_level_maxima(const void *parameters, i64 block, char *scratch)
{
    const level_maxima *p = parameters;
    const i64 part = block % p->row_parts, image = block / p->row_parts, taps = taps_of(&p->window);
    const i64 row = start_of(part, p->row_parts, p->rows), count = start_of(part + 1, p->row_parts, p->rows) - row;
    const i64 pitch = count + 8;
    const uint8_t *const *table = (const uint8_t *const *)scratch;
    fill_table_of(&p->window, image, 0, row, count, pitch, (const float **)scratch, 1);
    for (i64 r = 0; r < count; r++) {
        uint8_t *out = p->out + image * p->out_image + (row + r) * p->out_row;
        i64 c = 0;
        for (; c + CHUNK <= p->channels; c += CHUNK) out_maxima(table + r, pitch, taps, c, out + c, CHUNK);
        for (; c < p->channels; c++) out_maxima(table + r, pitch, taps, c, out + c, 1);
    }
}

/* Depthwise convolution and maxima of levels, channels last: each channel has a kernel of its own.
 *
 * As for products, sums are exact: four taps of a column of the kernel are one instruction with VNNI, elsewhere two.
 */
#include "levels.h"
#include "windows.h"

typedef struct {
    windows window;
    const char *weights;  /* for each chunk of channels the words of its taps */
    const int32_t *start; /* for each channel, padded by a vector */
    ending end;
    i64 channels;
    i64 unit; /* taps of a word, of a column of the kernel: 4, or 2 */
    i64 rows, row_parts; /* pixels of an image, and the parts that a block is one of */
} integer_depthwise;

/* Pixels whose sums are in registers, pixels of a strip, and channels of a chunk. */
enum { PIXELS = 4, STRIP_PIXELS = 8, CHUNK = 64 };

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

/* Positions of the data along the last axis that a strip of pixels reads, at most. */
enum { POSITIONS = 32 };

/* The channels at a position of a row of the data; zeros in the padding. */
INLINE const char *channels_at(const windows *w, const char *row, i64 x)
{
    return row && x >= 0 && x < w->sizes[2] ? row + x * w->data_strides[2] : (const char *)w->zeros;
}

/* A row of the data that a row of the kernel reads for a row of the result; null in the padding. */
INLINE const char *row_at(const windows *w, const char *base, i64 out_row, i64 row)
{
    const i64 z = out_row / w->counts[1] * w->strides[0] - w->pads[0] + row / w->kernel[1] * w->dilations[0];
    const i64 y = out_row % w->counts[1] * w->strides[1] - w->pads[1] + row % w->kernel[1] * w->dilations[1];
    if (z < 0 || z >= w->sizes[0] || y < 0 || y >= w->sizes[1]) return 0;
    return base + z * w->data_strides[0] + y * w->data_strides[1];
}

/* Sums of a chunk of channels of a strip of pixels of one row. Two rows of the kernel are a word: the words of each
 * position are made once for all pixels that read it. With few channels left, their bytes are copied first.
 */
static void strip_of_pairs(const windows *w, const char *base, i64 out_row, i64 x, i64 pixels, i64 count,
                           const char *weights, const int32_t *start, int32_t *to)
{
    vi words[POSITIONS * VECTORS], sum[STRIP_PIXELS * VECTORS];
    char copies[2 * PART] = {0};
    const i64 taps = w->kernel[2], rows = w->kernel[0] * w->kernel[1];
    const i64 far = pixels > 1 ? 1 : w->dilations[2], step = pixels > 1 ? w->dilations[2] : 1;
    const i64 positions = (pixels - 1) * w->strides[2] + (taps - 1) * step + 1;
    for (i64 first = 0; first < rows; first += 2, weights += taps * PART * 4) {
        const char *const one = row_at(w, base, out_row, first);
        const char *const two = row_at(w, base, out_row, smaller(first + 1, rows - 1));
        for (i64 j = 0; j < positions; j++) {
            const i64 at = x * w->strides[2] - w->pads[2] + j * far;
            const char *a = channels_at(w, one, at), *b = channels_at(w, two, at);
            if (count < PART) {
                memcpy(copies, a, (size_t)count);
                memcpy(copies + PART, b, (size_t)count);
                a = copies, b = copies + PART;
            }
            interleave(a, b, words + j * VECTORS);
        }
        for (i64 pixel = 0; pixel < pixels; pixel += PIXELS) {
            vi s[PIXELS * VECTORS];
            const vi *from[PIXELS];
            for (int k = 0; k < PIXELS; k++) from[k] = words + smaller(pixel + k, pixels - 1) * w->strides[2] * VECTORS;
            EACH_SUM(PIXELS, VECTORS)
            s[i] = first ? sum[pixel * VECTORS + i] : load_words((const char *)(start + i % VECTORS * VECTOR));
            for (i64 tap = 0; tap < taps; tap++)
                EACH_SUM(PIXELS, VECTORS)
                s[i] = pairs(s[i], from[i / VECTORS][tap * step * VECTORS + i % VECTORS],
                              load_words(weights + (tap * VECTORS + i % VECTORS) * (i64)sizeof(vi)));
            EACH_SUM(PIXELS, VECTORS) sum[pixel * VECTORS + i] = s[i];
        }
    }
    for (i64 i = 0; i < pixels * VECTORS; i++) memcpy(to + i * VECTOR, &sum[i], sizeof(vi));
}

#if VECTOR == 16
/* Sums of WIDE channels of a strip of pixels of one row. Four rows of the kernel are a word: the words of each position
 * are made once for all pixels that read it. A vector has words of four channels of each lane of 16 channels, as weights
 * and start have.
 */
#define STRIP(WIDE, PREFIX, TYPE, MASK)                                                                               \
    static void strip_##WIDE(const windows *w, const char *base, i64 out_row, i64 x, i64 pixels, i64 count,          \
                             const char *weights, const int32_t *start, int32_t *to)                                 \
    {                                                                                                                 \
        TYPE words[POSITIONS * 4], sum[STRIP_PIXELS * 4], begin[4];                                                   \
        _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)                                                           \
            memcpy(&begin[k], start + k * WIDE / 4, sizeof(TYPE));                                                    \
        const i64 taps = w->kernel[2], rows = w->kernel[0] * w->kernel[1];                                            \
        const i64 far = pixels > 1 ? 1 : w->dilations[2], step = pixels > 1 ? w->dilations[2] : 1;                   \
        const i64 positions = (pixels - 1) * w->strides[2] + (taps - 1) * step + 1;                                  \
        const MASK mask = count >= WIDE ? (MASK)-1 : (MASK)(((uint64_t)1 << count) - 1);                              \
        for (i64 first = 0; first < rows; first += 4, weights += taps * 4 * (i64)sizeof(TYPE)) {                      \
            const char *row[4];                                                                                       \
            for (int i = 0; i < 4; i++) row[i] = row_at(w, base, out_row, smaller(first + i, rows - 1));              \
            for (i64 j = 0; j < positions; j++) {                                                                     \
                TYPE v[4];                                                                                            \
                const i64 at = x * w->strides[2] - w->pads[2] + j * far;                                             \
                _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)                                                   \
                    v[i] = PREFIX##_maskz_loadu_epi8(mask, channels_at(w, row[i], at));                               \
                const TYPE low = PREFIX##_unpacklo_epi8(v[0], v[1]), high = PREFIX##_unpackhi_epi8(v[0], v[1]);       \
                const TYPE low2 = PREFIX##_unpacklo_epi8(v[2], v[3]), high2 = PREFIX##_unpackhi_epi8(v[2], v[3]);     \
                words[j * 4] = PREFIX##_unpacklo_epi16(low, low2);                                                    \
                words[j * 4 + 1] = PREFIX##_unpackhi_epi16(low, low2);                                                \
                words[j * 4 + 2] = PREFIX##_unpacklo_epi16(high, high2);                                              \
                words[j * 4 + 3] = PREFIX##_unpackhi_epi16(high, high2);                                              \
            }                                                                                                         \
            for (i64 i = 0; i < pixels; i += 4) {                                                                     \
                TYPE s[16];                                                                                           \
                const TYPE *from[4];                                                                                  \
                _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)                                                   \
                    from[k] = words + smaller(i + k, pixels - 1) * w->strides[2] * 4;                                 \
                _Pragma("GCC unroll 16") for (int k = 0; k < 16; k++)                                                 \
                    s[k] = first ? sum[i * 4 + k] : begin[k % 4];                                                     \
                for (i64 tap = 0; tap < taps; tap++) {                                                                \
                    TYPE by[4];                                                                                       \
                    _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)                                               \
                        memcpy(&by[k], weights + (tap * 4 + k) * (i64)sizeof(TYPE), sizeof(TYPE));                    \
                    _Pragma("GCC unroll 16") for (int k = 0; k < 16; k++)                                             \
                        __asm__("vpdpbusd %2, %1, %0"                                                                 \
                                : "+v"(s[k])                                                                          \
                                : "v"(from[k / 4][tap * step * 4 + k % 4]), "v"(by[k % 4]));                          \
                }                                                                                                     \
                _Pragma("GCC unroll 16") for (int k = 0; k < 16; k++) sum[i * 4 + k] = s[k];                          \
            }                                                                                                         \
        }                                                                                                             \
        for (i64 i = 0; i < pixels; i++, to += WIDE) in_order_##WIDE(sum + i * 4, to);                                \
    }

/* The lanes of four vectors, the first ones of all first. */
INLINE void in_order_64(const __m512i *a, int32_t *to)
{
    const __m512i x = _mm512_shuffle_i32x4(a[0], a[1], 0x44), y = _mm512_shuffle_i32x4(a[0], a[1], 0xee);
    const __m512i z = _mm512_shuffle_i32x4(a[2], a[3], 0x44), w = _mm512_shuffle_i32x4(a[2], a[3], 0xee);
    _mm512_storeu_si512(to, _mm512_shuffle_i32x4(x, z, 0x88));
    _mm512_storeu_si512(to + 16, _mm512_shuffle_i32x4(x, z, 0xdd));
    _mm512_storeu_si512(to + 32, _mm512_shuffle_i32x4(y, w, 0x88));
    _mm512_storeu_si512(to + 48, _mm512_shuffle_i32x4(y, w, 0xdd));
}
INLINE void store_both(int32_t *to, __m256i a, __m256i b)
{
    _mm512_storeu_si512(to, _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
}
INLINE void in_order_32(const __m256i *a, int32_t *to)
{
    store_both(to, _mm256_permute2x128_si256(a[0], a[1], 0x20), _mm256_permute2x128_si256(a[2], a[3], 0x20));
    store_both(to + 16, _mm256_permute2x128_si256(a[0], a[1], 0x31), _mm256_permute2x128_si256(a[2], a[3], 0x31));
}
INLINE void in_order_16(const __m128i *a, int32_t *to)
{
    store_both(to, _mm256_set_m128i(a[1], a[0]), _mm256_set_m128i(a[3], a[2]));
}

STRIP(64, _mm512, __m512i, __mmask64)
STRIP(32, _mm256, __m256i, __mmask32)
STRIP(16, _mm, __m128i, __mmask16)
#endif

/* Block: image and pixels, in strips: all channels of one after the other. */
EXPORT void irx_integer_depthwise(const void *parameters, i64 block, char *scratch)
{
    (void)scratch;
    const integer_depthwise *p = parameters;
    const windows *w = &p->window;
    const i64 part = block % p->row_parts, image = block / p->row_parts, tiles = (p->rows + PIXELS - 1) / PIXELS;
    const i64 row = start_of(part, p->row_parts, tiles) * PIXELS;
    const i64 count = smaller(start_of(part + 1, p->row_parts, tiles) * PIXELS, p->rows) - row;
    const i64 reach = (w->kernel[2] - 1) * w->dilations[2] + 1, rows = w->kernel[0] * w->kernel[1];
    const i64 most = reach > POSITIONS ? 1 : smaller(STRIP_PIXELS, (POSITIONS - reach) / w->strides[2] + 1);
    const i64 words = (rows + p->unit - 1) / p->unit * w->kernel[2];
    int32_t sums[STRIP_PIXELS * CHUNK] __attribute__((aligned(64)));
    for (i64 r = 0, pixels; r < count; r += pixels) {
        const i64 out_row = (row + r) / w->counts[2], x = (row + r) % w->counts[2];
        pixels = smaller(most, smaller(count - r, w->counts[2] - x));
        const char *weights = p->weights, *base = (const char *)w->data + image * w->data_image;
        for (i64 c = 0, wide; c < p->channels; c += wide, weights += words * wide * 4) {
            const i64 left = p->channels - c;
            wide = p->unit == 2 || left <= 16 ? PART : left > 32 ? 64 : 32;
            const place at = {image, row + r, c, pixels, smaller(wide, left)};
            if (p->unit == 2) strip_of_pairs(w, base + c, out_row, x, pixels, left, weights, p->start + c, sums);
#if VECTOR == 16
            else if (wide == 64) strip_64(w, base + c, out_row, x, pixels, left, weights, p->start + c, sums);
            else if (wide == 32) strip_32(w, base + c, out_row, x, pixels, left, weights, p->start + c, sums);
            else strip_16(w, base + c, out_row, x, pixels, left, weights, p->start + c, sums);
#endif
            irx_end_sums(&p->end, &at, wide, sums);
        }
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

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

/* A strip: pixels of one row of the result, and where its windows begin in the data. */
typedef struct {
    const char *base; /* the image, from the first channel of a chunk on */
    i64 z, y, x, pixels;
} strip;

INLINE strip strip_at(const windows *w, const char *base, i64 row, i64 most)
{
    const i64 out_row = row / w->counts[2], x = row % w->counts[2];
    return (strip){base, out_row / w->counts[1] * w->strides[0] - w->pads[0],
                   out_row % w->counts[1] * w->strides[1] - w->pads[1], x * w->strides[2] - w->pads[2],
                   smaller(most, w->counts[2] - x)};
}

/* A row of the data that a row of the kernel reads for a strip; null in the padding. */
INLINE const char *row_at(const windows *w, const strip *s, i64 row)
{
    const i64 plane = w->kernel[0] == 1 ? 0 : row / w->kernel[1];
    const i64 z = s->z + plane * w->dilations[0], y = s->y + (row - plane * w->kernel[1]) * w->dilations[1];
    if (z < 0 || z >= w->sizes[0] || y < 0 || y >= w->sizes[1]) return 0;
    return s->base + z * w->data_strides[0] + y * w->data_strides[1];
}

/* Steps of `far` that reach a distance. A division takes as long as the words of two positions. */
INLINE i64 steps_to(i64 distance, i64 far) { return far == 1 ? distance : (distance + far - 1) / far; }

/* The positions of a strip, at every `far`-th one of the data, that are inside of it: begin <= j < end. */
typedef struct {
    i64 begin, end;
} inside;

INLINE inside inside_of(const windows *w, const strip *s, i64 far, i64 positions)
{
    const i64 begin = s->x < 0 ? smaller(positions, steps_to(-s->x, far)) : 0;
    return (inside){begin, larger(begin, smaller(positions, steps_to(w->sizes[2] - s->x, far)))};
}

/* The channels at a position of a row of the data, and bytes to the next position; zeros for a row in the padding. */
typedef struct {
    const char *channels;
    i64 step;
} walk;

INLINE walk walk_from(const windows *w, const char *row, i64 x, i64 far)
{
    return row ? (walk){row + x * w->data_strides[2], far * w->data_strides[2]} : (walk){(const char *)w->zeros, 0};
}

/* Words of two rows of the kernel for all positions of a strip. With few channels left, their bytes are copied first. */
INLINE void words_of_rows(const windows *w, const strip *s, i64 first, i64 far, i64 positions, i64 count, vi *words)
{
    char copies[2 * PART] = {0};
    const i64 rows = w->kernel[0] * w->kernel[1];
    const char *zeros = (const char *)w->zeros;
    const inside in = inside_of(w, s, far, positions);
    walk one = walk_from(w, row_at(w, s, first), s->x + in.begin * far, far);
    walk two = walk_from(w, row_at(w, s, smaller(first + 1, rows - 1)), s->x + in.begin * far, far);
    if (count < PART) zeros = memcpy(copies, zeros, (size_t)count);
    for (i64 j = 0; j < in.begin; j++) interleave(zeros, zeros, words + j * VECTORS);
    for (i64 j = in.end; j < positions; j++) interleave(zeros, zeros, words + j * VECTORS);
    for (i64 j = in.begin; j < in.end; j++, one.channels += one.step, two.channels += two.step) {
        if (count < PART) {
            memcpy(copies, one.channels, (size_t)count);
            memcpy(copies + PART, two.channels, (size_t)count);
            interleave(copies, copies + PART, words + j * VECTORS);
        } else {
            interleave(one.channels, two.channels, words + j * VECTORS);
        }
    }
}

/* Sums of a part of the channels of a strip, `pitch` for each pixel. Two rows of the kernel are a word: the words of each
 * position are made once for all pixels that read it.
 */
static void strip_of_pairs(const windows *w, const strip *s, i64 count, const char *weights, const int32_t *start,
                           int32_t *to, i64 pitch)
{
    vi words[POSITIONS * VECTORS];
    const i64 taps = w->kernel[2], rows = w->kernel[0] * w->kernel[1], pixels = s->pixels;
    const i64 far = pixels > 1 ? 1 : w->dilations[2], step = pixels > 1 ? w->dilations[2] : 1;
    const i64 positions = (pixels - 1) * w->strides[2] + (taps - 1) * step + 1;
    for (i64 first = 0; first < rows; first += 2, weights += taps * PART * 4) {
        words_of_rows(w, s, first, far, positions, count, words);
        for (i64 pixel = 0; pixel < pixels; pixel += PIXELS) {
            int32_t *const sums = to + pixel * pitch;
            vi sum[PIXELS * VECTORS];
            const vi *from[PIXELS];
            for (int k = 0; k < PIXELS; k++) from[k] = words + smaller(pixel + k, pixels - 1) * w->strides[2] * VECTORS;
            EACH_SUM(PIXELS, VECTORS)
            sum[i] = load_words((const char *)((first ? sums + i / VECTORS * pitch : start) + i % VECTORS * VECTOR));
            for (i64 tap = 0; tap < taps; tap++)
                EACH_SUM(PIXELS, VECTORS)
                sum[i] = pairs(sum[i], from[i / VECTORS][tap * step * VECTORS + i % VECTORS],
                               load_words(weights + (tap * VECTORS + i % VECTORS) * (i64)sizeof(vi)));
            EACH_SUM(PIXELS, VECTORS) memcpy(sums + i / VECTORS * pitch + i % VECTORS * VECTOR, &sum[i], sizeof(vi));
        }
    }
}

#if VECTOR == 16
/* Sums of WIDE channels of a strip of pixels of one row. Four rows of the kernel are a word: the words of each position
 * are made once for all pixels that read it. A vector has words of four channels of each lane of 16 channels, as weights
 * and start have.
 */
#define STRIP(WIDE, PREFIX, TYPE, MASK)                                                                               \
    INLINE void words_##WIDE(TYPE a, TYPE b, TYPE c, TYPE d, TYPE *words)                                             \
    {                                                                                                                 \
        const TYPE low = PREFIX##_unpacklo_epi8(a, b), high = PREFIX##_unpackhi_epi8(a, b);                           \
        const TYPE low2 = PREFIX##_unpacklo_epi8(c, d), high2 = PREFIX##_unpackhi_epi8(c, d);                         \
        words[0] = PREFIX##_unpacklo_epi16(low, low2);                                                                \
        words[1] = PREFIX##_unpackhi_epi16(low, low2);                                                                \
        words[2] = PREFIX##_unpacklo_epi16(high, high2);                                                              \
        words[3] = PREFIX##_unpackhi_epi16(high, high2);                                                              \
    }                                                                                                                 \
    static void strip_##WIDE(const windows *w, const strip *at, i64 count, const char *weights, const int32_t *start, \
                             int32_t *to)                                                                             \
    {                                                                                                                 \
        TYPE words[POSITIONS * 4], sum[STRIP_PIXELS * 4], begin[4];                                                   \
        _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)                                                           \
            memcpy(&begin[k], start + k * WIDE / 4, sizeof(TYPE));                                                    \
        const i64 taps = w->kernel[2], rows = w->kernel[0] * w->kernel[1], pixels = at->pixels;                       \
        const i64 far = pixels > 1 ? 1 : w->dilations[2], step = pixels > 1 ? w->dilations[2] : 1;                   \
        const i64 positions = (pixels - 1) * w->strides[2] + (taps - 1) * step + 1;                                  \
        const MASK mask = count >= WIDE ? (MASK)-1 : (MASK)(((uint64_t)1 << count) - 1);                              \
        const TYPE zeros = PREFIX##_maskz_loadu_epi8(mask, w->zeros);                                                 \
        const inside in = inside_of(w, at, far, positions);                                                           \
        for (i64 first = 0; first < rows; first += 4, weights += taps * 4 * (i64)sizeof(TYPE)) {                      \
            walk row[4];                                                                                              \
            for (int i = 0; i < 4; i++)                                                                               \
                row[i] = walk_from(w, row_at(w, at, smaller(first + i, rows - 1)), at->x + in.begin * far, far);      \
            for (i64 j = 0; j < in.begin; j++) words_##WIDE(zeros, zeros, zeros, zeros, words + j * 4);               \
            for (i64 j = in.end; j < positions; j++) words_##WIDE(zeros, zeros, zeros, zeros, words + j * 4);         \
            for (i64 j = in.begin; j < in.end; j++) {                                                                 \
                TYPE v[4];                                                                                            \
                _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {                                                 \
                    v[i] = PREFIX##_maskz_loadu_epi8(mask, row[i].channels);                                          \
                    row[i].channels += row[i].step;                                                                   \
                }                                                                                                     \
                words_##WIDE(v[0], v[1], v[2], v[3], words + j * 4);                                                  \
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
    strip s;
    for (i64 r = 0; r < count; r += s.pixels) {
        s = strip_at(w, (const char *)w->data + image * w->data_image, row + r, smaller(most, count - r));
        const char *weights = p->weights;
        for (i64 c = 0, wide; c < p->channels; c += wide, s.base += wide, weights += words * wide * 4) {
            const i64 left = p->channels - c;
            wide = left <= 16 ? 16 : left > 32 ? 64 : 32;
            if (p->unit == 2)
                for (i64 part = 0; part < smaller(wide, left); part += PART) {
                    const strip of_part = {s.base + part, s.z, s.y, s.x, s.pixels};
                    strip_of_pairs(w, &of_part, left - part, weights + words * part * 4, p->start + c + part,
                                   sums + part, wide);
                }
#if VECTOR == 16
            else if (wide == 64) strip_64(w, &s, left, weights, p->start + c, sums);
            else if (wide == 32) strip_32(w, &s, left, weights, p->start + c, sums);
            else strip_16(w, &s, left, weights, p->start + c, sums);
#endif
            const place at = {image, row + r, c, s.pixels, smaller(wide, left)};
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

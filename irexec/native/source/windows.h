/* Positions of the values of windows: for each tap of the kernel and each pixel of a block a pointer to its channels.
 *
 * The data is channels last, of up to three spatial axes; fewer axes are sizes of 1. A tap in the padding is a pointer
 * to zeros. So kernels read data as it lies, without copies of windows, and need no case for edges.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "irx.h"

typedef struct {
    const float *data;
    i64 data_image;
    const float *zeros; /* as many as a tap reads */
    i64 data_strides[3];
    i64 sizes[3]; /* of the data */
    i64 counts[3]; /* of windows: the sizes of the result */
    i64 kernel[3], strides[3], dilations[3], pads[3];
} windows;

INLINE i64 taps_of(const windows *w) { return w->kernel[0] * w->kernel[1] * w->kernel[2]; }

/* Fills table[tap * pitch + i] for the pixels first .. first + count - 1; the last pixel is repeated up to pitch. */
static void fill_table(const windows *w, i64 image, i64 channel, i64 first, i64 count, i64 pitch, const float **table)
{
    const float *base = w->data + image * w->data_image + channel;
    i64 x = first % w->counts[2], rest = first / w->counts[2];
    i64 y = rest % w->counts[1], z = rest / w->counts[1];
    for (i64 i = 0; i < count; i++) {
        const i64 from[3] = {z * w->strides[0] - w->pads[0], y * w->strides[1] - w->pads[1],
                             x * w->strides[2] - w->pads[2]};
        i64 tap = 0;
        for (i64 a = 0; a < w->kernel[0]; a++) {
            const i64 za = from[0] + a * w->dilations[0];
            const int inside_z = za >= 0 && za < w->sizes[0];
            for (i64 b = 0; b < w->kernel[1]; b++) {
                const i64 yb = from[1] + b * w->dilations[1];
                const int inside = inside_z && yb >= 0 && yb < w->sizes[1];
                const float *row = base + za * w->data_strides[0] + yb * w->data_strides[1];
                for (i64 c = 0; c < w->kernel[2]; c++, tap++) {
                    const i64 xc = from[2] + c * w->dilations[2];
                    const int is_data = inside && xc >= 0 && xc < w->sizes[2];
                    table[tap * pitch + i] = is_data ? row + xc * w->data_strides[2] : w->zeros;
                }
            }
        }
        if (++x == w->counts[2]) {
            x = 0;
            if (++y == w->counts[1]) y = 0, z++;
        }
    }
    const i64 taps = taps_of(w);
    for (i64 tap = 0; tap < taps; tap++)
        for (i64 i = count; i < pitch; i++) table[tap * pitch + i] = table[tap * pitch + count - 1];
}

#endif

/* Chains of element-wise operations on tiles: what follows a kernel while its result is in the first-level cache. */
#ifndef CHAIN_H
#define CHAIN_H

#include "irx.h"

/* Floats of a tile, at most, and arrays of that size that a chain works on. */
enum { TILE = 512, REGISTERS = 8 };

/* A tensor that a chain reads. Strides are by image, row and column of the result; 0 where it is broadcast. */
typedef struct {
    const float *base;
    i64 image, row, column;
} operand;

/* One operation: register `target` becomes the operation of registers a and b, with the constants p and q. A few read an
 * operand. What a load with p = 1 reads is for the next one alone, a sum or a product.
 */
typedef struct {
    i64 code, target, a, b, operand;
    double p, q;
} instruction;

/* Register 0 is the tile, before and after. A chain without instructions changes nothing. */
typedef struct {
    const operand *operands;
    const instruction *instructions;
    i64 count;
} chain;

/* The position of a tile in the result. */
typedef struct {
    i64 image, row, column, rows, columns;
} place;

/* The part of an operand that belongs to a tile, as a tile; columns from place.columns on are anything. */
void irx_load(const operand *o, const place *at, i64 pitch, float *out);

/* Fetches what a chain reads of tensors whose rows lie apart, for a tile that is computed meanwhile. A chain may be null. */
void irx_fetch(const chain *c, const place *at);

/* Runs a chain on a tile of rows of `pitch` floats; columns from place.columns on are anything. A pitch that VECTOR does not
 * divide is the number of columns; up to a vector is then read and written behind the tile.
 */
void irx_chain(const chain *c, const place *at, i64 pitch, float *tile);

/* The same for a chain that ends in levels, which are written as bytes, row after row; *unknown becomes 1 if there is a NaN. */
void irx_chain_to_levels(const chain *c, const place *at, i64 pitch, float *tile, uint8_t *out, i64 row, int32_t *unknown);

#endif

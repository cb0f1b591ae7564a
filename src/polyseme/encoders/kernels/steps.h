/* What the kernels of whole steps share: `steps.c` for float32, `tiles.c` for bfloat16.
 *
 *   in   inputs   (S, N, D)   what the layer reads at this step
 *        hidden   (S, N, P)   what the step before gave
 *        weights  packed      from D + P numbers to the gates, each kernel in its own order
 *        bias     (S, 4H)
 *   out  cells    (S, H / LANES, max rows, LANES)   in place
 *        output   (S, N, H)   output gate times tanh(cell), not yet projected
 *
 * For when no gradient is needed. A vector of cells at a time, a panel: their four gates are
 * multiplied out and used while they are at hand, so that nothing is written but cells and their
 * outputs, and a panel's weights come from far memory once for all rows. Only for processors where
 * that was measured to be faster than torch: with AVX2, eight cells, or with AVX-512, sixteen.
 */

#ifndef POLYSEME_STEPS_H
#define POLYSEME_STEPS_H

#include "gates.h"

typedef struct {
    count stacks, rows, max_rows, hidden_size, input_size, proj_size, threads;
    float clip; /* the largest float where cells are free */
} step;

enum { INPUTS, HIDDEN, WEIGHTS, BIAS, CELLS, CELL_OUTPUT };

#define START(TYPE, WHICH) ((TYPE *)arrays[WHICH].start + stack * arrays[WHICH].stride)

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))

#define HAS_STEPS
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* ON(add) is that instruction for vectors of LANES numbers. */
#ifdef __AVX512F__
#define LANES 16
#define ON(NAME) _mm512_##NAME##_ps
typedef __m512 lanes;
#else
#define LANES 8
#define ON(NAME) _mm256_##NAME##_ps
typedef __m256 lanes;
#endif

#define GATES 4
#define PANEL (GATES * LANES)

static inline lanes all(float value) { return ON(set1)(value); }

/* Of two operands of which one is no number, the processor takes the second. */
static inline lanes between(lanes value, float bound) {
    return ON(max)(all(-bound), ON(min)(all(bound), value));
}

/* `is_short`: to 13 bits, of which bfloat16 keeps 8. */
#ifdef __AVX512F__
INLINE lanes nearest_whole(lanes x) { return _mm512_roundscale_ps(x, 0); }

INLINE lanes times_power_of_two(lanes x, lanes whole) { return _mm512_scalef_ps(x, whole); }

INLINE lanes one_over(lanes x, const int is_short) {
    const lanes y = _mm512_rcp14_ps(x); /* 14 bits, then Newton's step */
    return is_short ? y : _mm512_mul_ps(y, _mm512_fnmadd_ps(x, y, all(2.0f)));
}
#else
INLINE lanes nearest_whole(lanes x) { return _mm256_round_ps(x, 0); }

INLINE lanes times_power_of_two(lanes x, lanes whole) { /* as in gates.h; whole <= 30 */
    const __m256i power = _mm256_cvtps_epi32(_mm256_max_ps(all(-126.0f), whole));
    const __m256i bits = _mm256_slli_epi32(_mm256_add_epi32(power, _mm256_set1_epi32(127)), 23);
    return x * _mm256_castsi256_ps(bits);
}

/* Divided, not guessed: Intel and AMD differ in the guess, and it would save nothing here. */
INLINE lanes one_over(lanes x, const int is_short) {
    (void)is_short;
    return 1.0f / x;
}
#endif

/* As in gates.h. */
INLINE lanes one_and_power_of_two(lanes x, const int is_short) {
    x = ON(min)(all(30.0f), x); /* so that four can be multiplied */
    const lanes whole = nearest_whole(x), f = ON(sub)(x, whole);
    lanes p = all(is_short ? 5.517166e-02f : 1.338130212e-03f);
    if (!is_short) {
        p = ON(fmadd)(p, f, all(9.666368365e-03f));
        p = ON(fmadd)(p, f, all(5.550381169e-02f));
    }
    p = ON(fmadd)(p, f, all(is_short ? 2.4261112e-01f : 2.402234972e-01f));
    p = ON(fmadd)(p, f, all(is_short ? 6.9326099e-01f : 6.931471825e-01f));
    p = ON(fmadd)(p, f, all(is_short ? 9.9992807e-01f : 1.0f));
    return ON(add)(times_power_of_two(p, whole), all(1.0f));
}

/* From the gates before their activations to the cells' output; cells are changed in place. */
INLINE lanes lstm_cell(const lanes gates[GATES], float *cells, float clip, const int is_short) {
    const lanes a = one_and_power_of_two(gates[0] * SIGMOID, is_short);
    const lanes b = one_and_power_of_two(gates[1] * SIGMOID, is_short);
    const lanes d = one_and_power_of_two(gates[2] * SIGMOID, is_short);
    const lanes e = one_and_power_of_two(gates[3] * TANH, is_short);
    const lanes ab = a * b, de = d * e, shared = one_over(ab * de, is_short); /* for all four */
    const lanes candidate = 1.0f - 2.0f * (shared * ab * d);
    const lanes cell = between(shared * de * (a * ON(loadu)(cells) + b * candidate), clip);
    ON(storeu)(cells, cell);
    const lanes power = one_and_power_of_two(cell * TANH, is_short);
    const lanes cell_tanh = 1.0f - 2.0f * one_over(power, is_short);
    return shared * ab * e * cell_tanh;
}

/* The next panel's weights come nearer while this one's are used: a share for each block of rows. */
static inline void fetch(const char *next, count bytes, count block, count blocks) {
    for (count at = bytes * block / blocks & -64; at < bytes * (block + 1) / blocks; at += 64)
        _mm_prefetch(next + at, _MM_HINT_T1);
}

#endif

#endif

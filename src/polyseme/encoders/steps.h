/* What the kernels of whole steps share: `steps.c` for float32, `tiles.c` for bfloat16.
 *
 *   in   read     (S, N, D)   what the layer reads at this step
 *        hidden   (S, N, P)   what the step before gave
 *        weights  packed      from D + P numbers to the gates, each kernel in its own order
 *        bias     (S, 4H)
 *   out  cells    (S, H / 16, most rows, 16)   in place
 *        emitted  (S, N, H)
 *
 * For when nothing is learnt. Sixteen cells at a time, a panel: their four gates are multiplied out
 * and used while they are at hand, so that nothing is written but cells and what they emit, and a
 * panel's weights come from far memory once for all rows. Only for processors where that was
 * measured to be faster than torch.
 */

#ifndef POLYSEME_STEPS_H
#define POLYSEME_STEPS_H

#include "gates.h"

#define LANES 16 /* cells of a panel */
#define GATES 4
#define PANEL (GATES * LANES)

typedef struct {
    count stacks, rows, most_rows, cells, read, width, threads;
    float clip; /* the largest float where cells are free */
} step;

enum { READ, HIDDEN, WEIGHTS, BIAS, CELLS, EMITTED };

#define START(TYPE, WHICH) ((TYPE *)arrays[WHICH].start + stack * arrays[WHICH].stride)

#ifdef __AVX512F__

#include <immintrin.h>

typedef __m512 lanes;

static inline lanes all(float value) { return _mm512_set1_ps(value); }

/* Of two operands of which one is no number, the processor takes the second. */
static inline lanes between(lanes value, float bound) {
    return _mm512_max_ps(all(-bound), _mm512_min_ps(all(bound), value));
}

#define INLINE static inline __attribute__((always_inline))

/* As in gates.h, with instructions that only these processors have. `is_short`: to 13 bits, of
 * which bfloat16 keeps 8. */
INLINE lanes one_and_power_of_two(lanes x, const int is_short) {
    x = _mm512_min_ps(all(30.0f), x); /* so that four can be multiplied */
    const lanes whole = _mm512_roundscale_ps(x, 0), f = _mm512_sub_ps(x, whole);
    lanes p = all(is_short ? 5.517166e-02f : 1.338130212e-03f);
    if (!is_short) {
        p = _mm512_fmadd_ps(p, f, all(9.666368365e-03f));
        p = _mm512_fmadd_ps(p, f, all(5.550381169e-02f));
    }
    p = _mm512_fmadd_ps(p, f, all(is_short ? 2.4261112e-01f : 2.402234972e-01f));
    p = _mm512_fmadd_ps(p, f, all(is_short ? 6.9326099e-01f : 6.931471825e-01f));
    p = _mm512_fmadd_ps(p, f, all(is_short ? 9.9992807e-01f : 1.0f));
    return _mm512_add_ps(_mm512_scalef_ps(p, whole), all(1.0f));
}

INLINE lanes one_over(lanes x, const int is_short) {
    const lanes y = _mm512_rcp14_ps(x); /* 14 bits, then Newton's step */
    return is_short ? y : _mm512_mul_ps(y, _mm512_fnmadd_ps(x, y, all(2.0f)));
}

/* From what drives the gates to what the cells emit; the cells are changed in place. */
INLINE lanes settle(const lanes gates[GATES], float *cells, float clip, const int is_short) {
    const lanes a = one_and_power_of_two(gates[0] * SIGMOID, is_short);
    const lanes b = one_and_power_of_two(gates[1] * SIGMOID, is_short);
    const lanes d = one_and_power_of_two(gates[2] * SIGMOID, is_short);
    const lanes e = one_and_power_of_two(gates[3] * TANH, is_short);
    const lanes ab = a * b, de = d * e, shared = one_over(ab * de, is_short); /* for all four */
    const lanes new = 1.0f - 2.0f * (shared * ab * d);
    const lanes now = between(shared * de * (a * _mm512_loadu_ps(cells) + b * new), clip);
    _mm512_storeu_ps(cells, now);
    const lanes bent = 1.0f - 2.0f * one_over(one_and_power_of_two(now * TANH, is_short), is_short);
    return shared * ab * e * bent;
}

/* The next panel's weights come nearer while this one's are used: a share for each block of rows. */
static inline void fetch(const char *next, count bytes, count block, count blocks) {
    for (count at = bytes * block / blocks & -64; at < bytes * (block + 1) / blocks; at += 64)
        _mm_prefetch(next + at, _MM_HINT_T1);
}

#endif

#endif

/* All steps of an LSTM layer for a single row, from weights in float16.
 *
 *   in   gate inputs  (S, T, 4H)   what the inputs add to the gates, for all steps
 *        weights      (S, H / LANES, P, 4, LANES)       float16; from the output before to the gates
 *        projection   (S, P / PANEL, H, PANEL)          float16; null where P is H
 *        bias         (S, 4H)
 *   out  cells        (S, H)          in place
 *        outputs      (S, T + 1, P)   the first are those before the first step
 *        cell output  (S, H)          room for what is not projected yet
 *
 * A single row uses each weight once in a step, so that it waits for them to come from memory: in
 * float16 half as much comes. All steps are one call, as calling would cost as much as a step. */

#include "steps.h"

#ifdef HAS_STEPS

typedef struct {
    count stacks, steps, hidden_size, proj_size, threads;
    float cell_clip, output_clip; /* the largest float where they are free */
} row;

enum { ROW_GATE_INPUTS, ROW_WEIGHTS, ROW_PROJECTION, ROW_BIAS, ROW_CELLS, ROW_OUTPUTS, ROW_ROOM };

#define AHEAD 16 /* rows of a panel that are fetched before they are used */

INLINE lanes from_half(const uint16_t *half) {
#if LANES == 16
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)half));
#else
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)half));
#endif
}

/* Adds `inputs` times a panel of weights. Numbers at odd places have sums of their own: four sums
 * would wait for each other. */
INLINE void multiply(const float *inputs, count depth, const uint16_t *weights, lanes *sums) {
    lanes odd[GATES];
#pragma GCC unroll 4
    for (int at = 0; at < GATES; at++)
        odd[at] = all(0.0f);
    count k = 0;
    for (; k + 1 < depth; k += 2, weights += 2 * PANEL) {
        for (count at = 0; at < 2 * PANEL; at += 32) /* a cache line */
            _mm_prefetch((const char *)(weights + AHEAD * PANEL + at), _MM_HINT_T0);
#pragma GCC unroll 4
        for (int at = 0; at < GATES; at++) {
            const uint16_t *here = weights + at * LANES;
            sums[at] = ON(fmadd)(from_half(here), all(inputs[k]), sums[at]);
            odd[at] = ON(fmadd)(from_half(here + PANEL), all(inputs[k + 1]), odd[at]);
        }
    }
#pragma GCC unroll 4
    for (int at = 0; at < GATES; at++) {
        if (k < depth)
            sums[at] = ON(fmadd)(from_half(weights + at * LANES), all(inputs[k]), sums[at]);
        sums[at] = ON(add)(sums[at], odd[at]);
    }
}

static void one_row_stacks(const void *what, const array *arrays, count first, count last) {
    const row *of = what;
    const count hidden_size = of->hidden_size, proj_size = of->proj_size;
    for (count stack = first; stack < last; stack++) {
        const float *inputs = START(float, ROW_GATE_INPUTS), *bias = START(float, ROW_BIAS);
        const uint16_t *weights = START(uint16_t, ROW_WEIGHTS);
        const uint16_t *projection =
            arrays[ROW_PROJECTION].start ? START(uint16_t, ROW_PROJECTION) : 0;
        float *cells = START(float, ROW_CELLS), *before = START(float, ROW_OUTPUTS);
        for (count step = 0; step < of->steps; step++, inputs += GATES * hidden_size) {
            float *output = before + proj_size;
            float *cell_output = projection ? START(float, ROW_ROOM) : output;
            lanes sums[GATES];
            for (count at = 0; at < hidden_size; at += LANES) {
                for (int gate = 0; gate < GATES; gate++)
                    sums[gate] = ON(add)(ON(loadu)(inputs + gate * hidden_size + at),
                                         ON(loadu)(bias + gate * hidden_size + at));
                multiply(before, proj_size, weights + at * proj_size * GATES, sums);
                ON(storeu)(cell_output + at, lstm_cell(sums, cells + at, of->cell_clip, 0));
            }
            for (count at = 0; projection && at < proj_size; at += PANEL) {
                for (int part = 0; part < GATES; part++)
                    sums[part] = all(0.0f);
                multiply(cell_output, hidden_size, projection + at * hidden_size, sums);
                for (int part = 0; part < GATES; part++)
                    ON(storeu)(output + at + part * LANES, sums[part]);
            }
            for (count at = 0; at < proj_size; at += LANES)
                ON(storeu)(output + at, between(ON(loadu)(output + at), of->output_clip));
            before = output;
        }
    }
}

PUBLIC void one_row_float16(const row *of, const array *arrays) {
    parallel_for((job){one_row_stacks, of, arrays, of->stacks}, of->threads,
              of->steps * of->hidden_size * of->proj_size);
}

#endif

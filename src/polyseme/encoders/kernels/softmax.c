/* From logits to probabilities, a row at a time, while the row is in near memory.
 *
 *   in   logits   (N, K)   without their bias
 *        bias     (K,)     and the logit of each row's target (N,), which competes as well
 *        struck   (N,)     the column, if any, that is the target again; else -1
 *   out  maxima, totals (N,)   log(total) + maximum is the log of what probabilities are divided by
 *        logits   (N, K)   become probabilities, zero where struck out
 *        sums     (G, K)   over rows, of each of G groups: their sum is the gradient of the bias
 *
 * Optional: crossentropy.py does the same in several passes where this is not compiled. Groups are
 * the same for any number of threads, so that sums are added up in one order.
 */

#include "gates.h"

#define LOG2_E 1.44269504f
#define LOWEST -3.4e38f

typedef struct {
    count rows, columns, groups, threads;
} table;

enum { LOGITS, BIAS, TARGETS, STRUCK, MAXIMA, TOTALS, SCRATCH, SUMS };

#define ROW(NUMBER, WHICH) ((NUMBER *)arrays[WHICH].start + row * arrays[WHICH].stride)

/* At most 1: a logit less the largest. */
static inline float power(float x) { return power_of_two(within(LOG2_E * x, 126.0f)); }

static inline float total_power(const float *restrict scratch, count size, float largest) {
    float total = 0.0f;
    _Pragma("omp simd reduction(+ : total)") for (count k = 0; k < size; k++)
        total += power(scratch[k] - largest);
    return total;
}

#define SOFTMAX(NAME, SUM, NUMBER, LOAD, STORE)                                                   \
    static float NAME##_open(count size, const NUMBER *restrict logits,                           \
                             const float *restrict bias, float *restrict scratch, float largest) {   \
        _Pragma("omp simd reduction(max : largest)") for (count k = 0; k < size; k++) {           \
            const float logit = LOAD(logits[k]) + bias[k];                                        \
            scratch[k] = logit;                                                                      \
            largest = logit > largest ? logit : largest;                                          \
        }                                                                                         \
        return largest;                                                                           \
    }                                                                                             \
    static void NAME##_close(count size, float *restrict scratch, float share,                       \
                             NUMBER *restrict logits, float *restrict sums) {                     \
        _Pragma("omp simd") for (count k = 0; k < size; k++) {                                    \
            const float probability = scratch[k] * share;                                            \
            logits[k] = STORE(probability);                                                       \
            sums[k] += probability;                                                               \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_rows(const void *what, const array *arrays, count first, count last) {     \
        const table *of = what;                                                                   \
        const count size = of->columns;                                                           \
        for (count group = first; group < last; group++) {                                        \
            float *scratch = (float *)arrays[SCRATCH].start + group * size;                             \
            float *sums = (float *)arrays[SUMS].start + group * size;                             \
            const count end = of->rows * (group + 1) / of->groups;                                \
            for (count row = of->rows * group / of->groups; row < end; row++) {                   \
                NUMBER *logits = ROW(NUMBER, LOGITS);                                             \
                const float target = *ROW(float, TARGETS);                                        \
                const count struck = *ROW(count, STRUCK);                                         \
                const float largest = NAME##_open(size, logits, ROW(float, BIAS), scratch, target);  \
                float total = power(target - largest);                                            \
                if (struck >= 0) scratch[struck] = LOWEST;                                           \
                _Pragma("omp simd reduction(+ : total)") for (count k = 0; k < size; k++) {       \
                    const float one = power(scratch[k] - largest);                                   \
                    scratch[k] = one;                                                                \
                    total += one;                                                                 \
                }                                                                                 \
                if (struck >= 0) scratch[struck] = 0.0f;                                             \
                NAME##_close(size, scratch, 1.0f / total, logits, sums);                             \
                *ROW(float, MAXIMA) = largest;                                                    \
                *ROW(float, TOTALS) = total;                                                      \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    PUBLIC void NAME(const table *of, const array *arrays) {                                      \
        parallel_for((job){NAME##_rows, of, arrays, of->groups}, of->threads,                        \
                  of->rows * of->columns);                                                        \
    }                                                                                             \
    static void SUM##_rows(const void *what, const array *arrays, count first, count last) {      \
        const table *of = what;                                                                   \
        for (count group = first; group < last; group++) {                                        \
            float *scratch = (float *)arrays[SCRATCH].start + group * of->columns;                      \
            const count end = of->rows * (group + 1) / of->groups;                                \
            for (count row = of->rows * group / of->groups; row < end; row++) {                   \
                const float largest = NAME##_open(of->columns, ROW(NUMBER, LOGITS),               \
                                                  ROW(float, BIAS), scratch, LOWEST);                \
                *ROW(float, MAXIMA) = largest;                                                    \
                *ROW(float, TOTALS) = total_power(scratch, of->columns, largest);                    \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    /* Maxima and totals alone, among all columns: logits stay. */                                \
    PUBLIC void SUM(const table *of, const array *arrays) {                                       \
        parallel_for((job){SUM##_rows, of, arrays, of->groups}, of->threads,                         \
                  of->rows * of->columns);                                                        \
    }

SOFTMAX(softmax_float32, sum_softmax_float32, float, load_float, store_float)
SOFTMAX(softmax_bfloat16, sum_softmax_bfloat16, uint16_t, bf16_to_f32, f32_to_bf16)

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

enum { LOGITS, BIAS, TARGETS, STRUCK, MAXIMA, TOTALS, ROOM, SUMS };

#define ROW(NUMBER, WHICH) ((NUMBER *)arrays[WHICH].start + row * arrays[WHICH].stride)

/* At most 1: a logit less the largest. */
static inline float power(float x) { return power_of_two(within(LOG2_E * x, 126.0f)); }

static inline float total_power(const float *restrict room, count size, float largest) {
    float total = 0.0f;
    _Pragma("omp simd reduction(+ : total)") for (count k = 0; k < size; k++)
        total += power(room[k] - largest);
    return total;
}

#define SOFTMAX(NAME, SUM, NUMBER, LOAD, STORE)                                                   \
    static float NAME##_open(count size, const NUMBER *restrict logits,                           \
                             const float *restrict bias, float *restrict room, float largest) {   \
        _Pragma("omp simd reduction(max : largest)") for (count k = 0; k < size; k++) {           \
            const float logit = LOAD(logits[k]) + bias[k];                                        \
            room[k] = logit;                                                                      \
            largest = logit > largest ? logit : largest;                                          \
        }                                                                                         \
        return largest;                                                                           \
    }                                                                                             \
    static void NAME##_close(count size, float *restrict room, float share,                       \
                             NUMBER *restrict logits, float *restrict sums) {                     \
        _Pragma("omp simd") for (count k = 0; k < size; k++) {                                    \
            const float probability = room[k] * share;                                            \
            logits[k] = STORE(probability);                                                       \
            sums[k] += probability;                                                               \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_rows(const void *what, const array *arrays, count first, count last) {     \
        const table *of = what;                                                                   \
        const count size = of->columns;                                                           \
        for (count group = first; group < last; group++) {                                        \
            float *room = (float *)arrays[ROOM].start + group * size;                             \
            float *sums = (float *)arrays[SUMS].start + group * size;                             \
            const count end = of->rows * (group + 1) / of->groups;                                \
            for (count row = of->rows * group / of->groups; row < end; row++) {                   \
                NUMBER *logits = ROW(NUMBER, LOGITS);                                             \
                const float target = *ROW(float, TARGETS);                                        \
                const count struck = *ROW(count, STRUCK);                                         \
                const float largest = NAME##_open(size, logits, ROW(float, BIAS), room, target);  \
                float total = power(target - largest);                                            \
                if (struck >= 0) room[struck] = LOWEST;                                           \
                _Pragma("omp simd reduction(+ : total)") for (count k = 0; k < size; k++) {       \
                    const float one = power(room[k] - largest);                                   \
                    room[k] = one;                                                                \
                    total += one;                                                                 \
                }                                                                                 \
                if (struck >= 0) room[struck] = 0.0f;                                             \
                NAME##_close(size, room, 1.0f / total, logits, sums);                             \
                *ROW(float, MAXIMA) = largest;                                                    \
                *ROW(float, TOTALS) = total;                                                      \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    PUBLIC void NAME(const table *of, const array *arrays) {                                      \
        share_out((job){NAME##_rows, of, arrays, of->groups}, of->threads,                        \
                  of->rows * of->columns);                                                        \
    }                                                                                             \
    static void SUM##_rows(const void *what, const array *arrays, count first, count last) {      \
        const table *of = what;                                                                   \
        for (count group = first; group < last; group++) {                                        \
            float *room = (float *)arrays[ROOM].start + group * of->columns;                      \
            const count end = of->rows * (group + 1) / of->groups;                                \
            for (count row = of->rows * group / of->groups; row < end; row++) {                   \
                const float largest = NAME##_open(of->columns, ROW(NUMBER, LOGITS),               \
                                                  ROW(float, BIAS), room, LOWEST);                \
                *ROW(float, MAXIMA) = largest;                                                    \
                *ROW(float, TOTALS) = total_power(room, of->columns, largest);                    \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    /* Maxima and totals alone, among all columns: logits stay. */                                \
    PUBLIC void SUM(const table *of, const array *arrays) {                                       \
        share_out((job){SUM##_rows, of, arrays, of->groups}, of->threads,                         \
                  of->rows * of->columns);                                                        \
    }

SOFTMAX(softmax_float32, sum_softmax_float32, float, load_float, store_float)
SOFTMAX(softmax_bfloat16, sum_softmax_bfloat16, uint16_t, load_brain, store_brain)

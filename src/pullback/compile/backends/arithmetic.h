/* NumPy's meaning of arithmetic where C's differs, and the reductions of one block, for the loops of pullback.compile.

   The name of a function ends in the type it works on: b8 for bool, i8 to i64, u8 to u64, f32 and f64. Division of
   integers rounds to minus infinity and is 0 by 0; a shift by too much shifts everything out; maximum and minimum hand
   a nan on, fmax and fmin do not. Signed integers wrap around (the loops are compiled with -fwrapv). */

#define PB_INTEGER(T, n, bits)                                                                       \
    static inline T pb_add_##n(T a, T b) { return (T)(a + b); }                                      \
    static inline T pb_multiply_##n(T a, T b) { return (T)(a * b); }                                 \
    static inline T pb_maximum_##n(T a, T b) { return a > b ? a : b; }                               \
    static inline T pb_minimum_##n(T a, T b) { return a < b ? a : b; }                               \
    static inline T pb_power_##n(T a, T b) {                                                         \
        T r = 1;                                                                                     \
        for (; b > 0; b >>= 1, a = (T)(a * a)) r = (T)(b & 1 ? r * a : r);                           \
        return r;                                                                                    \
    }                                                                                                \
    static inline T pb_clip_##n(T a, T low, T high) {                                                \
        return pb_minimum_##n(pb_maximum_##n(a, low), high);                                         \
    }                                                                                                \
    static inline T pb_left_shift_##n(T a, T b) {                                                    \
        return (uint64_t)b < bits ? (T)((uint64_t)a << ((uint64_t)b & (bits - 1))) : 0;               \
    }                                                                                                \
    static inline T pb_right_shift_##n(T a, T b) {                                                   \
        return (T)(a >> ((uint64_t)b < bits ? (int)b : bits - 1)) & ((uint64_t)b < bits || a < 0 ? (T)-1 : 0); \
    }

#define PB_SIGNED(T, n, bits)                                                                        \
    PB_INTEGER(T, n, bits)                                                                           \
    static inline T pb_floor_divide_##n(T a, T b) {                                                  \
        T d = b == 0 || b == -1 ? 1 : b, q = (T)(a / d), r = (T)(a % d);                             \
        q = (T)(q - ((r != 0) & ((r < 0) != (d < 0))));                                              \
        return b == 0 ? 0 : (b == -1 ? (T)-a : q);                                                   \
    }                                                                                                \
    static inline T pb_remainder_##n(T a, T b) {                                                     \
        T d = b == 0 || b == -1 ? 1 : b, r = (T)(a % d);                                             \
        return (T)(r + ((r != 0) & ((r < 0) != (d < 0)) ? d : 0));                                   \
    }                                                                                                \
    static inline T pb_fmod_##n(T a, T b) { return (T)(a % (b == 0 || b == -1 ? 1 : b)); }

#define PB_UNSIGNED(T, n, bits)                                                                      \
    PB_INTEGER(T, n, bits)                                                                           \
    static inline T pb_floor_divide_##n(T a, T b) { return b == 0 ? 0 : (T)(a / b); }                \
    static inline T pb_remainder_##n(T a, T b) { return b == 0 ? 0 : (T)(a % b); }                   \
    static inline T pb_fmod_##n(T a, T b) { return b == 0 ? 0 : (T)(a % b); }

PB_SIGNED(int8_t, i8, 8)
PB_SIGNED(int16_t, i16, 16)
PB_SIGNED(int32_t, i32, 32)
PB_SIGNED(int64_t, i64, 64)
PB_UNSIGNED(uint8_t, u8, 8)
PB_UNSIGNED(uint16_t, u16, 16)
PB_UNSIGNED(uint32_t, u32, 32)
PB_UNSIGNED(uint64_t, u64, 64)

#define PB_FLOATING(T, n, s, log2e_inverse)                                                          \
    static inline T pb_maximum_##n(T a, T b) { return a >= b || a != a ? a : b; }                    \
    static inline T pb_minimum_##n(T a, T b) { return a <= b || a != a ? a : b; }                    \
    static inline T pb_fmax_##n(T a, T b) { return a >= b || b != b ? a : b; }                       \
    static inline T pb_fmin_##n(T a, T b) { return a <= b || b != b ? a : b; }                       \
    static inline T pb_floor_divide_##n(T a, T b) {                                                  \
        T mod = fmod##s(a, b), div = (a - mod) / b;                                                  \
        div = mod != 0 && (b < 0) != (mod < 0) ? div - 1 : div;                                      \
        T whole = floor##s(div);                                                                     \
        whole = div - whole > (T)0.5 ? whole + 1 : whole;                                            \
        whole = div != 0 ? whole : copysign##s((T)0, a / b);                                         \
        return b == 0 ? a / b : whole;                                                               \
    }                                                                                                \
    static inline T pb_remainder_##n(T a, T b) {                                                     \
        T mod = fmod##s(a, b);                                                                       \
        return mod == 0 ? copysign##s((T)0, b) : ((b < 0) != (mod < 0) ? mod + b : mod);             \
    }                                                                                                \
    static inline T pb_ldexp_##n(T a, int64_t b) {                                                   \
        return ldexp##s(a, b > 100000 ? 100000 : (b < -100000 ? -100000 : (int)b));                  \
    }                                                                                                \
    static inline T pb_logaddexp_##n(T a, T b) {                                                     \
        T d = a - b, high = a > b ? a : b;                                                           \
        T r = high + pb_log1p##s(pb_exp##s(-fabs##s(d)));                                            \
        return a == b ? a + (T)0.69314718055994531 : (d != d ? d : r);                               \
    }                                                                                                \
    static inline T pb_logaddexp2_##n(T a, T b) {                                                    \
        T d = a - b, high = a > b ? a : b;                                                           \
        T r = high + (T)1.4426950408889634 * pb_log1p##s(pb_exp2##s(-fabs##s(d)));                   \
        return a == b ? a + 1 : (d != d ? d : r);                                                    \
    }

PB_FLOATING(float, f32, f, )
PB_FLOATING(double, f64, , )

static inline _Bool pb_signbit_f32(float a) { return pb_bits(a) < 0; }
static inline _Bool pb_signbit_f64(double a) { return pb_bits64(a) < 0; }

static inline float pb_hypotf(float a, float b) {
    double x = a, y = b, r = sqrt(x * x + y * y);
    return fabs(x) == INFINITY || fabs(y) == INFINITY ? INFINITY : (float)r;
}

static inline double pb_add_f64(double a, double b) { return a + b; }
static inline double pb_multiply_f64(double a, double b) { return a * b; }

/* -- reductions ----------------------------------------------------------------------------------------------------- */

/* A sum of float64 carries along what each addition rounds off (Knuth's TwoSum), so that its error does not grow with
   the number of elements; within a run of 256 it is done without. */

#define PB_TWO_SUM(sum, rest, x)                                        \
    do {                                                                \
        double pb_x = (x), pb_y = (sum) + pb_x, pb_b = pb_y - (sum);    \
        (rest) += ((sum) - (pb_y - pb_b)) + (pb_x - pb_b);              \
        (sum) = pb_y;                                                   \
    } while (0)

/* where the sum is infinite or nan, the rest is of no use */
static inline double pb_finish_f64(double sum, double rest) { return fabs(sum) < INFINITY ? sum + rest : sum; }

#ifndef PB_CUDA /* a GPU's threads reduce otherwise, see `cuda_source.py` */

/* pb_block_add_f32(t, n) and so on: the reduction of a block of n values, in an order fixed by the width of the vectors
   alone. A is the type it is done in: sums and products of float32 are formed in float64. Joining the lanes of a vector
   costs more than a few additions, so short blocks do without. */

#define PB_PRAGMA(text) _Pragma(#text)
#define PB_REDUCE(T, n, A, m, op, start)                                                             \
    PB_PRAGMA(omp declare reduction(pb_##op##_##n : A : omp_out = pb_##op##_##m(omp_out, omp_in))    \
                  initializer(omp_priv = start))                                                     \
    static inline A pb_block_##op##_##n(const T *t, int64_t count) {                                 \
        A r = start;                                                                                 \
        if (count <= 16) {                                                                           \
            for (int64_t i = 0; i < count; i++) r = pb_##op##_##m(r, (A)t[i]);                       \
            return r;                                                                                \
        }                                                                                            \
        PB_PRAGMA(omp simd reduction(pb_##op##_##n : r))                                             \
        for (int64_t i = 0; i < count; i++) r = pb_##op##_##m(r, (A)t[i]);                           \
        return r;                                                                                    \
    }
#define PB_REDUCE_INTEGER(T, n, lowest, highest)                                                     \
    PB_REDUCE(T, n, T, n, add, 0)                                                                    \
    PB_REDUCE(T, n, T, n, multiply, 1)                                                               \
    PB_REDUCE(T, n, T, n, maximum, lowest)                                                           \
    PB_REDUCE(T, n, T, n, minimum, highest)
/* The largest or smallest number, and beside it whether there was a nan, for which every comparison is false. clang
   takes no such reduction for SIMD where nan counts: there the lanes of a vector are variables of their own. */
#ifdef __clang__
#define PB_LANES(T, before)                                                                          \
    enum { lanes = 64 / sizeof(T) };                                                                 \
    T most[lanes], wrong[lanes];                                                                     \
    for (int k = 0; k < lanes; k++) most[k] = r, wrong[k] = 0;                                       \
    for (; i + lanes <= count; i += lanes) {                                                         \
        PB_PRAGMA(omp simd)                                                                          \
        for (int k = 0; k < lanes; k++) {                                                            \
            T x = t[i + k];                                                                          \
            most[k] = x before most[k] ? x : most[k];                                                \
            wrong[k] = x != x ? 1 : wrong[k];                                                        \
        }                                                                                            \
    }                                                                                                \
    for (int k = 0; k < lanes; k++) r = most[k] before r ? most[k] : r, bad |= wrong[k] != 0;
#else
#define PB_LANES(T, before)
#endif
#define PB_EXTREME(T, I, n, op, clause, before, start)                                               \
    static inline T pb_block_##op##_##n(const T *t, int64_t count) {                                 \
        T r = start;                                                                                 \
        I bad = 0;                                                                                   \
        int64_t i = 0;                                                                               \
        if (count <= 16) {                                                                           \
            for (; i < count; i++) r = t[i] before r ? t[i] : r, bad |= t[i] != t[i];                \
            return bad ? NAN : r;                                                                    \
        }                                                                                            \
        PB_LANES(T, before)                                                                          \
        PB_PRAGMA(omp simd reduction(clause : r) reduction(| : bad))                                 \
        for (int64_t j = i; j < count; j++) {                                                        \
            r = t[j] before r ? t[j] : r;                                                            \
            bad |= t[j] != t[j];                                                                     \
        }                                                                                            \
        return bad ? NAN : r;                                                                        \
    }
#define PB_REDUCE_FLOATING(T, I, n)                                                                  \
    PB_REDUCE(T, n, double, f64, add, -0.0)                                                          \
    PB_REDUCE(T, n, double, f64, multiply, 1)                                                        \
    PB_EXTREME(T, I, n, maximum, max, >, -INFINITY)                                                  \
    PB_EXTREME(T, I, n, minimum, min, <, INFINITY)

PB_REDUCE_INTEGER(int8_t, i8, INT8_MIN, INT8_MAX)
PB_REDUCE_INTEGER(int16_t, i16, INT16_MIN, INT16_MAX)
PB_REDUCE_INTEGER(int32_t, i32, INT32_MIN, INT32_MAX)
PB_REDUCE_INTEGER(int64_t, i64, INT64_MIN, INT64_MAX)
PB_REDUCE_INTEGER(uint8_t, u8, 0, UINT8_MAX)
PB_REDUCE_INTEGER(uint16_t, u16, 0, UINT16_MAX)
PB_REDUCE_INTEGER(uint32_t, u32, 0, UINT32_MAX)
PB_REDUCE_INTEGER(uint64_t, u64, 0, UINT64_MAX)
PB_REDUCE_FLOATING(float, int32_t, f32)
PB_REDUCE_FLOATING(double, int64_t, f64)

static inline void pb_runs_add_f64(const double *t, int64_t n, double *sum, double *rest) {
    for (int64_t start = 0; start < n; start += 256)
        PB_TWO_SUM(*sum, *rest, pb_block_add_f64(t + start, start + 256 < n ? 256 : n - start));
}

#endif

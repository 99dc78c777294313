/* Elementary functions for the loops of pullback.compile, written so that a C compiler can vectorise them.

   Each is a static inline function of scalars without branches or calls: what would be an `if` is a choice between two
   values, so a loop around it becomes SIMD instructions on whatever the machine has. NaN comes out where NaN goes in,
   and infinities, subnormal numbers and signed zeros are as IEEE 754 and C's <math.h> say. No flag may let the compiler
   assume otherwise (-ffast-math, -ffinite-math-only, -fassociative-math): the code relies on the order of its additions.

   The float32 functions (names in `f`) are within 2 units in the last place of the correctly rounded result, over the
   whole range of float32: subnormal, huge and special numbers alike; the float64 ones are within 2 of their own format,
   tanh within 3. What has no entry here is the C library's, called once for each element.

   The polynomials are Chebyshev approximations on the reduced interval, computed with 50 digits; beside each stands its
   largest error. */

#ifndef PB_CUDA /* the same text is part of CUDA C, where `cuda.h` stands first */
#include <math.h>
#include <stdint.h>
#include <string.h>
#define PB_TABLE static const
#endif

#ifdef PB_CUDA
#define PB_FMAF(a, b, c) fmaf(a, b, c)
#define PB_FMA(a, b, c) fma(a, b, c)
#elif defined(__FMA__)
#define PB_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#define PB_FMA(a, b, c) __builtin_fma(a, b, c)
#elif defined(__ARM_FEATURE_FMA)
#define PB_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#define PB_FMA(a, b, c) __builtin_fma(a, b, c)
#else
#define PB_FMAF(a, b, c) ((a) * (b) + (c))
#define PB_FMA(a, b, c) ((a) * (b) + (c))
#endif

#define PB_ROUND 12582912.0f /* 1.5 * 2^23: added to a float32 below 2^22 it leaves the nearest integer in the low bits */
#define PB_ROUND64 6755399441055744.0 /* 1.5 * 2^52, the same for float64 */

typedef union { float f; int32_t i; } pb_word;
typedef union { double f; int64_t i; } pb_long;

static inline int32_t pb_bits(float x) { pb_word w; w.f = x; return w.i; }
static inline float pb_float(int32_t i) { pb_word w; w.i = i; return w.f; }
static inline int64_t pb_bits64(double x) { pb_long w; w.f = x; return w.i; }
static inline double pb_double(int64_t i) { pb_long w; w.i = i; return w.f; }

/* 2^n for n in the normal range */
static inline float pb_two(int32_t n) { return pb_float((int32_t)((uint32_t)(n + 127) << 23)); }
static inline double pb_two64(int64_t n) { return pb_double((int64_t)((uint64_t)(n + 1023) << 52)); }

/* -- float32: exponentials ------------------------------------------------------------------------------------------ */

/* e^r - 1 for |r| <= ln(2) / 2; 8e-9 */
static inline float pb_expm1_small(float r) {
    float p = 0.00139262508f;
    p = PB_FMAF(p, r, 0.00836323288f);
    p = PB_FMAF(p, r, 0.0416665542f);
    p = PB_FMAF(p, r, 0.166665766f);
    p = PB_FMAF(p, r, 0.5f);
    return PB_FMAF(p * r, r, r);
}

/* 2^n m for m in [1/2, 2] and n = t - PB_ROUND in [-151, 128], `low` where n < -125: the bits of t, shifted, are those
   of 2^n, so one factor is 2^(n-1), kept in the normal range, the other 2, or 2^-63 to reach the subnormals. */
static inline float pb_scale(float m, float t, int low) {
    uint32_t n = (uint32_t)pb_bits(t) + (low ? 127 + 63 : 127 - 1);
    return m * pb_float((int32_t)(n << 23)) * (low ? 0x1p-63f : 2.0f);
}

/* e^x * 2^scale, without an overflow on the way: x = n ln(2) + r */
static inline float pb_exp_scaled(float x, int32_t scale) {
    float t = PB_FMAF(x, 1.44269504f, PB_ROUND);
    float k = t - PB_ROUND;
    float r = PB_FMAF(k, -0.693145752f, x);
    r = PB_FMAF(k, -1.42860677e-6f, r);
    float e = pb_scale(1.0f + pb_expm1_small(r), pb_float(pb_bits(t) + scale), x < -86.0f);
    e = x > 89.5f ? INFINITY : e;
    return x < -104.5f ? 0.0f : e;
}

static inline float pb_expf(float x) { return pb_exp_scaled(x, 0); }

static inline float pb_exp2f(float x) {
    float t = x + PB_ROUND;
    float r = (x - (t - PB_ROUND)) * 0.693147181f;
    float e = pb_scale(1.0f + pb_expm1_small(r), t, x < -124.0f);
    e = x >= 128.0f ? INFINITY : e;
    return x < -151.0f ? 0.0f : e;
}

/* e^x - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)) */
static inline float pb_expm1f(float x) {
    float y = x < -20.0f ? -20.0f : x;
    float t = PB_FMAF(y, 1.44269504f, PB_ROUND);
    float k = t - PB_ROUND;
    float r = PB_FMAF(k, -0.693145752f, y);
    r = PB_FMAF(k, -1.42860677e-6f, r);
    float s = pb_float((int32_t)(((uint32_t)pb_bits(t) + 126) << 23));
    float e = 2.0f * PB_FMAF(s, pb_expm1_small(r), s - 0.5f);
    e = x > 89.0f ? INFINITY : e;
    return fabsf(x) < 1e-8f ? x : e;
}

static inline float pb_tanhf(float x) {
    float a = fabsf(x);
    float e = pb_expm1f(2.0f * a), t = e / (e + 2.0f);
    return copysignf(a > 10.0f ? 1.0f : t, x);
}

static inline float pb_coshf(float x) { return pb_exp_scaled(fabsf(x), -1) + pb_exp_scaled(-fabsf(x), -1); }

static inline float pb_sinhf(float x) {
    float a = fabsf(x), e = pb_expm1f(a > 2.0f ? 2.0f : a);
    float near = 0.5f * (e + e / (e + 1.0f));
    float far = pb_exp_scaled(a, -1) - pb_exp_scaled(-a, -1);
    float s = a > 1.0f ? far : near;
    return copysignf(a < 1e-4f ? a : s, x);
}

/* -- float32: logarithms -------------------------------------------------------------------------------------------- */

/* ln(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)]; 5e-9 relative to f */
static inline float pb_log1p_tail(float f) {
    float p = 0.0697134632f;
    p = PB_FMAF(p, f, -0.114830813f);
    p = PB_FMAF(p, f, 0.11687025f);
    p = PB_FMAF(p, f, -0.124253598f);
    p = PB_FMAF(p, f, 0.14248877f);
    p = PB_FMAF(p, f, -0.166678098f);
    p = PB_FMAF(p, f, 0.200007207f);
    p = PB_FMAF(p, f, -0.249999969f);
    p = PB_FMAF(p, f, 0.333333312f);
    float z = f * f;
    return PB_FMAF(p, z * f, -0.5f * z);
}

/* x = 2^e (1 + f), x positive; the result of -inf, nan or inf for x <= 0, nan or inf is put in by pb_log_edge */
#define PB_SPLIT(x, e, f)                                            \
    float pb_up = (x) < 1.17549435e-38f ? (x)*8388608.0f : (x);      \
    int32_t pb_e = (pb_bits(pb_up) - 0x3f3504f3) >> 23;              \
    float f = pb_float(pb_bits(pb_up) - (pb_e << 23)) - 1.0f;        \
    float e = (float)(pb_e - ((x) < 1.17549435e-38f ? 23 : 0));

static inline float pb_log_edge(float x, float result) {
    result = x == 0.0f ? -INFINITY : result;
    result = x < 0.0f ? NAN : result;
    result = x == INFINITY ? x : result;
    return x != x ? x : result;
}

static inline float pb_logf(float x) {
    PB_SPLIT(x, e, f)
    float t = PB_FMAF(e, 1.42860677e-6f, pb_log1p_tail(f));
    return pb_log_edge(x, PB_FMAF(e, 0.693145752f, f + t));
}

static inline float pb_log2f(float x) {
    PB_SPLIT(x, e, f)
    float t = pb_log1p_tail(f);
    float l = PB_FMAF(f, 1.44269502f, PB_FMAF(f, 1.92596303e-8f, t * 1.44269504f));
    return pb_log_edge(x, e + l);
}

static inline float pb_log10f(float x) {
    PB_SPLIT(x, e, f)
    float t = pb_log1p_tail(f);
    float l = PB_FMAF(f, 0.434294492f, PB_FMAF(f, -1.01000003e-8f, t * 0.434294482f));
    return pb_log_edge(x, PB_FMAF(e, 0.301029205f, PB_FMAF(e, 7.90341e-7f, l)));
}

/* ln(u) with u = 1 + x rounded, and what the rounding lost put back: c = x - (u - 1), of the size of u's last place */
static inline float pb_log1pf(float x) {
    float u = 1.0f + x;
    float c = u > 2.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    int32_t n = (pb_bits(u) - 0x3f3504f3) >> 23;
    float f = pb_float(pb_bits(u) - (n << 23)) - 1.0f;
    int32_t m = n < 126 ? n : 126;
    f = f + c * pb_two(-m);
    float e = (float)n;
    float t = PB_FMAF(e, 1.42860677e-6f, pb_log1p_tail(f));
    float l = PB_FMAF(e, 0.693145752f, f + t);
    l = pb_log_edge(u, l);
    return fabsf(x) < 1e-8f ? x : l;
}

/* -- float64 -------------------------------------------------------------------------------------------------------- */

/* e^r - 1 for |r| <= ln(2) / 2; 2e-19 */
static inline double pb_expm1_small64(double r) {
    double p = 2.09147553258932022e-9;
    p = PB_FMA(p, r, 2.51053127296221018e-8);
    p = PB_FMA(p, r, 2.75572734787185805e-7);
    p = PB_FMA(p, r, 2.75572551700008874e-6);
    p = PB_FMA(p, r, 2.48015873256774619e-5);
    p = PB_FMA(p, r, 1.98412698750022788e-4);
    p = PB_FMA(p, r, 1.38888888888837112e-3);
    p = PB_FMA(p, r, 8.33333333332608312e-3);
    p = PB_FMA(p, r, 4.16666666666666698e-2);
    p = PB_FMA(p, r, 0.16666666666666671);
    p = PB_FMA(p, r, 0.5);
    return PB_FMA(p * r, r, r);
}

static inline double pb_exp_scaled64(double x, int64_t scale) {
    x = x > 710.5 ? 710.5 : x;
    x = x < -746.5 ? -746.5 : x;
    double t = PB_FMA(x, 1.4426950408889634, PB_ROUND64);
    int64_t n = pb_bits64(t) - pb_bits64(PB_ROUND64) + scale;
    double k = t - PB_ROUND64;
    double r = PB_FMA(k, -0.69314718036912382, x);
    r = PB_FMA(k, -1.9082149292705877e-10, r);
    /* an arithmetic shift of 64-bit integers is missing in SSE and AVX2: shift a number that is never negative */
    int64_t half = (int64_t)((uint64_t)(n + 4096) >> 1) - 2048;
    return (1.0 + pb_expm1_small64(r)) * pb_two64(half) * pb_two64(n - half);
}

static inline double pb_exp(double x) { return pb_exp_scaled64(x, 0); }

static inline double pb_exp2(double x) {
    x = x > 1025.0 ? 1025.0 : x;
    x = x < -1080.0 ? -1080.0 : x;
    double t = x + PB_ROUND64;
    int64_t n = pb_bits64(t) - pb_bits64(PB_ROUND64);
    double r = (x - (t - PB_ROUND64)) * 0.69314718055994531;
    int64_t half = (int64_t)((uint64_t)(n + 4096) >> 1) - 2048;
    return (1.0 + pb_expm1_small64(r)) * pb_two64(half) * pb_two64(n - half);
}

static inline double pb_expm1(double x) {
    double y = x > 710.0 ? 710.0 : x;
    y = y < -40.0 ? -40.0 : y;
    double t = PB_FMA(y, 1.4426950408889634, PB_ROUND64);
    int64_t n = pb_bits64(t) - pb_bits64(PB_ROUND64);
    double k = t - PB_ROUND64;
    double r = PB_FMA(k, -0.69314718036912382, y);
    r = PB_FMA(k, -1.9082149292705877e-10, r);
    double s = pb_two64(n - 1);
    double e = 2.0 * PB_FMA(s, pb_expm1_small64(r), s - 0.5);
    return fabs(x) < 1e-17 ? x : e;
}

static inline double pb_tanh(double x) {
    double a = fabs(x);
    double e = pb_expm1(a > 20.0 ? 40.0 : 2.0 * a);
    return copysign(e / (e + 2.0), x);
}

/* ln(1 + f) + e ln(2): with s = f / (2 + f) and z = s^2, ln(1 + f) = f - f^2/2 + s (f^2/2 + z P(z)); 2e-18 */
static inline double pb_log_join64(double f, double e) {
    double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    double p = 0.13094416666525344;
    p = PB_FMA(p, z, 0.132680261404287393);
    p = PB_FMA(p, z, 0.15386267672882225);
    p = PB_FMA(p, z, 0.181817951244767535);
    p = PB_FMA(p, z, 0.222222223965529808);
    p = PB_FMA(p, z, 0.285714285707822077);
    p = PB_FMA(p, z, 0.40000000000000912);
    p = PB_FMA(p, z, 0.666666666666666665);
    double t = PB_FMA(s, PB_FMA(z, p, h), e * 1.9082149292705877e-10);
    return PB_FMA(e, 0.69314718036912382, f - (h - t));
}

static inline double pb_log_edge64(double x, double result) {
    result = x == 0.0 ? -INFINITY : result;
    result = x < 0.0 ? NAN : result;
    result = x == INFINITY ? x : result;
    return x != x ? x : result;
}

#define PB_SQRT_HALF 0x3fe6a09e667f3bcdLL /* the bits of sqrt(1/2) */

/* floor((bits - sqrt(1/2)) / 2^52), as an unsigned shift of a number that is never negative */
static inline int64_t pb_exponent64(double x) {
    return (int64_t)((uint64_t)(pb_bits64(x) - PB_SQRT_HALF + 0x4000000000000000LL) >> 52) - 1024;
}

/* n as a float64, for |n| < 2^51, without the conversion that SSE and AVX2 lack */
static inline double pb_whole64(int64_t n) { return pb_double(pb_bits64(PB_ROUND64) + n) - PB_ROUND64; }

static inline double pb_log(double x) {
    double up = x < 2.2250738585072014e-308 ? x * 4503599627370496.0 : x;
    int64_t n = pb_exponent64(up);
    double f = pb_double(pb_bits64(up) - (int64_t)((uint64_t)n << 52)) - 1.0;
    double e = pb_whole64(n) - (x < 2.2250738585072014e-308 ? 52.0 : 0.0);
    return pb_log_edge64(x, pb_log_join64(f, e));
}

static inline double pb_log1p(double x) {
    double u = 1.0 + x;
    double c = u > 2.0 ? 1.0 - (u - x) : x - (u - 1.0);
    int64_t n = pb_exponent64(u);
    double f = pb_double(pb_bits64(u) - (int64_t)((uint64_t)n << 52)) - 1.0;
    int64_t m = n < 1000 ? n : 1000;
    f = f + c * pb_two64(-m);
    double l = pb_log_edge64(u, pb_log_join64(f, pb_whole64(n)));
    return fabs(x) < 1e-17 ? x : l;
}

/* -- float32 by way of float64 -------------------------------------------------------------------------------------- */

static inline float pb_powf(float x, float y) {
    double a = fabs((double)x), b = y;
    double r = pb_exp(b * pb_log(a));
    int whole = rint(b) == b, odd = whole & (rint(0.5 * b) != 0.5 * b);
    r = a == 1.0 && b == b ? 1.0 : r;
    r = odd && signbit(x) ? -r : r;
    r = !whole && x < 0.0f && a != INFINITY ? NAN : r;
    r = x == 1.0f || y == 0.0f ? 1.0 : r;
    return (float)r;
}

/* x P(x^2) below 0.925 (2e-8), 1 - exp(-Q(|x|)) above (2e-8) */
static inline float pb_erff(float x) {
    float a = fabsf(x), z = x * x;
    float p = -0.000596731088f;
    p = PB_FMAF(p, z, 0.00498890603f);
    p = PB_FMAF(p, z, -0.0267639951f);
    p = PB_FMAF(p, z, 0.112817541f);
    p = PB_FMAF(p, z, -0.37612489f);
    p = PB_FMAF(p, z, 1.12837915f);
    float y = a > 4.05f ? 4.05f : a;
    float q = -1.62508995e-06f;
    q = PB_FMAF(q, y, 4.58313058e-05f);
    q = PB_FMAF(q, y, -0.000594983447f);
    q = PB_FMAF(q, y, 0.00475141597f);
    q = PB_FMAF(q, y, -0.026398675f);
    q = PB_FMAF(q, y, 0.110041398f);
    q = PB_FMAF(q, y, 0.631866933f);
    q = PB_FMAF(q, y, 1.13020917f);
    q = PB_FMAF(q, y, -0.000313946571f);
    float far = 1.0f - pb_expf(-q);
    float r = a < 0.925f ? a * p : far;
    return copysignf(r, x);
}

/* arctan: t = a, (a - 1) / (a + 1) or -1 / a lies within tan(pi/8) of 0 */
static inline double pb_arctan_positive(double a) {
    double low = 0.41421356237309503, high = 2.4142135623730949;
    double top = a > high ? -1.0 : (a > low ? a - 1.0 : a);
    double bottom = a > high ? a : (a > low ? a + 1.0 : 1.0);
    double base = a > high ? 1.5707963267948966 : (a > low ? 0.78539816339744828 : 0.0);
    double t = top / bottom, z = t * t;
    double p = -0.0404180893709765586;
    p = PB_FMA(p, z, 0.0713465466927253666);
    p = PB_FMA(p, z, -0.0902886535396371723);
    p = PB_FMA(p, z, 0.111074856274042713);
    p = PB_FMA(p, z, -0.142856121693511988);
    p = PB_FMA(p, z, 0.199999989128513148);
    p = PB_FMA(p, z, -0.333333333314315688);
    return base + PB_FMA(p * z, t, t);
}

static inline float pb_arctanf(float x) { return copysignf((float)pb_arctan_positive(fabs((double)x)), x); }

#ifdef PB_TURNS /* for each exponent of a float32 from 126 up, 2/pi in two parts, without what gives whole turns */

PB_TABLE double pb_turns[2][130] = PB_TURNS;

/* |x| in quarter turns is, modulo 4, *quarter + the result, which lies in [-1/2, 1/2]: however large x is, to 2^-55, and
   no float32 comes nearer than 2^-30 to a multiple of pi/2. The first part of 2/pi has 28 bits, so its product with the
   24 bits of x is exact. inf and nan meet a 1 in the table; the distance of their product from itself is a nan. */
static inline double pb_quarters(float x, int32_t *quarter) {
    int32_t e = (pb_bits(x) >> 23) & 255;
    int32_t i = e < 126 ? 0 : e - 126;
    double a = fabsf(x);
    double y = a * pb_turns[0][i];
    double k = y + PB_ROUND64;
    double r = PB_FMA(a, pb_turns[1][i], y - (k - PB_ROUND64));
    double k2 = r + PB_ROUND64;
    *quarter = (int32_t)((pb_bits64(k) + pb_bits64(k2)) & 3);
    return r - (k2 - PB_ROUND64);
}

/* sin(r pi/2), 7e-12, and cos(r pi/2), 5e-11, for |r| <= 1/2 */
static inline double pb_sine(double r) {
    double z = r * r, p = 0.000158205415341852603;
    p = PB_FMA(p, z, -0.00468126586799962811);
    p = PB_FMA(p, z, 0.0796925826735487803);
    p = PB_FMA(p, z, -0.645964096144624266);
    return r * PB_FMA(p, z, 1.57079632678808633);
}

static inline double pb_cosine(double r) {
    double z = r * r, p = 0.000903621860926019771;
    p = PB_FMA(p, z, -0.0208600667843804606);
    p = PB_FMA(p, z, 0.253669203291225125);
    p = PB_FMA(p, z, -1.23370054061799243);
    return PB_FMA(p, z, 0.999999999952394542);
}

static inline float pb_sinf(float x) {
    int32_t q;
    double r = pb_quarters(x, &q), s = pb_sine(r), c = pb_cosine(r);
    double v = q & 1 ? c : s;
    float f = (float)(q & 2 ? -v : v);
    return signbit(x) ? -f : f;
}

static inline float pb_cosf(float x) {
    int32_t q;
    double r = pb_quarters(x, &q), s = pb_sine(r), c = pb_cosine(r);
    double v = q & 1 ? s : c;
    return (float)((q + 1) & 2 ? -v : v);
}

static inline float pb_tanf(float x) {
    int32_t q;
    double r = pb_quarters(x, &q), s = pb_sine(r), c = pb_cosine(r);
    float f = (float)(q & 1 ? -(c / s) : s / c);
    return signbit(x) ? -f : f;
}
#endif

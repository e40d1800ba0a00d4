/* The inner loops of stationary kernels: distances and formula in one pass, and the way back to the parameters.
 *
 * NumPy has no vectorised double-precision exp on processors without AVX-512, and a formula in NumPy takes several
 * passes over memory. Loops here are written so that compilers vectorise them; for x86 they are compiled several times
 * and the processor's own version is chosen on loading. spngp works without this file, only slower (_compiled.py).
 *
 * Features are n rows and m columns, column by column. A packed matrix is its strict lower triangle column by column.
 */
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "exponential() needs every operation to be rounded to double as it is written"
#endif

/* Other compilers and C libraries get one version, for the least processor they are told to support. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#if defined(_MSC_VER)
#define EXPORTED __declspec(dllexport)
#define INLINED static __forceinline
#define restrict __restrict
#else
#define EXPORTED __attribute__((visibility("default")))
#define INLINED static inline __attribute__((always_inline))
#endif

/* To be raised with every change of a function's arguments, here and in _compiled.py. */
EXPORTED int64_t version(void) { return 8; }

/* Numbers as in _compiled.py. */
enum formula { SQUARED_EXPONENTIAL, MATERN_12, MATERN_32, MATERN_52 };

#define MOST_INPUTS 64           /* as in compiled.py */
#define TOGETHER 64              /* rows whose differences from a point are kept at once */
#define CHUNK 512                /* entries worked on together: they stay in the first-level cache */
#define FARTHEST 1e290           /* as in kernels/distances.py */
#define LOWEST -708.0            /* exp of less is not a normal number: 0 here */
#define HIGHEST 709.782712893384 /* exp of more is infinite */

/* exp to one unit in the last place: x = k log 2 + r, Taylor's polynomial for |r| <= log(2)/2, k added to the exponent */
INLINED double exponential(double x)
{
    const double to_integer = 0x1.8p52; /* adding it rounds to an integer, which then stands in the low bits */
    double within = x < LOWEST ? LOWEST : (x > HIGHEST ? HIGHEST : x);
    double shifted = within * 0x1.71547652b82fep0 + to_integer;
    double k = shifted - to_integer;
    double r = within - k * 0x1.62e42fefa0000p-1; /* log 2 without its last bits: the product is exact */
    double p = 1.0 / 6227020800.0;
    uint64_t k_bits, p_bits;
    r = r - k * 0x1.cf79abc9e3b3ap-40;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    memcpy(&k_bits, &shifted, sizeof k_bits);
    memcpy(&p_bits, &p, sizeof p_bits);
    p_bits += k_bits << 52;
    memcpy(&p, &p_bits, sizeof p);
    p = x < LOWEST ? 0.0 : p;
    p = x > HIGHEST ? INFINITY : p;
    return x != x ? x : p;
}

/* Adds to u, of n rows, the squared differences in m features from a point, each at most its cap. A feature of level codes
 * has the square of its unit as cap: whichever codes differ, they are one unit apart. */
INLINED void add_capped(double *restrict u, const double *restrict features, int64_t stride, int64_t n, int64_t m,
                        const double *restrict point, int64_t gap, const double *restrict caps)
{
    int64_t k = 0;
    for (; k + 2 <= m; k += 2) {
        const double *a = features + k * stride, *b = a + stride;
        const double p = point[k * gap], q = point[(k + 1) * gap], most_a = caps[k], most_b = caps[k + 1];
        for (int64_t i = 0; i < n; i++) {
            double e = (a[i] - p) * (a[i] - p), f = (b[i] - q) * (b[i] - q);
            u[i] += (e < most_a ? e : most_a) + (f < most_b ? f : most_b);
        }
    }
    for (; k < m; k++) {
        const double *a = features + k * stride, p = point[k * gap], most = caps[k];
        for (int64_t i = 0; i < n; i++) {
            double e = (a[i] - p) * (a[i] - p);
            u[i] += e < most ? e : most;
        }
    }
}

/* u <- squared distances of n rows from a point, given as its m features, `gap` apart; caps as above, or null for none */
INLINED void squared_distances(double *restrict u, const double *restrict features, int64_t stride, int64_t n,
                               int64_t m, const double *restrict point, int64_t gap, const double *restrict caps)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++)
        u[i] = 0.0;
    if (caps) {
        add_capped(u, features, stride, n, m, point, gap, caps);
        k = m;
    }
    for (; k + 4 <= m; k += 4) {
        const double *a = features + k * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        const double p = point[k * gap], q = point[(k + 1) * gap], r = point[(k + 2) * gap], s = point[(k + 3) * gap];
        for (int64_t i = 0; i < n; i++) {
            double e = a[i] - p, f = b[i] - q, g = c[i] - r, h = d[i] - s;
            u[i] += (e * e + f * f) + (g * g + h * h);
        }
    }
    for (; k < m; k++) {
        const double *a = features + k * stride, p = point[k * gap];
        for (int64_t i = 0; i < n; i++) {
            double e = a[i] - p;
            u[i] += e * e;
        }
    }
    for (int64_t i = 0; i < n; i++)
        u[i] = u[i] > FARTHEST ? FARTHEST : u[i];
}

/* Replaces u, squared distances in the formula's own unit, by the covariance. Unless null, slope becomes its derivative
 * by u, divided by -1/2, -1/2 and -1/6 for the Matern kernels; that of the squared exponential is minus the value. */
INLINED void apply(enum formula formula, double *restrict u, double *restrict slope, int64_t n, double log_variance)
{
    switch (formula) {
    case SQUARED_EXPONENTIAL:
        for (int64_t i = 0; i < n; i++)
            u[i] = exponential(log_variance - u[i]);
        break;
    case MATERN_12:
        for (int64_t i = 0; i < n; i++) {
            double s = sqrt(u[i]);
            u[i] = exponential(log_variance - s);
            if (slope) /* it has no limit at s = 0, where it multiplies a difference of zero */
                slope[i] = s > 0.0 ? u[i] / s : 0.0;
        }
        break;
    case MATERN_32:
        for (int64_t i = 0; i < n; i++) {
            double s = sqrt(u[i]), decay = exponential(log_variance - s);
            u[i] = (1.0 + s) * decay;
            if (slope)
                slope[i] = decay;
        }
        break;
    case MATERN_52:
        for (int64_t i = 0; i < n; i++) {
            double s = sqrt(u[i]), decay = exponential(log_variance - s);
            u[i] = (1.0 + s * (1.0 + s * (1.0 / 3.0))) * decay;
            if (slope)
                slope[i] = (1.0 + s) * decay;
        }
        break;
    }
}

/* Packed covariances of all pairs of rows; slope as above. Unless null, the lower triangle of A, without its diagonal,
 * becomes the same, or has it added. */
INLINED void covariances(enum formula formula, const double *features, int64_t n, int64_t m, double *value,
                         double *slope, double log_variance, double *A, int adds, const double *caps)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j + 1; i < n; i += CHUNK) {
            const int64_t size = n - i < CHUNK ? n - i : CHUNK;
            double *column = A ? A + j * n + i : NULL;
            squared_distances(value, features + i, n, size, m, features + j, n, caps);
            apply(formula, value, slope, size, log_variance);
            if (A && adds)
                for (int64_t l = 0; l < size; l++)
                    column[l] += value[l];
            else if (A)
                memcpy(column, value, (size_t)size * sizeof *value);
            value += size;
            slope = slope ? slope + size : slope;
        }
}

FOR_EACH_PROCESSOR EXPORTED void packed_gram(int64_t formula, const double *features, int64_t n, int64_t m,
                                             double *value, double *slope, double log_variance, const double *caps)
{
    covariances((enum formula)formula, features, n, m, value, slope, log_variance, NULL, 0, caps);
}

/* Adds to sums[0] the sum of g * value over rows paired with a point, and to sums[1 + k] that of g * slope * (difference
 * of feature k)^2, at most its cap unless caps are null; at most CHUNK rows. */
INLINED void add_sums(double *restrict sums, const double *restrict features, int64_t stride, int64_t n, int64_t m,
                      const double *restrict point, const double *restrict g, const double *restrict value,
                      const double *restrict slope, const double *restrict caps)
{
    double w[CHUNK], total = 0.0;
    int64_t k = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++) {
        total += g[i] * value[i];
        w[i] = g[i] * slope[i];
    }
    sums[0] += total;
    for (; caps && k < m; k++) {
        const double *a = features + k * stride, p = point[k * stride], most = caps[k];
        double by_a = 0.0;
#pragma omp simd reduction(+ : by_a)
        for (int64_t i = 0; i < n; i++) {
            double e = (a[i] - p) * (a[i] - p);
            by_a += w[i] * (e < most ? e : most);
        }
        sums[1 + k] += by_a;
    }
    for (; k + 4 <= m; k += 4) {
        const double *a = features + k * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        const double *at = point + k * stride;
        const double p = at[0], q = at[stride], r = at[2 * stride], s = at[3 * stride];
        double by_a = 0.0, by_b = 0.0, by_c = 0.0, by_d = 0.0;
#pragma omp simd reduction(+ : by_a, by_b, by_c, by_d)
        for (int64_t i = 0; i < n; i++) {
            double e = a[i] - p, f = b[i] - q, h = c[i] - r, l = d[i] - s;
            by_a += w[i] * e * e;
            by_b += w[i] * f * f;
            by_c += w[i] * h * h;
            by_d += w[i] * l * l;
        }
        sums[1 + k] += by_a;
        sums[2 + k] += by_b;
        sums[3 + k] += by_c;
        sums[4 + k] += by_d;
    }
    for (; k < m; k++) {
        const double *a = features + k * stride, p = point[k * stride];
        double by_a = 0.0;
#pragma omp simd reduction(+ : by_a)
        for (int64_t i = 0; i < n; i++) {
            double e = a[i] - p;
            by_a += w[i] * e * e;
        }
        sums[1 + k] += by_a;
    }
}

/* The sums above over all pairs, for packed value and slope, and g packed or (`square`) an n x n matrix. */
INLINED void sums_of_pairs(double *sums, const double *features, int64_t n, int64_t m, const double *g, int square,
                           const double *value, const double *slope, const double *caps)
{
    memset(sums, 0, (size_t)(m + 1) * sizeof *sums);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j + 1; i < n; i += CHUNK) {
            const int64_t size = n - i < CHUNK ? n - i : CHUNK;
            add_sums(sums, features + i, n, size, m, features + j, square ? g + j * n + i : g, value, slope, caps);
            g += square ? 0 : size;
            value += size;
            slope += size;
        }
}

FOR_EACH_PROCESSOR EXPORTED void packed_pullback(const double *features, int64_t n, int64_t m, const double *g,
                                                 const double *value, const double *slope, double *sums,
                                                 const double *caps)
{
    sums_of_pairs(sums, features, n, m, g, 0, value, slope, caps);
}

/* out[i + stride * j] = (or += if `adds`) the covariance of row i of A and row j of B; if `lower`, for i >= j only. */
FOR_EACH_PROCESSOR EXPORTED void gram(int64_t formula, const double *A, int64_t n_A, const double *B, int64_t n_B,
                                      int64_t m, double *out, int64_t stride, int64_t lower, int64_t adds,
                                      double log_variance, const double *caps)
{
    double u[CHUNK];
    for (int64_t j = 0; j < n_B; j++)
        for (int64_t start = lower ? j : 0; start < n_A; start += CHUNK) {
            const int64_t size = n_A - start < CHUNK ? n_A - start : CHUNK;
            double *column = out + stride * j + start;
            squared_distances(u, A + start, n_A, size, m, B + j, n_B, caps);
            apply((enum formula)formula, u, NULL, size, log_variance);
            if (adds)
                for (int64_t i = 0; i < size; i++)
                    column[i] += u[i];
            else
                memcpy(column, u, (size_t)size * sizeof *u);
        }
}

/* out[i + n_A * j] = the covariance of row i of A and row j of B, summed over the parts of a kernel. Unlike features, these
 * are rows of at most MOST_INPUTS inputs, row by row; scales are factors of the inputs for each part, caps those of their
 * features, or null. For few rows in B, where preparing features would take longer than the rest. */
FOR_EACH_PROCESSOR EXPORTED void sum_of_parts(int64_t n_parts, const int64_t *formulas, const double *A, int64_t n_A,
                                              const double *B, int64_t n_B, int64_t m, const double *scales,
                                              const double *log_variances, const double *caps, double *out)
{
    double gaps[TOGETHER * MOST_INPUTS], u[TOGETHER], total[TOGETHER];
    for (int64_t start = 0; start < n_A; start += TOGETHER) {
        const int64_t size = n_A - start < TOGETHER ? n_A - start : TOGETHER;
        const double *rows = A + start * m;
        for (int64_t j = 0; j < n_B; j++) {
            for (int64_t k = 0; k < m; k++)
                for (int64_t i = 0; i < size; i++)
                    gaps[k * TOGETHER + i] = rows[i * m + k] - B[j * m + k];
            for (int64_t part = 0; part < n_parts; part++) {
                for (int64_t i = 0; i < size; i++)
                    u[i] = 0.0;
                for (int64_t k = 0; k < m; k++) {
                    const double scale = scales[part * m + k], most = caps ? caps[part * m + k] : INFINITY;
                    for (int64_t i = 0; i < size; i++) {
                        double e = gaps[k * TOGETHER + i] * scale;
                        e = e * e;
                        u[i] += e < most ? e : most;
                    }
                }
                for (int64_t i = 0; i < size; i++)
                    u[i] = u[i] > FARTHEST ? FARTHEST : u[i];
                apply((enum formula)formulas[part], u, NULL, size, log_variances[part]);
                if (part == 0)
                    memcpy(total, u, (size_t)size * sizeof *u);
                else
                    for (int64_t i = 0; i < size; i++)
                        total[i] += u[i];
            }
            memcpy(out + j * n_A + start, total, (size_t)size * sizeof *total);
        }
    }
}

/* Which of n rows of d inputs lie within about a distance of a box: positions of those whose squared distance, in units of
 * the scales, is at most `most`, and a little beyond, so that rounding leaves none out. Where rounding could decide, a
 * position i is told as -1 - i. The box has a low and a high side along each of n_sides axes. Returns the number of rows
 * found. */
FOR_EACH_PROCESSOR EXPORTED int64_t near_box(const double *W, int64_t n, int64_t d, int64_t n_sides,
                                             const int64_t *axes, const double *sides, const double *scales,
                                             double most, int64_t *found)
{
    const double limit = (most > 0.0 ? most : 0.0) * (1.0 + 1e-9), clear = most > 0.0 ? most * (1.0 - 1e-9) : -1.0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *row = W + i * d;
        double squared = 0.0;
        for (int64_t s = 0; s < n_sides && squared <= limit; s++) {
            const double x = row[axes[s]], low = sides[2 * s] - x, high = x - sides[2 * s + 1];
            double gap = low > high ? low : high;
            gap = gap > 0.0 ? gap / scales[axes[s]] : 0.0;
            squared += gap * gap;
        }
        if (squared <= limit)
            found[count++] = squared <= clear ? i : -1 - i;
    }
    return count;
}

/* How far a box is from another, squared, in units of the scales; more than the limit is not summed up further. */
INLINED double squared_gap(const double *low_1, const double *high_1, const double *low_2, const double *high_2,
                           const double *scales, int64_t d, double limit)
{
    double squared = 0.0;
    for (int64_t k = 0; k < d && squared <= limit; k++) {
        const double below = low_1[k] - high_2[k], above = low_2[k] - high_1[k];
        double gap = below > above ? below : above;
        gap = gap > 0.0 ? gap / scales[k] : 0.0;
        squared += gap * gap;
    }
    return squared;
}

/* Marks the rows that lie within reach of at least one of some boxes, and a little beyond. Rows of d inputs stand in groups,
 * each with the corners of the box that its rows fill: a group that is too far off is not looked at row by row. A negative
 * reach is none. */
FOR_EACH_PROCESSOR EXPORTED void mark_near(const double *W, int64_t d, int64_t n_groups, const int64_t *starts,
                                           const double *lows, const double *highs, int64_t n_boxes, const double *low,
                                           const double *high, const double *reach, const double *scales,
                                           unsigned char *seen)
{
    for (int64_t b = 0; b < n_boxes; b++) {
        const double *from = low + b * d, *to = high + b * d, limit = reach[b] * (1.0 + 1e-9);
        if (!(reach[b] >= 0.0))
            continue;
        for (int64_t g = 0; g < n_groups; g++) {
            if (squared_gap(from, to, lows + g * d, highs + g * d, scales, d, limit) > limit)
                continue;
            for (int64_t i = starts[g]; i < starts[g + 1]; i++)
                if (!seen[i] && squared_gap(from, to, W + i * d, W + i * d, scales, d, limit) <= limit)
                    seen[i] = 1;
        }
    }
}

/* A lower triangle in slabs of rows (growing.py): for each slab the address of its first row, the number of that row among
 * all, and the distance between rows. */
struct slab {
    int64_t address, start, stride;
};

INLINED int64_t end_of(const struct slab *slabs, int64_t n_slabs, int64_t s, int64_t n)
{
    return s + 1 < n_slabs ? slabs[s + 1].start : n;
}

/* a <- L^-1 a for the first n rows of a triangle */
FOR_EACH_PROCESSOR EXPORTED void solve_one(const struct slab *slabs, int64_t n_slabs, int64_t n, double *a)
{
    for (int64_t s = 0; s < n_slabs; s++)
        for (int64_t i = slabs[s].start; i < end_of(slabs, n_slabs, s, n); i++) {
            const double *row = (const double *)(intptr_t)slabs[s].address + (i - slabs[s].start) * slabs[s].stride;
            double sum = 0.0;
#pragma omp simd reduction(+ : sum)
            for (int64_t k = 0; k < i; k++)
                sum += row[k] * a[k];
            a[i] = (a[i] - sum) / row[i];
        }
}

/* The same for two right sides, which reads the triangle once. */
FOR_EACH_PROCESSOR EXPORTED void solve_two(const struct slab *slabs, int64_t n_slabs, int64_t n, double *a, double *b)
{
    for (int64_t s = 0; s < n_slabs; s++)
        for (int64_t i = slabs[s].start; i < end_of(slabs, n_slabs, s, n); i++) {
            const double *row = (const double *)(intptr_t)slabs[s].address + (i - slabs[s].start) * slabs[s].stride;
            double of_a = 0.0, of_b = 0.0;
#pragma omp simd reduction(+ : of_a, of_b)
            for (int64_t k = 0; k < i; k++) {
                of_a += row[k] * a[k];
                of_b += row[k] * b[k];
            }
            a[i] = (a[i] - of_a) / row[i];
            b[i] = (b[i] - of_b) / row[i];
        }
}

INLINED double product(const double *restrict a, const double *restrict b, int64_t n)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* One of several GPs that are given the same rows: its kernel as for sum_of_parts, and its triangle. */
struct gp {
    int64_t n_parts, formulas, scales, log_variances, caps, slabs, n_slabs;
};

INLINED const void *at(int64_t address) { return (const void *)(intptr_t)address; }

/* GPs are given m further rows and asked about others: B has these q rows, the further ones first. A has all n rows that
 * each is given, the further ones last; a triangle is that of the rows before them. For each GP one after the other, noise
 * has the variances of the noise of the further rows, and z what its triangle makes of the outputs of the rows before,
 * followed by the outputs of the further rows, which are replaced by their innovations.
 *
 * out (q x n for each GP) becomes, for the further rows, their rows of the factor, up to the diagonal, and for the others the
 * factor's inverse times their covariances. told (1 + 2 (q - m) for each GP) becomes the log evidence of the further outputs
 * given those before, but for the constant; then for each row asked about the mean, then the variance that is explained.
 * Returns whether for some GP what the rows before leave unexplained of a further row is no more than a rounding error; then
 * nothing else holds. */
FOR_EACH_PROCESSOR EXPORTED int64_t grow(int64_t n_gps, const struct gp *gps, const double *A, int64_t n, const double *B,
                                         int64_t q, int64_t d, int64_t m, const double *noise, double *z, double *out,
                                         double *told)
{
    const int64_t before = n - m;
    for (int64_t g = 0; g < n_gps; g++, noise += m, z += n, out += q * n, told += 1 + 2 * (q - m)) {
        const struct gp *gp = gps + g;
        const struct slab *slabs = at(gp->slabs);
        sum_of_parts(gp->n_parts, at(gp->formulas), A, n, B, q, d, at(gp->scales), at(gp->log_variances), at(gp->caps), out);
        for (int64_t j = 0; j < q; j += 2)
            if (j + 1 < q)
                solve_two(slabs, gp->n_slabs, before, out + j * n, out + (j + 1) * n);
            else
                solve_one(slabs, gp->n_slabs, before, out + j * n);
        told[0] = 0.0;
        for (int64_t i = 0; i < m; i++) {
            const int64_t end = before + i;
            double *row = out + i * n;
            const double diagonal = row[end] + noise[i], pivot = diagonal - product(row, row, end);
            if (!(pivot > (double)n * DBL_EPSILON * diagonal))
                return 1;
            row[end] = sqrt(pivot);
            for (int64_t j = i + 1; j < q; j++)
                out[j * n + end] = (out[j * n + end] - product(row, out + j * n, end)) / row[end];
            z[end] = (z[end] - product(row, z, end)) / row[end];
            told[0] -= 0.5 * z[end] * z[end] + log(row[end]);
        }
        for (int64_t j = m; j < q; j++) {
            told[1 + j - m] = product(out + j * n, z, n);
            told[1 + q - m + j - m] = product(out + j * n, out + j * n, n);
        }
    }
    return 0;
}

/* a <- L^-T a from its entry `first` on; those before it stay */
FOR_EACH_PROCESSOR EXPORTED void solve_transposed(const struct slab *slabs, int64_t n_slabs, int64_t n,
                                                  double *restrict a, int64_t first)
{
    for (int64_t s = n_slabs - 1; s >= 0; s--)
        for (int64_t i = end_of(slabs, n_slabs, s, n) - 1; i >= slabs[s].start && i >= first; i--) {
            const double *row = (const double *)(intptr_t)slabs[s].address + (i - slabs[s].start) * slabs[s].stride;
            const double x = a[i] / row[i];
            a[i] = x;
            for (int64_t k = first; k < i; k++)
                a[k] -= row[k] * x;
        }
}

/* Routines of LAPACK and BLAS, handed over as addresses. LAPACK in _linalg.py must list them in this order. */
struct lapack {
    void (*potrf)(char *, int *, double *, int *, int *);
    void (*potri)(char *, int *, double *, int *, int *);
    void (*trtri)(char *, char *, int *, double *, int *, int *);
    void (*lauum)(char *, int *, double *, int *, int *);
    void (*trsm)(char *, char *, char *, char *, int *, int *, double *, double *, int *, double *, int *);
    void (*trmm)(char *, char *, char *, char *, int *, int *, double *, double *, int *, double *, int *);
    void (*trsv)(char *, char *, char *, int *, double *, int *, double *, int *);
    void (*syr)(char *, int *, double *, double *, int *, double *, int *);
};

static void invert_triangle(const struct lapack *lapack, double *A, int n, int stride, int whole)
{
    int info, cut = (n / 2 + 7) / 8 * 8, rest = n - cut;
    double one = 1.0, minus_one = -1.0, *B = A + cut, *D = A + cut + (int64_t)cut * stride;
    if (n <= whole) {
        lapack->trtri("L", "N", &n, A, &stride, &info);
        return;
    }
    invert_triangle(lapack, D, rest, stride, whole);
    lapack->trsm("R", "L", "N", "N", &rest, &cut, &minus_one, A, &stride, B, &stride);
    lapack->trmm("L", "L", "N", "N", &rest, &cut, &one, D, &stride, B, &stride);
    invert_triangle(lapack, A, cut, stride, whole);
}

/* Square.bound_invert of _linalg.py in one call: a factor is replaced by the inverse of its matrix. */
EXPORTED void invert(const struct lapack *lapack, double *A, int64_t n, int64_t stride, int64_t whole)
{
    int size = (int)n, gap = (int)stride, info;
    if (n <= whole) {
        lapack->potri("L", &size, A, &gap, &info);
        return;
    }
    invert_triangle(lapack, A, size, gap, whole < 16 ? 16 : (int)whole);
    lapack->lauum("L", &size, A, &gap, &info);
}

/* Evidence of evidence.py in one call, for a sum of kernels. A is n x n; work is n * m + n * (n - 1) doubles for each part.
 * C has variance + noise on its diagonal, or with factors variance + noise * factors[i]. results: y'(C^-1)y, log|C|, half
 * the trace of C^-1 - alpha alpha', the same with each of its terms times its factor, and for each part the sums of the
 * pullback with C^-1 - alpha alpha'. caps: for each part those of its features, or null. With value_only the first two
 * results are all. Returns 0, or another number if C is not positive definite: then nothing is to be read. */
FOR_EACH_PROCESSOR EXPORTED int64_t evidence(const struct lapack *lapack, int64_t whole, int64_t n, int64_t m,
                                             int64_t n_parts, const int64_t *formulas, const double *X,
                                             const double *scales, const double *log_variances, const double *y,
                                             double *A, double *alpha, double *work, double *results, double variance,
                                             double noise, const double *factors, const double *caps,
                                             int64_t value_only)
{
    const int64_t n_pairs = n * (n - 1) / 2, per_part = n * m + 2 * n_pairs;
    int size = (int)n, info, one = 1;
    double minus_one = -1.0, quadratic = 0.0, log_determinant = 0.0, trace = 0.0, by_noise = 0.0;
    for (int64_t part = 0; part < n_parts; part++) {
        const enum formula formula = (enum formula)formulas[part];
        double *features = work + part * per_part, *value = features + n * m;
        double *slope = formula == SQUARED_EXPONENTIAL || value_only ? NULL : value + n_pairs;
        for (int64_t k = 0; k < m; k++) {
            const double scale = scales[part * m + k];
            for (int64_t i = 0; i < n; i++)
                features[k * n + i] = X[k * n + i] * scale;
        }
        covariances(formula, features, n, m, value, slope, log_variances[part], A, part > 0,
                    caps ? caps + part * m : NULL);
    }
    for (int64_t i = 0; i < n; i++)
        A[i * n + i] = variance + (factors ? noise * factors[i] : noise);
    lapack->potrf("L", &size, A, &size, &info);
    if (info || !isfinite(A[n * n - 1]))
        return 1;
    memcpy(alpha, y, (size_t)n * sizeof *y);
    lapack->trsv("L", "N", "N", &size, A, &size, alpha, &one);
    for (int64_t i = 0; i < n; i++) {
        quadratic += alpha[i] * alpha[i];
        log_determinant += 2.0 * log(A[i * n + i]);
    }
    results[0] = quadratic;
    results[1] = log_determinant;
    if (value_only)
        return 0;
    lapack->trsv("L", "T", "N", &size, A, &size, alpha, &one);
    invert(lapack, A, n, n, whole);
    lapack->syr("L", &size, &minus_one, alpha, &one, A, &size);
    for (int64_t i = 0; i < n; i++) {
        trace += 0.5 * A[i * n + i];
        by_noise += 0.5 * A[i * n + i] * (factors ? factors[i] : 1.0);
    }
    results[2] = trace;
    results[3] = by_noise;
    for (int64_t part = 0; part < n_parts; part++) {
        const double *features = work + part * per_part, *value = features + n * m;
        const double *slope = formulas[part] == SQUARED_EXPONENTIAL ? value : value + n_pairs;
        sums_of_pairs(results + 4 + part * (m + 1), features, n, m, A, 1, value, slope,
                      caps ? caps + part * m : NULL);
    }
    return 0;
}

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_native", .m_doc = "Called with ctypes by compiled.py.", .m_size = -1};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }

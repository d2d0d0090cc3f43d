// Functions in f64 for the few values that need them (gates, rotary angles): our own, because the C library's
// results differ between its versions and between processors. Good to about 1e-15, which is far more than the
// f32 results show.
#pragma once

namespace pantheon::kernels::f64 {

/// e^x, 0 below −745, infinite above 709.8.
double exp(double x);
/// ln(1 + x), x ≥ 0 and finite.
double log1p(double x);
/// ln x, x > 0, finite and normal.
double log(double x);

struct SinCos {
    double sin, cos;
};
/// |x| ≤ 2^31.
SinCos sin_cos(double x);

}  // namespace pantheon::kernels::f64

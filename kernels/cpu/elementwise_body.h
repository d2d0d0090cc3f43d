// Norms, activations and the other short loops of the cpu backend; contracts in leaves.h.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/math8.h"
#include "kernels/quant/dequantize.h"

namespace pantheon::kernels::PANTHEON_ISA {

inline float inverse_rms(const float* x, int n, float eps) {
    return static_cast<float>(1.0 / __builtin_sqrt(dot_in_f64(x, x, n) / n + static_cast<double>(eps)));
}

inline void rms_norm(const float* x, const float* w, float* y, int n, float eps) {
    const F8 scale = set1(inverse_rms(x, n, eps));
    for (int i = 0; i < n; i += 8)
        store_some(y + i, load_some(x + i, n - i) * scale * load_some(w + i, n - i), n - i);
}

inline void l2_norm(float* x, int n, float eps) {
    const double length = __builtin_sqrt(dot_in_f64(x, x, n));
    const F8 scale = set1(static_cast<float>(1.0 / (length > static_cast<double>(eps) ? length : eps)));
    for (int i = 0; i < n; i += 8) store_some(x + i, load_some(x + i, n - i) * scale, n - i);
}

inline void gated_rms_norm(float* y, const float* z, const float* w, int n, float eps) {
    const F8 scale = set1(inverse_rms(y, n, eps));
    for (int i = 0; i < n; i += 8) {
        const F8 normed = load_some(y + i, n - i) * scale * load_some(w + i, n - i);
        store_some(y + i, normed * silu(load_some(z + i, n - i)), n - i);
    }
}

inline void swiglu(const float* gate, const float* up, float* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += 8)
        store_some(y + i, silu(load_some(gate + i, n - i)) * load_some(up + i, n - i), n - i);
}

inline void output_gate(float* y, const float* gate, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += 8)
        store_some(y + i, load_some(y + i, n - i) * sigmoid(load_some(gate + i, n - i)), n - i);
}

inline void rotate(float* x, const float* cosine, const float* sine, int n_pairs) {
    for (int i = 0; i < n_pairs; i += 8) {
        const int n = n_pairs - i;
        const F8 a = load_some(x + i, n), b = load_some(x + n_pairs + i, n);
        const F8 c = load_some(cosine + i, n), s = load_some(sine + i, n);
        // The second half is stored first: a short head's masked store must not be read back.
        store_some(x + n_pairs + i, fma(a, s, b * c), n);
        store_some(x + i, fma(zero8() - b, s, a * c), n);
    }
}

inline void exp_minus(const float* x, float shift, float* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += 8)
        store_some(y + i, exp(load_some(x + i, n - i) - set1(shift)), n - i);
}

inline float finite_max(const float* x, std::int64_t n) {
    F8 largest = set1(-__builtin_inff()), finite = zero8();
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const F8 v = load(x + i);
        largest = max(v, largest);
        finite = fma(v, zero8(), finite);  // NaN for good once a value is not finite
    }
    float lanes[8];
    store(lanes, largest);
    float m = lanes[0], check = sum(finite);
    for (int j = 1; j < 8; ++j) m = lanes[j] > m ? lanes[j] : m;
    for (; i < n; ++i) {
        m = x[i] > m ? x[i] : m;
        check = __builtin_fmaf(x[i], 0.0f, check);
    }
    return check == 0.0f ? m : __builtin_nanf("");
}

inline void moe_combine(const float* routed, std::int64_t stride, const float* weights, int n_used,
                        const float* shared, float gate, const float* base, float* y, std::int64_t n) {
    const F8 shared_weight = sigmoid(set1(gate));
    for (std::int64_t i = 0; i < n; i += 8) {
        F8 total = zero8();
        for (int j = 0; j < n_used; ++j)
            total = fma(set1(weights[j]), load_some(routed + j * stride + i, n - i), total);
        total = fma(shared_weight, load_some(shared + i, n - i), total);
        if (base) total = load_some(base + i, n - i) + total;
        store_some(y + i, total, n - i);
    }
}

inline void narrow_to_half(const float* x, std::uint16_t* y, std::int64_t n) {
    const F8 largest = set1(kLargestHalf), least = set1(-kLargestHalf);
    for (std::int64_t i = 0; i < n; i += 8) {
        const F8 v = load_some(x + i, n - i);
        // v · 0 is NaN where v is not finite, else it changes nothing.
        const F8 kept = fma(v, zero8(), max(min(v, largest), least));
        if (n - i >= 8) {
            store_f16(y + i, kept);
            continue;
        }
        std::uint16_t last[8];
        store_f16(last, kept);
        for (std::int64_t j = i; j < n; ++j) y[j] = last[j - i];
    }
}

inline void widen_half(const std::uint16_t* x, float* y, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8) store(y + i, load_f16(reinterpret_cast<const std::byte*>(x + i)));
    for (; i < n; ++i) y[i] = half_at(reinterpret_cast<const std::byte*>(x + i));
}

/// The usual four taps, eight channels at a time with everything but the inputs in registers. The same sum as
/// below.
inline void causal_conv_4(const ConvChannels& channels, std::int64_t c) {
    float taps[4][8], history[3][8];
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 4; ++j) taps[j][i] = channels.w[(c + i) * 4 + j];
        for (int j = 0; j < 3; ++j) history[j][i] = channels.state[(c + i) * 3 + j];
    }
    const F8 w0 = load(taps[0]), w1 = load(taps[1]), w2 = load(taps[2]), w3 = load(taps[3]);
    F8 x0 = load(history[0]), x1 = load(history[1]), x2 = load(history[2]);
    for (int t = 0; t < channels.n_rows; ++t) {
        const F8 x3 = load(channels.u + t * channels.u_stride + c);
        F8 total = fma(w0, x0, zero8());
        total = fma(w1, x1, total);
        total = fma(w2, x2, total);
        total = fma(w3, x3, total);
        store(channels.y + t * channels.y_stride + c, silu(total));
        x0 = x1, x1 = x2, x2 = x3;
    }
    store(history[0], x0), store(history[1], x1), store(history[2], x2);
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 3; ++j) channels.state[(c + i) * 3 + j] = history[j][i];
}

inline void causal_conv(const ConvChannels& channels) {
    const int n_state = channels.d_conv - 1;
    float taps[8], history[8];  // one tap or stored input of eight channels
    for (std::int64_t c = 0; c < channels.n; c += 8) {
        const std::int64_t n = channels.n - c < 8 ? channels.n - c : 8;
        if (n == 8 && channels.d_conv == 4) {
            causal_conv_4(channels, c);
            continue;
        }
        float* state = channels.state + c * n_state;
        for (int t = 0; t < channels.n_rows; ++t) {
            F8 total = zero8();
            for (int j = 0; j < channels.d_conv; ++j) {
                for (std::int64_t i = 0; i < n; ++i) taps[i] = channels.w[(c + i) * channels.d_conv + j];
                const int age = t + j - n_state;  // row of the run, or negative: a stored input
                if (age < 0)
                    for (std::int64_t i = 0; i < n; ++i) history[i] = state[i * n_state + t + j];
                const float* input = age < 0 ? history : channels.u + age * channels.u_stride + c;
                total = fma(load_some(taps, n), load_some(input, n), total);
            }
            store_some(channels.y + t * channels.y_stride + c, silu(total), n);
        }
        // Ascending: entry j is replaced by a later one, so none is read after it was overwritten.
        for (std::int64_t i = 0; i < n; ++i)
            for (int j = 0; j < n_state; ++j) {
                const int from = channels.n_rows + j;
                state[i * n_state + j] = from < n_state
                                             ? state[i * n_state + from]
                                             : channels.u[(from - n_state) * channels.u_stride + c + i];
            }
    }
}

}  // namespace pantheon::kernels::PANTHEON_ISA

// Vectors of one instruction set: widening loads, narrowing stores, multiply-add.
//
// Included after the target of the translation unit is set, with ZEROLAYER_VECTOR_BYTES defined.
// Everything sits in an anonymous namespace and uses no inline function of the standard library:
// the linker would keep one copy of such a function, perhaps the one compiled for AVX512.
#pragma once

namespace zerolayer {
namespace {

struct BFloat16 {
  uint16_t bits;
};
#if defined(__aarch64__)
using Half = __fp16;
#else
using Half = _Float16;
#endif

// Arithmetic is done in fp32, for fp64 in fp64.
template <class S>
struct AccOf {
  using type = float;
};
template <>
struct AccOf<double> {
  using type = double;
};
template <class S>
using Acc = typename AccOf<S>::type;

template <class A, int N>
struct VectorOf {
  typedef A type __attribute__((vector_size(N * sizeof(A))));
};
template <class A>
constexpr int kLanes = ZEROLAYER_VECTOR_BYTES / sizeof(A);
template <class A>
using Vec = typename VectorOf<A, kLanes<A>>::type;

template <class V, class S>
inline V load_bits(const S* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}

inline Vec<float> load_full(const float* p) { return load_bits<Vec<float>>(p); }
inline Vec<double> load_full(const double* p) { return load_bits<Vec<double>>(p); }

// Left to itself, GCC 12 converts these in more steps: 1.2 to 1.4 times the time of a whole norm.
inline Vec<float> load_full(const BFloat16* p) {
#if ZEROLAYER_VECTOR_BYTES == 64
  const __m256i narrow = _mm256_loadu_si256((const __m256i*)p);
  return (Vec<float>)_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16);
#elif ZEROLAYER_VECTOR_BYTES == 32
  const __m128i narrow = _mm_loadu_si128((const __m128i*)p);
  return (Vec<float>)_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16);
#else
  using U16 = VectorOf<uint16_t, kLanes<float>>::type;
  using U32 = VectorOf<uint32_t, kLanes<float>>::type;
  const U32 wide = __builtin_convertvector(load_bits<U16>(p), U32) << 16;
  return load_bits<Vec<float>>(&wide);
#endif
}

inline Vec<float> load_full(const Half* p) {
#if ZEROLAYER_VECTOR_BYTES == 64
  return (Vec<float>)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
#elif ZEROLAYER_VECTOR_BYTES == 32
  return (Vec<float>)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
#else
  Vec<float> v;
  for (int l = 0; l < kLanes<float>; ++l) v[l] = static_cast<float>(p[l]);
  return v;
#endif
}

inline void store_full(float* p, Vec<float> v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline void store_full(double* p, Vec<double> v) { __builtin_memcpy(p, &v, sizeof(v)); }

// The bits of v rounded to bfloat16 (to nearest, ties to even), in the upper half of each lane.
inline VectorOf<uint32_t, kLanes<float>>::type bfloat16_bits(Vec<float> v) {
  using U32 = VectorOf<uint32_t, kLanes<float>>::type;
  const U32 bits = load_bits<U32>(&v);
  const U32 nearest = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  const U32 is_nan = (U32)(v != v);  // rounding could carry a NaN's mantissa into infinity
  return (is_nan & 0x7fc00000u) | (~is_nan & nearest);
}

inline void store_full(BFloat16* p, Vec<float> v) {
#if ZEROLAYER_VECTOR_BYTES == 64
  const __m512i bits = (__m512i)(bfloat16_bits(v) >> 16);
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(bits));
#elif ZEROLAYER_VECTOR_BYTES == 32
  const __m256i bits = (__m256i)(bfloat16_bits(v) >> 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
  _mm_storeu_si128((__m128i*)p, _mm256_castsi256_si128(packed));
#else
  using U16 = VectorOf<uint16_t, kLanes<float>>::type;
  const U16 narrow = __builtin_convertvector(bfloat16_bits(v) >> 16, U16);
  __builtin_memcpy(p, &narrow, sizeof(narrow));
#endif
}

inline void store_full(Half* p, Vec<float> v) {
#if ZEROLAYER_VECTOR_BYTES == 64
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif ZEROLAYER_VECTOR_BYTES == 32
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int l = 0; l < kLanes<float>; ++l) p[l] = static_cast<Half>(v[l]);
#endif
}

// A vector of which `left` elements exist; the others read as 0 and are not written.
template <class S>
inline Vec<Acc<S>> load(const S* p, int64_t left) {
  constexpr int n = kLanes<Acc<S>>;
  if (left >= n) return load_full(p);
  S part[n];
  __builtin_memset(part, 0, sizeof(part));
  __builtin_memcpy(part, p, left * sizeof(S));
  return load_full(part);
}

template <class S>
inline void store(S* p, Vec<Acc<S>> v, int64_t left) {
  constexpr int n = kLanes<Acc<S>>;
  if (left >= n) return store_full(p, v);
  S part[n];
  store_full(part, v);
  __builtin_memcpy(p, part, left * sizeof(S));
}

// The value as the dtype S holds it.
template <class S>
inline Vec<Acc<S>> rounded(Vec<Acc<S>> v) {
  if constexpr (__is_same(S, BFloat16)) {
    const auto bits = bfloat16_bits(v);
    return load_bits<Vec<float>>(&bits);
  } else if constexpr (__is_same(S, Half)) {
    Half narrow[kLanes<float>];
    store_full(narrow, v);
    return load_full(narrow);
  } else {
    return v;
  }
}

template <class A>
inline Vec<A> splat(A a) {
  return Vec<A>{} + a;
}

// a * b + c. The build forbids the compiler to contract, so fused steps are asked for by name.
inline Vec<float> madd(Vec<float> a, Vec<float> b, Vec<float> c) {
#if ZEROLAYER_VECTOR_BYTES == 64
  return (Vec<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif ZEROLAYER_VECTOR_BYTES == 32
  return (Vec<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
inline Vec<double> madd(Vec<double> a, Vec<double> b, Vec<double> c) {
#if ZEROLAYER_VECTOR_BYTES == 64
  return (Vec<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif ZEROLAYER_VECTOR_BYTES == 32
  return (Vec<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

template <class A>
inline A sum_lanes(Vec<A> v) {
  A lanes[kLanes<A>];
  store_full(lanes, v);
  for (int step = kLanes<A> / 2; step; step /= 2)
    for (int l = 0; l < step; ++l) lanes[l] += lanes[l + step];
  return lanes[0];
}

inline float root_of(float v) { return __builtin_sqrtf(v); }
inline double root_of(double v) { return __builtin_sqrt(v); }

}  // namespace
}  // namespace zerolayer

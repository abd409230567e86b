// Time parts of your own CUDA program, in C (C99) or C++, at almost no cost. The file prof.schedule says what is timed,
// and when (docs/profile.md). Without one nothing is, and a call costs a load and a branch.
//
//     for (int step = 0; step < steps; ++step) {
//         kbench_iteration(stream);            // the next iteration begins
//         kbench_scope_begin("loss", stream);  // C++ also has kbench::Scope loss("loss", stream); to the block's end
//         loss<<<blocks, threads, 0, stream>>>(logits);
//         kbench_scope_end("loss", stream);
//     }
//
// Link kbench::profile (CMake) or -lkbench_profile. Compiled with -DKBENCH_PROFILING=0 or =OFF, nothing of it is left.
// No call fails or throws: what goes wrong is one line on stderr, and nothing is measured from then on.
#pragma once

/// A cudaStream_t or CUstream; NULL is the default stream that the file is compiled for.
typedef void* kbench_stream;

// KBENCH_PROFILING is 1 unless it is given; ON and OFF are what CMake's options are called.
#ifndef KBENCH_PROFILING
#define KBENCH_PROFILING 1
#endif
#define KBENCH_PROFILING_IS_1 1
#define KBENCH_PROFILING_IS_ON 1
#define KBENCH_PROFILING_JOINED(value) KBENCH_PROFILING_IS_##value
#define KBENCH_PROFILING_OF(value) KBENCH_PROFILING_JOINED(value)

// Always, so that what is compiled out leaves no symbol in an object that is not optimised.
#ifdef __cplusplus
#define KBENCH_PROFILE_INLINE inline __attribute__((always_inline))
#else
#define KBENCH_PROFILE_INLINE static inline __attribute__((always_inline))
#endif

#if KBENCH_PROFILING_OF(KBENCH_PROFILING)

#ifdef __cplusplus
extern "C" {
#endif

// What the calls below come to.
#define KBENCH_PROFILE_API __attribute__((visibility("default")))
extern KBENCH_PROFILE_API int kbench_profile_state;  // 0: off
KBENCH_PROFILE_API void kbench_profile_scope_begin(const char* label, kbench_stream stream);
KBENCH_PROFILE_API void kbench_profile_scope_end(const char* label, kbench_stream stream);
KBENCH_PROFILE_API void kbench_profile_iteration(kbench_stream stream);
KBENCH_PROFILE_API void kbench_profile_end(void);

#ifdef __cplusplus
}
#endif

// Another thread may switch it off meanwhile.
#define KBENCH_PROFILE_IS_ON __builtin_expect(__atomic_load_n(&kbench_profile_state, __ATOMIC_RELAXED), 0)
// The stream that NULL stands for here: the library is compiled only once.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define KBENCH_PROFILE_STREAM(stream) ((stream) ? (stream) : (kbench_stream)0x2)
#else
#define KBENCH_PROFILE_STREAM(stream) (stream)
#endif

/// The scope `label` begins with the work that follows on `stream`. Scopes may lie within each other, and a label may
/// come back within an iteration: each time is a scope of its own. In a stream that is captured, the scope becomes part
/// of the graph, and each launch times it.
KBENCH_PROFILE_INLINE void kbench_scope_begin(const char* label, kbench_stream stream) {
    if (KBENCH_PROFILE_IS_ON) kbench_profile_scope_begin(label, KBENCH_PROFILE_STREAM(stream));
}

/// The scope `label` that began last on `stream` ends with the work before.
KBENCH_PROFILE_INLINE void kbench_scope_end(const char* label, kbench_stream stream) {
    if (KBENCH_PROFILE_IS_ON) kbench_profile_scope_end(label, KBENCH_PROFILE_STREAM(stream));
}

/// The next iteration begins with the work that follows on `stream`, and the one before ends. With several GPUs in a
/// process each has iterations of its own: call it for a stream of each.
KBENCH_PROFILE_INLINE void kbench_iteration(kbench_stream stream) {
    if (KBENCH_PROFILE_IS_ON) kbench_profile_iteration(KBENCH_PROFILE_STREAM(stream));
}

/// Ends the measurement before the schedule does and writes prof.json. The end of the program does so, too, but may
/// come too late for iterations that the GPU still works on.
KBENCH_PROFILE_INLINE void kbench_profile_finish(void) {
    if (KBENCH_PROFILE_IS_ON) kbench_profile_end();
}

#else

KBENCH_PROFILE_INLINE void kbench_scope_begin(const char* label, kbench_stream stream) { (void)label, (void)stream; }
KBENCH_PROFILE_INLINE void kbench_scope_end(const char* label, kbench_stream stream) { (void)label, (void)stream; }
KBENCH_PROFILE_INLINE void kbench_iteration(kbench_stream stream) { (void)stream; }
KBENCH_PROFILE_INLINE void kbench_profile_finish(void) {}

#endif

#ifdef __cplusplus
namespace kbench {

/// The scope `label` on `stream` from here to the end of the block. `label` must live as long.
class Scope {
  public:
    KBENCH_PROFILE_INLINE Scope(const char* label, kbench_stream stream) : label_(label), stream_(stream) {
        kbench_scope_begin(label_, stream_);
    }
    KBENCH_PROFILE_INLINE ~Scope() { kbench_scope_end(label_, stream_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

  private:
    const char* label_;
    kbench_stream stream_;
};

}  // namespace kbench
#endif

// Which call of a provider or of the reference is under way, for who asks why nothing moves. Written by the thread that
// measures, read by any other.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace kbench {

/// A text that lives as long as the process; equal texts are one.
const char* call_name(const std::string& text);

/// Stands around a call. `name` must be of call_name. Four plain stores: about 1 ns, where the shortest step takes 30.
class CurrentCall {
  public:
    explicit CurrentCall(const char* name) {
        name_.store(name, std::memory_order_relaxed);
        calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        is_inside_.store(true, std::memory_order_relaxed);
    }
    ~CurrentCall() { is_inside_.store(false, std::memory_order_relaxed); }
    CurrentCall(const CurrentCall&) = delete;
    CurrentCall& operator=(const CurrentCall&) = delete;

    /// The call that is under way; null between calls.
    static const char* name() {
        return is_inside_.load(std::memory_order_relaxed) ? name_.load(std::memory_order_relaxed) : nullptr;
    }
    /// How many have begun.
    static std::uint64_t count() { return calls_.load(std::memory_order_relaxed); }

  private:
    inline static std::atomic<const char*> name_ = nullptr;
    inline static std::atomic<std::uint64_t> calls_ = 0;
    inline static std::atomic<bool> is_inside_ = false;
};

}  // namespace kbench

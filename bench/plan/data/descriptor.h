// An open file.
#pragma once

#include <unistd.h>

namespace kbench {

/// Closes what it holds; below 0 it holds nothing.
class Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (value_ >= 0) close(value_);
    }
    int get() const { return value_; }

  private:
    int value_;
};

}  // namespace kbench

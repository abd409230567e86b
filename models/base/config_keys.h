// The keys of a model's config.json, each read with its type checked. Every error is a UsageError of one line: the
// file, the key, its value and what would be right.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kbench {

class ConfigKeys {
  public:
    /// `path` is used in errors. Throws UsageError where `text` is no JSON object.
    ConfigKeys(const std::string& text, std::string path);
    ~ConfigKeys();

    const std::string& path() const { return path_; }
    [[noreturn]] void fail(const std::string& reason) const;

    /// A key that is absent, or null, which Hugging Face writes for "the default", is not there.
    bool has(const char* key) const;
    /// Whether it is there and null, for keys whose null is no default.
    bool is_null(const char* key) const;
    /// `needed` ends the error where the key is missing: what such a file needs.
    std::int64_t required_integer(const char* key, const char* needed) const;
    std::int64_t integer_or(const char* key, std::int64_t otherwise) const;
    /// Throws where there are more layers than a plan may have (sizes.h).
    void require_few_layers(const char* key, std::int64_t layers) const;
    /// A list of at least `least`.
    std::vector<std::int64_t> required_integers(const char* key, std::size_t least, const char* needed) const;
    double number_or(const char* key, double otherwise) const;
    bool flag_or(const char* key, bool otherwise) const;
    std::string text_or(const char* key, const std::string& otherwise) const;

  private:
    struct Document;
    std::string path_;
    std::unique_ptr<Document> document_;
};

}  // namespace kbench

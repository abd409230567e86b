// The keys of a model's config.json, each read with its type checked. Every error is a UsageError of one line: the
// file, the key, its value and what would be right.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

/// Keys are named as they lie in the file: "n_embd", or "data.spect.sample_rate" in objects in objects. Where a row
/// has several, blanks stand between them.

/// A key that a family reads; `same_as` where it is another name of one.
struct UnderstoodKeys {
    std::string_view names, why;
    std::string_view same_as = "";
};

/// Keys that change what is computed into something that kbench does not compute. They are refused, except for null
/// and for values with which they change nothing.
struct RefusedKeys {
    std::string_view names;
    std::string_view off;  ///< a JSON list of such values
    std::string_view why;
    std::string_view equals = "";  ///< an understood key: its value is one of them
    std::string_view unless = "";  ///< an understood or refused key: where that is true, any value is
};

/// Keys that change nothing that is measured.
struct HarmlessKeys {
    std::string_view names, why;
};

/// What a family of models makes of every key that it knows. Others are told as ignored.
struct FamilyKeys {
    std::string_view family;  ///< with its article
    std::span<const UnderstoodKeys> understood;
    std::span<const RefusedKeys> refused;
    std::span<const HarmlessKeys> harmless;
};

/// A key as a reader took it.
struct ReadKey {
    std::string key, value;
    std::string from;  ///< its name in the file; empty where it was not there and `value` is the default
};

class ConfigKeys {
  public:
    /// `path` is used in errors. Throws UsageError where `text` is no JSON object, or has a key twice.
    ConfigKeys(const std::string& text, std::string path);
    /// The same, and throws UsageError where one of the keys is refused by `family`, or stands in an object where
    /// nobody reads it, or two names of one key have different values.
    ConfigKeys(const std::string& text, std::string path, const FamilyKeys& family);
    ~ConfigKeys();

    const std::string& path() const { return path_; }
    [[noreturn]] void fail(const std::string& reason) const;
    /// A text of the file's, cut to what fits in a line and without what steers a terminal.
    static std::string shown(const std::string& text);

    /// A key that is absent, or null, which Hugging Face writes for "the default", is not there. A key is there under
    /// any of its names.
    bool has(std::string_view key) const;
    /// Whether it is there and null, for keys whose null is no default.
    bool is_null(std::string_view key) const;
    /// `needed` ends the error where the key is missing: what such a file needs.
    std::int64_t required_integer(std::string_view key, std::string_view needed) const;
    std::int64_t integer_or(std::string_view key, std::int64_t otherwise) const;
    /// The same, or how many there are where the file lists them: texts, no two alike.
    std::int64_t count_or(std::string_view key, std::int64_t otherwise) const;
    /// Throws where there are more layers than a plan may have (sizes.h).
    void require_few_layers(std::string_view key, std::int64_t layers) const;
    /// A list of at least `least`.
    std::vector<std::int64_t> required_integers(std::string_view key, std::size_t least, std::string_view needed) const;
    double number_or(std::string_view key, double otherwise) const;
    bool flag_or(std::string_view key, bool otherwise) const;
    std::string text_or(std::string_view key, const std::string& otherwise) const;
    /// A list of texts; empty where the key is not there.
    std::vector<std::string> texts(std::string_view key) const;

    /// What was asked for so far, in that order.
    const std::vector<ReadKey>& read() const;
    /// Keys that nobody knows, as they are told: at most a few, with the understood one that each may be meant for.
    /// Empty where there are none.
    std::string ignored() const;
    /// All that a user should know of how the file was read: what is ignored, and what `note` added.
    std::vector<std::string> notes() const;
    void note(const std::string& text) const;

  private:
    struct Document;
    std::string path_;
    std::unique_ptr<Document> document_;
};

}  // namespace kbench

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

/// Keys are named by their path in the file: "n_embd", or "data.spect.sample_rate" in nested objects. A row may list
/// several, separated by blanks.

/// A key that a family of models reads. `same_as` names the key that it is another name of.
struct UnderstoodKeys {
    std::string_view names, why;
    std::string_view same_as = "";
};

/// Keys that would change what is computed into something that kbench does not compute. They are refused, except for
/// null and for values that change nothing.
struct RefusedKeys {
    std::string_view names;
    std::string_view off;  ///< a JSON list of the values that change nothing
    std::string_view why;
    std::string_view equals = "";  ///< an understood key whose value also changes nothing
    std::string_view unless = "";  ///< an understood or refused key; while it is true, no value changes anything
};

/// Keys that do not change anything measured.
struct HarmlessKeys {
    std::string_view names, why;
};

/// What a family of models does with each key that it knows. Other keys are reported as ignored.
struct FamilyKeys {
    std::string_view family;  ///< with its article
    std::span<const UnderstoodKeys> understood;
    std::span<const RefusedKeys> refused;
    std::span<const HarmlessKeys> harmless;
};

/// A key as it was read.
struct ReadKey {
    std::string key, value;
    std::string from;  ///< its name in the file; empty where the file lacks it and `value` is the default
};

class ConfigKeys {
  public:
    /// `path` appears in errors. Throws UsageError where `text` is not a JSON object or has a key twice.
    ConfigKeys(const std::string& text, std::string path);
    /// The same for a family. Also throws UsageError where `family` refuses a key, where an understood key lies in an
    /// object that nobody reads, or where two names of one key have different values.
    ConfigKeys(const std::string& text, std::string path, const FamilyKeys& family);
    ~ConfigKeys();

    const std::string& path() const { return path_; }
    [[noreturn]] void fail(const std::string& reason) const;
    /// A text from the file, cut to fit in a line and without characters that could control a terminal.
    static std::string shown(const std::string& text);

    /// Whether the file has the key, under any of its names. Null counts as absent: Hugging Face writes it for "the
    /// default".
    bool has(std::string_view key) const;
    /// Whether the key is present and null, for keys where null does not mean the default.
    bool is_null(std::string_view key) const;
    /// `needed` ends the error about a missing key: it says what kind of file needs it.
    std::int64_t required_integer(std::string_view key, std::string_view needed) const;
    std::int64_t integer_or(std::string_view key, std::int64_t otherwise) const;
    /// The integer; or, where the file has a list of distinct texts instead, its length.
    std::int64_t count_or(std::string_view key, std::int64_t otherwise) const;
    /// Throws where there are more layers than a plan may have (sizes.h).
    void require_few_layers(std::string_view key, std::int64_t layers) const;
    /// A list of at least `least` integers.
    std::vector<std::int64_t> required_integers(std::string_view key, std::size_t least, std::string_view needed) const;
    double number_or(std::string_view key, double otherwise) const;
    bool flag_or(std::string_view key, bool otherwise) const;
    std::string text_or(std::string_view key, const std::string& otherwise) const;
    /// A list of texts; empty where the key is absent.
    std::vector<std::string> texts(std::string_view key) const;

    /// All keys asked for so far, in that order.
    const std::vector<ReadKey>& read() const;
    /// A sentence about unknown keys: at most a few, each with the understood key that may be meant. Empty where there
    /// are none.
    std::string ignored() const;
    /// What a user should know about how the file was read: ignored keys, and what `note` added.
    std::vector<std::string> notes() const;
    void note(const std::string& text) const;

  private:
    struct Document;
    std::string path_;
    std::unique_ptr<Document> document_;
};

}  // namespace kbench

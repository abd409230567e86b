// A table of magic numbers. Pickles are never read: they are programs.
#include "bench/plan/data/other_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace kbench {
namespace {

using namespace std::string_view_literals;

struct OtherFormat {
    std::string_view begins;
    std::string_view what;  ///< with what to do
    std::size_t at = 0;     ///< where it begins so
};

constexpr OtherFormat other_formats[] = {
    {"version https://git-lfs.github.com/spec/"sv,
     "a Git LFS pointer: the file itself was not downloaded; run `git lfs pull` in its repository"},
    {"version https://hawser.github.com/spec/"sv,
     "a Git LFS pointer: the file itself was not downloaded; run `git lfs pull` in its repository"},
    {"\x1f\x8b"sv, "compressed with gzip; unpack it first (gunzip)"},
    {"\x28\xb5\x2f\xfd"sv, "compressed with zstd; unpack it first (unzstd)"},
    {"\xfd"
     "7zXZ\0"sv,
     "compressed with xz; unpack it first (unxz)"},
    {"BZh"sv, "compressed with bzip2; unpack it first (bunzip2)"},
    {"7z\xbc\xaf\x27\x1c"sv, "a 7z archive; unpack it first"},
    {"ustar"sv, "a tar archive; unpack it first (tar -xf)", 257},
    {"\x89HDF\r\n"sv, "an HDF5 file, as Keras writes them; save the model as safetensors"},
    {"GGUF"sv, "a GGUF file of llama.cpp; take the safetensors that it was made from"},
    {"PAR1"sv, "a Parquet file, which is not read; save what is wanted of it with numpy.save"},
    {"ARROW1"sv, "an Arrow file, which is not read; save what is wanted of it with numpy.save"},
    {"\x93NUMPY"sv, "a NumPy array; a checkpoint is a .safetensors file"},
    // The first of 256 int32 of karpathy/llm.c's checkpoints, 20240326.
    {"\xc6\xd7\x34\x01"sv, "a checkpoint of llm.c; take the safetensors that it was made from"},
};

bool begins_as(std::string_view text, std::string_view lower_case) {
    return text.size() >= lower_case.size() &&
           std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

/// What becomes of a pickle, for the end of a sentence.
std::string conversion_of_pickle(Wanted wanted) {
    if (wanted == Wanted::tokens) return "save the numbers with numpy.save";
    return "convert it: python3 -c \"import torch, safetensors.torch as s; c = torch.load('IN', map_location='cpu', weights_only=True); c = c.get('model', c.get('state_dict', c)); s.save_file({k: v.clone().contiguous() for k, v in c.items() if hasattr(v, 'clone')}, 'OUT.safetensors')\"";
}

/// A zip of PyTorch's holds data.pkl first, NumPy's NAME.npy.
std::string kind_of_zip(std::string_view bytes, Wanted wanted) {
    const std::string_view names = bytes.substr(0, 256);
    if (names.find("data.pkl") != std::string_view::npos)
        return "a file of torch.save's (a zip with a pickle, which is not read); " + conversion_of_pickle(wanted);
    if (names.find(".npy") != std::string_view::npos) return "a NumPy archive (.npz); save what is wanted of it alone";
    return "a zip archive; unpack it first (unzip), or, if PyTorch wrote it, " + conversion_of_pickle(wanted);
}

}  // namespace

std::string other_format(std::string_view first_bytes, Wanted wanted) {
    if (first_bytes.empty()) return "empty: a download that failed, or a disk that was full?";
    for (const OtherFormat& format : other_formats)
        if (first_bytes.size() > format.at && first_bytes.substr(format.at).starts_with(format.begins))
            return std::string(format.what);
    if (first_bytes.starts_with("PK\x03\x04"sv) || first_bytes.starts_with("PK\x05\x06"sv))
        return kind_of_zip(first_bytes, wanted);
    // Protocols 2 to 5; 0 and 1 begin as text does.
    if (first_bytes.size() >= 2 && first_bytes[0] == '\x80' && first_bytes[1] >= 2 && first_bytes[1] <= 5)
        return "a pickle, as torch.save wrote before PyTorch 1.6; it is not read; " + conversion_of_pickle(wanted);
    const std::size_t at = first_bytes.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    const std::string_view text = at == std::string_view::npos ? "" : first_bytes.substr(at);
    for (const std::string_view tag : {"<!doctype"sv, "<html"sv, "<head"sv})
        if (begins_as(text, tag))
            return "an HTML page: a web page was downloaded instead of the file; on Hugging Face its address has /resolve/ in place of /blob/";
    // Binary where a length that begins with this letter stands.
    if (text.starts_with('{') && text.substr(0, 8).find('\0') == std::string_view::npos)
        return "JSON text; only an index of shards, whose name ends in .json, stands for a checkpoint";
    if (begins_as(text, "<?xml")) return "an XML document, such as a server's error message instead of the file";
    return {};
}

}  // namespace kbench

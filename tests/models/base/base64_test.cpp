// base64: the examples of RFC 4648, bytes of any value, and text that is none.
#include "models/base/base64.h"

#include <gtest/gtest.h>

namespace kbench {
namespace {

TEST(Base64, IsThatOfTheStandard) {
    const std::pair<const char*, const char*> examples[] = {{"", ""},
                                                            {"f", "Zg=="},
                                                            {"fo", "Zm8="},
                                                            {"foo", "Zm9v"},
                                                            {"foob", "Zm9vYg=="},
                                                            {"fooba", "Zm9vYmE="},
                                                            {"foobar", "Zm9vYmFy"}};
    for (const auto& [bytes, text] : examples) {
        EXPECT_EQ(base64(bytes), text);
        EXPECT_EQ(from_base64(text), bytes);
    }
}

TEST(Base64, AnyBytesComeBack) {
    std::string bytes;
    for (int value = 0; value < 256; ++value) bytes += static_cast<char>(value);
    EXPECT_EQ(from_base64(base64(bytes)), bytes);
}

TEST(Base64, NothingElseIsTaken) {
    for (const char* text : {"Zg=", "Zm9v\n", "Zm9-", "Z===", "====", "=m9v", "{\"a\": 1}"})
        EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace kbench

// gzip: what was compressed comes back, and nothing else is taken for text.
#include "models/base/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "kbench/error.h"

namespace kbench {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view bytes, std::size_t most_bytes = std::size_t{1} << 30) {
    try {
        gunzip(bytes, "a.gz", most_bytes);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

/// Longer than the blocks that zlib is given, and not to be compressed.
std::string noise(std::size_t bytes) {
    std::mt19937 random(1);
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
}

TEST(Gzip, TextOfAnyLengthComesBack) {
    for (const std::size_t bytes : {0, 1, 100, 256 << 10, (256 << 10) + 1, 3 << 20})
        for (const std::string& text : {std::string(bytes, 'a'), noise(bytes)}) {
            const std::string packed = gzip(text);
            EXPECT_TRUE(is_gzip(packed));
            ASSERT_EQ(gunzip(packed, "a.gz"), text) << bytes;
        }
}

TEST(Gzip, EqualTextGivesEqualBytesWithoutATime) {
    const std::string packed = gzip("a result");
    EXPECT_EQ(packed, gzip("a result"));
    EXPECT_EQ(packed.substr(3, 5), std::string(5, '\0')) << "no flags (no name), no time";
}

TEST(Gzip, MembersOneAfterTheOtherAreOneText) { EXPECT_EQ(gunzip(gzip("one, ") + gzip("two"), "a.gz"), "one, two"); }

TEST(Gzip, EveryCutIsRefused) {
    const std::string packed = gzip(noise(500));
    for (std::size_t length = 0; length < packed.size(); ++length)
        ASSERT_THAT(refusal(packed.substr(0, length)), HasSubstr("a.gz: its gzip data are cut off")) << length;
}

TEST(Gzip, AChangedByteIsRefused) {
    const std::string packed = gzip(noise(500));
    for (std::size_t place = 0; place < packed.size(); ++place) {
        // Flags, time and system of the header say nothing of the text, nor does the padding of a stored block.
        if (place >= 3 && place <= 10) continue;
        std::string changed = packed;
        changed[place] = static_cast<char>(changed[place] ^ 0x20);
        ASSERT_THAT(refusal(changed), HasSubstr("a.gz: its gzip data are ")) << place;
    }
}

TEST(Gzip, WhatFollowsAMemberMustBeOne) { EXPECT_THAT(refusal(gzip("a") + "garbage"), HasSubstr("damaged")); }

TEST(Gzip, AFileMadeToFillTheMemoryIsRefused) {
    const std::string packed = gzip(std::string(8 << 20, '0'));
    EXPECT_LT(packed.size(), 10000u);
    EXPECT_EQ(refusal(packed, 8 << 20), "accepted");
    EXPECT_THAT(refusal(packed, (8 << 20) - 1), HasSubstr("decompresses to more than 8388607 bytes"));
}

TEST(Gzip, JsonIsNoGzip) {
    EXPECT_FALSE(is_gzip(""));
    EXPECT_FALSE(is_gzip("{\"schema\""));
    EXPECT_FALSE(is_gzip("\x1f"));
}

}  // namespace
}  // namespace kbench

// The options of `kbench table`: parsing, mistakes, and that its reference is what the tables say.
#include "bench/command/table_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::vector<std::string>& arguments) {
    return refusal_of([&] { parse_table(arguments); });
}

TEST(TableOptions, AreFoundOnEitherSideOfTheFiles) {
    const TableRequest r =
        parse_table({"a.json", "-c", "op,time_us", "--by", "layer", "--fold", "b.json", "-w", "90"}).request;
    EXPECT_THAT(r.files, ElementsAre("a.json", "b.json"));
    EXPECT_EQ(r.query.level->name, "layer");
    EXPECT_TRUE(r.query.fold);
    EXPECT_EQ(r.width, 90u);
    EXPECT_THAT(r.query.columns, ElementsAre("op", "time_us"));
}

TEST(TableOptions, CsvHasAShortWord) {
    EXPECT_EQ(parse_table({"a.json", "--csv"}).request.format, TableFormat::csv);
    EXPECT_EQ(parse_table({"a.json", "--format", "csv"}).request.format, TableFormat::csv);
    EXPECT_EQ(parse_table({"a.json", "--format", "markdown"}).request.format, TableFormat::markdown);
}

TEST(TableOptions, APointIsANumberOrAll) {
    EXPECT_EQ(parse_table({"a.json", "--point", "2"}).request.query.point, 2u);
    EXPECT_EQ(parse_table({"a.json", "--point", "all"}).request.query.point, std::nullopt);
    EXPECT_THAT(refusal({"a.json", "--point", "-1"}), HasSubstr("--point '-1': must be all or"));
}

TEST(TableOptions, WrongValuesSayWhatWouldBeRight) {
    EXPECT_THAT(refusal({}), HasSubstr("no RESULT"));
    EXPECT_THAT(refusal({"a.json", "-c", ""}), HasSubstr("name at least one"));
    EXPECT_THAT(refusal({"a.json", "--top", "0"}), HasSubstr("at least 1"));
    EXPECT_THAT(refusal({"a.json", "--format", "xml"}), HasSubstr("space, markdown, json, csv"));
    EXPECT_THAT(refusal({"a.json", "-w", "80", "--csv"}), HasSubstr("only --format space has a width, not csv"));
    EXPECT_THAT(refusal({"a.json", "--wide"}), HasSubstr("`kbench table --help`"));
}

TEST(TableOptions, TheReferenceInDocsIsTheTables) {
    const std::string path = std::string(KBENCH_SOURCE_DIR) + "/docs/table.md";
    if (std::getenv("KBENCH_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << table_markdown();
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), table_markdown()) << "KBENCH_UPDATE_GOLDEN=1 writes it again";
}

}  // namespace
}  // namespace kbench

// Runs every target over its corpus, without a fuzzer: what was once found stays mended.
//
// fuzz_replay CORPUS; a target without inputs is a failure.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/targets.h"

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    if (argc != 2) return 2;
    for (const kbench::fuzz::Target& target : kbench::fuzz::targets()) {
        int inputs = 0;
        const fs::path folder = fs::path(argv[1]) / target.name;
        if (fs::is_directory(folder))
            for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
                std::ifstream file(entry.path(), std::ios::binary);
                const std::string input{std::istreambuf_iterator<char>(file), {}};
                target.run(input);
                ++inputs;
            }
        std::printf("%s: %d inputs\n", std::string(target.name).c_str(), inputs);
        if (inputs == 0) return 1;
    }
}

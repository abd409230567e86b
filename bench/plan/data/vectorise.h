// One attribute for the loops over large host arrays: a version for each vector width, chosen when the program loads.
// The build targets plain x86-64, so without it these loops would run 4 lanes wide on any machine.
#pragma once

// The thread sanitizer instruments the resolvers, which run before it is set up.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__)
#define KBENCH_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KBENCH_VECTORISED
#endif

// A CUDA driver for tests on any machine: streams are clocks that kernels of stated length move on, and the host's
// clock moves when a test says so or when it waits. It is a libcuda.so.1 that a test program links, so that whoever
// loads the driver gets this one.
#pragma once

#include <cuda.h>

extern "C" {

/// A context of device `device`, made current; "Fake GPU N" is its name.
CUcontext fake_context(int device);
void fake_set_current(CUcontext context);
CUstream fake_stream(CUcontext context);
/// A kernel on `stream`, or in the graph where that is captured.
void fake_kernel(CUstream stream, double ms);
/// The host works for so long, ms.
void fake_host(double ms);

void fake_begin_capture(CUstream stream);
/// The graph, which is launched by its number.
int fake_end_capture(CUstream stream);
void fake_launch(int graph, CUstream stream);

/// How often a function was called with success, by its name as cuGetProcAddress has it.
int fake_calls(const char* name);
/// Event nodes in a graph.
int fake_event_nodes(int graph);
/// From now on `name` fails with `error`.
void fake_fail(const char* name, CUresult error);
}

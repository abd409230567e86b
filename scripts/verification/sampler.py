"""Times calls of PyTorch as kbench times its own work, for peer, peer-ceilings and peer-micro.

First a warm-up as long as kbench's, then rounds over the calls in turn. On a GPU a sample is a launch between two CUDA
events, divided by the calls in it: a graph, or the calls one by one. Seven launches are enqueued at a time. The first
is no sample, as it begins on an idle GPU, nor is the last, whose end no event marks. On a CPU a sample is one call.
"""

import ctypes
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FEWEST = 6
LAUNCH_S = 200e-6  # long compared with an event and the launch of a graph, as in `kbench micro`


@dataclass(frozen=True)
class Samples:
    seconds: list[float]  # for one call
    sm_clock_mhz: float = math.nan  # a GPU's meanwhile, the median of few readings

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)


class Run:
    """A call on one set of operands, and its result of last time.

    A result lives until its own set runs again. Dropped at once, as its memory is what the allocator hands out next, it
    would be found in the caches by the next call, whatever its set.
    """

    def __init__(self, call: Callable[[], Any]):
        self.call = call
        self.result: Any = None

    def __call__(self) -> None:
        self.result = None
        self.result = self.call()


class SmClock:
    """The clock of the GPU's SMs, through the driver's NVML."""

    sm = 1  # NVML_CLOCK_SM

    def __init__(self, torch: Any):
        self.gpu = ctypes.c_void_p()
        try:
            self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
            uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
        except (OSError, AttributeError):  # no library, or a PyTorch that does not tell which GPU it is
            self.nvml = None
            return
        self.nvml.nvmlInit_v2()
        self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.gpu))

    def mhz(self) -> float:
        """NaN where NVML does not tell."""
        clock = ctypes.c_uint()
        if self.nvml is None or self.nvml.nvmlDeviceGetClockInfo(self.gpu, self.sm, ctypes.byref(clock)):
            return math.nan
        return float(clock.value)


@dataclass(frozen=True)
class Launch:
    """What is put between two events."""

    enqueue: Callable[[], Any]
    calls: int


def one_by_one(runs: list[Run]) -> Launch:
    def enqueue() -> None:
        for run in runs:
            run()

    return Launch(enqueue, len(runs))


def graph_of(torch: Any, runs: list[Run]) -> Launch:
    """A CUDA graph of as many rounds as take LAUNCH_S."""
    a_round = one_by_one(runs).enqueue
    runs[0]()
    torch.cuda.synchronize()
    start = time.perf_counter()
    a_round()
    torch.cuda.synchronize()
    rounds = max(1, math.ceil(LAUNCH_S / (time.perf_counter() - start)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            a_round()
    return Launch(graph.replay, rounds * len(runs))


def keep_freed_memory() -> None:
    """Makes malloc keep what is freed, large blocks too: page faults in the timed calls would cost more than these."""
    m_trim_threshold, m_mmap_max = -1, -4  # from glibc's malloc.h
    libc = ctypes.CDLL(None)
    libc.mallopt(m_trim_threshold, -1)
    libc.mallopt(m_mmap_max, 0)


@dataclass(frozen=True)
class Sampler:
    """Samples for `seconds` and at least `fewest`, unless that with the warm-up takes longer than `limit_s`."""

    seconds: float
    warm_up_s: float
    fewest: int = FEWEST
    limit_s: float = math.inf

    def gpu(self, torch: Any, clock: SmClock, launch: Launch) -> Samples:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(7)]
        deadline = time.perf_counter() + self.limit_s

        def sample_for(duration: float, fewest: int) -> Samples:
            seconds, clocks, begin = [], [], time.perf_counter()
            while True:
                for event in events:
                    event.record()
                    launch.enqueue()
                clocks.append(clock.mhz())
                torch.cuda.synchronize()
                seconds += [a.elapsed_time(b) * 1e-3 / launch.calls for a, b in zip(events[1:], events[2:])]
                now = time.perf_counter()
                if now > deadline or (len(seconds) >= fewest and now - begin >= duration):
                    return Samples(seconds, statistics.median(clocks))

        sample_for(min(self.warm_up_s, self.limit_s / 4), 1)
        return sample_for(self.seconds, self.fewest)

    def cpu(self, runs: list[Run]) -> Samples:
        begin = time.perf_counter()

        def timed_calls(fewest: float, limit_s: float) -> Samples:
            """Whole rounds, unless the limit ends one: the next calls begin with the first set again."""
            rounds = math.ceil(fewest / len(runs))
            # As long as it will be: a list that grows takes the memory of freed results, and new memory faults.
            seconds = [0.0] * (rounds * len(runs))
            for i, run in enumerate(runs * rounds):
                run.result = None
                start = time.perf_counter()
                run.result = run.call()
                end = time.perf_counter()
                seconds[i] = end - start
                if end - begin > limit_s:
                    return Samples(seconds[: i + 1])
            return Samples(seconds)

        keep_freed_memory()
        samples = timed_calls(FEWEST, self.limit_s / 4)
        samples = timed_calls(max(1, self.warm_up_s / samples.median_s), self.limit_s / 4)
        return timed_calls(max(self.fewest, self.seconds / samples.median_s), self.limit_s)

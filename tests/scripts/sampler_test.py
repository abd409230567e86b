"""The sampler of PyTorch on planted times, and what peer-ceilings makes of its medians. Needs neither
PyTorch nor a GPU.
"""

import contextlib
import importlib.machinery
import importlib.util
import itertools
import math
import pathlib
import sys
import types
import unittest
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
from verification import sampler  # noqa: E402
from verification.sampler import Launch, Run, Sampler, graph_of, one_by_one  # noqa: E402


def load(script: str) -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader(script.replace("-", "_"), str(ROOT / "scripts" / script))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Planted(unittest.TestCase):
    """A time of its own: only calls take some, each the next of those that were planted."""

    def setUp(self) -> None:
        self.now_s, self.calls = 0.0, 0
        clock = types.SimpleNamespace(perf_counter=lambda: self.now_s)
        for patch in (mock.patch.object(sampler, "time", clock), mock.patch.object(sampler, "keep_freed_memory")):
            patch.start()
            self.addCleanup(patch.stop)

    def plant(self, times_s: Iterable[float]) -> Callable[[], None]:
        times = iter(times_s)

        def call() -> None:
            self.calls += 1
            self.now_s += next(times)

        return call


class Cpu(Planted):
    def test_an_outlier_is_kept_as_a_sample_and_moves_no_median(self) -> None:
        times = itertools.cycle([1e-3] * 6 + [1.2e-3] * 3 + [0.5])
        samples = Sampler(seconds=0, warm_up_s=0, fewest=40).cpu([Run(self.plant(times))])
        self.assertEqual(len(samples.seconds), 40)
        self.assertAlmostEqual(samples.median_s, 1e-3)
        self.assertAlmostEqual(min(samples.seconds), 1e-3)
        self.assertAlmostEqual(max(samples.seconds), 0.5)
        self.assertTrue(math.isnan(samples.sm_clock_mhz))

    def test_what_is_slow_while_it_warms_up_is_no_sample(self) -> None:
        times = itertools.chain([8e-3] * 6, [2e-3] * 50, itertools.repeat(1e-3))
        samples = Sampler(seconds=0.2, warm_up_s=0.4).cpu([Run(self.plant(times))])
        self.assertEqual(self.calls - len(samples.seconds), 6 + 50, "0.4 s at the 8 ms of the first calls")
        self.assertEqual(len(samples.seconds), 100, "0.2 s at the 2 ms of the warm-up")
        self.assertAlmostEqual(max(samples.seconds), 1e-3)

    def test_sets_run_in_turn_and_in_whole_rounds(self) -> None:
        order: list[int] = []
        runs = [Run(lambda i=i, call=self.plant(itertools.repeat(1e-3)): (order.append(i), call())) for i in range(4)]
        samples = Sampler(seconds=0, warm_up_s=0).cpu(runs)
        self.assertEqual(len(samples.seconds), 8, "six at the least are two rounds")
        self.assertEqual(order, [0, 1, 2, 3] * (len(order) // 4))

    def test_the_limit_ends_it_with_fewer_samples(self) -> None:
        samples = Sampler(seconds=100, warm_up_s=1, fewest=10, limit_s=60).cpu([Run(self.plant(itertools.repeat(7.0)))])
        self.assertEqual(self.calls - len(samples.seconds), 3 + 1, "a quarter of the limit, and a call, warm up")
        self.assertEqual(samples.seconds, [7.0] * 5)


class Gpu(Planted):
    """Also a clock of the GPU that falls by 10 MHz each time it is read."""

    def setUp(self) -> None:
        super().setUp()
        self.captured = 0
        self.torch: Any = types.SimpleNamespace(
            cuda=types.SimpleNamespace(
                Event=self.event, CUDAGraph=self.graph, graph=self.capture, synchronize=lambda: None
            )
        )
        self.clock: Any = types.SimpleNamespace(mhz=lambda clocks=itertools.count(1980, -10): next(clocks))
        self.call = self.plant(itertools.repeat(50e-6))

    def graph(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(replay=lambda: [self.call() for _ in range(self.captured)])

    @contextlib.contextmanager
    def capture(self, _: types.SimpleNamespace) -> Iterator[None]:
        before, now_s = self.calls, self.now_s
        yield
        self.captured, self.now_s = self.calls - before, now_s

    def event(self, enable_timing: bool) -> types.SimpleNamespace:
        self.assertTrue(enable_timing)
        event = types.SimpleNamespace()
        event.record = lambda: setattr(event, "at_s", self.now_s)
        event.elapsed_time = lambda later: (later.at_s - event.at_s) * 1e3
        return event

    def test_samples_are_seconds_of_a_call_after_as_long_a_warm_up_as_kbenchs(self) -> None:
        launch = graph_of(self.torch, [Run(self.call) for _ in range(3)])
        self.assertEqual((self.captured, launch.calls), (6, 6), "two rounds of three calls take 0.2 ms")
        samples = Sampler(seconds=0.15, warm_up_s=0.1).gpu(self.torch, self.clock, launch)
        for sample in samples.seconds:
            self.assertAlmostEqual(sample, 50e-6)
        # Seven launches at a time, of which the first and what comes after the last event are no sample.
        at_once_s, readings = 7 * 6 * 50e-6, len(samples.seconds) / 5
        self.assertAlmostEqual(readings, 0.15 / at_once_s, delta=1)
        readings_of_warm_up = math.ceil(0.1 / at_once_s)
        expected_mhz = 1980 - 10 * (readings_of_warm_up + (readings - 1) / 2)
        self.assertAlmostEqual(samples.sm_clock_mhz, expected_mhz, delta=10)

    def test_an_outlier_is_kept_as_a_sample_and_moves_no_median(self) -> None:
        # In every seven the first begins on an idle GPU, and nothing marks the end of the last.
        seven = [9.0, 2e-3, 2e-3, 0.4, 2e-3, 3e-3, 9.0]
        launch = one_by_one([Run(self.plant(itertools.cycle(seven)))])
        samples = Sampler(seconds=0, warm_up_s=0, fewest=10).gpu(self.torch, self.clock, launch)
        self.assertEqual([round(sample, 9) for sample in samples.seconds], seven[1:6] * 2)
        self.assertAlmostEqual(samples.median_s, 2e-3)

    def test_the_limit_ends_it_after_the_launches_under_way(self) -> None:
        launch = Launch(self.plant(itertools.repeat(3.0)), 1)
        samples = Sampler(seconds=100, warm_up_s=1, fewest=10, limit_s=60).gpu(self.torch, self.clock, launch)
        self.assertEqual(len(samples.seconds), 10)
        self.assertEqual(self.calls, 7 + 2 * 7, "one warms up, the limit is over after two more")

    def test_a_clock_that_nobody_tells_is_not_a_number(self) -> None:
        with mock.patch.object(sampler.ctypes, "CDLL", side_effect=OSError("cannot open shared object file")):
            self.assertTrue(math.isnan(sampler.SmClock(self.torch).mhz()))

    def test_peer_ceilings_are_bytes_and_operations_a_second(self) -> None:
        module = load("peer-ceilings")
        types_of = {name: name for name in ("int32", "float16", "bfloat16", "float32", "float64")}
        tensor = types.SimpleNamespace(copy_=lambda _: self.copy(), to=lambda _: tensor)
        self.torch.cuda.empty_cache = lambda: None
        torch = types.SimpleNamespace(
            **types_of,
            cuda=self.torch.cuda,
            backends=types.SimpleNamespace(
                cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()), cudnn=types.SimpleNamespace()
            ),
            set_float32_matmul_precision=lambda _: None,
            randint=lambda *_, **__: tensor,
            randn=lambda *_, **__: tensor,
            empty_like=lambda _: tensor,
            matmul=lambda *_, out: self.product(),
        )
        self.copy = self.plant(itertools.cycle([2e-3] * 9 + [0.1]))
        self.product = self.plant(itertools.repeat(2e-3))
        with mock.patch.object(module, "SmClock", lambda _: self.clock):
            values = module.measure(torch)
        self.assertAlmostEqual(values.pop("dram_copy"), 2 * 2**32 / 2e-3 / 1e9, places=3)
        self.assertEqual(set(values), set(module.PRODUCTS))
        for value in values.values():
            self.assertAlmostEqual(value, 2 * 8192**3 / 2e-3 / 1e12, places=3)


if __name__ == "__main__":
    unittest.main()

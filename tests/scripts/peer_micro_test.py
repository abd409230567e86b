"""peer-micro against a PyTorch whose memory is numbered blocks and a kbench that only prints: which memory the calls
find, what a row says of both, and how it ends where either is missing. Needs neither PyTorch nor a GPU.
"""

import importlib.machinery
import importlib.util
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/peer-micro"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

# Tensors have no contents. As malloc does, the allocator hands out the block of that size which was freed last.
TORCH = '''
import contextlib, math, types
float32, float64, bfloat16, float16 = ("float32", 4), ("float64", 8), ("bfloat16", 2), ("float16", 2)
__version__ = "0"
free, blocks, calls, drawn = {}, [], [], []

class Tensor:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype
        self.bytes = self.numel() * self.element_size()
        spare = free.setdefault(self.bytes, [])
        self.block = spare.pop() if spare else len(blocks)
        if self.block == len(blocks):
            blocks.append(self.bytes)
    def __del__(self):
        free[self.bytes].append(self.block)
    def numel(self): return math.prod(self.shape)
    def element_size(self): return self.dtype[1]
    def clone(self): return Tensor(self.shape, self.dtype)
    def to(self, dtype): return Tensor(self.shape, dtype)
    def t(self): return self
    def __mul__(self, scale): return self

def randn(*size, dtype, device):
    drawn.append(dtype)
    return Tensor(size, dtype)
def empty(*size, dtype, device): return Tensor(size, dtype)
def called(inputs, out):
    calls.append(([i.block for i in inputs], out.block))
    return out
def mm(x, w, out): return called((x, w), out)
def layer_norm(x, width, weight, bias, epsilon): return called((x, weight, bias), Tensor(x.shape, x.dtype))
def attention(q, k, v, is_causal): return called((q, k, v), Tensor(q.shape, q.dtype))
nn = types.SimpleNamespace(functional=types.SimpleNamespace(
    layer_norm=layer_norm, scaled_dot_product_attention=attention))
cuda = types.SimpleNamespace(is_available=lambda: False)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()), cudnn=types.SimpleNamespace())
no_grad = contextlib.nullcontext
def get_num_threads(): return 3
def set_float32_matmul_precision(name): pass
'''

NAME = "layernorm/{}/fp32/fwd/r2w3/hot"
KBENCH = """#!{python}
import json, sys
if "--benchmark_list_tests" in sys.argv:
    sys.exit(print("{native}" + chr(10) + "{onednn}"))
rows = [dict(name="{native}", real_time=12.5) | {{"ci%": 0.5, "roof%": 40}},
        dict(name="{onednn}", error_occurred=True, error_message="no such luck")]
print(json.dumps(dict(benchmarks=rows, context=dict(cpu="a CPU", kbench="kbench 0"))))
"""


def load() -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader("peer_micro", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("peer_micro", loader))
    loader.exec_module(module)
    module.WARM_UP_S = 0
    return module


def stand_in() -> types.ModuleType:
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("torch", None))
    exec(TORCH, vars(module))
    return module


class Memory(unittest.TestCase):
    # Bytes of a set, with its result, as models/problem.cpp counts them.
    SHAPES = {
        "layernorm/-/fp64/fwd/r10w20": 8 * (200 + 20 + 20 + 200),
        "attention/-/bf16/fwd/b1h2s8d4": 2 * 4 * 64,
        "gemm/-/fp32/fwd/m4n6k8": 4 * (32 + 48 + 24),
        "gemm/-/fp32/fwd/m4n6k8t": 4 * (32 + 48 + 24),
    }

    def calls(self, row: str, cache_bytes: int) -> types.ModuleType:
        torch = stand_in()
        load().torch_us(torch, row, cache_bytes, "cpu", 0)
        return torch

    def test_cold_calls_find_operands_and_result_as_they_were_a_round_ago(self) -> None:
        for shape, set_bytes in self.SHAPES.items():
            with self.subTest(shape):
                cache_bytes = set_bytes  # three times that are four sets
                torch = self.calls(shape + "/cold", cache_bytes)
                blocks = [[*inputs, out] for inputs, out in torch.calls]
                for first, round_of in enumerate(blocks[i : i + 4] for i in range(len(blocks) - 3)):
                    touched = [block for call in round_of for block in call]
                    self.assertEqual(len(touched), len(set(touched)), f"calls {first} to {first + 3}: {round_of}")
                    self.assertGreater(sum(torch.blocks[block] for block in touched), 3 * cache_bytes)

    def test_as_many_sets_as_exceed_the_caches_and_no_more(self) -> None:
        for shape, set_bytes in self.SHAPES.items():
            for cache_bytes in (set_bytes, 5 * set_bytes // 3, 1):
                with self.subTest(shape, cache_bytes=cache_bytes):
                    torch = self.calls(shape + "/cold", cache_bytes)
                    sets = {tuple(inputs) for inputs, _ in torch.calls}
                    self.assertEqual(len(sets), math.ceil(3 * cache_bytes / set_bytes) + 1)

    def test_fp64_operands_are_random_in_all_their_bits(self) -> None:
        for shape in self.SHAPES:
            with self.subTest(shape):
                torch = self.calls(shape + "/hot", 1000)
                self.assertEqual(set(torch.drawn), {torch.float64 if "/fp64/" in shape else torch.float32})

    def test_hot_calls_find_what_the_call_before_left(self) -> None:
        for shape in self.SHAPES:
            with self.subTest(shape):
                calls = self.calls(shape + "/hot", 1000).calls
                self.assertGreaterEqual(len(calls), 6)
                self.assertEqual(len({(*inputs, out) for inputs, out in calls}), 1)


class Table(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.here = pathlib.Path(directory.name)
        (self.here / "torch.py").write_text(TORCH)
        self.kbench = self.here / "kbench"
        names = {provider: NAME.format(provider) for provider in ("native", "onednn")}
        self.kbench.write_text(KBENCH.format(python=sys.executable, **names))
        self.kbench.chmod(0o755)

    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT), "--kbench", str(self.kbench), "--seconds", "0", *arguments]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(self.here)}, capture_output=True,
                              text=True, check=False)

    def test_a_row_for_each_provider_beside_the_same_call_of_pytorch(self) -> None:
        done = self.run_script("--backend", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("a CPU, PyTorch 0 with 3 threads, gpt2-large,"), done.stdout)
        native, onednn = done.stdout.splitlines()[-2:]
        self.assertRegex(native, r"^\| layernorm \| fp32 \| r2w3 \| hot \| native \| 12.5 \| 0.50 \| 40.0 \| "
                                 r"[\d.]+, [\d.]+ \| [\d.]+ \|$")
        self.assertEqual(onednn, "| layernorm | fp32 | r2w3 | hot | onednn | no such luck | | | | |")

    def test_what_is_missing_and_what_fails_is_said_in_a_line(self) -> None:
        no_gpu = self.run_script("--backend", "cuda")
        self.assertEqual((no_gpu.returncode, no_gpu.stderr), (3, "peer-micro: PyTorch finds no GPU\n"))
        (self.here / "torch.py").write_text("raise ImportError")
        no_torch = self.run_script("--backend", "cpu")
        self.assertEqual((no_torch.returncode, no_torch.stderr), (3, "peer-micro: Python has no PyTorch\n"))
        (self.here / "torch.py").write_text(TORCH)
        self.kbench.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('kbench: the last word')\n")
        failed = self.run_script("--backend", "cpu")
        self.assertEqual((failed.returncode, failed.stderr), (2, "peer-micro: kbench micro: kbench: the last word\n"))


if __name__ == "__main__":
    unittest.main()

"""The hook that names a PyTorch program's layers and ops for `kbench attach` (profile/python), on a stand-in for torch: it
names what is called, closes what it opened, and never stops or changes the program.

attach_hook_test.py; needs Python alone.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOOK = ROOT / "profile" / "python"

# What the hook uses of torch. Each range and each switch of the profiler is a line of the file ranges.PID.
TORCH = '''
import os, threading
from collections import namedtuple
from types import ModuleType, SimpleNamespace

def log(text):
    with open(os.path.join(os.environ["FAKE_LOG"], f"ranges.{os.getpid()}"), "a") as file:
        file.write(text + "\\n")

class DType:
    def __init__(self, name, floating):
        self.name, self.is_floating_point = name, floating
    def __str__(self):
        return "torch." + self.name

Device = namedtuple("Device", "type index")
class Tensor:
    def __init__(self, name="float32", device="cuda:0"):
        self._dtype, self.device = DType(name, "float" in name), Device(*device.split(":"))
    @property
    def dtype(self):
        if not quiet:
            log("seen by the program's torch function mode")
        return self._dtype

quiet = []
class DisableTorchFunction:
    def __enter__(self):
        quiet.append(1)
    def __exit__(self, *error):
        quiet.pop()

class Module:
    def __init__(self, **members):
        self._modules, self._parameters = {}, {}
        for name, member in members.items():
            (self._parameters if isinstance(member, Tensor) else self._modules)[name] = member
    def __getattr__(self, name):
        return self.__dict__["_modules"][name]
    def _wrapped_call_impl(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
    __call__ = _wrapped_call_impl

class DataParallel(Module):
    device_ids = ()

class Linear(Module):
    def __init__(self, dtype="float16", device="cuda:0"):
        super().__init__(bias=Tensor("int64"), weight=Tensor(dtype, device))
    def forward(self, x):
        return x

class ReLU(Module):
    def forward(self, x):
        return x

class Sequential(Module):
    def __init__(self, *modules):
        super().__init__(**{str(index): module for index, module in enumerate(modules)})
    def forward(self, x):
        for module in self._modules.values():
            x = module(x)
        return x

def calls(module, x):
    return module(x)

nn = SimpleNamespace(Module=Module, DataParallel=DataParallel, Linear=Linear, ReLU=ReLU, Sequential=Sequential)
version = SimpleNamespace(cuda="13.0")
compiling = []
compiler = SimpleNamespace(is_compiling=lambda: bool(compiling))
traced = []
_guards = SimpleNamespace(TracingContext=SimpleNamespace(try_get=lambda: traced[-1] if traced else None))

profilers = {}  # one a thread
def enable(config, activities):
    if threading.get_ident() in profilers:
        raise RuntimeError("Profiler is already enabled on this thread")
    profilers[threading.get_ident()] = config
    log(f"profiler on: {config}")
def disable():
    log(f"profiler off: {profilers.pop(threading.get_ident())}")
def config(state, shapes, *more):
    return f"{state} {'with' if shapes else 'without'} shapes"
profiler = ModuleType("torch.autograd.profiler")
profiler.__dict__.update(_enable_profiler=enable, _disable_profiler=disable, ProfilerConfig=config, _is_profiler_enabled=False,
    ProfilerState=SimpleNamespace(NVTX="nvtx"), _ExperimentalConfig=lambda: None,
    _run_on_profiler_start=lambda: setattr(profiler, "_is_profiler_enabled", True))
autograd = SimpleNamespace(profiler=profiler)
backward = []
_C = SimpleNamespace(DisableTorchFunction=DisableTorchFunction, _current_graph_task_id=lambda: -1 if not backward else 1,
    _autograd=SimpleNamespace(_profiler_enabled=lambda: threading.get_ident() in profilers, _disable_profiler=disable),
    _dynamo=SimpleNamespace(eval_frame=SimpleNamespace(skip_code=lambda code: None)))

depth = 0
def push(text):
    global depth
    log("  " * depth + text.replace("kbench:", ""))
    depth += 1
def pop():
    global depth
    depth -= 1
    log("  " * depth + "end")
started, queued = [], []
def init():
    for call in queued:
        call()
    started.append(os.getpid())
cuda = SimpleNamespace(nvtx=SimpleNamespace(range_push=push, range_pop=pop), _lazy_call=queued.append, init=init,
    is_initialized=lambda: bool(started) and started[0] == os.getpid())
'''

NET = '''
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__(first=nn.Linear(), act=nn.ReLU(), again=None)
        self._modules["again"] = self.first
    def forward(self, x):
        return self.again(self.act(self.first(x)))
'''


class Ran:
    def __init__(self, done: subprocess.CompletedProcess, folder: pathlib.Path) -> None:
        self.code, self.output, self.errors = done.returncode, done.stdout, done.stderr
        self.processes = [path.read_text().splitlines() for path in sorted(folder.glob("ranges.*"), key=os.path.getmtime)]
        self.notes = [line for path in folder.glob("notes.*.txt") for line in path.read_text().splitlines()]
        self.ranges = [line for line in self.processes[0] if not line.startswith("profiler")] if self.processes else []

    def opened(self) -> list[dict]:
        return [json.loads(line) for line in self.ranges if line.strip() != "end"]

    def named(self) -> list[str]:
        return [f"{one['layer']}={one['class']}" for one in self.opened()]


class AttachHook(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.packages = self.folder / "site-packages"
        self.write("site-packages/torch/__init__.py", TORCH)
        self.write("net.py", NET)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def run_program(self, text: str, **environment: str | None) -> Ran:
        """The program imports what it needs itself; a variable that is None is taken away."""
        self.write("program.py", text)
        for old in [*self.folder.glob("ranges.*"), *self.folder.glob("notes.*")]:
            old.unlink()
        variables = {"KBENCH_ATTACH": "1", "KBENCH_ATTACH_PURPOSE": "names", "KBENCH_ATTACH_DIR": str(self.folder),
                     "FAKE_LOG": str(self.folder), "PYTHONPATH": f"{HOOK}{os.pathsep}{self.packages}",
                     "PYTHONDONTWRITEBYTECODE": "1", **environment}
        kept = {name: value for name, value in {**os.environ, **variables}.items() if value is not None}
        done = subprocess.run([sys.executable, "program.py"], cwd=self.folder, env=kept, capture_output=True, text=True,
                              check=False, timeout=60)
        return Ran(done, self.folder)

    def assert_quiet(self, ran: Ran, output: str = "") -> None:
        self.assertEqual((ran.code, ran.output, ran.errors, ran.notes), (0, output, "", []))

    def assert_balanced(self, ran: Ran) -> None:
        opened, closed = len(ran.opened()), sum(line.strip() == "end" for line in ran.ranges)
        self.assertGreater(opened, 0)
        self.assertEqual(opened, closed, "\n".join(ran.ranges))
        self.assertEqual(ran.ranges[-1], "end")

    def test_each_call_of_a_module_is_a_range_within_that_of_the_module_that_calls_it(self) -> None:
        ran = self.run_program("""\
            from net import Net, torch
            torch.cuda.init()
            Net()(torch.Tensor("float64"))
            """)
        self.assert_quiet(ran)
        forward = NET.splitlines().index("        return self.again(self.act(self.first(x)))") + 1
        inner = [f'  {{"layer":"{layer}","class":"{kind}","dtype":"{dtype}","line":"net.py:{forward}"}}'
                 for layer, kind, dtype in (("first", "Linear", "float16"), ("act", "ReLU", "float64"), ("first", "Linear", "float16"))]
        root = '{"layer":"","class":"Net","dtype":"float16","line":"program.py:3"}'
        self.assertEqual(ran.ranges, [root, inner[0], "  end", inner[1], "  end", inner[2], "  end", "end"])

    def test_the_line_of_a_model_that_comes_in_a_package_is_the_users(self) -> None:
        self.write("site-packages/models.py", NET)
        ran = self.run_program("""\
            import torch, models
            torch.cuda.init()
            def step(model):
                return model(1)
            step(models.Net())
            """)
        self.assert_quiet(ran)
        self.assertEqual({one["line"] for one in ran.opened()}, {"program.py:4"})

    def test_a_program_without_a_file_of_the_users_has_the_line_outside_of_torch(self) -> None:
        self.write("site-packages/models.py", NET + "torch.cuda.init()\ntorch.calls(nn.Sequential(Net()), 1)\n")
        ran = self.run_program("import runpy, os; os.execv(__import__('sys').executable, ['python', '-m', 'models'])")
        self.assert_quiet(ran)
        self.assertEqual([one["line"] for one in ran.opened()], [f"models.py:{len(NET.splitlines()) + 2}"] * 5)

    def test_torch_may_be_imported_late_and_is_left_as_it_was(self) -> None:
        ran = self.run_program("""\
            import importlib.util, sys
            assert importlib.util.find_spec("torch").origin.endswith("__init__.py")
            assert "torch" not in sys.modules
            def late():
                import torch
                torch.cuda.init()
                torch.nn.ReLU()(1)
                assert type(torch.__spec__.loader).__name__ == "SourceFileLoader" and "exec_module" not in vars(torch.__loader__)
                assert torch.nn.Module.__call__.__name__ == "_wrapped_call_impl"
            late()
            """)
        self.assert_quiet(ran)
        self.assertEqual(ran.named(), ["=ReLU"])

    def test_a_torch_that_fails_to_import_fails_as_it_does_without_the_hook(self) -> None:
        self.write("site-packages/torch/__init__.py", "import os\nif 'FIXED' not in os.environ: raise OSError('no libcudart')\n" + TORCH)
        ran = self.run_program("""\
            import os
            try:
                import torch
            except OSError as error:
                print(error)
            os.environ["FIXED"] = "1"
            import torch
            torch.cuda.init()
            torch.nn.ReLU()(1)
            """)
        self.assert_quiet(ran, "no libcudart\n")
        self.assertEqual(ran.named(), ["=ReLU"])

    def test_a_program_without_torch_is_told_so_by_its_import(self) -> None:
        ran = self.run_program("try:\n    import torch\nexcept ModuleNotFoundError as error:\n    print(error)\n", PYTHONPATH=str(HOOK))
        self.assert_quiet(ran, "No module named 'torch'\n")

    def test_the_shadowed_sitecustomize_runs(self) -> None:
        self.write("site-packages/sitecustomize.py", "import sys\nprint('mine', __name__)\nmark = 1\n")
        ran = self.run_program(f"""\
            import sitecustomize, sys, torch
            print(sitecustomize.mark, {str(HOOK)!r} in sys.path)
            torch.cuda.init()
            torch.nn.ReLU()(1)
            """)
        self.assert_quiet(ran, "mine sitecustomize\n1 False\n")
        self.assertEqual(ran.named(), ["=ReLU"])

    def test_a_shadowed_sitecustomize_that_fails_is_reported_and_the_hook_stays(self) -> None:
        self.write("site-packages/sitecustomize.py", "raise ValueError('mine')\n")
        ran = self.run_program("import torch\ntorch.cuda.init()\ntorch.nn.ReLU()(1)\n")
        self.assertEqual((ran.code, ran.named(), ran.notes), (0, ["=ReLU"], []))
        self.assertIn("ValueError: mine", ran.errors)

    def test_other_runs_of_attach_have_no_hook(self) -> None:
        program = "import os, torch\ntorch.cuda.init()\ntorch.nn.ReLU()(1)\nprint(os.environ['PYTHONPATH'])\n"
        ran = self.run_program(program, KBENCH_ATTACH_PURPOSE="records")
        self.assert_quiet(ran, f"{HOOK}{os.pathsep}{self.packages}\n")
        self.assertEqual(ran.processes, [])
        ran = self.run_program(program, KBENCH_ATTACH=None)  # left behind: children shall not see it either
        self.assert_quiet(ran, f"{self.packages}\n")
        self.assertEqual(ran.processes, [])

    def test_children_are_hooked_too(self) -> None:
        self.write("child.py", "import net\nnet.torch.cuda.init()\nnet.Net()(1)\n")
        ran = self.run_program("""\
            import subprocess, sys
            subprocess.run([sys.executable, "child.py"], check=True)
            """)
        self.assert_quiet(ran)
        self.assertEqual(ran.named(), ["=Net", "first=Linear", "act=ReLU", "first=Linear"])

    def test_ranges_end_whatever_is_thrown(self) -> None:
        ran = self.run_program("""\
            from net import nn, torch
            torch.cuda.init()
            class Throws(nn.Module):
                def __init__(self, error):
                    super().__init__()
                    self.error = error
                def forward(self, x):
                    raise self.error
            for error in (ValueError("x"), StopIteration(), KeyboardInterrupt(), SystemExit(2), GeneratorExit()):
                try:
                    nn.Sequential(nn.ReLU(), Throws(error))(1)
                except BaseException as caught:
                    assert caught is error
            nn.ReLU()(1)
            """)
        self.assert_quiet(ran)
        self.assert_balanced(ran)
        self.assertEqual(ran.named(), ["=Sequential", "0=ReLU", "1=Throws"] * 5 + ["=ReLU"])

    def test_a_failure_in_the_hook_is_one_line_and_the_program_goes_on(self) -> None:
        self.write("site-packages/torch/__init__.py", TORCH + """
pushes = []
def fails(text):
    pushes.append(text)
    if len(pushes) == 3:
        raise RuntimeError("out of\\nranges")
    push(text)
cuda.nvtx.range_push = fails
""")
        ran = self.run_program("import net\nnet.torch.cuda.init()\nfor i in range(2): print(net.Net()(i))\n")
        self.assertEqual((ran.code, ran.output, ran.errors), (0, "0\n1\n", ""))
        self.assertEqual(ran.notes, ["layers have no names from here on: RuntimeError: out of ranges"])
        self.assertEqual(ran.named(), ["=Net", "first=Linear"])
        self.assert_balanced(ran)

    def test_a_torch_that_lacks_what_the_hook_needs_is_one_line(self) -> None:
        self.write("site-packages/torch/__init__.py", TORCH.replace("skip_code=", "another="))
        ran = self.run_program("import net\nnet.torch.cuda.init()\nprint(net.Net()(1))\n")
        self.assertEqual((ran.code, ran.output, ran.errors, ran.ranges, len(ran.notes)), (0, "1\n", "", [], 1))
        self.assertRegex(ran.notes[0], "^layers and ops have no names: AttributeError: ")

    def test_a_folder_that_cannot_be_written_stops_nothing(self) -> None:
        self.write("site-packages/torch/__init__.py", TORCH.replace("skip_code=", "another="))
        ran = self.run_program("import net\nprint(net.Net()(1))\n", KBENCH_ATTACH_DIR="/dev/null/no")
        self.assert_quiet(ran, "1\n")

    def test_a_torch_without_cuda_is_noted(self) -> None:
        self.write("site-packages/torch/__init__.py", TORCH.replace('cuda="13.0"', "cuda=None"))
        ran = self.run_program("import net\nnet.torch.cuda.init()\nnet.Net()(1)\n")
        self.assertEqual((ran.code, ran.ranges), (0, []))
        self.assertEqual(ran.notes, ["PyTorch is built without CUDA: its layers and ops have no names"])

    def test_there_are_no_ranges_before_cuda_is_started(self) -> None:
        ran = self.run_program("import net\nnet.Net()(1)\nprint(1)\nnet.torch.cuda.init()\nnet.nn.ReLU()(1)\n")
        self.assert_quiet(ran, "1\n")
        self.assertEqual(ran.named(), ["=ReLU"])

    def test_a_forked_process_has_names_where_it_can_use_cuda(self) -> None:
        program = """\
            import os, net
            {before}
            child = os.fork()
            if not child:
                {child}
                net.Net()(1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            """
        ran = self.run_program(program.format(before="net.torch.cuda.init(); net.Net()(1)", child="pass"))
        self.assert_quiet(ran)
        self.assertEqual((len(ran.processes), ran.named()[0]), (1, "=Net"))
        ran = self.run_program(program.format(before="pass", child="net.torch.cuda.init()"))
        self.assert_quiet(ran)
        self.assertEqual((len(ran.processes), ran.named()[0]), (1, "=Net"))

    def test_a_fork_within_a_forward_leaves_the_child_running(self) -> None:
        ran = self.run_program("""\
            import os, net
            class Forks(net.nn.Module):
                def forward(self, x):
                    child = os.fork()
                    if child:
                        return os.waitpid(child, 0)[1]
                    return "child"
            net.torch.cuda.init()
            outcome = net.nn.Sequential(Forks())(1)
            if outcome == "child":
                os._exit(7)
            print(os.WEXITSTATUS(outcome))
            """)
        self.assert_quiet(ran, "7\n")

    def test_layers_have_the_names_that_the_outermost_module_gives_them(self) -> None:
        ran = self.run_program("""\
            from net import nn, torch
            torch.cuda.init()
            class Free(nn.Module):
                def __init__(self, held):
                    super().__init__(kept=nn.ReLU())
                    self.__dict__["held"] = held          # kept, and not registered
                def forward(self, x):
                    return self.held(self.kept(x))
            inner = nn.Sequential(nn.ReLU())
            inner(1)                                      # a root of its own
            nn.Sequential(inner)(1)                       # no more
            inner(1)                                      # nor afterwards
            free = Free(nn.Sequential(nn.ReLU()))
            free(1)
            free._modules["kept"] = nn.ReLU()             # found at the next call
            free(1)
            free.__dict__["held"] = nn.Sequential(free.kept)  # has a name
            free(1)
            """)
        self.assert_quiet(ran)
        called = ["=Free", "kept=ReLU", "Sequential=Sequential", "Sequential.0=ReLU"]
        self.assertEqual(ran.named(), ["=Sequential", "0=ReLU", "=Sequential", "0=Sequential", "0.0=ReLU", "0=Sequential", "0.0=ReLU",
                                       *called, *called, *called[:3], "kept=ReLU"])

    def test_names_are_ascii_json_whatever_the_class_is_called(self) -> None:
        ran = self.run_program("""\
            from net import nn, torch
            torch.cuda.init()
            kind = type("Schicht\\u00e4\\U0001f600", (nn.ReLU,), {})
            root = nn.Module()
            root._modules['a"\\\\b'] = kind()
            type(root).forward = lambda self, x: [module(x) for module in self._modules.values()]
            root(1)
            """)
        self.assert_quiet(ran)
        self.assertTrue(all(line.isascii() for line in ran.ranges))
        self.assertEqual(ran.named(), ["=Module", 'a"\\b=Schicht\u00e4\U0001f600'])

    def test_a_module_and_its_tensors_live_no_longer(self) -> None:
        ran = self.run_program("""\
            import gc, net, weakref
            gc.disable()
            net.torch.cuda.init()
            class Keeps(net.nn.Module):
                def forward(self, x):
                    global seen
                    seen = weakref.ref(x)
            module, x = Keeps(below=net.nn.Linear()), net.torch.Tensor()
            watched = [weakref.ref(one) for one in (module, module.below, module.below._parameters["weight"])]
            module(x)
            module._modules["below"] = None
            print([one() for one in watched[1:]])
            del module, x
            print([one() for one in (watched[0], seen)])
            """)
        self.assert_quiet(ran, "[None, None]\n[None, None]\n")

    def test_what_is_compiled_or_traced_has_no_ranges_of_its_own(self) -> None:
        ran = self.run_program("""\
            import net
            from net import nn, torch
            torch.cuda.init()
            for flag in (torch.compiling, torch.traced):
                flag.append(1)
                net.Net()(1)
                flag.pop()
            class GraphModule(nn.ReLU):
                __module__ = "torch.fx.graph_module"
            class OptimizedModule(nn.Module):
                def forward(self, x):
                    return GraphModule()(self._orig_mod(x))
            OptimizedModule(_orig_mod=net.Net())(1)
            """)
        self.assert_quiet(ran)
        self.assertEqual(ran.named(), ["=OptimizedModule", "=Net", "first=Linear", "act=ReLU", "first=Linear"])

    def test_ops_are_named_on_each_thread_until_it_ends(self) -> None:
        ran = self.run_program("""\
            import threading, net
            net.torch.cuda.init()
            net.nn.ReLU()(1)
            net.nn.ReLU()(1)
            for backward in ([], [1]):                    # autograd's threads have the profiler of who called backward
                net.torch.backward[:] = backward
                thread = threading.Thread(target=lambda: net.nn.ReLU()(1))
                thread.start()
                thread.join()
            net.torch.log("profiler main goes on")
            """)
        self.assert_quiet(ran)
        lines = [line for line in ran.processes[0] if line.startswith("profiler")]
        self.assertEqual(lines, ["profiler on: nvtx with shapes", "profiler on: nvtx with shapes", "profiler off: nvtx with shapes",
                                 "profiler main goes on", "profiler off: nvtx with shapes"])

    def test_a_profiler_of_the_programs_own_comes_first(self) -> None:
        ran = self.run_program("""\
            import net
            net.torch.cuda.init()
            profiler = net.torch.profiler
            profiler._enable_profiler("mine", set())
            net.nn.ReLU()(1)
            profiler._disable_profiler()
            net.torch.log("profiler main goes on")
            profiler._is_profiler_enabled = False
            net.nn.ReLU()(1)
            print(profiler._is_profiler_enabled)
            """)
        self.assertEqual((ran.code, ran.output, ran.errors), (0, "True\n", ""))
        self.assertEqual(ran.notes, ["while the program's own profiler is on, its ops have no names here"])
        lines = [line for line in ran.processes[0] if line.startswith("profiler")]
        ours = "nvtx with shapes"
        self.assertEqual(lines, [f"profiler on: {ours}", f"profiler off: {ours}", "profiler on: mine", "profiler off: mine",
                                 f"profiler on: {ours}", "profiler main goes on", f"profiler off: {ours}"])

    def test_ops_whose_ranges_fail_leave_layers_their_names(self) -> None:
        self.write("site-packages/torch/__init__.py", TORCH + "\ndel profiler.ProfilerState\n")
        ran = self.run_program("import net\nnet.torch.cuda.init()\nnet.Net()(1)\n")
        self.assertEqual((ran.code, ran.errors, len(ran.notes), ran.named()[0]), (0, "", 1, "=Net"))
        self.assertRegex(ran.notes[0], "^ops have no names: AttributeError: ")

    def test_several_gpus_in_one_process_have_no_shapes(self) -> None:
        ran = self.run_program("""\
            import net
            net.torch.cuda.init()
            net.nn.Sequential(net.nn.Linear(device="cuda:0"), net.nn.Linear(device="cuda:1"))(1)
            """)
        self.assertEqual(ran.notes, ["several GPUs in one process: its ops have names and no shapes"])
        lines = [line for line in ran.processes[0] if line.startswith("profiler on")]
        self.assertEqual(lines, ["profiler on: nvtx with shapes", "profiler on: nvtx without shapes"])


if __name__ == "__main__":
    unittest.main()

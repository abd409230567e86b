"""An NVTX range around each call of a module:

    kbench:{"layer":"h.0.attn.c_attn","class":"Conv1D","dtype":"float16","line":"bench.py:40"}

Module.__call__ is wrapped. Global module hooks would do, too, but torch.compile sees those: it traces them in each layer
that it compiles, and warns the user about them. It takes __call__ for what it finds there and goes on to forward. And a
wrapper closes its range whatever is thrown, where hooks are told of some exceptions only.
"""

import os
import sys
import threading
import types

from . import layers as layers_of_modules
from . import lines as lines_of_calls
from . import notes, ops
from .layers import Layers, below
from .lines import Lines
from .notes import note, note_failure


class _Thread(threading.local):
    """Ranges that are open on this thread, as the lines of their calls."""

    def __init__(self):
        self.lines = []
        self.root = None
        self.searched = False


_thread = _Thread()
_ranges = None  # set by install()
_call = None  # torch's own Module.__call__
_is_compiling = None


def __call__(self, *args, **kwargs):
    # torch.compile that traces this takes the first branch, and has nothing of kbench in its graph.
    if _is_compiling():
        return _call(self, *args, **kwargs)
    depth = len(_thread.lines)
    try:
        _ranges.open(self, args, sys._getframe(1))
        return _call(self, *args, **kwargs)
    finally:
        if len(_thread.lines) > depth:
            _ranges.close(depth)


class _Ranges:
    def __init__(self, torch, op_ranges):
        self._cuda = torch.cuda
        self._push = torch.cuda.nvtx.range_push
        self._pop = torch.cuda.nvtx.range_pop
        self._tensor = torch.Tensor
        self._data_parallel = torch.nn.DataParallel
        self._plain = torch._C.DisableTorchFunction
        context = torch._guards.TracingContext
        self._tracing = getattr(context, "try_get", None) or context.get  # PyTorch 2.1 has get alone
        self._ops = op_ranges
        self._layers = Layers()
        self._lines = Lines(os.path.dirname(os.path.abspath(torch.__file__)), __call__.__code__)
        self._off = False

    def open(self, module, args, caller):
        # Before CUDA is there, nothing is launched. This is so in a process forked later, too, which cannot use CUDA.
        if self._off or not self._cuda.is_initialized() or self._tracing() is not None:
            return
        try:
            if not _thread.lines:
                _thread.root, _thread.searched = module, False
                self._ops.begin()
            line = self._lines.line(caller, _thread.lines[-1] if _thread.lines else "")
            # A user's torch function mode or tensor subclass must not see what is read here.
            with self._plain():
                layer = self._layer(module)
                if layer is None:
                    return
                text = layer.text(self._dtype(layer, args), line)
            self._push(text)
            _thread.lines.append(line)
        except Exception as error:
            self._off = True
            note_failure("layers have no names from here on", error)

    def close(self, depth):
        while len(_thread.lines) > depth:
            _thread.lines.pop()
            try:
                self._pop()
            except Exception as error:
                self._off = True
                note_failure("layers have no names from here on", error)
        if not depth:
            _thread.root = None

    def _layer(self, module):
        layer = self._layers.find(module)
        if layer is None and _thread.lines and not _thread.searched:
            # A module that came below the root after the root had its names. Looked for once in each call of the root:
            # some programs make modules as they go and keep them nowhere.
            _thread.searched = True
            self._layers.name_below(_thread.root, self._layers.find(_thread.root).path, rename=True)
            layer = self._layers.find(module)
        if layer is None and _thread.lines and type(module).__module__.startswith(("torch.fx.", "torch._dynamo.")):
            return None  # what torch.compile made of the module that encloses it
        if layer is None:
            outermost = not _thread.lines
            self._layers.name_below(module, "" if outermost else type(module).__name__, rename=outermost)
            layer = self._layers.find(module)
            self._tell_of_several_gpus(module)
        return layer

    def _dtype(self, layer, args):
        tensor = layer.weight()
        if tensor is None:
            tensor = next((argument for argument in args if isinstance(argument, self._tensor)), None)
        return "" if tensor is None else str(tensor.dtype).rpartition(".")[2]

    def _tell_of_several_gpus(self, root):
        gpus, replicas = set(), 0
        for module, _ in below(root):
            if isinstance(module, self._data_parallel):
                replicas = max(replicas, len(module.device_ids))
            parameters = getattr(module, "_parameters", None) or {}
            gpus |= {p.device for p in parameters.values() if p is not None and p.device.type == "cuda"}
        if max(len(gpus), replicas) > 1:
            self._ops.leave_out_shapes()


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _functions(namespace, module_name):
    for value in list(vars(namespace).values()):
        if getattr(value, "__module__", None) != module_name:
            continue
        if isinstance(value, types.FunctionType):
            yield value
        elif isinstance(value, type):
            yield from _functions(value, module_name)


def _hide_from_compiler(torch):
    """torch.compile compiles functions that it meets on its way, also those between two parts of a broken graph. These
    it runs as they are."""
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "skip_code"):
        skip = frames.skip_code
    else:
        strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)

        def skip(code):
            frames.set_code_exec_strategy(code, strategy)

    for module in (sys.modules[__name__], layers_of_modules, lines_of_calls, notes, ops):
        for function in _functions(module, module.__name__):
            for code in _codes(function.__code__):
                skip(code)


def install(torch, op_ranges):
    global _ranges, _call, _is_compiling
    if torch.version.cuda is None:
        note("PyTorch is built without CUDA: its layers and ops have no names")
        return
    _is_compiling = getattr(torch.compiler, "is_compiling", None) or torch._utils.is_compiling  # PyTorch 2.1's
    _call = torch.nn.Module.__call__
    _ranges = _Ranges(torch, op_ranges)
    _hide_from_compiler(torch)
    __call__.__name__, __call__.__qualname__ = _call.__name__, _call.__qualname__  # a bound one is pickled by its name
    torch.nn.Module.__call__ = __call__

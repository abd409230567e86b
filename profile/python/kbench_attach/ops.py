"""An NVTX range around each op with its shapes and its number, and around its backward with the same number: PyTorch's
own emit_nvtx, without the waiting for the GPU that its context manager does.

It belongs to the thread that turns it on. autograd's threads have it from the thread that called backward. There is one
profiler a thread, so it makes way for a profiler of the program's own, and comes back when that has ended.
"""

import atexit
import functools
import sys
import threading

from .notes import note, note_failure


class _Switch(threading.local):
    """One a thread."""

    def __init__(self, autograd):
        self.state = _State(autograd)


class _State:
    """Turns off before its thread ends: PyTorch warns of a profiler that is on for longer."""

    def __init__(self, autograd):
        self._autograd = autograd
        self.on = False
        self.made_way = False

    def turn_on(self, enable, config):
        enable(config, set())
        self.on = True

    def turn_off(self):
        """Whether it was on."""
        was_on, self.on = self.on, False
        if not was_on or not self._autograd._profiler_enabled():
            return False
        self._autograd._disable_profiler()
        return True

    def __del__(self):
        try:
            self.turn_off()
        except Exception:
            pass  # the thread is over, and so is what its ranges were for


class OpRanges:
    def __init__(self, torch):
        self._autograd = torch._C._autograd
        self._backward = torch._C._current_graph_task_id
        self._profiler = torch.autograd.profiler
        self._enable = self._profiler._enable_profiler  # the function that install() will watch
        self._switch = _Switch(self._autograd)
        self._shapes = True
        self._off = False

    def begin(self):
        """On this thread, unless a profiler is on, or the thread runs a backward, for which it has borrowed its state."""
        if self._off:
            return
        try:
            here, profiler = self._switch.state, self._profiler
            if not self._autograd._profiler_enabled():
                if self._backward() != -1:
                    return
                no = (False, False, False, False)  # memory, stacks, FLOPs, modules
                state, more = profiler.ProfilerState.NVTX, profiler._ExperimentalConfig()
                here.turn_on(self._enable, profiler.ProfilerConfig(state, self._shapes, *no, more))
            if here.on and not profiler._is_profiler_enabled:
                profiler._run_on_profiler_start()  # compiled code looks at this before it names its kernels
        except Exception as error:
            self._off = True
            note_failure("ops have no names", error)

    def end(self):
        """On this thread. Whether they had begun."""
        return self._switch.state.turn_off()

    def leave_out_shapes(self):
        """Shapes come with a table of tensors, which autograd's threads, one a GPU, would change at once."""
        if not self._shapes or self._off:
            return
        self._shapes = False
        note("several GPUs in one process: its ops have names and no shapes")
        if self.end():
            self.begin()

    def make_way(self):
        """For a profiler of the program's that begins on this thread."""
        if self.end():
            self._switch.state.made_way = True
            note("while the program's own profiler is on, its ops have no names here")

    def come_back(self):
        """At once: PyTorch complains when a range ends that began before the other profiler."""
        here = self._switch.state
        if here.made_way:
            here.made_way = False
            self.begin()


def _watched(function, before, after):
    def told(action):
        try:
            action()
        except Exception as error:
            note_failure("the program's own profiler may fail", error)

    @functools.wraps(function)
    def call(*arguments, **more):
        told(before)
        result = function(*arguments, **more)
        told(after)
        return result

    return call


def _watch(torch, ranges):
    """A second profiler on a thread is an error. Every one of PyTorch's begins and ends with these functions."""

    def nothing():
        pass

    watched = {"_enable_profiler": (ranges.make_way, nothing), "_disable_profiler": (nothing, ranges.come_back)}
    for module in (torch.autograd.profiler, sys.modules.get("torch.autograd.profiler_legacy")):
        for name, (before, after) in watched.items():
            for spelling in (name, f"{name}_legacy"):
                if hasattr(module, spelling):
                    setattr(module, spelling, _watched(getattr(module, spelling), before, after))


def install(torch):
    """Ranges begin when CUDA does, on the thread that starts it, and with the first module that another thread calls."""
    ranges = OpRanges(torch)
    if torch.version.cuda is not None:
        _watch(torch, ranges)
        torch.cuda._lazy_call(ranges.begin)
        atexit.register(ranges.end)
    return ranges

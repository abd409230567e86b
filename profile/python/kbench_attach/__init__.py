"""The hook of the run that collects names: once the program has imported torch, each call of a module becomes an NVTX
range with its layer (modules.py), and each op one with its shapes (ops.py). It launches nothing, copies nothing and
waits for nothing, so the program's sequence of kernels stays what it was.

Standard library only, Python 3.9 to 3.14, PyTorch 2.1 and later. A failure turns the part off that failed, is one line
in notes.PID.txt, and the program goes on.
"""

import importlib.util
import sys

from . import modules, ops
from .notes import note_failure


def install():
    """After torch's module was executed."""
    try:
        torch = sys.modules["torch"]
        modules.install(torch, ops.install(torch))
    except Exception as error:
        note_failure("layers and ops have no names", error)


class _WaitForTorch:
    """A finder that finds nothing itself. It has torch's own loader call install() when torch was executed."""

    def __init__(self):
        self.searching = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searching = False
        if spec is not None:
            try:
                self._follow(spec.loader)
            except Exception as error:
                note_failure("layers and ops have no names", error)
        return spec

    def _follow(self, loader):
        execute = loader.exec_module

        def exec_module(module):
            loader.__dict__.pop("exec_module", None)
            execute(module)
            install()

        # In the instance alone, so that the loader keeps its class for whoever looks at torch.__spec__.
        loader.exec_module = exec_module


def start():
    if "torch" in sys.modules:
        install()
    else:
        sys.meta_path.insert(0, _WaitForTorch())

"""Python runs this file at its start: `kbench attach` puts its folder first in PYTHONPATH for the run that collects names.
It starts the hook for PyTorch (kbench_attach/), then runs the sitecustomize that it shadows. Whatever fails here costs
names and not the program.

    KBENCH_ATTACH          is set in everything that kbench attach starts; without it this file only gets out of the way
    KBENCH_ATTACH_PURPOSE  names: start the hook
    KBENCH_ATTACH_DIR      where notes.PID.txt goes
"""

import importlib.machinery
import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def _others(paths):
    return [path for path in paths if not path or os.path.abspath(path) != FOLDER]


def _leave_environment():
    """A folder that was left in PYTHONPATH after kbench ended must not reach the children, too."""
    paths = _others(os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if any(paths):
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    else:
        os.environ.pop("PYTHONPATH", None)


def _start_hook():
    try:
        import kbench_attach
    except Exception as error:
        print(f"kbench attach: no names of layers and ops: {type(error).__name__}: {error}", file=sys.stderr)
    else:
        kbench_attach.start()


def _run_shadowed():
    """Its errors are the program's own: `site` reports them, as it would without kbench."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if "KBENCH_ATTACH" not in os.environ:
    _leave_environment()
elif os.environ.get("KBENCH_ATTACH_PURPOSE") == "names":
    _start_hook()
sys.path[:] = _others(sys.path)
_run_shadowed()

"""The line of the user's program that called a module: the first frame outside of torch and of installed packages. A
model that comes in a package is called from the user's loop; a model of the user's own, from the line in its forward.
"""

import os
import sys

_HOOK = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Lines:
    """line() of a frame. `call` is the code that each module's call runs through (modules.py)."""

    def __init__(self, torch_folder, call):
        self._torch = torch_folder + os.sep
        self._call = call
        # A console script in the interpreter's folder only calls its package.
        folders = (os.path.dirname(os.__file__), os.path.dirname(sys.executable or "/"))
        self._skipped = (_HOOK, self._torch, *(folder + os.sep for folder in folders if folder))
        try:
            self._here = os.getcwd() + os.sep
        except OSError:
            self._here = os.sep
        self._names = {}

    def line(self, frame, inherited):
        """`inherited` is the line of the enclosing module's call on this thread. The search ends there, so that a call
        costs a few frames however deep the program is. Holds no frame, which would keep tensors alive."""
        outside_torch = ""
        while frame is not None:
            code = frame.f_code
            if code is self._call:
                return inherited
            name = self._name(code.co_filename)
            if name:
                return f"{name}:{frame.f_lineno}"
            if not outside_torch and not code.co_filename.startswith(("<", _HOOK, self._torch)):
                outside_torch = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
            frame = frame.f_back
        return outside_torch

    def _name(self, path):
        """Empty for a file that is not the user's."""
        name = self._names.get(path)
        if name is None:
            name = self._names[path] = self._name_of(path)
        return name

    def _name_of(self, path):
        if path.startswith("<"):  # code without a file: a shell's is the user's, generated code is not
            return path if path in ("<stdin>", "<string>") or path.startswith("<ipython-input") else ""
        if path.startswith(self._skipped) or "/site-packages/" in path or "/dist-packages/" in path:
            return ""
        return path[len(self._here):] if path.startswith(self._here) else os.path.basename(path)

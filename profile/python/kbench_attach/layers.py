"""Names of layers, as named_modules() of the outermost module that was called has them, and the texts of their ranges."""

import weakref
from json.encoder import encode_basestring_ascii as quoted


def _children(module):
    return [(name, child) for name, child in (getattr(module, "_modules", None) or {}).items() if child is not None]


def below(root, path=""):
    """Modules with their names, parents first. A module in two places has its first name. What torch.compile wraps
    has the name that it has without."""
    seen, todo = set(), [(root, path)]
    while todo:
        module, path = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield module, path
        wrapped = type(module).__name__ == "OptimizedModule"
        for name, child in reversed(_children(module)):
            inner = path if wrapped and name == "_orig_mod" else f"{path}.{name}" if path else name
            todo.append((child, inner))


def _is_floating(tensor):
    return tensor is not None and tensor.dtype.is_floating_point


class Layer:
    """A module's name and where its dtype is read. Keeps no module and no tensor alive."""

    __slots__ = ("module", "path", "class_name", "_owner", "_parameter", "_texts")

    def __init__(self, module, path, forget):
        self.module = weakref.ref(module, forget)
        self.path = path
        self.class_name = type(module).__name__
        if self.class_name == "RecursiveScriptModule":  # torch.jit.script's: all of one class
            self.class_name = getattr(module, "original_name", self.class_name)
        self._owner = None
        self._parameter = ""
        self._texts = {}

    def weight(self):
        """The first floating-point parameter of the module or of those below it, or None."""
        owner = self._owner and self._owner()
        known = owner._parameters.get(self._parameter) if owner is not None else None
        if _is_floating(known):
            return known
        for module, _ in below(self.module()):
            for name, parameter in (getattr(module, "_parameters", None) or {}).items():
                if _is_floating(parameter):
                    self._owner, self._parameter = weakref.ref(module), name
                    return parameter
        return None

    def text(self, dtype, line):
        text = self._texts.get((dtype, line))
        if text is None:
            if len(self._texts) > 64:  # a program that generates its code
                self._texts.clear()
            # By hand, since json.dumps is Python: torch.compile would look at its frames.
            fields = (("layer", self.path), ("class", self.class_name), ("dtype", dtype), ("line", line))
            text = "kbench:{" + ",".join([f'"{name}":{quoted(value)}' for name, value in fields]) + "}"
            self._texts[dtype, line] = text
        return text


class Layers:
    """Layers by module. Modules are known by identity: a user's class may define equality as it likes."""

    def __init__(self):
        self._layers = {}

    def find(self, module):
        layer = self._layers.get(id(module))
        return layer if layer is not None and layer.module() is module else None

    def name_below(self, root, path, rename):
        """Names `root` `path` and what is below it accordingly. `rename`: also what has a name from a smaller root."""
        for module, name in below(root, path):
            known = self.find(module)
            if known is None or rename and known.path != name:
                self._add(module, name)

    def _add(self, module, path):
        key = id(module)

        def forget(reference):
            layer = self._layers.get(key)
            if layer is not None and layer.module is reference:
                del self._layers[key]

        self._layers[key] = Layer(module, path, forget)

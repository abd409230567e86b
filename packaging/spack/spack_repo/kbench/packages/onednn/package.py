"""oneDNN in the version that kbench is tested with. The newest release in Spack's own recipe is 3.0."""

from spack_repo.builtin.packages.onednn.package import Onednn as BuiltinOnednn

from spack.package import *


class Onednn(BuiltinOnednn):
    __doc__ = BuiltinOnednn.__doc__

    version("3.2", tag="v3.2", commit="04b180b9a58a78cf1a1cd2329671a5060c2be8de")

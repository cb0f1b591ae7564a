"""`pytest --without-kernel`: as on a machine where the kernel was never built.

This process looks for it where it is not; processes that it starts import a copy of the package
that has none. So the package itself needs no switch, and workers are as they would be there.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import polyseme
from polyseme.encoders.kernels import build, loader


def leave_it_out() -> Path:
    """For the rest of this process. Returns the folder of the copy, the caller's to remove."""
    folder = Path(tempfile.mkdtemp(prefix="without-kernel-"))
    ignored = shutil.ignore_patterns("lstm-*.so*", "__pycache__")
    shutil.copytree(Path(polyseme.__file__).parent, folder / "polyseme", ignore=ignored)
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), others]))
    sys.path.insert(0, str(folder))  # workers of `multiprocessing` look where this process does
    loader.load.cache_clear()
    build._FOLDER = "never-built"
    assert loader.load() is None
    return folder

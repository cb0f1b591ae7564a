"""`pytest --without-kernel`: as on a machine where the kernel was never built.

The package is copied without it, and this process and all that it starts import the copy. So the
library itself needs no switch, and worker processes are as they would be on such a machine.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src"


def import_a_copy_without_it() -> Path:
    """Returns the folder of the copy, which is the caller's to remove."""
    assert "polyseme" not in sys.modules, "too late: the package is already imported"
    folder = Path(tempfile.mkdtemp(prefix="without-kernel-"))
    ignored = shutil.ignore_patterns("gates-*.so*", "__pycache__")
    shutil.copytree(SOURCES / "polyseme", folder / "polyseme", ignore=ignored)
    sys.path.insert(0, str(folder))
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), others]))
    return folder

"""Lines for the user, in notes.PID.txt of kbench attach's folder: what the hook could not name, and why."""

import os

_folder = os.environ.get("KBENCH_ATTACH_DIR")
_said = set()


def note(text):
    """Once a process, however often it is said. A folder that cannot be written costs the line alone."""
    text = " ".join(text.split())
    key = (os.getpid(), text)
    if not _folder or key in _said:
        return
    _said.add(key)
    try:
        with open(os.path.join(_folder, f"notes.{os.getpid()}.txt"), "a", encoding="utf-8", errors="replace") as file:
            file.write(text + "\n")
    except OSError:
        pass


def note_failure(what, error):
    try:
        note(f"{what}: {type(error).__name__}: {error}")
    except Exception:  # the error's own text failed
        note(f"{what}: {type(error).__name__}")

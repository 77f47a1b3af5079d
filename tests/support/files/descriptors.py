from pathlib import Path


def open_below(directory: Path) -> list[Path]:
    """The paths below a directory, and the directory itself, that this process holds open.

    Only these are counted: other threads of the process open and close descriptors at any moment.
    """
    held = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            path = link.readlink()
        except FileNotFoundError:  # closed since it was listed, as the descriptor of this listing is
            continue
        if path.is_relative_to(directory):
            held.append(path)
    return held

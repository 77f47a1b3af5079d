"""Entry point of a pod: `python3 -IS /run/mlp/start.py`, and of processes of MPI or a launcher in it.

The latter have a word that selects their work. It runs without site-packages. The directory of this
file is searched last, so that nothing there can replace the standard library.
"""

import sys

if __name__ == "__main__":
    if sys.version_info < (3, 9):  # noqa: UP036 - of any image
        sys.exit("the image's python3 is %d.%d; ranks need 3.9 or newer" % sys.version_info[:2])  # noqa: UP031 - of any Python
    sys.path.append(__file__.rsplit("/", 1)[0])
    from mlp_hub.executors.kubernetes.rank.main import main

    sys.exit(main(sys.argv[1:]))

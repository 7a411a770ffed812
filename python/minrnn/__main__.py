"""``python -m minrnn`` is the command ``minrnn``."""

from .command import main

main()

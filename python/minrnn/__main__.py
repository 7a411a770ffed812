"""``python -m minrnn`` runs the ``minrnn`` command."""

from .command import main

main()

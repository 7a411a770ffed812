"""What peers need besides their framework."""

# Implementations that need a package begin with its name.
PACKAGES = {"mambapy": "mambapy", "transformers": "transformers", "xlstm": "xlstm", "mlstm-kernels": "mlstm_kernels"}


def package(impl: str) -> str | None:
    """The module an implementation needs besides its framework."""
    return next((module for prefix, module in PACKAGES.items() if impl.startswith(prefix)), None)

"""The message where a framework is not installed. The module installs and imports nothing."""

from __future__ import annotations


def missing(module: str, product: str, extra: str, bad: ImportError) -> ImportError:
    """The error of `coordinator.frameworks.<module>` without `product`: the extra to install."""
    return ImportError(
        f"coordinator.frameworks.{module} needs {product}, which cannot be imported ({bad}). "
        f"Next: pip install 'coord[{extra}]'", name=bad.name, path=bad.path,
    )

"""A process of its own for what may crash, hang or take all memory: asking it, and being it."""

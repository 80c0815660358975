"""Processes for work that may crash, hang or take all memory: asking a worker, and being one."""

"""Reading source code in a process of its own. `reader_process` asks `worker` what `protocol` has:
of single files by `outlines`, of a repository by `meaning`."""

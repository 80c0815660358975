"""Reading source code in a process of its own: `questions` go to `worker`, `reader_process` asks
them; what is asked of one file is in `outlines`, what of a repository in `meaning`."""

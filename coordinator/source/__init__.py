"""Reading source code in a process of its own. `reader_process` asks `worker` the questions of
`protocol`: about single files by `outlines`, about a repository by `meaning`."""

"""What commands ask and what they print, without a terminal: each is written once, and carried out
either by the `coord` program (`coordinator.cli`) or by the coordinator itself, which then sends the
finished text to a client that need not load anything (`daemon.command_lines`).

A command is a generator: it asks by yielding a request, is sent the reply, and says lines. It reads
no file, starts no process and looks at no environment but its `Shell`.
"""

"""Commands without a terminal: what they ask of the coordinator, and the text that they print.

Each command is written once. Either the `coord` program (`coordinator.cli`) runs it, or the
coordinator itself runs it and sends the finished text to a client that has to load nothing
(`daemon.command_lines`). A command is a generator: it yields a request, receives the reply, and
says lines. It reads no file, starts no process, and knows no environment except its `Shell`.
"""

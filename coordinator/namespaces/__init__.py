"""One mount namespace for each agent session: what others hold is read-only in it.

`kernel` has the system calls, `plan` the mounts to make, and `keeper` is the process that makes
them for all sessions of a user. `orders` has the messages to it.
"""

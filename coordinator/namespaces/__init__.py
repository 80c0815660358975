"""One mount namespace for each agent session: what others hold is read-only in it.

`kernel` has the system calls, `plan` what is to be mounted where, `keeper` is the process that does
it for all sessions of a user, `orders` what is said to it.
"""

"""Looking at the disk before a decision: the needs (`facts`), the looking itself (`looker`), and
the encoding of both for a process of its own (`encoding`)."""

"""Looking at the disk before a decision: what is needed (`facts`), who looks (`looker`), and how
that travels to and from a process of its own (`wire`)."""

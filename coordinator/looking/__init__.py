"""Looking at the disk before a decision: what is needed (`facts`), who looks (`looker`), and where
(`worker`, a process of its own for all that is not small)."""

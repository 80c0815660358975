"""Meaning: the places that a change of one file breaks elsewhere. `reading` makes facts from bytes,
`index` keeps them, `resolving` follows names through them, `judging` decides. `coordinator.source`
asks."""

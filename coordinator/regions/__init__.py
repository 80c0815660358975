"""Regions: the parts of a file by their names, found anew from its bytes each time. The rule is in
`outline`, the languages are rows of `languages.toml`. `coordinator.source` asks for regions."""

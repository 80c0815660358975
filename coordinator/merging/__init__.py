"""Merging three versions of a file: git's own merge first, then by the regions of the file, always
followed by checks. A result that cannot be shown right stays a conflict. `merge.merge` decides;
`git_merge` and `driver` are the edge."""

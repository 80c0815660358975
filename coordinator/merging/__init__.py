"""Merging three versions of a file: git's own merge first, then by the regions of the file, always
behind checks. What cannot be shown right stays a conflict. `merge.merge` is the act; `git_merge`
and `driver` are the edge."""

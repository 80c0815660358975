"""`make day`: four agents at work for a scripted day in three kinds of repository, held against their own journals."""
